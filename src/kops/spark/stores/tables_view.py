"""The view of a store that is computed from tables."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from kops.core.statefile import Form, Store
from kops.core.statefile.models import FLOATING, Table
from kops.core.statefile.reducers import Aggregate, Subtractor, load_reducer
from kops.spark.driver.observing import Watch, watched
from kops.spark.frames import expression
from kops.spark.job import FATES, ReadCounts
from kops.spark.reading.codec import encoding, sql_type
from kops.spark.staging.difference import COLUMNS, EMPTIED, MIXED, SURE, TIMED
from kops.spark.stores.aggregates import order_free
from kops.spark.stores.folds import SCHEMA, folded_batches, rows_of
from kops.spark.stores.joins import changes, last_rows
from kops.spark.stores.partitions import placed
from kops.spark.stores.tables import Expressions, StoreTopics
from kops.spark.stores.views import View

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

    from kops.spark.job import Job
    from kops.spark.reading.source import KafkaSource


def tables_view(kafka: KafkaSource, job: Job) -> View:
    """Compute a table derived from others, or the groups of one.

    A record that tasks cannot judge makes the view void; without ``kafka.batches`` no work is left to tasks.
    """
    table = job.store.table
    if table is None:
        raise TypeError(f"{job.store.name} is not a table")
    topics = StoreTopics(kafka, job, clocks=len(job.sources) > 1 and (table.needs_order or bool(job.store.key_by)))
    place = Expressions(job.state_file, job.store, table)
    if job.store.key_by:
        rows = grouped(changes(topics, table), job.store, place, loose=job.loose)
    else:
        rows = _stored(last_rows(topics, table), place, table)
    counts = {"keys": "value is not null", "mixed": f"doubt = {MIXED}", "timed": f"doubt = {TIMED}"}
    counted, of_keys = watched(rows, {name: f"count_if({condition})" for name, condition in counts.items()})
    where = placed(kafka, counted, job) if job.store.key_by else counted
    return View(where, lambda: _seen(topics, of_keys), empty=_empty(job.store) if job.loose else None)


def _empty(store: Store) -> bytes | None:
    if store.aggregate.kind not in ("count", "sum"):
        return None
    from kops.plugins.loader import load_format

    return load_format(store.aggregate.form.name).encode(0)


def _stored(rows: DataFrame, place: Expressions, table: Table) -> DataFrame:
    value = as_bytes(rows, place, table.form) if table.joins else "_raw"
    doubt = f"if(value is null or _sure, {SURE}, {TIMED}) as doubt"
    return rows.selectExpr(
        "_partition as partition", "_key as key", f"if(value is null, null, {value}) as value", "_ts as timestamp", doubt
    ).select(*COLUMNS)


def _seen(topics: StoreTopics, of_keys: Watch) -> ReadCounts:
    fates, keys = topics.fates(), of_keys.get
    dropped = {name: fates[name] for name in FATES.values()}
    return ReadCounts(
        fates["read"], dropped, keys["keys"], keys["mixed"], topics.unfit, noted={"timed": keys["timed"], "late": topics.expired}
    )


def reduced_groups(moves: DataFrame, store: Store, form: Form, *, loose: bool) -> DataFrame:
    """Fold what is added to groups and removed from them: ``difference.COLUMNS``, without partitions.

    :param moves: as returned by ``put_and_taken``
    :param form: of the values
    """

    def fold(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        yield from folded_batches(_folded_groups(rows_of(batches), _Steps(store, form), loose=loose))

    rows = moves.selectExpr("key", "_partition", "_ord.clock as clock", "_ord.feed as feed", "_ord.offset as at", "_ts", "sign", "v")
    ordered = rows.repartition("key").sortWithinPartitions("key", "clock", "feed", "_partition", "at", "sign")
    return ordered.mapInArrow(fold, SCHEMA)


class _Steps:
    """A subtractor that works on bytes."""

    def __init__(self, store: Store, form: Form) -> None:
        from kops.plugins.loader import format_of

        aggregate = store.aggregate
        reducer = load_reducer(aggregate.expression)
        if not isinstance(reducer, Subtractor):
            raise TypeError(f"{aggregate.expression} cannot subtract")  # rejected when the state file is read
        self.reducer = reducer
        self.groups, self.values, self.results = format_of(store.key_form), format_of(form), format_of(aggregate.form)

    def change(self, group: Any, old: bytes | None, new: bytes | None, timestamp: int, before: Aggregate | None) -> Aggregate | None:
        """Return what a group holds after one change (``KTableAggregate``): first the old value is removed, then the new one added."""
        held = None if before is None or before.value is None else before
        aggregate = held.value if held else None
        if old is not None and aggregate is not None:
            aggregate = self.reducer.remove(group, self.values.decode(old), aggregate)
        if new is not None:
            aggregate = self.reducer.add(group, self.values.decode(new), self.reducer.initial() if aggregate is None else aggregate)
        newest = max(timestamp, held.timestamp) if held else timestamp
        return Aggregate(aggregate, timestamp if aggregate is None else newest)


def _folded_groups(moves: Iterator[Any], steps: _Steps, *, loose: bool) -> Iterator[tuple[Any, ...]]:
    """Fold moves: group, source partition, position in the processing order (three numbers), timestamp, sign, value."""
    for key, run in groupby(moves, itemgetter(0)):
        group, partitions, members, held = steps.groups.decode(key), set[int](), 0, None
        for (partition, *_position), pair in groupby(run, itemgetter(1, 2, 3, 4)):
            partitions.add(partition)
            both, timestamp = {}, 0
            for *_, timestamp, sign, value in pair:  # noqa: B007 - the same for both
                both[sign] = value
            members += sum(both)
            held = steps.change(group, both.get(-1), both.get(1), timestamp, held)
        if held is not None:
            value = None if held.value is None else steps.results.encode(held.value)
            doubt = MIXED if len(partitions) > 1 else (TIMED if members else EMPTIED) if loose else SURE
            yield None, key, value, held.timestamp, doubt


def grouped(changes: DataFrame, store: Store, place: Expressions, *, loose: bool) -> DataFrame:
    """Return what a grouped table holds: ``difference.COLUMNS``, without partitions.

    :param changes: as returned by ``tables_changes.changes``
    :param loose: not every change is known, or not their order, so timestamps and empty groups are uncertain
    """
    moves = put_and_taken(changes, store, place)
    if store.aggregate.kind == "reducer":
        return reduced_groups(moves, store, place.table.form, loose=loose)
    form = store.aggregate.form
    result, doubt = _result(store)
    columns = [
        f"{result} as result",
        "sum(sign) as members",
        "max(_ts) as timestamp",
        f"{doubt} as is_exact",
    ]
    groups = moves.groupBy("key").agg(*(expression(column) for column in columns))
    value = encoding(f"cast(result as {sql_type(form)})", form)  # truncated to its width, as in ``aggregates``
    return groups.selectExpr(
        "cast(null as int) as partition",
        "key",
        f"{value} as value",
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
        return as_bytes(seen, place, place.table.form)
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
