"""Windows and sessions that are computed record by record: rows sorted by Spark, folded in Python as a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from kops.core.statefile import Store
from kops.spark.staging.difference import MIXED, SURE, TIMED
from kops.spark.stores.aggregates import depends_on_order
from kops.spark.stores.folds import folded_batches, rows_of
from kops.spark.windows.keys import WINDOW_SUFFIX, windows_of
from kops.spark.windows.sessions import Tally, sessions_of
from kops.spark.windows.sliding import TaskWindows
from kops.spark.windows.steps import Steps, steps_of

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

    Batches = Iterator[pyarrow.RecordBatch]

SCHEMA = "partition int, key binary, value binary, timestamp bigint, doubt int, late bigint, boundary bigint, expired bigint, cached bigint"
"""Rows of a view; and, per Spark task, one row without a key that has the numbers of ``Tally``."""

Row = tuple[int, bytes, int, int, int, Any, bool]
"""Task, key, timestamp, before, others, value, mixed."""
Out = tuple["int | None", "bytes | None", "bytes | None", "int | None", int, int, int, int, int]


def ordered_by_key(timed: DataFrame, *, in_pieces: bool, several: bool) -> DataFrame:
    """Return the rows of each key together, in the order in which they are assumed to have been processed.

    If one source partition feeds a key, that is the order of its offsets. If several do, it is not known, and event time is used instead.

    :param in_pieces: whether partitions are read by several Spark tasks
    :param several: whether several source partitions may feed a key
    """
    if several:
        bounds = "over (partition by task, key)"
        mixed = timed.selectExpr("*", f"min(partition) {bounds} < max(partition) {bounds} as mixed")
        return mixed.selectExpr("*", "if(mixed, timestamp_ms, 0L) as turn").sortWithinPartitions(
            "task", "key", "turn", "partition", "offset"
        )
    rows = timed.selectExpr("*", "false as mixed")
    return (rows.repartition("task", "key") if in_pieces else rows).sortWithinPartitions("task", "key", "partition", "offset")


def ordered_by_task(timed: DataFrame, *, by_new_key: bool, several: bool) -> DataFrame:
    """Return the rows of each task together, in the order in which they are assumed to have been processed.

    :param by_new_key: whether the task is not the one that reads the partition
    """
    if not by_new_key:
        return timed.selectExpr("*", "false as mixed")
    if not several:
        return timed.selectExpr("*", "false as mixed").repartition("task").sortWithinPartitions("task", "partition", "offset")
    bounds = "over (partition by task, key)"
    mixed = timed.selectExpr("*", f"min(partition) {bounds} < max(partition) {bounds} as mixed")
    return mixed.repartition("task").sortWithinPartitions("task", "timestamp_ms", "partition", "offset")


def sessions(rows: DataFrame, store: Store, value_type: str) -> DataFrame:
    """Return sessions, as ``SCHEMA``.

    :param rows: ``ordered_by_key``
    """
    windows = windows_of(store)
    # Another order gives a session another timestamp; also another value, if the aggregate depends on the order.
    doubt = MIXED if depends_on_order(store.aggregate) else TIMED

    def fold(records: Iterator[Row], steps: Steps, tally: Tally) -> Iterator[Out]:
        for (task, key), run in groupby(records, itemgetter(0, 1)):
            first = next(run)
            taken = ((row[2], row[5], row[3], row[4]) for row in chain([first], run))
            for end, start, value, timestamp in sessions_of(key, taken, windows, steps, tally, in_order=not first[6]):
                bounds = end.to_bytes(8, "big") + start.to_bytes(8, "big")
                yield task, key + bounds, value, timestamp, doubt if first[6] else SURE, 0, 0, 0, 0

    return _folded(rows, store, value_type, fold)


def sliding_windows(rows: DataFrame, store: Store, value_type: str) -> DataFrame:
    """Return sliding windows, as ``SCHEMA``.

    :param rows: ``ordered_by_task``
    """
    windows = windows_of(store)
    doubt = MIXED if depends_on_order(store.aggregate) else SURE

    def fold(records: Iterator[Row], steps: Steps, tally: Tally) -> Iterator[Out]:
        for task, run in groupby(records, itemgetter(0)):
            held, mixed = TaskWindows(windows, steps, tally), set()
            for _task, key, timestamp, before, others, value, is_mixed in run:
                held.process(key, timestamp, value, before, others)
                if is_mixed:
                    mixed.add(key)
            for key, start, value, timestamp in held.puts():
                yield task, key + _window(start), value, timestamp, doubt if key in mixed else SURE, 0, 0, 0, 0

    return _folded(rows, store, value_type, fold)


def reduced_windows(rows: DataFrame, store: Store, value_type: str) -> DataFrame:
    """Return windows whose aggregate may be deleted in between, as ``SCHEMA``.

    :param rows: ``ordered_by_key``, the key being that of the window
    """

    def fold(records: Iterator[Row], steps: Steps, _tally: Tally) -> Iterator[Out]:
        for (task, key), run in groupby(records, itemgetter(0, 1)):
            aggregate, newest, mixed = None, 0, False
            for _task, _key, timestamp, _before, _others, value, mixed in run:  # noqa: B007 - the same for all rows of a run
                started = aggregate is None
                aggregate = steps.add(key[:-WINDOW_SUFFIX], value, steps.initial() if started else aggregate)
                newest = timestamp if started or aggregate is None else max(newest, timestamp)
            encoded = None if aggregate is None else steps.encode(aggregate)
            yield task, key, encoded, newest, MIXED if mixed else SURE, 0, 0, 0, 0

    return _folded(rows, store, value_type, fold)


def _window(start: int) -> bytes:
    return start.to_bytes(8, "big") + bytes(4)


def _folded(rows: DataFrame, store: Store, value_type: str, fold: Callable[[Iterator[Row], Steps, Tally], Iterator[Out]]) -> DataFrame:
    def run(batches: Batches) -> Batches:
        tally = Tally()
        yield from folded_batches(fold(rows_of(batches), steps_of(store, value_type), tally), SCHEMA)
        yield from folded_batches(iter([(None, None, None, None, SURE, tally.late, tally.boundary, tally.expired, tally.cached)]), SCHEMA)

    return rows.select("task", "key", "timestamp_ms", "before", "others", "v", "mixed").mapInArrow(run, SCHEMA)
