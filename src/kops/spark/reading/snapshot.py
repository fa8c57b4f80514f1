"""Snapshots of changelogs as Parquet: partition, key, value, timestamp, headers. DataFrame to DataFrame, and files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kops.spark.reading.ranges import HEADERS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


SCHEMA = f"partition int, key binary, value binary, timestamp bigint, {HEADERS}"
_HASH = "xxhash64(key, value is null, value, timestamp, headers)"


@dataclass(frozen=True)
class Held:
    """What a snapshot holds of one partition.

    :param tombstones: kept only for a versioned store
    :param with_headers: records that have headers
    :param high: and ``low``: sum of the hashes of the records, the same in any order
    :param earliest: and ``latest``: timestamps, milliseconds since the epoch
    """

    records: int
    tombstones: int
    with_headers: int
    high: int
    low: int
    earliest: int
    latest: int

    @property
    def fingerprint(self) -> list[int]:
        """Return the values, as JSON, in which two equal contents agree."""
        return [self.records, self.high, self.low]


def snapshot_view(records: DataFrame, *, versioned: bool = False) -> DataFrame:
    """Return what a store restores from a changelog.

    The last record of each key, unless that is a tombstone. A versioned store has a record per version of a key, including tombstones.

    :param records: in the format of ``KafkaSource.read``, with headers
    """
    from pyspark.sql import functions

    columns = "struct(value, headers) as it"
    keyed = records.where("key is not null")
    if versioned:
        rows = keyed.selectExpr("partition", "key", "timestamp_ms as timestamp", "offset", columns)
        last = rows.groupBy("partition", "key", "timestamp").agg(functions.expr("max_by(it, offset) as last"))
        return last.selectExpr("partition", "key", "last.value", "timestamp", "coalesce(last.headers, array()) as headers")
    rows = keyed.selectExpr("partition", "key", "offset", "struct(value, timestamp_ms, headers) as it")
    last = rows.groupBy("partition", "key").agg(functions.expr("max_by(it, offset) as last"))
    live = last.where("last.value is not null")
    return live.selectExpr("partition", "key", "last.value", "last.timestamp_ms as timestamp", "coalesce(last.headers, array()) as headers")


def write_snapshot(view: DataFrame, path: str) -> dict[int, Held]:
    """Write a view, sorted within its files, and return what the files hold, read back."""
    ordered = view.repartition("partition").sortWithinPartitions("partition", "key", "timestamp")
    ordered.write.mode("errorifexists").option("compression", "zstd").parquet(path)
    return held(read_snapshot(view.sparkSession, path))


def read_snapshot(session: SparkSession, path: str) -> DataFrame:
    return session.read.schema(SCHEMA).parquet(path)


def held(view: DataFrame) -> dict[int, Held]:
    """Sum up a view by partition."""
    from pyspark.sql import functions

    columns = (
        "count(*) as records",
        "count_if(value is null) as tombstones",
        "count_if(size(headers) > 0) as with_headers",
        f"sum(shiftrightunsigned({_HASH}, 32)) as high",
        f"sum({_HASH} & 4294967295) as low",
        "min(timestamp) as earliest",
        "max(timestamp) as latest",
    )
    rows = view.groupBy("partition").agg(*(functions.expr(column) for column in columns)).collect()
    return {row.partition: Held(**{name: value for name, value in row.asDict().items() if name != "partition"}) for row in rows}
