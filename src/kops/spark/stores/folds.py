"""Aggregations that depend on the order of records: rows sorted by Spark, folded in Python as a stream.

Nothing is collected: the rows of a key are adjacent, so one aggregate is held at a time, however hot the key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from kops.core.statefile import Store
from kops.core.statefile.models import PLAIN
from kops.spark.staging.difference import MIXED, SURE
from kops.spark.stores.base import BASE

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

    Batches = Iterator[pyarrow.RecordBatch]

SCHEMA = "partition int, key binary, value binary, timestamp bigint, doubt int"
_ROWS = 20_000


def in_order(kept: DataFrame, store: Store) -> DataFrame:
    """Return the records key by key, each key's in the order of offsets.

    Without a new key a task reads one whole partition, so nothing is shuffled. With one, the records of several source partitions follow
    each other partition by partition.
    """
    if BASE in kept.columns and not store.key_by:
        kept = kept.repartition("partition", "key")
    if store.key_by:
        return kept.repartition("key").sortWithinPartitions("key", "partition", "offset")
    return kept.sortWithinPartitions("partition", "key", "offset")


def float_sums(kept: DataFrame, store: Store) -> DataFrame:
    """Add floats from 0.0f in 32 bits, in the order of offsets."""
    return _folded(kept, store, _float_adder)


def reduced(kept: DataFrame, store: Store) -> DataFrame:
    """Fold with the reducer that the store names as ``module:attribute``."""
    return _folded(kept, store, partial(_reducer, store))


Row = tuple[Any, ...]
"""Partition, key, timestamp, value; and whether it is what the store held before, if there is a base."""
_BASE_AT = 4
Folder = Callable[[bytes, "_Seen"], "tuple[bytes | None, int, bool] | None"]
"""Takes a key and an iterator of (value, timestamp), starting with what the store held before; returns the bytes, the timestamp, and
whether the result is the same in any order."""


def _folded(kept: DataFrame, store: Store, make_folder: Callable[[], Folder]) -> DataFrame:
    by_partition = not store.key_by

    def fold(batches: Batches) -> Batches:
        yield from folded_batches(_fold_rows(rows_of(batches), make_folder(), by_partition=by_partition))

    rows = in_order(kept, store).select("partition", "key", "timestamp_ms", "v", *([BASE] if BASE in kept.columns else []))
    return rows.mapInArrow(fold, SCHEMA)


def rows_of(batches: Batches) -> Iterator[Any]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _fold_rows(rows: Iterator[Row], folder: Folder, *, by_partition: bool) -> Iterator[tuple[Any, ...]]:
    """Fold runs of rows with the same key (and partition)."""
    from itertools import groupby

    for _, run in groupby(rows, key=(lambda row: row[:2]) if by_partition else (lambda row: row[1])):
        seen = _Seen(run)
        result = folder(seen.key, seen)
        for _ in seen:  # a folder may stop early; the partitions of the remaining rows count too
            pass
        if result is not None:
            value, timestamp, order_free = result
            yield (seen.partition if by_partition else None, seen.key, value, timestamp, MIXED if seen.mixed and not order_free else SURE)


class _Seen:
    """The (value, timestamp) of a run, recording whether it mixes source partitions.

    What the store held before, which is not a record of the input, has no partition after a new key.
    """

    def __init__(self, run: Iterator[Row]) -> None:
        first = next(run)
        self.has_base = len(first) > _BASE_AT and bool(first[_BASE_AT])
        self.partition, self.key, self.mixed = first[0], first[1], False
        self._first: Row | None = first
        self._rest = run

    def __iter__(self) -> Iterator[tuple[Any, int]]:
        return self

    def __next__(self) -> tuple[Any, int]:
        row, self._first = (self._first, None) if self._first is not None else (next(self._rest), None)
        self.partition = row[0] if self.partition is None else self.partition
        self.mixed = self.mixed or row[0] != self.partition
        return row[3], row[2]


def folded_batches(rows: Iterator[tuple[Any, ...]], schema: str = SCHEMA) -> Batches:
    """Yield rows as Arrow batches.

    :param schema: with the types int, bigint and binary
    """
    from itertools import islice

    import pyarrow

    kinds = {"int": pyarrow.int32(), "bigint": pyarrow.int64(), "binary": pyarrow.binary()}
    names, types = zip(*((name, kinds[kind]) for name, kind in (field.split() for field in schema.split(", "))), strict=True)
    while piece := list(islice(rows, _ROWS)):
        arrays = [pyarrow.array(column, kind) for column, kind in zip(zip(*piece, strict=True), types, strict=True)]
        yield pyarrow.RecordBatch.from_arrays(arrays, list(names))


def _float_adder() -> Folder:
    import numpy

    fraction, limit = numpy.float32(1 << 8), float(1 << 16)

    def add(_key: bytes, records: _Seen) -> tuple[bytes, int, bool]:
        total, newest, absolute, order_free = numpy.float32(0), 0, 0.0, True
        with numpy.errstate(all="ignore"):
            for number, timestamp in records:
                value = numpy.float32(number)
                total += value
                newest = max(newest, timestamp)
                absolute += abs(number)
                order_free = order_free and absolute < limit and bool(value * fraction == numpy.floor(value * fraction))
        return numpy.array(total, ">f4").tobytes(), newest, order_free

    return add


def _reducer(store: Store) -> Folder:
    from kops.core.statefile.reducers import Aggregate, fold, load_reducer
    from kops.plugins.loader import format_of

    reducer = load_reducer(store.aggregate.expression)
    keys, values, results = format_of(store.key_form), format_of(store.source.value), format_of(store.aggregate.form)
    plain = store.type == PLAIN  # without timestamps, it logs that of the record being processed (``ChangeLoggingKeyValueBytesStore``)

    def reduce(key: bytes, records: _Seen) -> tuple[bytes | None, int, bool] | None:
        last = 0
        held, at = next(records) if records.has_base else (None, 0)
        before = None if held is None else Aggregate(results.decode(held), at)

        def decoded() -> Iterator[tuple[Any, int]]:
            nonlocal last
            for value, last in records:
                yield values.decode(value), last

        result = fold(reducer, keys.decode(key), decoded(), before)
        if before is not None and result is before:
            return held, at, False
        return None if result is None else (results.encode(result.value), last if plain else result.timestamp, False)

    return reduce
