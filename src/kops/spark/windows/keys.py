"""Keys of windows and sessions in Spark SQL: composing them, their times, and expiry.

The formats are those of ``kops.formats.streams``, as expressions over columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kops.core.statefile import Store, Windows
from kops.core.statefile.models import SESSION

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


def start_of(windows: Windows, key: str = "key") -> str:
    """Return SQL of the start of a window or session."""
    if windows.kind != SESSION:
        return time_of(windows, key)
    return f"cast(conv(hex(substring({key}, length({key}) - 7, 8)), 16, -10) as bigint)"


def time_of(windows: Windows, key: str = "key") -> str:
    """Return SQL of the time that decides expiry: a window's start, a session's end; null if the key is too short."""
    suffix = suffix_of(windows)
    number = f"cast(conv(hex(substring({key}, length({key}) - {suffix - 1}, 8)), 16, -10) as bigint)"
    return f"if(length({key}) >= {suffix}, {number}, null)"


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
    from pyspark.sql import functions

    found = rows.groupBy("partition").agg(functions.expr(f"max({time_of(windows)}) as latest")).collect()
    return Horizon(windows, {row.partition: row.latest for row in found})
