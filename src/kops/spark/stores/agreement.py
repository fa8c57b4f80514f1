"""Where two computations of one store disagree: both stages have all keys of the store, as if its changelog held nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kops.spark.frames import expression
from kops.spark.staging.difference import SURE, TIMED, difference
from kops.spark.staging.stage import StagedPartitions, computed_rows, read_stage, write_stage
from kops.spark.stores.partitions import UNKNOWN
from kops.spark.windows.keys import by_partition, time_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kops.core.statefile import Windows


def stage_disagreement(
    session: SparkSession, stages: tuple[str, str], path: str, *, timed: bool, windows: Windows | None, retention_ms: int
) -> tuple[StagedPartitions, dict[str, int]]:
    """Stage the keys of which two computations differ, except for windows that only one has and that may have expired in the other.

    :param stages: what is expected, and what is compared with it
    :param timed: whether timestamps are compared
    :param retention_ms: of the windows; the shorter one, if the computations have two
    :return: also the number of these windows, by what their action would have been
    """
    expected, actual = (computed_rows(read_stage(session, stage)) for stage in stages)
    actual = _placed(actual, expected)
    doubt = SURE if timed else TIMED
    rows = difference(expected.selectExpr("*", f"{doubt} as doubt"), actual.selectExpr("*", "false as odd"))
    if windows is None:
        return write_stage(rows, path), {}
    times = expected.unionAll(actual.select(*expected.columns)).groupBy("partition").agg(expression(f"max({time_of(windows)}) as latest"))
    latest = {row.partition: row.latest for row in times.collect() if row.latest is not None}
    # The stream time lies within the latest window: which of the oldest ones had expired, the windows alone do not show.
    may_be_gone = (
        f"coalesce(action != 'changed' and {time_of(windows)} <= {by_partition(latest)} + {windows.size_ms - retention_ms}, false)"
    )
    left_out = {row.action: row["count"] for row in rows.where(may_be_gone).groupBy("action").count().collect()}
    return write_stage(rows.where(f"not {may_be_gone}"), path), left_out


def _placed(rows: DataFrame, other: DataFrame) -> DataFrame:
    """Put keys whose partition is not known where the other computation has them."""
    places = other.groupBy("key").agg(expression("min(partition) as place"))
    place = f"if(partition = {UNKNOWN}, coalesce(place, partition), partition) as partition"
    return rows.join(places, "key", "left").selectExpr(place, "key", "value", "timestamp")
