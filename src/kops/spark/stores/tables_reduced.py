"""Grouped tables with a plugin's reducer that can also subtract: Python, one step per change, in the order of the changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kops.core.statefile import Form, Store
from kops.core.statefile.reducers import Aggregate, Subtractor, load_reducer
from kops.spark.staging.difference import EMPTIED, MIXED, SURE, TIMED
from kops.spark.stores.folds import SCHEMA, folded_batches

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

Move = tuple[bytes, int, tuple[int, int, int], int, int, bytes]
"""Group, source partition, position in the processing order, timestamp, sign, value."""


def reduced_groups(moves: DataFrame, store: Store, *, loose: bool) -> DataFrame:
    """Fold what is added to groups and removed from them: ``aggregates.COLUMNS``, without partitions.

    :param moves: as returned by ``tables_groups.put_and_taken``
    """
    reference, group_form, form = store.aggregate.expression, store.key_form, store.aggregate.form
    value_form = store.table.form if store.table else form

    def fold(batches: Iterable[pyarrow.RecordBatch]) -> Iterable[pyarrow.RecordBatch]:
        yield from folded_batches(_groups(_moves(batches), _Steps(reference, group_form, value_form, form), loose=loose))

    rows = moves.selectExpr("key", "_partition", "_ord.clock as clock", "_ord.feed as feed", "_ord.offset as at", "_ts", "sign", "v")
    ordered = rows.repartition("key").sortWithinPartitions("key", "clock", "feed", "_partition", "at", "sign")
    return ordered.mapInArrow(fold, SCHEMA)


class _Steps:
    """A subtractor that works on bytes."""

    def __init__(self, reference: str, group_form: Form, value_form: Form, form: Form) -> None:
        from kops.plugins.loader import format_of

        reducer = load_reducer(reference)
        if not isinstance(reducer, Subtractor):
            raise TypeError(f"{reference} cannot subtract")  # rejected when the state file is read
        self.reducer = reducer
        self.groups, self.values, self.results = format_of(group_form), format_of(value_form), format_of(form)

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


def _moves(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[Move]:
    for batch in batches:
        for key, partition, clock, feed, at, timestamp, sign, value in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield key, partition, (clock, feed, at), timestamp, sign, value


def _groups(moves: Iterator[Move], steps: _Steps, *, loose: bool) -> Iterator[tuple[Any, ...]]:
    from itertools import groupby

    for key, run in groupby(moves, key=lambda move: move[0]):
        group, partitions, members, held = steps.groups.decode(key), set[int](), 0, None
        for (partition, _), pair in groupby(run, key=lambda move: (move[1], move[2])):
            partitions.add(partition)
            both = {move[4]: move for move in pair}
            members += sum(both)
            timestamp = next(iter(both.values()))[3]
            held = steps.change(group, both[-1][5] if -1 in both else None, both[1][5] if 1 in both else None, timestamp, held)
        if held is not None:
            value = None if held.value is None else steps.results.encode(held.value)
            doubt = MIXED if len(partitions) > 1 else (TIMED if members else EMPTIED) if loose else SURE
            yield None, key, value, held.timestamp, doubt
