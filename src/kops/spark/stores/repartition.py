"""A changelog's keys in other partitions: each where Kafka's default partitioner puts the application's own key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kops.spark.reading.contents import Content
from kops.spark.reading.snapshot import Held, snapshot_view, write_snapshot
from kops.spark.staging.difference import all_added
from kops.spark.staging.stage import write_stage

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

    from kops.spark.reading.ranges import TopicRange
    from kops.spark.reading.source import KafkaSource


@dataclass(frozen=True)
class Repartitioned:
    """A store in both partitionings.

    :param after: what the stage for the new partitions holds, and ``before`` that for the old ones
    :param misplaced: keys that are not where the default partitioner puts them
    :param with_headers: records that have headers; if there are any, both are staged as snapshots, which keep them
    """

    after: Mapping[int, Content | Held]
    before: Mapping[int, Content | Held]
    keys: int
    misplaced: int
    with_headers: int


def stage_repartitioned(
    kafka: KafkaSource, changelog: TopicRange, paths: tuple[str, str], *, partitions: int, suffix: int, versioned: bool
) -> Repartitioned:
    """Stage what a changelog holds twice: for its new partitions, and as it is.

    :param paths: of the stages, new and old
    :param partitions: the new number
    :param suffix: number of bytes after the application's key in a stored key
    :param versioned: whether each key has several records
    """
    from pyspark import StorageLevel
    from pyspark.sql import functions

    after, before = paths
    view = snapshot_view(kafka.read(changelog), versioned=versioned)
    placed = _placed(view, suffix, len(changelog.ranges), partitions).persist(StorageLevel.DISK_ONLY)  # it is used three times
    try:
        counts = placed.agg(
            functions.expr("count(distinct key) as keys"),
            functions.expr("count(distinct if(partition != usual, key, null)) as misplaced"),
            functions.expr("count_if(size(headers) > 0) as with_headers"),
        ).collect()[0]
        moved, held = (
            placed.selectExpr(f"{place} as partition", "key", "value", "timestamp", "headers") for place in ("target", "partition")
        )
        keep = _kept_with_headers if counts.with_headers else _kept
        return Repartitioned(keep(moved, after), keep(held, before), counts.keys, counts.misplaced, counts.with_headers)
    finally:
        placed.unpersist()


def _kept(view: DataFrame, path: str) -> Mapping[int, Content | Held]:
    return write_stage(all_added(view.select("partition", "key", "value", "timestamp")), path).contents


def _kept_with_headers(view: DataFrame, path: str) -> Mapping[int, Content | Held]:
    return write_snapshot(view, path)


def _placed(view: DataFrame, suffix: int, old: int, new: int) -> DataFrame:
    """Add the partition that the default partitioner gives each key among the old ones, and its target among the new ones."""
    inner = view.selectExpr("*", f"substring(key, 1, length(key) - {suffix}) as inner", "0 as usual", "0 as target")

    def assign(batches: Iterable[pyarrow.RecordBatch]) -> Iterable[pyarrow.RecordBatch]:
        from kops.formats.murmur2_columns import partitions_of

        for batch in batches:
            keys = batch.column("inner")
            for name, count in (("usual", old), ("target", new)):
                index = batch.schema.get_field_index(name)
                batch = batch.set_column(index, batch.schema.field(index), partitions_of(keys, count))  # noqa: PLW2901 - columns are added
            yield batch

    return inner.mapInArrow(assign, inner.schema)
