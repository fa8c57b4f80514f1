"""Ranges of Kafka topics as DataFrames, read by Python tasks as whole record batches.

Returns the rows of ``source.KafkaSource`` at a fraction of the cost, and its tasks can reduce them to fewer rows before any go to the JVM.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kops.core.times import ANY_TIME, Times
from kops.formats.batches.columns import are_within
from kops.formats.batches.header import UnreadableBatch
from kops.formats.xxhash64_columns import record_hashes
from kops.spark.driver.watch import reporting
from kops.spark.frames import by_task
from kops.spark.reading.gathering import gathered, newest_of_each_key
from kops.spark.reading.input_seen import InputSeen, note
from kops.spark.reading.ranges import COLUMNS, HEADERS, SCHEMA, SPLIT_RECORDS, TopicRange
from kops.spark.reading.snapshot import CONTENT_SCHEMA, Content, added_contents

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

    from kops.formats.batches.columns import RecordColumns

_UNREADABLE = "unreadable"
"""An empty file next to those of ``watch.reporting``."""
_readings = itertools.count()
Reduce = Callable[["Iterator[RecordColumns]", int], "Iterator[pyarrow.Table]"]
"""From the records of a partition, some megabytes at a time, and its number, to the tables that go to the JVM."""


@dataclass(frozen=True)
class BatchSource:
    """Reads topics with ``batch_consumer``.

    :param settings: librdkafka's, for which ``connections.can_connect`` is true; secrets included: never to be shown
    :param progress_folder: on this machine, where tasks report how many records they have read, for ``watch.records_reported``
    """

    session: SparkSession
    settings: Mapping[str, str] = field(repr=False)
    progress_folder: str | None = None

    def read(self, wanted: TopicRange) -> DataFrame:
        if wanted.headers:
            return self.reduced(wanted, f"{SCHEMA}, {HEADERS}", RowBuilder())
        return self.reduced(wanted, SCHEMA, RowBuilder(COLUMNS))

    def newest(self, wanted: TopicRange) -> DataFrame:
        """Return the records without most of those that a later one of the same key replaces."""
        return self.reduced(wanted, f"{SCHEMA}, {HEADERS}", newest_rows)

    def contents(self, wanted: TopicRange) -> dict[int, Content]:
        """Return the number of records and their hashes by partition, as ``stage.contents_of`` does."""
        return added_contents(self.reduced(wanted, CONTENT_SCHEMA, content_rows).collect())

    def reduced(self, wanted: TopicRange, schema: str, reduce: Reduce) -> DataFrame:
        """Return what tasks make of the records.

        :param schema: of what ``reduce`` returns
        :param reduce: runs in tasks, for each range that one reads
        """
        parts = list(_parts(wanted))
        if not parts:
            return self.session.createDataFrame([], schema)

        def run(number: int, read: Read) -> Iterator[pyarrow.Table]:
            yield from reduce(read(parts[number]), parts[number].partition)

        return self.by_task(len(parts), schema, run)

    def by_task(self, count: int, schema: str, run: Callable[[int, Read], Iterator[pyarrow.Table]]) -> DataFrame:
        """Return the results of this many tasks.

        :param schema: of what ``run`` returns
        :param run: runs in tasks, with the number of each and a function that reads pieces of topics
        """
        settings, folder, reading = dict(self.settings), self.progress_folder, next(_readings)

        def give(number: int) -> Iterator[pyarrow.RecordBatch]:
            for table in run(number, reader(settings, folder, str(reading))):
                yield from table.to_batches()

        return by_task(self.session, count, schema, give)

    @property
    def met_unreadable(self) -> bool:
        """Whether a task met a batch that is damaged or of an old format, which Spark's own source may be able to read."""
        return self.progress_folder is not None and Path(self.progress_folder, _UNREADABLE).exists()


def reader(settings: Mapping[str, str], folder: str | None, reading: str) -> Read:
    """Return what reads pieces of topics; runs in tasks.

    :param folder: where it reports; None: nowhere
    :param reading: with which its reports begin, so that what was read before keeps its count
    """

    def read(piece: TaskInput) -> Iterator[RecordColumns]:
        name = f"{reading}-{piece.topic}-{piece.partition}-{piece.start}"
        return piece.sampled(noting_unreadable(reporting(piece.records(settings, folder), folder, name), folder))

    return read


def noting_unreadable(records: Iterator[RecordColumns], folder: str | None) -> Iterator[RecordColumns]:
    """Pass records on; if a batch cannot be read, leave a file in the directory before the task fails: Spark hides the error's type."""
    try:
        yield from records
    except UnreadableBatch:
        if folder is not None:
            Path(folder, _UNREADABLE).touch()
        raise


