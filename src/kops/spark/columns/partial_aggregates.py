"""What each task aggregates from its own records, column by column, before anything goes to the JVM.

Most stores are a count, a sum or the latest value, of keys and numbers whose bytes need no SQL. For them a task keeps one row per key
that it read, so that of ten million records only as many rows as there are keys reach Spark's own aggregation, which merges the rows of
several tasks. Everything less simple is left to ``prepare`` and ``aggregates``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from kops.core.statefile import Form, Store
from kops.core.statefile.models import INTEGRAL, TABLE
from kops.spark.frames import expression
from kops.spark.reading.batch_source import partition_column
from kops.spark.reading.codec import WIDTHS, encoding, sql_type
from kops.spark.reading.gathering import gathered, newest_of_each_key, row_of_each_key

if TYPE_CHECKING:
    import numpy
    import pyarrow
    from numpy.typing import NDArray
    from pyspark.sql import DataFrame

    from kops.formats.batches.columns import RecordColumns

_OF_A_KEY = ("key", "number", "value", "offset", "timestamp_ms")
FATES = ("read", "unfit", "negative_timestamp", "null_key", "null_value")
SCHEMA = "partition int, key binary, number bigint, value binary, offset bigint, timestamp_ms bigint, " + ", ".join(
    f"{fate} bigint" for fate in FATES
)
"""A task's rows: per key the partial aggregate, or the record that counts, once or a few times; and one row without a key, with the counts
of what was read. Unfit are records that are not in the declared formats, or that only Spark SQL can judge: if there are any, no row can be
used."""
CHOSEN = (TABLE, "last", "first")
"""Aggregates that are the value of one of the records."""

_AS_THEY_ARE = ("string", "bytes", "float", *INTEGRAL)  # Kafka Streams writes these as it read them; of a double, a NaN may change


def can_aggregate_in_tasks(store: Store) -> bool:
    aggregate, key, value = store.aggregate, store.source.key.name, store.source.value.name
    if key not in _AS_THEY_ARE or store.where or store.key_by or store.explode or store.others or store.table:
        return False
    if store.source.extracts:
        return False
    if store.key_form != store.source.key:
        return False
    if aggregate.kind == "count":
        return value in (*_AS_THEY_ARE, "double")
    if aggregate.kind in ("sum", "min", "max"):
        of = aggregate.form.name
        return aggregate.expression == "value" and {value, of} <= set(INTEGRAL) and WIDTHS[value] <= WIDTHS[of]
    return aggregate.kind in CHOSEN and aggregate.is_whole_value and aggregate.form.name == value and value in _AS_THEY_ARE


def is_plain(key: Form, value: Form) -> bool:
    return key.name in _AS_THEY_ARE and value.name in _AS_THEY_ARE


def partial_aggregate_of(store: Store) -> PartialAggregate:
    return PartialAggregate(store.aggregate.kind, store.source.key, store.source.value)


def joined(rows: DataFrame, store: Store) -> DataFrame:
    """Merge the rows of all tasks into what the store holds: partition, key, value, timestamp, doubt.

    Integer additions that wrap around give the same result in any order; the timestamp is the greatest (``KStreamAggregate``), or for a row
    of a table the record's own (``KTableSource``).
    """
    kind, form = store.aggregate.kind, store.aggregate.form
    grouped = rows.where("key is not null").groupBy("partition", "key")
    if kind == TABLE:
        latest = grouped.agg(expression("max_by(struct(value, timestamp_ms), offset) as latest"))
        return latest.selectExpr("partition", "key", "latest.value as value", "latest.timestamp_ms as timestamp", "0 as doubt")
    if kind in CHOSEN:
        picked = f"{'max' if kind == 'last' else 'min'}_by(struct(value), offset) as picked"
        chosen = grouped.agg(expression(picked), expression("max(timestamp_ms) as timestamp"))
        return chosen.selectExpr("partition", "key", "picked.value as value", "timestamp", "0 as doubt")
    how = "sum" if kind == "count" else kind
    added = grouped.agg(expression(f"{how}(number) as result"), expression("max(timestamp_ms) as timestamp"))
    value = encoding(f"cast(result as {sql_type(form)})", form)
    return added.selectExpr("partition", "key", f"{value} as value", "timestamp", "0 as doubt")


@dataclass(frozen=True)
class PartialAggregate:
    """Makes rows of ``SCHEMA`` from the records of a range; runs in tasks.

    :param kind: count, sum, min, max, or one of ``CHOSEN``
    """

    kind: str
    key: Form
    value: Form

    by: ClassVar[tuple[str, ...]] = ("key",)
    """The columns of the key, which come first in the tables."""
    counted: ClassVar[tuple[str, ...]] = FATES
    """The counts taken of the records."""

    def __call__(self, records: Iterator[RecordColumns], partition: int) -> Iterator[pyarrow.Table]:
        import pyarrow

        counts = dict.fromkeys(self.counted, 0)
        for table in gathered(self.tables(records, counts), self.merge):
            yield self._rows_of(self.with_keys(table), partition)
        numbers = {name: pyarrow.array([number], pyarrow.int64()) for name, number in counts.items()}
        yield self._rows_of(pyarrow.table(numbers), partition)

    def _rows_of(self, table: pyarrow.Table, partition: int) -> pyarrow.Table:
        """Return rows of ``SCHEMA`` with the columns of a table; the others are null."""
        import pyarrow

        size, kinds = table.num_rows, {"key": pyarrow.binary(), "value": pyarrow.binary()}
        nulls = {name: pyarrow.nulls(size, kinds.get(name, pyarrow.int64())) for name in (*_OF_A_KEY, *self.counted)}
        found = {name: table[name] for name in table.column_names}
        return pyarrow.table({"partition": partition_column(partition, size), **nulls, **found})

    def merge(self, table: pyarrow.Table) -> pyarrow.Table:
        """Return one row per key, from rows in the order of their offsets."""
        if self.kind == TABLE:
            return newest_of_each_key(table)
        return picked(table, self.kind, self.by) if self.kind in CHOSEN else added(table, self.kind, self.by)

    def with_keys(self, table: pyarrow.Table) -> pyarrow.Table:
        return table

    def tables(self, records: Iterable[RecordColumns], counts: dict[str, int]) -> Iterator[pyarrow.Table]:
        """Yield the columns to aggregate, of the records that count; count all records."""
        for each in records:
            yield self.columns(self.taken(each, counts, keep_null_values=self.kind == TABLE))

    def taken(self, records: RecordColumns, counts: dict[str, int], *, keep_null_values: bool) -> RecordColumns:
        """Return the records that count, and count the others; none once a record was unfit."""
        counts["read"] += len(records)
        counts["unfit"] += _wrong(records.key_lengths, records.keys, self.key)
        counts["unfit"] += _wrong(records.value_lengths, records.values, self.value)
        records = without_dropped(records, counts, keep_null_values=keep_null_values)
        return records.where(slice(0, 0)) if counts["unfit"] else records

    def columns(self, records: RecordColumns) -> pyarrow.Table:
        import pyarrow

        columns = {"key": records.keys(), "timestamp_ms": pyarrow.array(records.timestamps)}
        if self.kind in CHOSEN:
            columns |= {"value": records.values(), "offset": pyarrow.array(records.offsets)}
        else:
            columns["number"] = pyarrow.array(numbers_of(records, self.kind, self.value))
        return pyarrow.table(columns)


def added(table: pyarrow.Table, kind: str, by: Sequence[str]) -> pyarrow.Table:
    """Return one row per key: the aggregate of ``number``, and the greatest timestamp.

    :param kind: count, sum, min or max
    :param by: the columns of the key
    """
    how = "sum" if kind == "count" else kind
    grouped = table.group_by(list(by), use_threads=False).aggregate([("number", how), ("timestamp_ms", "max")])
    named = grouped.select([*by, f"number_{how}", "timestamp_ms_max"]).rename_columns([*by, "number", "timestamp_ms"])
    return named.select(table.column_names)


def picked(table: pyarrow.Table, kind: str, by: Sequence[str]) -> pyarrow.Table:
    """Return the first or last row per key, with the greatest timestamp (``KStreamReduce``, ``KStreamWindowAggregate``).

    :param kind: last or first
    :param by: the columns of the key
    """
    which = "max" if kind == "last" else "min"
    rows = row_of_each_key(table, by, which, ("timestamp_ms", "max"))
    chosen = table.take(rows[f"row_{which}"])
    return chosen.set_column(chosen.column_names.index("timestamp_ms"), "timestamp_ms", rows["timestamp_ms_max"])


def numbers_of(records: RecordColumns, kind: str, value: Form) -> NDArray[numpy.int64]:
    import numpy

    return numpy.ones(len(records), numpy.int64) if kind == "count" else records.value_numbers(WIDTHS[value.name])


def big_endian(numbers: NDArray[Any], width: int) -> pyarrow.Array:
    """Return integers as big-endian bytes of this width, truncated to it if they do not fit."""
    import pyarrow

    octets = pyarrow.py_buffer(numbers.astype(f">i{width}"))
    return pyarrow.Array.from_buffers(pyarrow.binary(width), len(numbers), [None, octets]).cast(pyarrow.binary())


def _wrong(lengths: NDArray[numpy.int64], column: Callable[[], pyarrow.Array], form: Form) -> int:
    """Return how many values are not in a format; for texts only whether there are any (at least one)."""
    import pyarrow

    width = WIDTHS.get(form.name)
    if width is not None:
        return int(((lengths != width) & (lengths >= 0)).sum())
    if form.name == "string":
        try:
            column().cast(pyarrow.string())
        except pyarrow.ArrowInvalid:
            return 1
    return 0


def without_dropped(records: RecordColumns, fates: dict[str, int], *, keep_null_values: bool) -> RecordColumns:
    """Leave out what Kafka Streams drops, and count it by its first reason: a negative timestamp, a null key, a null value."""
    for fate in ("negative_timestamp", "null_key", *(() if keep_null_values else ("null_value",))):
        judged = {"negative_timestamp": records.timestamps, "null_key": records.key_lengths, "null_value": records.value_lengths}[fate]
        dropped = judged < 0
        count = int(dropped.sum())
        if count:
            fates[fate] += count
            records = records.where(~dropped)
    return records
