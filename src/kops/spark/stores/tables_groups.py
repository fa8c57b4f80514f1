"""Groups of a table: every change removes its old value from one group and adds its new one to another.

``KTableRepartitionMap`` and ``KTableAggregate``: a group that becomes empty remains, with what the subtractor leaves; its timestamp is the
greatest of everything ever added or removed. DataFrame to DataFrame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kops.core.statefile import Form, Store
from kops.core.statefile.models import FLOATING
from kops.spark.reading.codec import encoding, sql_type
from kops.spark.staging.difference import COLUMNS, EMPTIED, MIXED, SURE, TIMED
from kops.spark.stores.aggregates import order_free
from kops.spark.stores.tables import Expressions, expression

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WIDTHS = {"long": "bigint", "int": "int", "short": "smallint"}


def grouped(changes: DataFrame, store: Store, place: Expressions, *, loose: bool) -> DataFrame:
    """Return what a grouped table holds: ``aggregates.COLUMNS``, without partitions.

    :param changes: as returned by ``tables_changes.changes``
    :param loose: not every change is known, or not their order, so timestamps and empty groups are uncertain
    """
    moves = put_and_taken(changes, store, place)
    if store.aggregate.kind == "reducer":
        from kops.spark.stores.tables_reduced import reduced_groups

        return reduced_groups(moves, store, loose=loose)
    value, doubt = _result(store)
    columns = [
        f"{value} as result",
        "sum(sign) as members",
        "max(_ts) as timestamp",
        f"{doubt} as is_exact",
    ]
    groups = moves.groupBy("key").agg(*(expression(column) for column in columns))
    return groups.selectExpr(
        "cast(null as int) as partition",
        "key",
        f"{encoding(_in_width('result', store.aggregate.form), store.aggregate.form)} as value",
        "timestamp",
        f"case when not is_exact then {MIXED} when {str(loose).lower()} then if(members = 0, {EMPTIED}, {TIMED}) else {SURE} end as doubt",
    ).select(*COLUMNS)


def put_and_taken(changes: DataFrame, store: Store, place: Expressions) -> DataFrame:
    """Return what groups gain (sign 1) and lose (-1): ``key`` (bytes), ``v``, ``sign``, ``_ts``, ``_partition``, ``_ord``.

    Pairs with a null key or value are left out, as in ``KTableRepartitionMap``.
    """
    both = "explode(array(struct(-1 as sign, _old as value), struct(1 as sign, value as value))) as move"
    moves = changes.selectExpr("_partition", "_ord", "_ts", "key", both).where("move.value is not null")
    seen = moves.selectExpr("_partition", "_ord", "_ts", "key", "move.sign as sign", "move.value as value")
    group = place.typed(seen, "key_by", str(store.key_by), sql_type(store.key_form))
    named = f"{encoding(group, store.key_form)} as _group"
    found = seen.selectExpr("_partition", "_ord", "_ts", "sign", named, f"{_value(seen, store, place)} as v")
    return found.where("_group is not null and v is not null").withColumnRenamed("_group", "key")


def _value(seen: DataFrame, store: Store, place: Expressions) -> str:
    aggregate = store.aggregate
    if aggregate.kind == "count":
        return "1"
    if aggregate.kind == "reducer":
        return as_bytes(seen, place, store.table.form if store.table else aggregate.form)
    return place.typed(seen, f"aggregate.{aggregate.kind}", aggregate.expression, sql_type(aggregate.form))


def as_bytes(frame: DataFrame, place: Expressions, form: Form) -> str:
    """Return the bytes of ``value``; the JSON of a struct has its fields in order, without those that are null."""
    if form.name == "json":
        return "cast(value as binary)" if place.type_of(frame, "join.value", "value") == "string" else "cast(to_json(value) as binary)"
    return encoding("value", form)


def _result(store: Store) -> tuple[str, str]:
    """Return SQL of the result of adder and subtractor, and of whether it is the same in any order."""
    aggregate = store.aggregate
    if aggregate.kind == "count":
        return "sum(sign)", "true"
    if aggregate.form.name in FLOATING:
        return "sum(sign * v)", order_free(aggregate.form)
    return "sum(sign * cast(v as bigint))", "true"


def _in_width(column: str, form: Form) -> str:
    """Truncate a sum to its width: additions that wrap around give the same result in any order."""
    return f"cast({column} as {_WIDTHS.get(form.name, form.name)})"
