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
from kops.core.times import ANY_TIME, Times
from kops.formats.batches.columns import are_within, columns_of_frames, may_be_within, offsets_between, only_within
from kops.formats.batches.copy import added, can_go_on, fingerprint, is_compressed
from kops.formats.batches.frames import frames_of
from kops.formats.batches.header import Batch, is_sound
from kops.gateways.wire.batch_consumer import BatchConsumer
from kops.gateways.wire.connections import patiently
from kops.spark.driver.failures import explained
from kops.spark.driver.watch import HELD
from kops.spark.frames import by_task
from kops.spark.replay.jobs import KEPT, Job, Outcome, PartitionRange, send_partition
from kops.spark.replay.slices import KeyedSlice, MergedSlice, Slice, WholeBatch

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
            return send_partition(job, part, lambda start: slices_of(source, job, part, start), report)

    def _report(self, records: int, throttled: bool) -> None:
        with contextlib.suppress(OSError):
            Path(str(self.progress_folder), str(self.part.partition)).write_text(f"{records} {HELD if throttled else ''}", encoding="ascii")


def _count(job: Job, part: PartitionRange) -> int:
    """Count the records of a range, decoding only those batches of which some are to stay."""
    with contextlib.closing(BatchConsumer(job.source, job.source_settings, read_committed=True)) as source:
        return sum(each.records for each in slices_of(source, job, part, part.start))


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


def slices_of(source: BatchConsumer, job: Job, part: PartitionRange, start: int) -> Iterator[Slice]:
    """Yield the records of a part from an offset on: batches unchanged if possible, otherwise decoded.

    :raises kops.formats.batches.header.UnreadableBatch: when a batch is damaged
    """
    partition, end, destinations, times = part.partition, part.end, job.destinations, job.times

    def whole(data: bytes, batch: Batch) -> bool:
        inside = start <= batch.base_offset and batch.last_offset < end
        size = batch.end - batch.at
        return (
            not destinations.by_key
            and inside
            and can_go_on(batch)
            and size <= destinations.most
            and (size >= _SMALL or is_compressed(batch))
            and (times == ANY_TIME or bool(are_within(frames_of(data, [batch]).timestamps, times).all()))
        )

    for data, batches in source.batches(partition, start, end):
        wanted = batches if times == ANY_TIME else [batch for batch in batches if may_be_within(batch, times)]
        for goes_on, some in groupby(wanted, partial(whole, data)):
            run = list(some)
            if goes_on and all(is_sound(data, batch) for batch in run):
                yield from (WholeBatch(data, batch, partition, destinations) for batch in run)
                continue
            after = min(end, run[-1].last_offset + 1)
            frames = offsets_between(frames_of(data, run), start, end)
            if times != ANY_TIME:
                frames = only_within(frames, times)
            if not len(frames):
                continue
            if destinations.by_key:
                yield KeyedSlice(columns_of_frames(frames), partition, after, destinations)
            else:
                yield MergedSlice(frames, partition, after, destinations)


@dataclass(frozen=True)
class TimeWindow:
    """Where the records of some times are in a range of a partition.

    :param start: and ``end``: the first of them, and the offset after the last; equal if there are none
    :param inside: how many there are; ``others``: records with other timestamps between them
    :param looked: offsets that were checked
    """

    start: int
    end: int
    inside: int = 0
    others: int = 0
    looked: int = 0


@dataclass(frozen=True)
class TimeSearch:
    """Finds the committed records of some times in a part.

    :param settings: librdkafka's, secrets included: never to be shown
    """

    topic: str
    settings: Mapping[str, str] = field(repr=False)
    part: PartitionRange
    times: Times

    def __call__(self) -> TimeWindow:
        import numpy

        part, start, last = self.part, None, 0
        inside = others = after = 0  # after: records that follow the last one found
        with contextlib.closing(BatchConsumer(self.topic, self.settings, read_committed=True)) as source:
            for data, batches in source.batches(part.partition, part.start, part.end):
                for batch in batches:
                    if not may_be_within(batch, self.times) and part.start <= batch.base_offset and batch.last_offset < part.end:
                        after += batch.records
                        continue
                    frames = offsets_between(frames_of(data, [batch]), part.start, part.end)
                    rows = numpy.flatnonzero(are_within(frames.timestamps, self.times))
                    if not len(rows):
                        after += len(frames)
                        continue
                    first_row, last_row = int(rows[0]), int(rows[-1])
                    if start is None:
                        start = int(frames.offsets[first_row])
                    else:
                        others += after + first_row
                    others += last_row + 1 - first_row - len(rows)
                    inside, last, after = inside + len(rows), int(frames.offsets[last_row]), len(frames) - last_row - 1
        if start is None:
            return TimeWindow(part.start, part.start, looked=part.end - part.start)
        return TimeWindow(start, last + 1, inside, others, part.end - part.start)


def times_found(
    spark: SparkContext | SparkSession, topic: str, settings: Mapping[str, str], parts: Sequence[PartitionRange], times: Times
) -> dict[int, TimeWindow]:
    """Return where the committed records with some timestamps are, by partition.

    :param settings: librdkafka's, secrets included: never to be shown
    """
    found = run(
        spark, [TimeSearch(topic, settings, part, times) for part in parts], hint="nothing was changed; --debug shows all that Spark said"
    )
    return {part.partition: window for part, window in zip(parts, found, strict=True)}


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
