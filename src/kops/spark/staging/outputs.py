"""Compares the newest record of each key of an output topic with what was computed for a store. DataFrame to DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kops.spark.frames import expression
from kops.spark.staging.difference import compacted_view
from kops.spark.staging.stage import read_stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from kops.spark.reading.ranges import TopicRange
    from kops.spark.reading.source import KafkaSource

SAME, LOST, OTHER, EXTRA, SILENT = "equal", "equal, lost", "differing", "extra", "silent"
"""What the topic shows for a key: its newest record is what was computed, and the changelog has the key, or lost it; it is another; the key
was not computed; nothing is certain."""


def expected_rows(kafka: KafkaSource, stage: str, changelog: TopicRange) -> DataFrame:
    """Return all that was computed for a store: partition, key, value, timestamp, and whether the changelog has the key.

    :param stage: of the difference to the changelog; computed keys that are not in it are in the changelog as computed
    """
    staged = read_stage(kafka.session, stage)
    wanted = staged.where("after_present").selectExpr(
        "partition", "key", "after_value as value", "after_timestamp as timestamp", "before_present and before_value is not null as held"
    )
    if not changelog.records:
        return wanted
    held = (
        compacted_view(kafka.newest(changelog))
        .where("value is not null")
        .selectExpr("partition", "key", "value", "timestamp", "true as held")
    )
    return wanted.unionByName(held.join(staged.select("partition", "key"), ["partition", "key"], "left_anti"))


def judged_keys(kafka: KafkaSource, stage: str, changelog: TopicRange, output: TopicRange) -> DataFrame:
    """Return every key that was computed, or that the output topic has, with its verdict.

    A key with records in several partitions of the topic, or that was computed for several partitions, proves nothing: it is not known
    which of its records is the newest, or is meant.

    :param stage: as for :func:`expected_rows`
    :return: partition (of the changelog; null: not computed), key, verdict, value, timestamp, written_value, written_timestamp
    """
    wanted = expected_rows(kafka, stage, changelog).selectExpr("*", "count(*) over (partition by key) as places")
    newest = (
        kafka.newest(output)
        .where("key is not null")
        .groupBy("key")
        .agg(
            expression("max_by(struct(value, timestamp_ms), offset) as last"),
            expression("min(partition) < max(partition) as spread"),
        )
    )
    verdict = (
        f"case when places is null then if(not spread and last.value is not null, '{EXTRA}', '{SILENT}')"
        f" when places > 1 or spread is null or spread then '{SILENT}'"
        f" when coalesce(value = last.value and timestamp = last.timestamp_ms, false)"
        f" then if(held, '{SAME}', '{LOST}') else '{OTHER}' end as verdict"
    )
    return wanted.join(newest, "key", "full_outer").selectExpr(
        "partition", "key", verdict, "value", "timestamp", "last.value as written_value", "last.timestamp_ms as written_timestamp"
    )


def verdicts(keys: DataFrame) -> dict[int | None, dict[str, int]]:
    """Count the verdicts on keys by partition; None: keys that were not computed."""
    found: dict[int | None, dict[str, int]] = {}
    for row in keys.groupBy("partition", "verdict").count().collect():
        found.setdefault(row.partition, {})[row.verdict] = row["count"]
    return found


def contradicting(keys: DataFrame, limit: int) -> list[Row]:
    """Return the first keys for which the topic has another value, or which were not computed."""
    return keys.where(f"verdict in ('{OTHER}', '{EXTRA}')").orderBy("verdict", "partition", "key").limit(limit).collect()
