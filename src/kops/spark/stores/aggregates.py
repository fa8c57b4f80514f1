"""From prepared records to what the store holds: partition, key, value, timestamp. DataFrame to DataFrame.

The timestamp of every aggregate is the greatest of its records' (``KStreamAggregate``, ``KStreamReduce``); a row of a table has the
record's own (``KTableSource``). What does not depend on the order of the records is left to Spark's hash aggregate; the rest is folded
in the order of offsets.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kops.core.statefile import Aggregation, Form, Store
from kops.core.statefile.models import TABLE
from kops.spark.frames import expression, expressions
from kops.spark.reading.codec import bits_of, encoding, sql_type
from kops.spark.staging.difference import MIXED, SURE
from kops.spark.stores.folds import float_sums, in_order, reduced
from kops.spark.stores.prepare import PreparedRecords

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ORDERED_KINDS = ("last", "first", "reducer")

_MASK_64, _MASK_32 = 0x7FFFFFFFFFFFFFFF, 0x7FFFFFFF
_NEWEST = "max(timestamp_ms) as timestamp"
_MIXED = f"if(min(partition) < max(partition), {MIXED}, {SURE}) as doubt"
_SURE = f"{SURE} as doubt"


def depends_on_order(aggregate: Aggregation) -> bool:
    return aggregate.kind in ORDERED_KINDS or (aggregate.kind == "sum" and aggregate.form.name in ("double", "float"))


def aggregated(prepared: PreparedRecords, kept: DataFrame, store: Store) -> DataFrame:
    """Return what the store holds.

    :param kept: the records, as returned by ``prepared.kept()``
    :return: ``difference.COLUMNS``; the partition is null after a new key, and the value is null for a deleted key
    """
    aggregate = store.aggregate
    if aggregate.kind == TABLE:
        return _table(kept, store, prepared.value_type)
    if aggregate.kind in ("count", "sum"):
        return _sum(kept, store)
    if aggregate.kind in ("min", "max"):
        return _extreme(kept, store)
    if aggregate.kind in ("last", "first"):
        return _by_order(kept, store, prepared.value_type)
    of_members = replace(store, source=replace(store.source, value=prepared.member)) if prepared.member else store
    return reduced(kept, of_members)


def _groups(store: Store) -> list[str]:
    """Without a new key a record stays in its partition, so the same key in two partitions is two keys."""
    return ["key"] if store.key_by else ["partition", "key"]


def _collect(kept: DataFrame, store: Store, aggregate: str, *, ordered: bool = False) -> DataFrame:
    """Aggregate into ``result``, ``timestamp`` and ``doubt``."""
    mixes = ordered and store.key_by is not None
    columns = [f"{aggregate} as result", _NEWEST, *([_MIXED] if mixes else [])]
    grouped = kept.groupBy(*_groups(store)).agg(*expressions(columns))
    return grouped if mixes else grouped.selectExpr("*", _SURE)


def _finish(grouped: DataFrame, store: Store, value: str) -> DataFrame:
    partition = "cast(null as int) as partition" if store.key_by else "partition"
    return grouped.selectExpr(partition, "key", f"{value} as value", "timestamp", "doubt")


def _table(kept: DataFrame, store: Store, value_type: str) -> DataFrame:
    """Keep the last record of every key, with its own timestamp; a null value deletes the key (``KTableSource``).

    After a new key, as before ``toTable()``, the order is that of the repartition topic: see ``_by_order``.
    """
    row = "struct(v, timestamp_ms)"
    latest = f"max_by({row}, offset)"
    if store.key_by:
        latest = f"if(min(partition) = max(partition), {latest}, max_by({row}, struct(timestamp_ms, partition, offset)))"
    rows = kept.groupBy(*_groups(store)).agg(expression(f"{latest} as latest"), *expressions([_MIXED] if store.key_by else []))
    timed = rows.selectExpr("*", "latest.timestamp_ms as timestamp", *([] if store.key_by else [_SURE]))
    return _finish(timed, store, "latest.v" if value_type == "binary" else encoding("latest.v", store.aggregate.form))


def _sum(kept: DataFrame, store: Store) -> DataFrame:
    form = store.aggregate.form
    if store.aggregate.kind == "count":
        return _finish(_collect(kept, store, "count(*)"), store, encoding("result", form))
    if form.name in ("double", "float"):
        return _ordered_sum(kept, store)
    # Additions that wrap around give the same result in any order; the sum of bigints, truncated to the width, is the sum in that width.
    return _finish(_collect(kept, store, "sum(cast(v as bigint))"), store, encoding(f"cast(result as {sql_type(form)})", form))


def order_free(form: Form) -> str:
    """Return SQL that is true for a group of values whose sum has the same bits in any order, because no addition rounds.

    Integers whose sums stay below 2^53 (float: 2^24), or multiples of 2^-20 (2^-8) whose sums stay below 2^33 (2^16).
    """
    digits, fraction = (53, 20) if form.name == "double" else (24, 8)
    whole = f"bool_and(abs(v) < {1 << digits} and v = floor(v)) and sum(abs(v)) < {1 << digits}"
    scaled = f"v * {1 << fraction}"
    finest = f"bool_and(abs(v) < {1 << (digits - fraction)} and {scaled} = floor({scaled})) and sum(abs(v)) < {1 << (digits - fraction)}"
    return f"(({whole}) or ({finest}))"


def _ordered_sum(kept: DataFrame, store: Store) -> DataFrame:
    """Add from 0.0 in the order of offsets, as ``aggregate(() -> 0.0, (key, value, sum) -> sum + value)`` does.

    Spark's sum of doubles adds row by row to one buffer per key, which over sorted rows is exactly this fold: the hash aggregate becomes a
    sort aggregate (``spark.sql.execution.replaceHashWithSortAgg``), which never splits a key. Its sum of floats adds doubles, so floats are
    folded in Python.
    """
    if store.aggregate.form.name == "float":
        return float_sums(kept, store)
    columns = ["sum(v) as result", _NEWEST]
    if store.key_by:
        columns.append(f"if(min(partition) < max(partition) and not {order_free(store.aggregate.form)}, {MIXED}, {SURE}) as doubt")
    grouped = in_order(kept, store).groupBy(*_groups(store)).agg(*expressions(columns))
    return _finish(grouped if store.key_by else grouped.selectExpr("*", _SURE), store, encoding("result", store.aggregate.form))


def _extreme(kept: DataFrame, store: Store) -> DataFrame:
    """``Math.min`` and ``Math.max``, ``String.compareTo``: exact for -0.0, NaN, and characters outside the basic multilingual plane."""
    kind, form = store.aggregate.kind, store.aggregate.form
    if form.name in ("double", "float"):
        return _floating_extreme(kept, store)
    if form.name == "string":
        # String.compareTo compares UTF-16 code units, which is the order of their big-endian bytes.
        result = f"decode({kind}(encode(v, 'UTF-16BE')), 'UTF-16BE')"
        return _finish(_collect(kept, store, result), store, encoding("result", form))
    return _finish(_collect(kept, store, f"{kind}(v)"), store, encoding("result", form))


def _floating_extreme(kept: DataFrame, store: Store) -> DataFrame:
    """Compare the bits as integers: -0.0 is less than 0.0, and NaN wins, as in ``Math.min`` and ``Math.max``."""
    kind, form = store.aggregate.kind, store.aggregate.form
    mask, integer, nan = (_MASK_64, "bigint", "7ff8000000000000") if form.name == "double" else (_MASK_32, "int", "7fc00000")
    winner = f"cast({'-' if kind == 'min' else ''}{mask} as {integer})"
    bits = kept.selectExpr("partition", "offset", "timestamp_ms", "key", "isnan(v) as is_nan", f"{bits_of('v', form)} as b")
    comparable = f"if(is_nan, {winner}, if(b < 0, b ^ cast({mask} as {integer}), b)) as v"
    ordered = bits.selectExpr("partition", "offset", "timestamp_ms", "key", comparable)
    back = f"cast(if(result < 0, result ^ cast({mask} as {integer}), result) as binary)"
    return _finish(_collect(ordered, store, f"{kind}(v)"), store, f"if(result = {winner}, X'{nan}', {back})")


def _by_order(kept: DataFrame, store: Store, value_type: str) -> DataFrame:
    """``reduce((old, new) -> new)``, or the old value.

    After a new key the order is that of the repartition topic. If one source partition feeds a key, it is that of its offsets; if several
    do, it is not known, and event time is used instead.
    """
    pick = "max_by" if store.aggregate.kind == "last" else "min_by"
    result = f"{pick}(v, offset)"
    if store.key_by:
        order = "struct(partition is not null, timestamp_ms, partition, offset)"  # what a store held before has no partition
        result = f"if(min(partition) = max(partition), {result}, {pick}(v, {order}))"
    value = "result" if value_type == "binary" else encoding("result", store.aggregate.form)
    return _finish(_collect(kept, store, result, ordered=True), store, value)