@dataclass(frozen=True)
class TaskInput:
    """What a task reads of a partition: from ``start`` up to, but not including, ``end``.

    :param trimmed: whether the application has read earlier records, which are gone
    :param times: as in ``TopicRange``
    """

    topic: str
    partition: int
    start: int
    end: int
    read_committed: bool = False
    trimmed: bool = False
    times: Times = ANY_TIME

    def records(self, settings: Mapping[str, str], folder: str | None = None) -> Iterator[RecordColumns]:
        """Yield the records, over a connection of its own.

        :param folder: where to record what was seen on the way, for ``input_seen.seen_of``
        """
        from kops.gateways.wire.batch_consumer import BatchConsumer

        consumer = BatchConsumer(self.topic, settings, read_committed=self.read_committed)
        latest: int | None = None
        try:
            for columns in consumer.read(self.partition, self.start, self.end):
                newest = int(columns.timestamps.max())
                latest = newest if latest is None else max(latest, newest)
                yield columns
            if folder is not None:
                place = (self.topic, self.partition, self.start, self.end)
                note(folder, place, InputSeen(tuple(consumer.gaps.found), latest, consumer.aborted))
        finally:
            consumer.close()

    def sampled(self, records: Iterator[RecordColumns]) -> Iterator[RecordColumns]:
        """Leave out the times that are not wanted."""
        for columns in records:
            found = columns
            if self.times != ANY_TIME:
                found = found.where(are_within(found.timestamps, self.times))
            if len(found):
                yield found


Read = Callable[[TaskInput], "Iterator[RecordColumns]"]
"""Reads a piece of a topic, some megabytes at a time."""


def _parts(wanted: TopicRange) -> Iterator[TaskInput]:
    for partition in sorted(wanted.ranges):
        whole = task_input(wanted, partition)
        if whole is not None:
            step = SPLIT_RECORDS if wanted.split else whole.end - whole.start
            for first in range(whole.start, whole.end, step):
                yield replace(whole, start=first, end=min(whole.end, first + step))


def task_input(wanted: TopicRange, partition: int) -> TaskInput | None:
    """Return what is read of a partition, as one piece; None if that is nothing."""
    start, end = wanted.ranges.get(partition, (0, 0))
    if start >= end:
        return None
    return TaskInput(wanted.topic, partition, start, end, wanted.read_committed, partition in wanted.trimmed, wanted.times)


@dataclass(frozen=True)
class RowBuilder:
    """Makes a row of some columns of each record; runs in tasks."""

    columns: tuple[str, ...] = (*COLUMNS, "headers")

    def __call__(self, records: Iterator[RecordColumns], partition: int) -> Iterator[pyarrow.Table]:
        import pyarrow

        make = {
            "key": lambda some: some.keys(),
            "value": lambda some: some.values(),
            "partition": lambda some: partition_column(partition, len(some)),
            "offset": lambda some: pyarrow.array(some.offsets),
            "timestamp_ms": lambda some: pyarrow.array(some.timestamps),
            "headers": header_column,
        }
        for some in records:
            yield pyarrow.table({name: make[name](some) for name in self.columns})


def newest_rows(records: Iterator[RecordColumns], partition: int) -> Iterator[pyarrow.Table]:
    """Make a row of the last record of each key, among those held at once: ``SCHEMA`` and ``HEADERS``; runs in tasks."""
    return gathered(RowBuilder()(records, partition), newest_of_each_key)


def content_rows(records: Iterator[RecordColumns], partition: int) -> Iterator[pyarrow.Table]:
    """Yield, now and then, the number of records and their hashes as a row of ``snapshot.CONTENT_SCHEMA``; runs in tasks."""
    import pyarrow

    for columns in records:
        hashes = record_hashes(columns)
        found = {
            "records": len(columns),
            "tombstones": int((columns.value_lengths < 0).sum()),
            "high": int((hashes >> 32).sum()),
            "low": int((hashes & 0xFFFFFFFF).sum()),
            "earliest": int(columns.timestamps.min()),
            "latest": int(columns.timestamps.max()),
        }
        numbers = {name: pyarrow.array([number], pyarrow.int64()) for name, number in found.items()}
        yield pyarrow.table({"partition": partition_column(partition, 1), **numbers})


def partition_column(partition: int, count: int) -> pyarrow.Array:
    import numpy
    import pyarrow

    return pyarrow.array(numpy.full(count, partition, dtype=numpy.int32))


def header_column(columns: RecordColumns) -> pyarrow.Array:
    """Return the headers of each record; null if it has none, as in Spark's own source."""
    import numpy
    import pyarrow

    lists: list[Any] = [None] * len(columns)
    for row in numpy.flatnonzero(columns.has_headers()).tolist():
        lists[row] = [{"key": name, "value": value} for name, value in columns.headers(row)]
    return pyarrow.array(lists, pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())])))
