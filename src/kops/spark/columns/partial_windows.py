"""Tumbling and hopping windows whose records tasks aggregate themselves, column by column (``partial_aggregates``), and their expiry.

A task reads a whole partition in order, so stream time is a running maximum over what it reads, and late records are recognized at once.
The rules are those of ``windows.keys``: ``TimeWindows.windowsFor`` and ``KStreamWindowAggregate``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from kops.core.statefile import Store, Windows
from kops.core.statefile.models import TABLE, WINDOW
from kops.spark.columns.partial_aggregates import CHOSEN, FATES, SCHEMA, PartialAggregate, big_endian, can_aggregate_in_tasks
from kops.spark.windows.keys import FIRST_OFFSETS, WINDOW_SUFFIX, windows_of
from kops.spark.windows.steps import PASSES_NULLS
from kops.spark.windows.stream_time import NEVER

if TYPE_CHECKING:
    import numpy
    import pyarrow
    from numpy.typing import NDArray
    from pyspark.sql import DataFrame

    from kops.formats.batches.columns import RecordColumns
    from kops.spark.reading.batch_source import BatchSource, TaskInput
    from kops.spark.reading.ranges import TopicRange


WINDOW_FATES = ("late", "null_values")
"""What is counted besides ``partial_aggregates.FATES``."""

ROWS_AT_ONCE = 1_000_000
"""Maximum number of rows made from records at once: each record has one row per window that it is in."""


def can_aggregate_windows_in_tasks(store: Store) -> bool:
    return store.type == WINDOW and can_aggregate_in_tasks(store) and store.aggregate.kind != TABLE and not windows_of(store).alignment_ms


def partial_window_rows(source: BatchSource, wanted: TopicRange, store: Store) -> DataFrame:
    """Return what the tasks make of a topic, as rows of ``partial_aggregates.SCHEMA`` and ``WINDOW_FATES``."""
    schema = ", ".join([SCHEMA, *(f"{name} bigint" for name in WINDOW_FATES)])
    return source.reduced(replace(wanted, split=False), schema, partial_windows_of(store))


def partial_windows_of(store: Store) -> PartialWindows:
    return PartialWindows(store.aggregate.kind, store.source.key, store.source.value, windows_of(store))


@dataclass(frozen=True)
class PartialWindows(PartialAggregate):
    """Makes rows from the records of a partition; runs in tasks.

    :param kind: count, sum, min, max, last or first
    """

    windows: Windows

    by: ClassVar[tuple[str, ...]] = ("key", "start")
    counted: ClassVar[tuple[str, ...]] = (*FATES, *WINDOW_FATES)

    def with_keys(self, table: pyarrow.Table) -> pyarrow.Table:
        """Append the start and the sequence 0 to each key (``WindowKeySchema.toStoreKeyBinary``)."""
        import pyarrow
        from pyarrow import compute

        starts = big_endian(table["start"].to_numpy(), 8)
        nothing, sequence = (pyarrow.scalar(octets, pyarrow.binary()) for octets in (b"", bytes(4)))
        keys = compute.binary_join_element_wise(table["key"], starts, sequence, nothing)
        return table.drop_columns(["start"]).set_column(table.column_names.index("key"), "key", keys)

    def tables(self, records: Iterable[RecordColumns], counts: dict[str, int]) -> Iterator[pyarrow.Table]:
        import numpy

        latest = NEVER
        for every in records:
            columns = self.taken(every, counts, keep_null_values=True)
            if len(columns):
                stream_time = numpy.maximum(numpy.maximum.accumulate(columns.timestamps), latest)
                latest = int(stream_time[-1])
                without_value = columns.value_lengths < 0
                if self.kind in PASSES_NULLS:
                    counts["null_values"] += int(without_value.sum())
                    columns, stream_time = columns.where(~without_value), stream_time[~without_value]
                elif self.kind in CHOSEN:  # where a null value deletes, the timestamp starts over
                    counts["unfit"] += int(without_value.sum())
                yield from self._pieces(columns, stream_time - self.windows.grace_ms, counts)
            else:
                yield self._rows(columns, columns.timestamps, counts)

    def _pieces(self, columns: RecordColumns, closed: NDArray[numpy.int64], counts: dict[str, int]) -> Iterator[pyarrow.Table]:
        """Yield the rows of some records, in pieces small enough to limit the number of their windows."""
        at_once = max(1, ROWS_AT_ONCE * self.windows.advance_ms // self.windows.size_ms)
        for first in range(0, len(columns), at_once):
            piece = slice(first, first + at_once)
            yield self._rows(columns.where(piece), closed[piece], counts)

    def _rows(self, columns: RecordColumns, closed: NDArray[numpy.int64], counts: dict[str, int]) -> pyarrow.Table:
        """Return the rows of some records.

        :param closed: per record, the time up to which windows are closed when it arrives
        """
        import numpy
        import pyarrow

        size, advance = self.windows.size_ms, self.windows.advance_ms
        first = numpy.maximum(columns.timestamps - (size - advance), 0) // advance * advance
        counts["late"] += int((first + size <= closed).sum())
        found, parts = self.columns(columns), []
        for start in (first + step for step in range(0, size, advance)):
            rows = numpy.flatnonzero((start <= columns.timestamps) & (start + size > closed))
            chosen = found if len(rows) == len(columns) else found.take(pyarrow.array(rows))
            parts.append(chosen.append_column("start", pyarrow.array(start[rows])))
        table = pyarrow.concat_tables(parts)
        return table.sort_by("offset") if self.kind in CHOSEN and len(parts) > 1 else table


EXPIRY = ("expired", "hidden", "uncovered", "unaligned")
"""The counts; see ``job.NOTED``."""


@dataclass
class FirstRecordTracker:
    """Passes records on, and keeps the offset and timestamp of the first."""

    records: Iterable[RecordColumns]
    offset: int | None = None
    timestamp: int = 0

    def __iter__(self) -> Iterator[RecordColumns]:
        for columns in self.records:
            if self.offset is None and len(columns):
                self.offset, self.timestamp = int(columns.offsets[0]), int(columns.timestamps[0])
            yield columns

    def uncovered(self, piece: TaskInput | None, starts: NDArray[numpy.int64]) -> int:
        """Count the windows that may have had records which are gone: those up to the timestamp of the first remaining record.

        If there is none among the first offsets, the partition counts as one window.
        """
        if piece is None or not piece.trimmed:
            return 0
        if self.offset is None or self.offset >= piece.start + FIRST_OFFSETS:
            return 1
        return int((starts <= self.timestamp).sum())


def without_expired(
    put: pyarrow.Table, found: pyarrow.Table, windows: Windows, counts: dict[str, int]
) -> tuple[pyarrow.Table, pyarrow.Table]:
    """Leave out what the store has forgotten: of everything that was put, and of what the changelog holds.

    Also counts what a store will expire on restore because of a later window in the changelog.

    :param put: with ``start``
    :param found: with ``key``, the key of a window
    """
    import pyarrow

    starts = put["start"].to_numpy()
    if not len(starts):
        return put, found
    latest = int(starts.max())
    bound = latest - windows.retention_ms
    live = starts > bound
    counts["expired"] = int((~live).sum())
    times, long_enough = window_starts(found["key"].combine_chunks())
    held = long_enough & found["value"].is_valid().to_numpy()
    counts["unaligned"] = int((times[held] % windows.advance_ms != 0).sum())
    held_up_to = int(times[long_enough].max()) if long_enough.any() else latest
    if held_up_to > latest:
        counts["hidden"] = int((live & (starts <= held_up_to - windows.retention_ms)).sum())
    kept = ~long_enough | (times > bound)
    return (
        put if live.all() else put.filter(pyarrow.array(live)),
        found if kept.all() else found.filter(pyarrow.array(kept)),
    )


def too_short(keys: pyarrow.ChunkedArray) -> int:
    """Count keys that are too short to be a window's."""
    from pyarrow import compute

    return int(compute.sum(compute.less(compute.binary_length(keys), WINDOW_SUFFIX)).as_py() or 0)


def window_starts(keys: pyarrow.Array) -> tuple[NDArray[numpy.int64], NDArray[numpy.bool_]]:
    """Return the start in each window's key, and which keys are long enough to have one."""
    import numpy

    _, bounds, data = keys.buffers()
    ends = numpy.frombuffer(bounds, numpy.int32)[keys.offset : keys.offset + len(keys) + 1].astype(numpy.int64)
    long_enough = numpy.diff(ends) >= WINDOW_SUFFIX
    starts = numpy.zeros(len(keys), numpy.int64)
    if long_enough.any():
        numbers: NDArray[numpy.int64] = numpy.ndarray((data.size - 7,), ">i8", data, strides=(1,))
        starts[long_enough] = numbers[ends[1:][long_enough] - WINDOW_SUFFIX]
    return starts, long_enough
