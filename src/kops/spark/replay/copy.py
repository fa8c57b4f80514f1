"""The tasks of a replay that make no rows of records: to copy a part, to count one, to read a target back."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kops.gateways.wire.transactions import patiently
from kops.spark.driver.watch import HELD
from kops.spark.replay.jobs import Job, Outcome, Part, sent_part
from kops.spark.replay.tasks import Tasks


@dataclass(frozen=True)
class _Copy:
    """Sends a part.

    :param told: a folder of this machine where it says how many records it has sent, for ``watch.records_told``
    """

    job: Job
    part: Part
    told: str | None = None

    def __call__(self) -> Outcome:
        from kops.gateways.wire.batch_consumer import BatchConsumer
        from kops.spark.replay.read import rounds_of

        job, part = self.job, self.part
        with contextlib.closing(patiently(lambda: BatchConsumer(job.source, job.source_settings, read_committed=True))) as source:
            tell = None if self.told is None else self._tell
            return sent_part(job, part, lambda start: rounds_of(source, part.partition, start, part.end, job.places), tell)

    def _tell(self, records: int, throttled: bool) -> None:
        with contextlib.suppress(OSError):
            Path(str(self.told), str(self.part.partition)).write_text(f"{records} {HELD if throttled else ''}", encoding="ascii")


@dataclass(frozen=True)
class _Count:
    """Counts the records of a part, decoding only those batches of which some are to stay."""

    job: Job
    part: Part

    def __call__(self) -> int:
        from kops.gateways.wire.batch_consumer import BatchConsumer
        from kops.spark.replay.read import rounds_of

        job, part = self.job, self.part
        with contextlib.closing(BatchConsumer(job.source, job.source_settings, read_committed=True)) as source:
            return sum(each.records for each in rounds_of(source, part.partition, part.start, part.end, job.places))


@dataclass(frozen=True)
class Found:
    """What a partition of a target holds.

    :param records: of the replay; ``others``: of anybody else
    """

    records: int
    fingerprint: int
    others: int


@dataclass(frozen=True)
class _ReadBack:
    """Adds up what some producers have written to a partition, and counts what others have.

    :param tail: the offsets to look at
    """

    settings: Mapping[str, str] = field(repr=False)
    topic: str
    partition: int
    tail: tuple[int, int]
    producers: frozenset[int]
    inflated: bool

    def __call__(self) -> Found:
        from kops.formats.batches.copy import added, fingerprint
        from kops.gateways.wire.batch_consumer import BatchConsumer

        records = total = others = 0
        with contextlib.closing(BatchConsumer(self.topic, self.settings, read_committed=True)) as source:
            for data, some in source.batches(self.partition, *self.tail):
                for batch in some:
                    if batch.producer_id in self.producers:
                        records, total = records + batch.records, added(total, fingerprint(data, batch, inflated=self.inflated))
                    else:
                        others += batch.records
        return Found(records, total, others)


def copy(tasks: Tasks, job: Job, parts: Sequence[Part], told: str | None = None) -> list[Outcome]:
    """Send parts without making rows of their records.

    :param told: a folder where tasks of this machine say how many they have sent
    """
    return tasks.run([_Copy(job, part, told) for part in parts])


def counted(tasks: Tasks, job: Job, parts: Sequence[Part]) -> int:
    """Return how many records parts have."""
    return sum(tasks.run([_Count(job, part) for part in parts]))


def found_in(
    tasks: Tasks,
    settings: Mapping[str, str],
    tails: Mapping[tuple[str, int], tuple[int, int]],
    producers: Sequence[int],
    *,
    inflated: bool = False,
) -> dict[tuple[str, int], Found]:
    """Return how many committed records of some producers are in partitions, and the sum of their batches' fingerprints.

    :param tails: (topic, partition) -> the offsets to look at
    """
    places = sorted(tails)
    looks = [_ReadBack(settings, *place, tails[place], frozenset(producers), inflated) for place in places]
    return dict(zip(places, tasks.run(looks), strict=True)) if places else {}
