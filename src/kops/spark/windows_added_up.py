"""Tumbling and hopping windows that tasks add up by themselves, column by column (``added_up``).

A task reads a partition whole and in order, so the stream time is a running maximum over what it reads, and what is late is known at once.
The rules are those of ``windows_time``: ``TimeWindows.windowsFor`` and ``KStreamWindowAggregate``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from kops.core.statefile import Form, Store, Windows
from kops.core.statefile.models import WINDOW
from kops.spark.added_up import FATES, SCHEMA, added, adds_up, numbers_of, rows_of, without_dropped, wrong_in
from kops.spark.gathering import gathered
from kops.spark.stream_time import NEVER
from kops.spark.windows_steps import PASSES_NULLS

if TYPE_CHECKING:
    import numpy
    import pyarrow
    from numpy.typing import NDArray
    from pyspark.sql import DataFrame

    from kops.formats.record_columns import RecordColumns
    from kops.spark.batch_source import BatchSource
    from kops.spark.source import TopicRange

TOLD = ("late", "null_values")
"""What is counted besides ``added_up.FATES``."""


def windows_add_up(store: Store) -> bool:
    """Tell whether tasks can add the windows of a store up by themselves."""
    return store.type == WINDOW and adds_up(store) and store.aggregate.kind in ("count", "sum", "min", "max")


def windows_added_up(source: BatchSource, wanted: TopicRange, store: Store) -> DataFrame:
    """Return what the tasks make of a topic, as rows of ``added_up.SCHEMA`` and of what is ``TOLD``."""
    if store.window is None:
        raise TypeError(f"{store.name} has no windows")
    add_up = AddUpWindows(store.aggregate.kind, store.source.key, store.source.value, store.window)
    return source.reduced(replace(wanted, split=False), ", ".join([SCHEMA, *(f"{name} bigint" for name in TOLD)]), add_up)


@dataclass(frozen=True)
class AddUpWindows:
    """Makes rows of a partition's records; runs in the tasks.

    :param kind: count, sum, min or max
    """

    kind: str
    key: Form
    value: Form
    windows: Windows

    def __call__(self, records: Iterator[RecordColumns], partition: int) -> Iterator[pyarrow.Table]:
        """Yield the rows; when a record is not of the formats, that is said, and what else is yielded is of no use."""
        counts = dict.fromkeys((*FATES, *TOLD), 0)
        for table in gathered(self._in_windows(records, counts), partial(added, kind=self.kind, by=("key", "start"))):
            yield rows_of(_with_window_keys(table), partition, dict.fromkeys(counts))
        yield rows_of(None, partition, counts)

    def _in_windows(self, records: Iterator[RecordColumns], counts: dict[str, int]) -> Iterator[pyarrow.Table]:
        """Yield a row for each window that a record updates."""
        import numpy

        latest = NEVER
        for every in records:
            counts["read"] += len(every)
            counts["undecodable"] += wrong_in(every, self.key, self.value)
            columns = without_dropped(every, counts, keep_null_values=True)
            if counts["undecodable"] or not len(columns):
                continue
            stream_time = numpy.maximum(numpy.maximum.accumulate(columns.timestamps), latest)
            latest = int(stream_time[-1])
            if self.kind in PASSES_NULLS:
                taken = columns.value_lengths >= 0
                counts["null_values"] += int((~taken).sum())
                columns, stream_time = columns.where(taken), stream_time[taken]
            yield self._rows(columns, stream_time - self.windows.grace_ms, counts)

    def _rows(self, columns: RecordColumns, closed: NDArray[numpy.int64], counts: dict[str, int]) -> pyarrow.Table:
        """Return the rows of some records.

        :param closed: up to where windows are closed when each record comes
        """
        import numpy
        import pyarrow

        size, advance = self.windows.size_ms, self.windows.advance_ms
        first = numpy.maximum(columns.timestamps - (size - advance), 0) // advance * advance
        counts["late"] += int((first + size <= closed).sum())
        keys, numbers = columns.keys(), numbers_of(columns, self.kind, self.value)
        parts = []
        for start in (first + step for step in range(0, size, advance)):
            rows = numpy.flatnonzero((start <= columns.timestamps) & (start + size > closed))
            whole = len(rows) == len(columns)
            found = {
                "key": keys if whole else keys.take(pyarrow.array(rows)),
                "start": pyarrow.array(start[rows]),
                "number": pyarrow.array(numbers[rows]),
                "timestamp_ms": pyarrow.array(columns.timestamps[rows]),
            }
            parts.append(pyarrow.table(found))
        return pyarrow.concat_tables(parts)


def _with_window_keys(table: pyarrow.Table) -> pyarrow.Table:
    """Put the start and the sequence 0 behind each key (``WindowKeySchema.toStoreKeyBinary``)."""
    import numpy
    import pyarrow
    from pyarrow import compute

    suffixes = numpy.zeros((table.num_rows, 12), dtype=numpy.uint8)
    suffixes[:, :8] = table["start"].to_numpy().astype(">i8").view(numpy.uint8).reshape(-1, 8)
    fixed = pyarrow.Array.from_buffers(pyarrow.binary(12), table.num_rows, [None, pyarrow.py_buffer(suffixes)])
    keys = compute.binary_join_element_wise(table["key"], fixed.cast(pyarrow.binary()), pyarrow.scalar(b"", pyarrow.binary()))
    return table.drop_columns(["start"]).set_column(0, "key", keys)
