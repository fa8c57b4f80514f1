"""The tasks of a replay that make no rows of records: to copy a range, to count one, to read a target back.

Spark only starts such a task: it reads from the brokers and sends to them by itself.
"""

from __future__ import annotations

import contextlib
import pickle
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from kops.core.errors import OperationFailed
from kops.gateways.wire.transactions import patiently
from kops.spark.driver.watch import HELD
from kops.spark.replay.jobs import KEPT, Job, Outcome, Part, sent_part

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import SparkSession

T = TypeVar("T")


def run(session: SparkSession, tasks: Sequence[Callable[[], T]], *, hint: str = KEPT) -> list[T]:
    """Run calls without arguments in tasks of Spark, and return what they return, in their order.

    One that fails ends no other: what the others are about to send is to be in the target.

    :param tasks: can be pickled, as what they return can
    :param hint: where Spark fails
    :raises OperationFailed: when one raises, or its process ends
    """
    if not tasks:
        return []
    calls = list(tasks)

    def answer(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        for number in (row for batch in batches for row in batch.column(0).to_pylist()):
            arrays = [pyarrow.array([number], pyarrow.int64()), pyarrow.array([pickle.dumps(_attempted(calls[number]))], pyarrow.binary())]
            yield pyarrow.RecordBatch.from_arrays(arrays, ["number", "answer"])

    from kops.spark.driver.failures import explained

    with explained("run the tasks of a replay", hint=hint):
        rows = session.range(0, len(calls), 1, len(calls)).mapInArrow(answer, "number bigint, answer binary").collect()
    answers = {row.number: pickle.loads(bytes(row.answer)) for row in rows}  # noqa: S301 - of our own tasks
    for answered in answers.values():
        if isinstance(answered, _Failure):
            raise OperationFailed(answered.reason, hint="--debug shows more") from RuntimeError(answered.traceback)
    return [answers[number] for number in range(len(calls))]


@dataclass(frozen=True)
class _Failure:
    reason: str
    traceback: str


def _attempted(call: Callable[[], T]) -> T | _Failure:
    try:
        return call()
    except Exception as error:  # whatever it is, the driver reports it
        return _Failure(f"{type(error).__name__}: {error}", traceback.format_exc())


@dataclass(frozen=True)
class _Copy:
    """Sends a part.

    :param progress_folder: of this machine, where it writes how many records it has sent, for ``watch.records_told``
    """

    job: Job
    part: Part
    progress_folder: str | None = None

    def __call__(self) -> Outcome:
        from kops.gateways.wire.batch_consumer import BatchConsumer
        from kops.spark.replay.read import rounds_of

        job, part = self.job, self.part
        with contextlib.closing(patiently(lambda: BatchConsumer(job.source, job.source_settings, read_committed=True))) as source:
            report = None if self.progress_folder is None else self._report
            return sent_part(job, part, lambda start: rounds_of(source, part.partition, start, part.end, job.places), report)

    def _report(self, records: int, throttled: bool) -> None:
        with contextlib.suppress(OSError):
            Path(str(self.progress_folder), str(self.part.partition)).write_text(f"{records} {HELD if throttled else ''}", encoding="ascii")


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


def copy(session: SparkSession, job: Job, parts: Sequence[Part], progress_folder: str | None = None) -> list[Outcome]:
    """Send parts without making rows of their records.

    :param progress_folder: where tasks of this machine write how many they have sent
    """
    return run(session, [_Copy(job, part, progress_folder) for part in parts])


def counted(session: SparkSession, job: Job, parts: Sequence[Part]) -> int:
    """Return how many records parts have."""
    return sum(run(session, [_Count(job, part) for part in parts], hint="nothing was sent; --debug shows all that Spark said"))


def found_in(
    session: SparkSession,
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
    return dict(zip(places, run(session, looks), strict=True))
