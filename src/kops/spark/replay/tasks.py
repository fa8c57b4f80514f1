"""The tasks of a replay that make no rows of records: they copy a range, count one, or read a target back.

Spark only starts such a task: it reads from the brokers and sends to them by itself.
"""

from __future__ import annotations

import contextlib
import pickle
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from kops.core.errors import OperationFailed
from kops.formats.batches.columns import decode, offsets_between
from kops.formats.batches.copy import added, can_go_on, fingerprint, is_compressed
from kops.formats.batches.frames import frames_of
from kops.formats.batches.header import Batch, is_sound
from kops.gateways.wire.batch_consumer import BatchConsumer
from kops.gateways.wire.connections import patiently
from kops.spark.driver.failures import explained
from kops.spark.driver.watch import HELD
from kops.spark.frames import by_task
from kops.spark.replay.jobs import KEPT, Job, Outcome, PartitionRange, send_partition
from kops.spark.replay.slices import Destinations, KeyedSlice, MergedSlice, Slice, WholeBatch

if TYPE_CHECKING:
    import pyarrow
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

T = TypeVar("T")
_SMALL = 64 << 10
"""Below this size, a request for a single batch costs more than to decode it and encode it together with many others."""


def run(spark: SparkContext | SparkSession, tasks: Sequence[Callable[[], T]], *, hint: str = KEPT) -> list[T]:
    """Run calls without arguments in Spark tasks, and return their results in order.

    If one fails, the others finish, so that what they can send is in the target.

    :param tasks: must be picklable, as must their results
    :param hint: for an error in Spark
    :raises OperationFailed: when one raises, or its process ends
    """
    if not tasks:
        return []
    calls = list(tasks)
    with explained("run the tasks of a replay", hint=hint):
        answers = {number: pickle.loads(answer) for number, answer in _answers(spark, calls)}  # noqa: S301 - of our own tasks
    for answered in answers.values():
        if isinstance(answered, _Failure):
            raise OperationFailed(answered.reason, hint="--debug shows more") from RuntimeError(answered.traceback)
    return [answers[number] for number in range(len(calls))]


def _answers(spark: SparkContext | SparkSession, calls: Sequence[Callable[[], T]]) -> Iterator[tuple[int, bytes]]:
    """Run each call in a task of its own, and yield its number and its pickled result.

    As an RDD it needs no Spark SQL, which takes half of a short replay's CPU; Spark Connect has no RDDs.

    :param spark: the context, or a session of Spark Connect
    """
    numbers = range(len(calls))
    if hasattr(spark, "parallelize"):
        numbered = spark.parallelize(numbers, len(calls))
        yield from numbered.map(lambda number: (number, pickle.dumps(_attempted(calls[number])))).collect()
        return

    def answer(number: int) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        arrays = [pyarrow.array([number], pyarrow.int64()), pyarrow.array([pickle.dumps(_attempted(calls[number]))], pyarrow.binary())]
        yield pyarrow.RecordBatch.from_arrays(arrays, ["number", "answer"])

    for row in by_task(spark, len(calls), "number bigint, answer binary", answer).collect():
        yield row.number, bytes(row.answer)


@dataclass(frozen=True)
class _Failure:
    reason: str
    traceback: str


def _attempted(call: Callable[[], T]) -> T | _Failure:
    try:
        return call()
    except Exception as error:  # the driver reports it, whatever it is
        return _Failure(f"{type(error).__name__}: {error}", traceback.format_exc())


@dataclass(frozen=True)
class _Copy:
    """Sends a part.

    :param progress_folder: on this machine, where it writes the number of records sent, for ``watch.records_reported``
    """

    job: Job
    part: PartitionRange
    progress_folder: str | None = None

    def __call__(self) -> Outcome:
        job, part = self.job, self.part
        with contextlib.closing(patiently(lambda: BatchConsumer(job.source, job.source_settings, read_committed=True))) as source:
            report = None if self.progress_folder is None else self._report
            return send_partition(job, part, lambda start: slices_of(source, part.partition, start, part.end, job.destinations), report)

    def _report(self, records: int, throttled: bool) -> None:
        with contextlib.suppress(OSError):
            Path(str(self.progress_folder), str(self.part.partition)).write_text(f"{records} {HELD if throttled else ''}", encoding="ascii")


