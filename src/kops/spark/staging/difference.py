"""What a changelog holds now, what it should hold, and what to append to get there. DataFrame to DataFrame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kops.spark.frames import expression, expressions
from kops.spark.reading.ranges import HEADERS_TYPE
from kops.spark.reading.snapshot import HASH_WITH_HEADERS, content_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SURE, MIXED, TIMED, EMPTIED = range(4)
"""What is known about a row, in the column ``doubt``: exact; from records whose order is not known; a timestamp that another order of two
topics would change; a group of a table that is empty, and may never have been filled."""
COLUMNS = ("partition", "key", "value", "timestamp", "doubt")
"""The columns of what a store should hold."""
ADDED = "added"
APPENDED = (ADDED, "changed", "removed", "erased")
"""The action of a row of a stage. Erased: a key that should not be there, and of which the log has no record at all; the tombstone is for
local stores that still have the key from before the log was emptied."""
STAGE_COLUMNS = (
    "partition",
    "key",
    "before_present",
    "before_value",
    "before_timestamp",
    "after_present",
    "after_value",
    "after_timestamp",
    "action",
)
HEADER_COLUMNS = ("before_headers", "after_headers")
"""What a stage has beside these where headers are compared too, as the changelogs that a program writes may have some."""
HEADER_TYPES = ", ".join(f"{name} {HEADERS_TYPE}" for name in HEADER_COLUMNS)

# A record without headers has the same hash with them (``snapshot.HASH_WITH_HEADERS``) and without.
_HASH = "xxhash64(key, value is null, value, timestamp)"
HIGH, LOW = f"shiftrightunsigned({_HASH}, 32)", f"{_HASH} & 4294967295"


def compacted_view(records: DataFrame) -> DataFrame:
    """Return the last record of every key of a changelog: partition, key, value (null: a tombstone), timestamp, odd.

    Odd is a record with headers: a store without headers restores the same from it, but its own changelog has none.
    """
    headers = "size(headers) > 0" if "headers" in records.columns else "false"
    rows = records.where("key is not null").selectExpr("partition", "key", "offset", f"struct(value, timestamp_ms, {headers} as odd) as it")
    last = rows.groupBy("partition", "key").agg(expression("max_by(it, offset) as last"))
    return last.selectExpr("partition", "key", "last.value as value", "last.timestamp_ms as timestamp", "coalesce(last.odd, false) as odd")


def difference(expected: DataFrame, current: DataFrame, *, empty: bytes | None = None) -> DataFrame:
    """Return the rows that differ, as ``STAGE_COLUMNS``.

    A key in the wrong partition is removed there and added where it belongs.

    :param expected: partition, key, value (null: should not be there), timestamp, and a ``doubt`` (``aggregates``), if any
    :param empty: a value that may be there although it is not expected: that of an empty group
    """
    wanted, found = expected.alias("wanted"), current.alias("found")
    same_key = expression("wanted.partition = found.partition and wanted.key = found.key")
    joined = wanted.join(found, same_key, "full_outer")
    doubt = "wanted.doubt" if "doubt" in expected.columns else "0"
    untimed = f"coalesce({doubt}, 0) in ({TIMED}, {EMPTIED})"
    unlike = f"wanted.value != found.value or (wanted.timestamp != found.timestamp and not {untimed}) or found.odd"
    may_be_left_out = f"found.value = X'{empty.hex()}'" if empty is not None else "false"
    action = (
        f"case when coalesce({doubt}, 0) = {EMPTIED} and found.value is null then null"
        f" when wanted.key is null and {may_be_left_out} then null"
        " when wanted.value is not null and found.value is null then 'added'"
        f" when wanted.value is not null and ({unlike}) then 'changed'"
        " when wanted.value is null and found.value is not null then 'removed'"
        " when wanted.value is null and found.key is null then 'erased' end as action"
    )
    return joined.selectExpr(
        "coalesce(wanted.partition, found.partition) as partition",
        "coalesce(wanted.key, found.key) as key",
        "found.value is not null as before_present",
        "found.value as before_value",
        "found.timestamp as before_timestamp",
        "wanted.value is not null as after_present",
        "wanted.value as after_value",
        "wanted.timestamp as after_timestamp",
        action,
    ).where("action is not null")


def all_added(expected: DataFrame) -> DataFrame:
    """Return the difference to an empty changelog."""
    return expected.selectExpr(
        "partition",
        "key",
        "false as before_present",
        "cast(null as binary) as before_value",
        "cast(null as bigint) as before_timestamp",
        "value is not null as after_present",
        "value as after_value",
        "timestamp as after_timestamp",
        "if(value is null, 'erased', 'added') as action",
    )


def to_append(stage: DataFrame, *, backwards: bool = False, keep: Sequence[str] = ()) -> DataFrame:
    """Return the records to append: partition, key, value (null: a tombstone), timestamp, headers if the stage has them, action.

    A tombstone has the timestamp of the record that deleted the key, or otherwise of the record that it removes.

    :param backwards: return the records that undo the stage
    :param keep: further columns of the stage to keep
    """
    new, old = ("before", "after") if backwards else ("after", "before")
    records = ("partition", "key", "action")
    headers = [f"coalesce({new}_headers, array()) as headers"] if HEADER_COLUMNS[0] in stage.columns else []
    return stage.selectExpr(
        *(name for name in keep if name not in records),
        "partition",
        "key",
        f"if({new}_present, {new}_value, null) as value",
        f"if({new}_present, {new}_timestamp, coalesce({new}_timestamp, {old}_timestamp)) as timestamp",
        *headers,
        "action",
    )


def summed(records: DataFrame, actions: Sequence[str] = ()) -> DataFrame:
    """Return per partition the number of records, and a sum of their hashes that does not depend on their order; with headers, if any.

    :param actions: actions to count too, if the records have an ``action``
    """
    columns = content_columns(HASH_WITH_HEADERS if "headers" in records.columns else _HASH)
    counts = [f"count_if(action = '{action}') as {action}" for action in actions]
    return records.groupBy("partition").agg(*expressions([*columns, *counts]))
