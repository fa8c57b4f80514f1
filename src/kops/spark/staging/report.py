"""What a report shows about a stage: when the keys that differ last changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Times:
    """Counts of keys by the timestamp of the record that they should have, or that is removed.

    :param earliest: and ``latest``: milliseconds since the epoch
    :param counts: bucket number and action -> keys; all buckets have the same length
    """

    earliest: int
    latest: int
    buckets: int
    counts: dict[tuple[int, str], int]


def times_of(session: SparkSession, stage: str, buckets: int) -> Times | None:
    """Return when the keys of a stage changed; None if there are none."""
    from pyspark.sql import functions

    from kops.spark.staging.stage import read_stage

    rows = read_stage(session, stage).where("action != 'erased'")
    timed = rows.selectExpr("coalesce(after_timestamp, before_timestamp) as time", "action")
    bounds = timed.agg(functions.expr("min(time) as earliest"), functions.expr("max(time) as latest")).collect()[0]
    if bounds.earliest is None:
        return None
    span = bounds.latest - bounds.earliest + 1
    bucket = f"cast(floor((time - {bounds.earliest}) * {buckets} / {span}) as int) as bucket"
    found = timed.selectExpr(bucket, "action").groupBy("bucket", "action").count().collect()
    return Times(bounds.earliest, bounds.latest, buckets, {(row["bucket"], row["action"]): row["count"] for row in found})
