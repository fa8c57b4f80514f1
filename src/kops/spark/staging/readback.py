"""Reads back what was written and compares it with the stage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kops.spark.frames import expression
from kops.spark.staging.stage import contents_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kops.spark.reading.ranges import TopicRange
    from kops.spark.reading.source import KafkaSource


def unlike(kafka: KafkaSource, tail: TopicRange, wanted: DataFrame, fingerprints: Mapping[int, list[int]]) -> dict[int, str]:
    """Return the partitions whose tail is not what was to be written, with the reason.

    Compares counts and sums of hashes first; only a partition where they differ is compared record by record, by the last record of each
    key, because a retried task may have written the same record twice.

    :param tail: of the changelog
    :param wanted: partition, key, value, timestamp
    """
    contents = kafka.batches.contents(tail) if kafka.batches else contents_of(_as_records(kafka.read(tail)))
    found = {number: content.fingerprint for number, content in contents.items()}
    suspects = [number for number, wanted_print in fingerprints.items() if found.get(number) != wanted_print]
    suspects += [number for number in found if number not in fingerprints]
    if not suspects:
        return {}
    return _different(kafka.read(tail), wanted, suspects)


def _as_records(tail: DataFrame) -> DataFrame:
    return tail.selectExpr("partition", "key", "value", "timestamp_ms as timestamp")


def _different(tail: DataFrame, wanted: DataFrame, suspects: list[int]) -> dict[int, str]:
    chosen = f"partition in ({', '.join(map(str, suspects))})"
    last = expression("max_by(struct(value, timestamp_ms), offset) as last")
    left = wanted.where(chosen).alias("wanted")
    right = tail.where(chosen).groupBy("partition", "key").agg(last).alias("found")
    joined = left.join(right, expression("wanted.partition = found.partition and wanted.key = found.key"), "full_outer")
    rows = (
        joined.selectExpr(
            "coalesce(wanted.partition, found.partition) as partition",
            "found.key is null as is_missing",
            "wanted.key is null as is_foreign",
            "not (wanted.value <=> found.last.value and wanted.timestamp <=> found.last.timestamp_ms) as is_different",
        )
        .groupBy("partition")
        .agg(*(expression(f"count_if({name}) as {name}") for name in ("is_missing", "is_foreign", "is_different")))
        .collect()
    )
    return {row.partition: _in_words(row.is_missing, row.is_foreign, row.is_different) for row in rows if row.is_different}


def _in_words(missing: int, foreign: int, different: int) -> str:
    return f"{missing} records missing, {foreign} not ours, {different - missing - foreign} different"
