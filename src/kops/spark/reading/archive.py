"""Archives of topics as Parquet: one row per record of the log. Written by tasks that read whole batches; read as a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kops.spark.reading.ranges import HEADERS, SPLIT_RECORDS
from kops.spark.reading.snapshot import Held, held

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

    from kops.formats.batches.header import Batch

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

    def read(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        from kops.gateways.wire.batch_consumer import BatchConsumer

        for number in (row for batch in batches for row in batch.column(0).to_pylist()):
            source = BatchConsumer(topic, given, read_committed=True)
            try:
                yield from _rows(source.batches(*pieces[number]), *pieces[number])
            finally:
                source.close()

    return session.range(0, len(pieces), 1, max(1, len(pieces))).mapInArrow(read, SCHEMA)


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


def write_archive(records: DataFrame, path: str, by: str) -> dict[int, Held]:
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
    """Read the records of several runs."""
    if not paths:
        return session.createDataFrame([], SCHEMA)
    names = [column.split()[0] for column in ("partition", "offset", "timestamp_ms", "timestamp_type", "headers", "key", "value")]
    frames = [session.read.schema(SCHEMA).parquet(path).select(*names) for path in paths]
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.unionAll(frame)
    return whole


def contents_of(rows: DataFrame) -> dict[int, Held]:
    """Sum up an archive by partition."""
    return held(rows.selectExpr("partition", "key", "value", "timestamp_ms as timestamp", "coalesce(headers, array()) as headers"))


def in_parts(rows: DataFrame, partitions: Sequence[int]) -> DataFrame:
    """Give each of these partitions a task of its own, in the given order, sorted by offset.

    Spark assigns a row to a task by the hash of a column. So each partition gets a number whose hash leads to its task.
    """
    from pyspark.sql import functions

    session, count = rows.sparkSession, len(partitions)
    numbers = session.range(0, 64 * count, 1, 1).groupBy(functions.expr(f"pmod(hash(id), {count}) as task")).agg(functions.min("id"))
    found = {row[0]: row[1] for row in numbers.collect()}
    slots = ", ".join(f"{partition}, {found[task]}L" for task, partition in enumerate(partitions))
    slotted = rows.where(functions.col("partition").isin(list(partitions))).withColumn(
        "slot", functions.expr(f"element_at(map({slots}), partition)")
    )
    return slotted.repartition(count, "slot").sortWithinPartitions("offset").drop("slot")


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
