"""The partition of a new key: as computed by the producer's default partitioner, which Kafka Streams' repartition sink uses.

If the application has its own partitioner, only what its changelog still holds of a key shows where the key belongs.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from kops.spark.frames import expression, with_murmur2
from kops.spark.reading.snapshot import read_snapshot
from kops.spark.staging.difference import compacted_view
from kops.spark.staging.stage import read_stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

    from kops.spark.job import Job
    from kops.spark.reading.source import KafkaSource

UNKNOWN = -1
"""The partition of a key when nothing shows where it belongs."""


def placed(kafka: KafkaSource, rows: DataFrame, job: Job) -> DataFrame:
    """Fill in the column ``partition`` for a store with new keys."""
    return _where_they_are(kafka, rows, job) if job.store.custom_partitioner else with_partitions(rows, job.partitions)


def with_partitions(expected: DataFrame, partitions: int, suffix: int = 0) -> DataFrame:
    return with_murmur2(expected, {"partition": partitions}, suffix=suffix)


def _where_they_are(kafka: KafkaSource, rows: DataFrame, job: Job) -> DataFrame:
    """Place each key where the changelog has it; ``UNKNOWN`` if it does not, or has it live in several partitions.

    A tombstone is enough, for as long as the log still has it.
    """
    held = (
        read_snapshot(rows.sparkSession, job.held) if job.held else compacted_view(kafka.newest(job.places or job.changelog))
    ).selectExpr("key", "partition", "value is not null as live")
    if job.base:
        held = held.unionByName(read_snapshot(rows.sparkSession, job.base).selectExpr("key", "partition", "value is not null as live"))
    of_keys = held.groupBy("key").agg(
        expression("array_sort(collect_set(partition)) as everywhere"),
        expression("array_sort(collect_set(if(live, partition, null))) as alive"),
    )
    only = "case when size(alive) = 1 then alive[0] when size(alive) = 0 and size(everywhere) = 1 then everywhere[0] end as place"
    joined = rows.drop("partition").join(of_keys.selectExpr("key", only), "key", "left")
    return joined.selectExpr(f"coalesce(place, {UNKNOWN}) as partition", *(name for name in rows.columns if name != "partition"))


def strays(session: SparkSession, stage: str, partitions: int, among: Collection[int], suffix: int = 0) -> tuple[int, Row | None]:
    """Count the keys of a changelog that are not where the default partitioner puts them; also return the first.

    :param stage: of the difference: such a key can only be an unexpected one
    :param among: the partitions to check
    :param suffix: number of bytes after the application's own key
    """
    where = f"action = 'removed' and partition in ({', '.join(map(str, sorted(among)))})"
    unexpected = read_stage(session, stage).where(where).selectExpr("partition", "key", "partition as found")
    off = with_partitions(unexpected, partitions, suffix).where("partition != found")
    first = off.orderBy("found", "key").limit(1).collect()
    return (off.count(), first[0]) if first else (0, None)
