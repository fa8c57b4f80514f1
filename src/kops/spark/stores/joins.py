"""The final rows of a table, and its changes: of a topic, of another table, or of a join of two. DataFrame to DataFrame.

The value of a join is that of the two last rows, whichever came first. The timestamp is the greater of both if both exist
(``KTableKTableInnerJoin`` and related classes). If only one exists, it is that of the last change of either: an old row keeps its own,
unless the other side was deleted after it. Which came later follows from the rows' position in the processing order of the task, which is
certain only where it does not matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kops.core.errors import ConfigError
from kops.core.statefile import Source
from kops.core.statefile.models import INNER, LEFT, OUTER, Join, Table
from kops.spark.frames import expression
from kops.spark.reading.codec import encoding, sql_type
from kops.spark.stores.partitions import with_partitions
from kops.spark.stores.tables import ROW, Expressions, StoreTopics, filtered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_HOW = {INNER: "inner", LEFT: "left", OUTER: "full_outer"}
NEEDED = {INNER: "left is not null and right is not null", LEFT: "left is not null", OUTER: "left is not null or right is not null"}
"""When a join has a row, in SQL of both sides."""
_BOTH = "greatest(ts_left, ts_right)"
_TIMESTAMP = (
    f"case when left is not null and right is null then if(ord_right is null or ord_right < ord_left, ts_left, {_BOTH})"
    f" when left is null and right is not null then if(ord_left is null or ord_left < ord_right, ts_right, {_BOTH}) else {_BOTH} end"
)
_IS_SURE = (
    "case when left is not null and right is null then coalesce(ts_right <= ts_left, true)"
    " when left is null and right is not null then coalesce(ts_left <= ts_right, true) else true end"
)
"""Both orders give the same timestamp unless what was deleted is newer than what remains."""


def last_rows(topics: StoreTopics, table: Table) -> DataFrame:
    """Return the final rows of a table: ``ROW``."""
    place = Expressions(topics.job.state_file, topics.job.store, table)
    if table.source is not None:
        rows = _newest_rows(topics, table, table.source)
    elif table.parent is not None:
        rows = last_rows(topics, table.parent)
    else:
        raise ConfigError(f"{table.place} is made of nothing")
    if table.join:
        rows = _joined_rows(topics, place, table.join, rows)
    kept = filtered(rows, table, place)
    return kept.withColumn("_raw", expression("if(value is null, null, _raw)")) if table.where else kept


def _newest_rows(topics: StoreTopics, table: Table, source: Source) -> DataFrame:
    """Keep the last record of every key; for a versioned table the one with the greatest timestamp."""
    order = "offset" if table.history_ms is None else "struct(_ts, offset)"
    last = f"max_by(struct(key, value, _raw, _ts, _ord), {order}) as last"
    rows = topics.newest(table, source).groupBy("_partition", "_key").agg(expression(last))
    return rows.selectExpr("_partition", "_key", "last.*", "true as _sure").select(*ROW)


def _joined_rows(topics: StoreTopics, place: Expressions, join: Join, left: DataFrame) -> DataFrame:
    """Return the rows of a join.

    :param left: the rows of the left side
    """
    right = last_rows(topics, join.right)
    if join.on is not None:
        return _by_foreign_key(topics, place, join, left, right)
    sides = _side(left, "left").join(_side(right, "right"), ["_partition", "_key"], _HOW[join.kind])
    return _rows(sides, place, join, _TIMESTAMP, _IS_SURE)


def joined_value(frame: DataFrame, place: Expressions, join: Join) -> str:
    """Return SQL of the joined value, after checking that it has the format's type.

    :param frame: has ``key``, ``left`` and ``right``
    """
    if join.form.name == "json":
        place.type_of(frame, "join.value", join.value)
        return f"({join.value})"
    return place.typed(frame, "join.value", join.value, sql_type(join.form))


def _side(rows: DataFrame, name: str) -> DataFrame:
    return rows.selectExpr(
        "_partition", "_key", f"key as key_{name}", f"value as {name}", f"_ts as ts_{name}", f"_ord as ord_{name}", f"_sure as sure_{name}"
    )


def _rows(sides: DataFrame, place: Expressions, join: Join, timestamp: str, sure: str) -> DataFrame:
    keyed = sides.selectExpr("*", "coalesce(key_left, key_right) as key")
    value = joined_value(keyed, place, join)
    return keyed.selectExpr(
        "_partition",
        "_key",
        "key",
        f"if({NEEDED[join.kind]}, {value}, null) as value",
        "cast(null as binary) as _raw",
        f"{timestamp} as _ts",
        "greatest(ord_left, ord_right) as _ord",
        f"coalesce(sure_left, true) and coalesce(sure_right, true) and {sure} as _sure",
    ).select(*ROW)


def _by_foreign_key(topics: StoreTopics, place: Expressions, join: Join, left: DataFrame, right: DataFrame) -> DataFrame:
    """Look up the right side by an expression of the left one; the result stays in the partition of the left side.

    The last change decides the timestamp: for the right side its own (``ForeignTableJoinProcessor``), for the left one the greater of both
    (``SubscriptionJoinProcessor``). A subscription goes to the partition that the default partitioner computes for the foreign key.
    """
    there = _side(left, "left").selectExpr("*", "key_left as key")
    foreign = encoding(place.typed(there, "join.on", str(join.on), sql_type(join.right.key)), join.right.key)
    subscribed = there.selectExpr(
        "cast(null as int) as partition", f"if(left is null, null, {foreign}) as key", *(name for name in there.columns if name != "key")
    )
    partitions = len(topics.range_of(join.right.sources[0]).ranges)
    asked = with_partitions(subscribed, partitions).withColumnsRenamed({"partition": "_asked_partition", "key": "_asked"})
    found = _side(right, "right").withColumnsRenamed({"_partition": "_asked_partition", "_key": "_asked"})
    sides = asked.join(found, ["_asked_partition", "_asked"], "left")
    timestamp = "case when ts_right is null or left is null then ts_left when ord_right > ord_left then ts_right"
    timestamp += " when right is null then ts_left else greatest(ts_left, ts_right) end"
    sure = "(ts_right is null or (right is not null and ts_right >= ts_left))"
    return _rows(sides, place, join, timestamp, sure)


CHANGE = ("_partition", "_key", "key", "value", "_old", "_ts", "_ord")
_OF_KEY = "over (partition by _partition, _key order by {order})"
_SO_FAR = "over (partition by _partition, _key order by _ord rows between unbounded preceding and current row)"


def changes(topics: StoreTopics, table: Table) -> DataFrame:
    """Return all changes of a table: ``CHANGE``."""
    place = Expressions(topics.job.state_file, topics.job.store, table)
    if table.source is not None:
        rows = _changes_of_topic(topics, table, table.source)
    elif table.parent is not None:
        rows = changes(topics, table.parent)
    else:
        raise ConfigError(f"{table.place} is made of nothing")
    if table.join:
        rows = _joined_changes(topics, place, table.join, rows)
    return filtered(filtered(rows, table, place), table, place, "_old")


def _changes_of_topic(topics: StoreTopics, table: Table, source: Source) -> DataFrame:
    """Return one change per record; in a versioned table, records that are not the latest of their key change nothing (KIP-914)."""
    records = topics.records(table, source)
    if table.history_ms is not None:
        newest = f"max(_ts) {_OF_KEY.format(order='offset')}"
        records = records.selectExpr("*", f"{newest} as _newest").where("_ts >= _newest")
    old = f"lag(value) {_OF_KEY.format(order='offset')} as _old"
    return records.selectExpr("_partition", "_key", "key", "value", old, "_ts", "_ord").select(*CHANGE)


def _joined_changes(topics: StoreTopics, place: Expressions, join: Join, left: DataFrame) -> DataFrame:
    """Join every change of either side with what the other side held at that point.

    ``KTableKTableInnerJoin``, ``KTableKTableLeftJoin`` and ``KTableKTableRightJoin``, ``KTableKTableOuterJoin``.
    """
    both = _changed_side(left, "left").unionByName(_changed_side(changes(topics, join.right), "right"), allowMissingColumns=True)
    seen = both.selectExpr(
        "_partition",
        "_key",
        "key",
        "is_left",
        "_new_left",
        "_new_right",
        "_old_left",
        "_old_right",
        "_ts",
        "_ord",
        f"last(if(is_left, struct(_new_left as value, _ts), null), true) {_SO_FAR} as _left",
        f"last(if(is_left, null, struct(_new_right as value, _ts)), true) {_SO_FAR} as _right",
    )
    there = seen.selectExpr(
        "_partition",
        "_key",
        "key",
        "_ts",
        "_ord",
        "if(is_left, _right.value is not null, _left.value is not null) as _other_is_there",
        "if(is_left, _new_left is not null or _old_left is not null, _new_right is not null or _old_right is not null) as _is_change",
        "is_left",
        "if(is_left, _right._ts, _left._ts) as _other_ts",
        "_left.value as left",
        "_right.value as right",
        "if(is_left, _old_left, _left.value) as _left_before",
        "if(is_left, _right.value, _old_right) as _right_before",
    )
    value = joined_value(there, place, join)
    needed = NEEDED[join.kind]
    kept = there.where(_forwards(join)).withColumn("value", expression(f"if({needed}, {value}, null)"))
    before = kept.drop("left", "right").withColumnsRenamed({"_left_before": "left", "_right_before": "right"})
    timestamp = "if(_other_is_there, greatest(_ts, _other_ts), _ts) as _ts"
    old = f"if({needed}, {value}, null) as _old"
    return before.selectExpr("_partition", "_key", "key", "value", old, timestamp, "_ord").select(*CHANGE)


def _changed_side(rows: DataFrame, name: str) -> DataFrame:
    return rows.selectExpr(
        "_partition", "_key", "key", f"{name == 'left'} as is_left", f"value as _new_{name}", f"_old as _old_{name}", "_ts", "_ord"
    )


def _forwards(join: Join) -> str:
    """Return SQL of whether a change of one side changes the join at all."""
    if join.kind == INNER:
        return "_other_is_there"
    if join.kind == OUTER:
        return "_other_is_there or _is_change"
    return "if(is_left, _other_is_there or _is_change, _other_is_there)"
