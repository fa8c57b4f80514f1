"""Archives of topics as Parquet: one row per record of the log. Written by tasks that read whole batches; read as a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kops.spark.frames import by_task, expression, numbers_of_tasks
from kops.spark.reading.ranges import COLUMNS, HEADERS, SPLIT_RECORDS, TopicRange
from kops.spark.reading.snapshot import SnapshotContent, snapshot_contents

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

    from kops.formats.batches.header import Batch
    from kops.gateways.wire.batch_consumer import BatchConsumer


SCHEMA = f"partition int, offset bigint, timestamp_ms bigint, timestamp_type string, {HEADERS}, key binary, value binary"
"""Of an archive: ``timestamp_ms`` since the epoch (-1 for none), ``timestamp_type`` as in ``message.timestamp.type``."""
BY: Mapping[str, tuple[str, ...]] = {"day": ("day",), "hour": ("day", "hour")}
"""What the directories of an archive are named after, in UTC."""
_APPENDED = 0x08
_DAY_MS, _HOUR_MS = 86_400_000, 3_600_000
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31, relative to the epoch: records with timestamps beyond are kept, in the directory of that day."""


def read_topic(session: SparkSession, topic: str, settings: Mapping[str, str], ranges: Mapping[int, tuple[int, int]]) -> DataFrame:
    """Return the committed records of ranges, with the type of their timestamps.

    :param settings: librdkafka's, for which ``connections.can_connect`` is true; secrets included: never to be shown
    :param ranges: partition -> (first offset, the offset after the last)
    """
    pieces = [
        (partition, first, min(end, first + SPLIT_RECORDS))
        for partition, (start, end) in sorted(ranges.items())
        for first in range(start, end, SPLIT_RECORDS)
    ]
    given = dict(settings)

    def read(number: int) -> Iterator[pyarrow.RecordBatch]:
        from kops.gateways.wire.batch_consumer import BatchConsumer

        source = BatchConsumer(topic, given, read_committed=True)
        try:
            yield from _rows(source.batches(*pieces[number]), *pieces[number])
        finally:
            source.close()

    return by_task(session, len(pieces), SCHEMA, read)


def _rows(fetched: Iterable[tuple[bytes, list[Batch]]], partition: int, start: int, end: int) -> Iterator[pyarrow.RecordBatch]:
    """Make rows of the batches of a range, together for batches with the same kind of timestamp."""
    from itertools import groupby

    import pyarrow

    from kops.formats.batches.columns import decode, offsets_between
    from kops.spark.reading.batch_source import header_column, partition_column

    for data, batches in fetched:
        for appended, some in groupby(batches, lambda batch: bool(batch.attributes & _APPENDED)):
            columns = offsets_between(decode(data, list(some)), start, end)
            if not len(columns):
                continue
            kind = "LogAppendTime" if appended else "CreateTime"
            yield from pyarrow.table(
                {
                    "partition": partition_column(partition, len(columns)),
                    "offset": pyarrow.array(columns.offsets),
                    "timestamp_ms": pyarrow.array(columns.timestamps),
                    "timestamp_type": pyarrow.array([kind] * len(columns)),
                    "headers": header_column(columns),
                    "key": columns.keys(),
                    "value": columns.values(),
                }
            ).to_batches()


def write_archive(records: DataFrame, path: str, by: str) -> dict[int, SnapshotContent]:
    """Write records into directories by time, and return what the files hold, read back.

    :param by: one of ``BY``
    """
    day = f"date_from_unix_date(int(greatest({_FIRST_DAY}, least({_LAST_DAY}, floor(timestamp_ms / {_DAY_MS})))))"
    times = {"day": f"{day} as day", "hour": f"lpad(cast(pmod(floor(timestamp_ms / {_HOUR_MS}), 24) as string), 2, '0') as hour"}
    folders = BY[by]
    rows = records.selectExpr("*", *(times[name] for name in folders)).sortWithinPartitions(*folders, "partition", "offset")
    rows.write.mode("errorifexists").option("compression", "zstd").partitionBy(*folders).parquet(path)
    return contents_of(read_archive(records.sparkSession, [path]))


def read_archive(session: SparkSession, paths: Sequence[str]) -> DataFrame:
    if not paths:
        return session.createDataFrame([], SCHEMA)
    names = ("partition", "offset", "timestamp_ms", "timestamp_type", "headers", "key", "value")
    frames = [session.read.schema(SCHEMA).parquet(path).select(*names) for path in paths]
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionAll(frame)
    return whole


def contents_of(rows: DataFrame) -> dict[int, SnapshotContent]:
    return snapshot_contents(
        rows.selectExpr("partition", "key", "value", "timestamp_ms as timestamp", "coalesce(headers, array()) as headers")
    )


def in_parts(rows: DataFrame, partitions: Sequence[int]) -> DataFrame:
    """Give each of these partitions a task of its own, in the given order, sorted by offset."""
    return in_tasks(rows, partitions).sortWithinPartitions("offset")


def in_tasks(rows: DataFrame, partitions: Sequence[int]) -> DataFrame:
    """Give each of these partitions a task of its own, in the given order."""
    from pyspark.sql import functions

    count = len(partitions)
    numbers = zip(partitions, numbers_of_tasks(rows.sparkSession, count), strict=True)
    slots = ", ".join(f"{partition}, {number}L" for partition, number in numbers)
    slotted = rows.where(functions.col("partition").isin(list(partitions))).withColumn(
        "slot", expression(f"element_at(map({slots}), partition)")
    )
    return slotted.repartition(count, "slot").drop("slot")


