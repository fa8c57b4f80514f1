"""Stream time: the greatest timestamp that a processor of a task has observed, which decides what is late.

Window processors track it (``observedStreamTime``) over all records of their task that reach them, in processing order:
the order of offsets, or, after a new key, that of the repartition topic, where only the order of records from one source partition
is known.

A running maximum needs no sort: a Spark task reads its offsets in order. A partition that is too large for one task is read in pieces;
their greatest timestamps are computed first, so that each piece starts from the right stream time.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from kops.spark.frames import expression, with_murmur2
from kops.spark.reading.ranges import SPLIT_RECORDS, TopicRange
from kops.spark.reading.source import KafkaSource

if TYPE_CHECKING:
    import numpy
    import pyarrow
    from pyspark.sql import DataFrame

    Numbers = numpy.ndarray[Any, numpy.dtype[Any]]

NEVER = -1
"""The stream time before the first record (``ConsumerRecord.NO_TIMESTAMP``)."""


@dataclass(frozen=True)
class StreamTimes:
    """Stream times from other records that a Spark task needs before it reads its own.

    :param pieces: partition -> the ascending first offsets of its pieces, and the greatest timestamp before each
    :param greatest: partition of the repartition topic -> (greatest timestamp, its source partition, greatest from any other)
    """

    pieces: Mapping[int, tuple[Sequence[int], Sequence[int]]] = field(default_factory=dict)
    greatest: Mapping[int, tuple[int, int, int]] = field(default_factory=dict)

    def before(self, partition: int, offset: int) -> int:
        """Return the stream time before the piece that contains an offset."""
        starts, times = self.pieces.get(partition, ((), ()))
        at = bisect_right(starts, offset) - 1
        return times[at] if at >= 0 else NEVER

    def others(self, task: int, partition: int) -> int:
        """Return the greatest timestamp that reaches a task from other source partitions."""
        greatest, origin, second = self.greatest.get(task, (NEVER, NEVER, NEVER))
        return second if partition == origin else greatest


def read_in_order(kafka: KafkaSource, wanted: TopicRange, piece: int = SPLIT_RECORDS) -> DataFrame:
    """Read a topic so that each Spark task has one piece of one partition, ordered by offset."""
    numbers = sorted({number for start, end in wanted.ranges.values() if end > start for number in _pieces(start, end, piece)})
    if len(numbers) < 2:  # noqa: PLR2004 - nothing to union
        return kafka.read(replace(wanted, split=False))
    parts = [kafka.read(replace(wanted, ranges=_piece(wanted, number, piece), split=False)) for number in numbers]
    return reduce(lambda left, right: left.union(right), parts)


def is_in_pieces(wanted: TopicRange) -> bool:
    """Whether a partition is read by several tasks."""
    return any(end > start and len(_pieces(start, end, SPLIT_RECORDS)) > 1 for start, end in wanted.ranges.values())


def _pieces(start: int, end: int, piece: int) -> range:
    return range(start // piece, (end - 1) // piece + 1)


def _piece(wanted: TopicRange, number: int, piece: int) -> dict[int, tuple[int, int]]:
    low, high = number * piece, (number + 1) * piece
    return {at: (max(start, low), min(end, high)) for at, (start, end) in wanted.ranges.items() if max(start, low) < min(end, high)}


def stream_times_of_pieces(kept: DataFrame, piece: int = SPLIT_RECORDS) -> StreamTimes:
    """Compute the greatest timestamp before each piece.

    :param kept: partition, offset, timestamp_ms of the records that reach the processor
    """
    number = f"{_plain_offset(kept)} div {piece} as piece"
    grouped = kept.selectExpr("partition", number, "timestamp_ms").groupBy("partition", "piece")
    rows = grouped.agg(expression("max(timestamp_ms) as latest")).collect()
    pieces: dict[int, tuple[list[int], list[int]]] = {}
    latest: dict[int, int] = {}
    for row in sorted(rows, key=lambda row: (row.partition, row.piece)):
        starts, times = pieces.setdefault(row.partition, ([], []))
        starts.append(row.piece * piece)
        times.append(latest.get(row.partition, NEVER))
        latest[row.partition] = max(row.latest, times[-1])
    return StreamTimes(pieces=pieces)


def stream_times_of_sources(placed: DataFrame) -> StreamTimes:
    """Compute, for each partition of the repartition topic, the greatest timestamps and their source partitions.

    :param placed: task, partition, timestamp_ms of the records that reach the processor
    """
    rows = placed.groupBy("task", "partition").agg(expression("max(timestamp_ms) as latest")).collect()
    by_task: dict[int, list[tuple[int, int]]] = {}
    for row in rows:
        by_task.setdefault(row.task, []).append((row.latest, row.partition))
    greatest = {}
    for task, found in by_task.items():
        first, *rest = sorted(found, reverse=True)
        greatest[task] = (*first, rest[0][0] if rest else NEVER)
    return StreamTimes(greatest=greatest)


def with_task(kept: DataFrame, partitions: int | None) -> DataFrame:
    """Add ``task``: the partition of the processor's task, and so of its changelog.

    :param partitions: of the repartition topic; None without one
    """
    if partitions is None:
        return kept.selectExpr("*", "partition as task")
    return with_murmur2(kept, {"task": partitions})


def with_stream_time(placed: DataFrame, known: StreamTimes) -> DataFrame:
    """Add ``before``, the stream time before each record, and ``others``, the greatest timestamp that may also have preceded it.

    Both refer to the record's task: ``before`` to earlier records of its own source partition, which certainly preceded it; ``others``
    to all records of other source partitions, some of which may have.

    :param placed: partition, offset, timestamp_ms, key, v, task; each partition, or piece of it, in one Spark task, by offset
    """
    from pyspark.sql.types import LongType, StructField, StructType

    added = [StructField("before", LongType()), StructField("others", LongType())]

    def add_times(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        times = _Times(known)
        for batch in batches:
            if batch.num_rows:
                before, others = times.of(batch)
                yield batch.append_column("before", before).append_column("others", others)

    return placed.mapInArrow(add_times, StructType([*placed.schema.fields, *added]))


class _Times:
    """The running maximum for each pair of source partition and task."""

    def __init__(self, known: StreamTimes) -> None:
        self.known = known
        self.latest: dict[tuple[int, int], int] = {}

    def of(self, batch: pyarrow.RecordBatch) -> tuple[pyarrow.Array, pyarrow.Array]:
        import numpy
        import pyarrow

        partitions, tasks, times = (batch.column(name).to_numpy() for name in ("partition", "task", "timestamp_ms"))
        groups = partitions.astype(numpy.int64) << 32 | tasks
        before, others = numpy.empty(len(times), numpy.int64), numpy.empty(len(times), numpy.int64)
        order = numpy.argsort(groups, kind="stable") if (groups != groups[0]).any() else numpy.arange(len(groups))
        bounds = [0, *(numpy.flatnonzero(numpy.diff(groups[order])) + 1).tolist(), len(groups)]
        for start, end in itertools.pairwise(bounds):
            rows = order[start:end]
            group = (int(partitions[rows[0]]), int(tasks[rows[0]]))
            if group not in self.latest:
                self.latest[group] = self.known.before(group[0], _offset_at(batch, int(rows[0])))
            running = numpy.maximum.accumulate(numpy.concatenate(([self.latest[group]], times[rows])))
            before[rows], others[rows] = running[:-1], self.known.others(group[1], group[0])
            self.latest[group] = int(running[-1])
        return pyarrow.array(before), pyarrow.array(others)


def _offset_at(batch: pyarrow.RecordBatch, row: int) -> int:
    value = batch.column("offset")[row].as_py()
    return int(value["offset"] if isinstance(value, dict) else value)


def _plain_offset(kept: DataFrame) -> str:
    """Return SQL of the offset, which is part of a struct if records were exploded."""
    return "offset" if kept.schema["offset"].dataType.typeName() == "long" else "offset.offset"
