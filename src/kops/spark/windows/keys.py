"""Windows and sessions in Spark SQL: their keys, times and expiry, and which tumbling and hopping windows each record updates.

The formats are those of ``kops.formats.streams``, as expressions over columns. ``TimeWindows.windowsFor`` and ``KStreamWindowAggregate``: a
record belongs to every window that starts at a multiple of the advance and contains it, and updates those that end after the stream time
(including the record) minus the grace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kops.core.statefile import Store, Windows
from kops.core.statefile.models import SESSION
from kops.spark.frames import expression

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


WINDOW_SUFFIX, SESSION_SUFFIX = 12, 16
"""Bytes after the application's own key: start and sequence of a window; end and start of a session."""


FIRST_OFFSETS = 200
"""Offsets to search for the first record of a partition."""


def windows_of(store: Store) -> Windows:
    if store.window is None:
        raise AssertionError(f"{store.name} has no windows")
    return store.window


def suffix_of(windows: Windows) -> int:
    """Return the number of bytes after the application's own key."""
    return SESSION_SUFFIX if windows.kind == SESSION else WINDOW_SUFFIX


def window_key(key: str, start: str) -> str:
    """Return the key of a window (``WindowKeySchema.toStoreKeyBinary``); its sequence is 0.

    :param key: SQL of the application's key, and ``start`` of the window's start in milliseconds
    """
    return f"concat({key}, cast({start} as binary), X'00000000')"


def start_of(windows: Windows) -> str:
    """Return SQL of the start of a window or session."""
    if windows.kind != SESSION:
        return time_of(windows)
    return "cast(conv(hex(substring(key, length(key) - 7, 8)), 16, -10) as bigint)"


def time_of(windows: Windows) -> str:
    """Return SQL of the time that decides expiry: a window's start, a session's end; null if the key is too short."""
    suffix = suffix_of(windows)
    return f"if(length(key) >= {suffix}, cast(conv(hex(substring(key, length(key) - {suffix - 1}, 8)), 16, -10) as bigint), null)"


def by_partition(numbers: Mapping[int, int]) -> str:
    """Return SQL that looks up a number by the column ``partition``; null if there is none."""
    if not numbers:
        return "cast(null as bigint)"
    places = (f"{numbers[at]}L" if at in numbers else "cast(null as bigint)" for at in range(max(numbers) + 1))
    return f"get(array({', '.join(places)}), partition)"


@dataclass(frozen=True)
class Horizon:
    """The stream time of each task's store, which decides what has expired.

    :param latest: partition -> the greatest time of a key put into the store: its own stream time (``observedStreamTime``)
    """

    windows: Windows
    latest: Mapping[int, int]

    def is_live(self, time: str, ahead: str = "0L") -> str:
        """Return SQL that is true for what the store can still read: windows that start after ``latest - retention``.

        :param time: SQL of the time of a key
        :param ahead: SQL of milliseconds to add to the stream time
        """
        return f"coalesce({time} > {self.bound()} + {ahead} - {self.windows.retention_ms}, true)"

    def bound(self) -> str:
        """Return SQL of ``latest`` by the column ``partition``; null if nothing was put."""
        return by_partition(self.latest)

    def live(self, rows: DataFrame) -> DataFrame:
        """Remove what has expired: whether a changelog still contains it depends on when the broker cleans up."""
        return rows.where(self.is_live(time_of(self.windows)))


def horizon_of(windows: Windows, rows: DataFrame) -> Horizon:
    """Find the stream time of each task's store.

    :param rows: all keys that were put, including deleted ones: partition, key
    """
    found = rows.groupBy("partition").agg(expression(f"max({time_of(windows)}) as latest")).collect()
    return Horizon(windows, {row.partition: row.latest for row in found})


def in_windows(timed: DataFrame, windows: Windows) -> DataFrame:
    """Return one row per window that a record updates, with the window's key.

    :param timed: partition, offset, timestamp_ms, key, v, task, before
    :return: partition, offset, timestamp_ms, key, v, task
    """
    start = _first(windows)
    if windows.advance_ms < windows.size_ms:
        start = f"explode(sequence({start}, timestamp_ms, {windows.advance_ms}L))"
    after = f"timestamp_ms >= {windows.alignment_ms}"  # the application has no windows before its alignment
    rows = timed.where(after).selectExpr("*", f"{start} as start")
    is_open = f"start + {windows.size_ms} > greatest(before, timestamp_ms) - {windows.grace_ms}"
    return rows.where(is_open).selectExpr("partition", "offset", "timestamp_ms", f"{window_key('key', 'start')} as key", "v", "task")


def is_late(windows: Windows) -> str:
    """Return SQL that is true for a record that is late for one of its windows."""
    return f"{_first(windows)} + {windows.size_ms} <= greatest(before, timestamp_ms) - {windows.grace_ms}"


def is_boundary(windows: Windows) -> str:
    """Return SQL that is true for a record that would have been late for a window after records of other partitions."""
    last = f"((timestamp_ms - {windows.alignment_ms}) div {windows.advance_ms} * {windows.advance_ms} + {windows.alignment_ms})"
    closed = f"greatest(before, timestamp_ms, others) - {windows.grace_ms}"
    open_now = f"{last} + {windows.size_ms} > greatest(before, timestamp_ms) - {windows.grace_ms}"
    # The first open window of the record starts at a multiple of the advance after `edge`.
    edge = f"(greatest(before, timestamp_ms) - {windows.grace_ms + windows.size_ms + windows.alignment_ms})"
    after_edge = f"(if({edge} < 0, 0L, ({edge} div {windows.advance_ms} + 1) * {windows.advance_ms}) + {windows.alignment_ms})"
    first_open = f"greatest({_first(windows)}, {after_edge})"
    return f"{open_now} and {first_open} + {windows.size_ms} <= {closed}"


def _first(windows: Windows) -> str:
    """Return SQL of the start of a record's first window."""
    earliest = windows.size_ms - windows.advance_ms + windows.alignment_ms
    first = f"greatest(0L, timestamp_ms - {earliest}L) div {windows.advance_ms} * {windows.advance_ms}"
    return f"({first} + {windows.alignment_ms}L)" if windows.alignment_ms else first
