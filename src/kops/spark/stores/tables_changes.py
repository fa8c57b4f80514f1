"""The changes of tables: every update with the value before it. DataFrame to DataFrame.

Grouped tables need all of them: a group keeps the timestamps of rows that left it. A change has the columns ``CHANGE``: ``value`` is the
value after it, ``_old`` the value before; null if there is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kops.core.errors import ConfigError
from kops.core.statefile import Source
from kops.core.statefile.table_models import INNER, OUTER, Join, Table
from kops.spark.stores.joins import joined_value
from kops.spark.stores.tables import Expressions, Topics, expression, filtered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CHANGE = ("_partition", "_key", "key", "value", "_old", "_ts", "_ord")
_OF_KEY = "over (partition by _partition, _key order by {order})"
_SO_FAR = "over (partition by _partition, _key order by _ord rows between unbounded preceding and current row)"


def changes(topics: Topics, table: Table) -> DataFrame:
    """Return all changes of a table: ``CHANGE``."""
    place = Expressions(topics.job.state_file, topics.job.store, table)
    if table.source is not None:
        rows = _of_topic(topics, table, table.source)
    elif table.parent is not None:
        rows = changes(topics, table.parent)
    else:
        raise ConfigError(f"{table.place} is made of nothing")
    if table.join:
        rows = _joined(topics, place, table.join, rows)
    return filtered(filtered(rows, table, place), table, place, "_old")


def _of_topic(topics: Topics, table: Table, source: Source) -> DataFrame:
    """Return one change per record; in a versioned table, records that are not the latest of their key change nothing (KIP-914)."""
    records = topics.records(table, source)
    if table.history_ms is not None:
        newest = f"max(_ts) {_OF_KEY.format(order='offset')}"
        records = records.selectExpr("*", f"{newest} as _newest").where("_ts >= _newest")
    old = f"lag(value) {_OF_KEY.format(order='offset')} as _old"
    return records.selectExpr("_partition", "_key", "key", "value", old, "_ts", "_ord").select(*CHANGE)


def _joined(topics: Topics, place: Expressions, join: Join, left: DataFrame) -> DataFrame:
    """Join every change of either side with what the other side held at that point.

    ``KTableKTableInnerJoin``, ``KTableKTableLeftJoin`` and ``KTableKTableRightJoin``, ``KTableKTableOuterJoin``.
    """
    both = _side(left, "left").unionByName(_side(changes(topics, join.right), "right"), allowMissingColumns=True)
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
    needed = _needed(join)
    kept = there.where(_forwards(join)).withColumn("value", expression(f"if({needed}, {value}, null)"))
    before = kept.drop("left", "right").withColumnsRenamed({"_left_before": "left", "_right_before": "right"})
    timestamp = "if(_other_is_there, greatest(_ts, _other_ts), _ts) as _ts"
    old = f"if({needed}, {value}, null) as _old"
    return before.selectExpr("_partition", "_key", "key", "value", old, timestamp, "_ord").select(*CHANGE)


def _side(rows: DataFrame, name: str) -> DataFrame:
    return rows.selectExpr(
        "_partition", "_key", "key", f"{name == 'left'} as is_left", f"value as _new_{name}", f"_old as _old_{name}", "_ts", "_ord"
    )


def _needed(join: Join) -> str:
    """Return SQL of whether there is a joined value."""
    if join.kind == INNER:
        return "left is not null and right is not null"
    return "left is not null or right is not null" if join.kind == OUTER else "left is not null"


def _forwards(join: Join) -> str:
    """Return SQL of whether a change of one side changes the join at all."""
    if join.kind == INNER:
        return "_other_is_there"
    if join.kind == OUTER:
        return "_other_is_there or _is_change"
    return "if(is_left, _other_is_there or _is_change, _other_is_there)"
