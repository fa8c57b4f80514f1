"""Snapshots of changelogs as Parquet, and what a partition holds: a number of records, and a hash of them to compare with.

Snapshots have partition, key, value, timestamp, headers. DataFrame to DataFrame, and files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kops.spark.frames import expression, expressions
from kops.spark.reading.ranges import HEADERS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession


SCHEMA = f"partition int, key binary, value binary, timestamp bigint, {HEADERS}"
HASH_WITH_HEADERS = "xxhash64(key, value is null, value, timestamp, headers)"
CONTENT_SCHEMA = "partition int, records bigint, tombstones bigint, high bigint, low bigint, earliest bigint, latest bigint"
"""The columns of rows that make a ``Content``."""


@dataclass(frozen=True)
class Content:
    """The records that go to one partition.

    :param high: and ``low``: sum of the hashes of the records, the same in any order
    :param earliest: and ``latest``: timestamps, milliseconds since the epoch
    """

    records: int = 0
    tombstones: int = 0
    high: int = 0
    low: int = 0
    earliest: int = 0
    latest: int = 0

    @property
    def fingerprint(self) -> list[int]:
        """Return the values, as JSON, in which two equal contents agree."""
        return [self.records, self.high, self.low]


@dataclass(frozen=True)
class SnapshotContent(Content):
    """What a snapshot holds of one partition; it keeps tombstones only for a versioned store.

    :param with_headers: records that have headers
    """

    with_headers: int = 0


def added_contents(rows: Sequence[Row]) -> dict[int, Content]:
    """Merge rows of ``CONTENT_SCHEMA``, of which a partition may have several."""
    return {number: _sum_of([row for row in rows if row.partition == number]) for number in {row.partition for row in rows}}


def _sum_of(parts: Sequence[Row]) -> Content:
    return Content(
        records=sum(part.records for part in parts),
        tombstones=sum(part.tombstones for part in parts),
        high=sum(part.high for part in parts),
        low=sum(part.low for part in parts),
        earliest=min(part.earliest for part in parts),
        latest=max(part.latest for part in parts),
    )


def snapshot_view(records: DataFrame, *, versioned: bool = False) -> DataFrame:
    """Return what a store restores from a changelog.

    The last record of each key, unless that is a tombstone. A versioned store has a record per version of a key, including tombstones.

    :param records: in the format of ``KafkaSource.read``, with headers
    """
    columns = "struct(value, headers) as it"
    keyed = records.where("key is not null")
    if versioned:
        rows = keyed.selectExpr("partition", "key", "timestamp_ms as timestamp", "offset", columns)
        last = rows.groupBy("partition", "key", "timestamp").agg(expression("max_by(it, offset) as last"))
        return last.selectExpr("partition", "key", "last.value", "timestamp", "coalesce(last.headers, array()) as headers")
    rows = keyed.selectExpr("partition", "key", "offset", "struct(value, timestamp_ms, headers) as it")
    last = rows.groupBy("partition", "key").agg(expression("max_by(it, offset) as last"))
    live = last.where("last.value is not null")
    return live.selectExpr("partition", "key", "last.value", "last.timestamp_ms as timestamp", "coalesce(last.headers, array()) as headers")


def write_snapshot(view: DataFrame, path: str) -> dict[int, SnapshotContent]:
    """Write a view, sorted within its files, and return what the files hold, read back."""
    ordered = view.repartition("partition").sortWithinPartitions("partition", "key", "timestamp")
    ordered.write.mode("errorifexists").option("compression", "zstd").parquet(path)
    return snapshot_contents(read_snapshot(view.sparkSession, path))


def read_snapshot(session: SparkSession, path: str) -> DataFrame:
    return session.read.schema(SCHEMA).parquet(path)


def content_columns(hashed: str) -> list[str]:
    """Return SQL aggregates of records that make a ``Content``.

    The 64-bit hashes are added in halves, so that nothing overflows and every Spark computes the same number.

    :param hashed: SQL of the hash of a record
    """
    return [
        "count(*) as records",
        "count_if(value is null) as tombstones",
        f"sum(shiftrightunsigned({hashed}, 32)) as high",
        f"sum({hashed} & 4294967295) as low",
        "min(timestamp) as earliest",
        "max(timestamp) as latest",
    ]


def snapshot_contents(view: DataFrame) -> dict[int, SnapshotContent]:
    columns = [*content_columns(HASH_WITH_HEADERS), "count_if(size(headers) > 0) as with_headers"]
    rows = view.groupBy("partition").agg(*expressions(columns)).collect()
    return {row.partition: SnapshotContent(**{name: value for name, value in row.asDict().items() if name != "partition"}) for row in rows}