def records_before(rows: DataFrame, offsets: Mapping[int, Sequence[int]]) -> dict[tuple[int, int], int]:
    """Return how many records a partition has before each of these offsets.

    :param offsets: partition -> offsets
    :return: (partition, offset) -> records
    """
    wanted = {partition: sorted(set(some)) for partition, some in offsets.items() if some}
    if not wanted:
        return {}
    bounds = rows.sparkSession.createDataFrame(list(wanted.items()), "partition int, bounds array<bigint>")
    place = "size(filter(bounds, bound -> bound <= offset)) as place"
    counted = rows.select("partition", "offset").join(bounds, "partition").selectExpr("partition", place).groupBy("partition", "place")
    counts = {(row.partition, row.place): row["count"] for row in counted.count().collect()}
    return {
        (partition, bound): sum(counts.get((partition, place), 0) for place in range(index + 1))
        for partition, some in wanted.items()
        for index, bound in enumerate(some)
    }


@dataclass(frozen=True)
class ArchivedTopic:
    """The part of a topic that is read from an archive.

    :param paths: of the archive's runs (``kops.spark.reading.archive``)
    :param ends: partition -> the offset after the last that is in the archive; only partitions for which it is used
    """

    topic: str
    paths: tuple[str, ...]
    ends: Mapping[int, int]

    def divided(self, wanted: TopicRange) -> tuple[TopicRange, TopicRange]:
        """Return what is read from the archive, and what from the topic after it."""
        old, tail = {}, {}
        for partition, (start, end) in wanted.ranges.items():
            cut = max(start, min(end, self.ends.get(partition, start)))
            old[partition], tail[partition] = (start, cut), (cut, end)
        return replace(wanted, ranges=old), replace(wanted, ranges=tail)

    def rows(self, session: SparkSession, old: TopicRange) -> DataFrame:
        """Return the archive's records of these ranges in the format of ``KafkaSource.read``, but unordered."""
        rows = read_archive(session, self.paths).where(within(old.ranges))
        return rows.select(*COLUMNS, *(["headers"] if old.headers else []))


def within(ranges: Mapping[int, tuple[int, int]]) -> str:
    """Return SQL of whether a record is in one of these ranges."""
    several = [
        f"(partition = {partition} and offset >= {start} and offset < {end})"
        for partition, (start, end) in sorted(ranges.items())
        if start < end
    ]
    return " or ".join(several) or "false"


def file_bytes(session: SparkSession, paths: Sequence[str]) -> int:
    total = 0
    for path in paths:
        files = session.read.format("binaryFile").option("recursiveFileLookup", "true").option("pathGlobFilter", "*.parquet").load(path)
        total += files.agg(expression("coalesce(sum(length), 0) as bytes")).collect()[0]["bytes"]
    return total


def from_time_on(rows: DataFrame, ends: Mapping[int, int], milliseconds: int) -> dict[int, int]:
    """Return the first offset with this timestamp or a later one, for partitions that have one.

    :param rows: of an archive
    :param ends: partition -> the offset up to which to search
    """
    found = rows.where(within({partition: (0, end) for partition, end in ends.items()})).where(f"timestamp_ms >= {milliseconds}")
    return {row.partition: row["first"] for row in found.groupBy("partition").agg(expression("min(offset) as first")).collect()}


def positions(
    session: SparkSession,
    topic: str,
    settings: Mapping[str, str],
    *,
    tails: Mapping[int, tuple[int, int]],
    wanted: Mapping[int, Sequence[int]],
    producers: Sequence[int],
) -> dict[tuple[int, int], int]:
    """Return the offset after the first n records of these producers: that of their next record, or the one after the last.

    :param settings: librdkafka's, secrets included: never to be shown
    :param tails: partition -> the offsets to search
    :param wanted: partition -> numbers of records, ascending
    :return: (partition, records) -> offset, for those that exist
    """
    places, given, ours = sorted(wanted), dict(settings), frozenset(producers)

    def look(number: int) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        from kops.gateways.wire.batch_consumer import BatchConsumer

        partition = places[number]
        found = list(_offsets_of(BatchConsumer(topic, given, read_committed=True), partition, tails[partition], wanted[partition], ours))
        rows = [[partition] * len(found), [records for records, _ in found], [offset for _, offset in found]]
        arrays = [pyarrow.array(row, pyarrow.int64()) for row in rows]
        yield pyarrow.RecordBatch.from_arrays(arrays, ["partition", "records", "offset"])

    if not places:
        return {}
    rows = by_task(session, len(places), "partition bigint, records bigint, offset bigint", look).collect()
    return {(row.partition, row.records): row["offset"] for row in rows}


def _offsets_of(
    source: BatchConsumer, partition: int, tail: tuple[int, int], wanted: Sequence[int], producers: frozenset[int]
) -> Iterator[tuple[int, int]]:
    """Yield (records, offset); a batch is decoded only if compaction removed records from it."""
    from kops.formats.batches.columns import decode

    counted, left, after = 0, list(wanted), None
    try:
        for data, batches in source.batches(partition, *tail):
            for batch in batches:
                if batch.producer_id not in producers:
                    continue
                whole = batch.last_offset - batch.base_offset + 1 == batch.records
                while left and left[0] < counted + batch.records:
                    at = left[0] - counted
                    yield left.pop(0), batch.base_offset + at if whole else int(decode(data, [batch]).offsets[at])
                counted, after = counted + batch.records, batch.last_offset + 1
    finally:
        source.close()
    if after is not None and left and left[0] == counted:
        yield counted, after