def _count(job: Job, part: PartitionRange) -> int:
    """Count the records of a range, decoding only those batches of which some are to stay."""
    with contextlib.closing(BatchConsumer(job.source, job.source_settings, read_committed=True)) as source:
        return sum(each.records for each in slices_of(source, part.partition, part.start, part.end, job.destinations))


@dataclass(frozen=True)
class PartitionTotals:
    """What a partition of a target holds.

    :param records: those of the replay; ``others``: those of other producers
    """

    records: int
    fingerprint: int
    others: int


@dataclass(frozen=True)
class _ReadBack:
    """Adds up what these producers have written to a partition, and counts what others wrote.

    :param tail: the offsets to read
    """

    settings: Mapping[str, str] = field(repr=False)
    topic: str
    partition: int
    tail: tuple[int, int]
    producers: frozenset[int]
    inflated: bool

    def __call__(self) -> PartitionTotals:
        records = total = others = 0
        with contextlib.closing(BatchConsumer(self.topic, self.settings, read_committed=True)) as source:
            for data, some in source.batches(self.partition, *self.tail):
                for batch in some:
                    if batch.producer_id in self.producers:
                        records, total = records + batch.records, added(total, fingerprint(data, batch, inflated=self.inflated))
                    else:
                        others += batch.records
        return PartitionTotals(records, total, others)


def slices_of(source: BatchConsumer, partition: int, start: int, end: int, destinations: Destinations) -> Iterator[Slice]:
    """Yield the records of a range: batches unchanged if possible, otherwise decoded.

    :raises kops.formats.batches.header.UnreadableBatch: when a batch is damaged
    """

    def whole(batch: Batch) -> bool:
        inside = start <= batch.base_offset and batch.last_offset < end
        size = batch.end - batch.at
        return (
            not destinations.by_key
            and inside
            and can_go_on(batch)
            and size <= destinations.most
            and (size >= _SMALL or is_compressed(batch))
        )

    for data, batches in source.batches(partition, start, end):
        for goes_on, some in groupby(batches, whole):
            run = list(some)
            if goes_on and all(is_sound(data, batch) for batch in run):
                yield from (WholeBatch(data, batch, partition, destinations) for batch in run)
                continue
            after = min(end, run[-1].last_offset + 1)
            if destinations.by_key:
                columns = offsets_between(decode(data, run), start, end)
                if len(columns):
                    yield KeyedSlice(columns, partition, after, destinations)
            else:
                frames = offsets_between(frames_of(data, run), start, end)
                if len(frames):
                    yield MergedSlice(frames, partition, after, destinations)


def copy(
    spark: SparkContext | SparkSession, job: Job, parts: Sequence[PartitionRange], progress_folder: str | None = None
) -> list[Outcome]:
    """Send parts without making rows of their records.

    :param progress_folder: where tasks on this machine write the number of records sent
    """
    return run(spark, [_Copy(job, part, progress_folder) for part in parts])


def counted(spark: SparkContext | SparkSession, job: Job, parts: Sequence[PartitionRange]) -> int:
    return sum(run(spark, [partial(_count, job, part) for part in parts], hint="nothing was sent; --debug shows all that Spark said"))


def found_in(
    spark: SparkContext | SparkSession,
    settings: Mapping[str, str],
    tails: Mapping[tuple[str, int], tuple[int, int]],
    producers: Sequence[int],
    *,
    inflated: bool = False,
) -> dict[tuple[str, int], PartitionTotals]:
    """Return how many committed records of these producers are in partitions, and the sum of their batches' fingerprints.

    :param tails: (topic, partition) -> the offsets to read
    """
    destinations = sorted(tails)
    looks = [_ReadBack(settings, *place, tails[place], frozenset(producers), inflated) for place in destinations]
    return dict(zip(destinations, run(spark, looks), strict=True))
