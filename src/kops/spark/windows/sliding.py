"""Sliding windows, computed record by record like ``KStreamSlidingWindowAggregate``. Pure Python over the records of one task.

Each record has a window that ends with it, and one that starts right after it once another record falls into that. The result
depends on the windows that the store still finds, and the store's own stream time covers all keys of the task; so a task is
processed as a whole, as in Kafka Streams.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kops.core.statefile import Windows
from kops.spark.windows.sessions import Tally
from kops.spark.windows.steps import Steps
from kops.spark.windows.stream_time import NEVER

SWEPT_EVERY = 200_000
"""Records between sweeps of keys whose windows have all expired."""

Held = tuple[Any, int]
"""An aggregate and its timestamp."""


@dataclass
class _Key:
    """The windows of one key: ascending starts, aggregates by start, and timestamps of tombstones."""

    starts: list[int] = field(default_factory=list)
    held: dict[int, Held] = field(default_factory=dict)
    gone: dict[int, int] = field(default_factory=dict)

    def expire(self, floor: int) -> int:
        """Drop windows that start at or before ``floor``; return how many of them were live."""
        count = bisect_right(self.starts, floor)
        for start in self.starts[:count]:
            del self.held[start]
        del self.starts[:count]
        self.gone = {start: timestamp for start, timestamp in self.gone.items() if start > floor}
        return count


@dataclass
class TaskWindows:
    windows: Windows
    steps: Steps
    tally: Tally
    _keys: dict[bytes, _Key] = field(default_factory=dict)
    _stream_time: int = NEVER
    """The greatest timestamp of a record; ``_latest_start`` is the greatest start of a window."""
    _latest_start: int = NEVER
    _processed: int = 0

    def process(self, key: bytes, timestamp: int, value: Any, before: int, others: int) -> None:
        """Process a record.

        :param before: the task's stream time before it
        :param others: greatest timestamp that may also have preceded it
        """
        self._processed += 1
        if self._processed % SWEPT_EVERY == 0:
            self._sweep()
        self._stream_time = max(before, timestamp)
        close = self._stream_time - self.windows.grace_ms
        difference = self.windows.size_ms
        if timestamp + difference < close:
            self.tally.late += 1
            return
        if others > before and timestamp - 2 * difference <= max(others, timestamp) - min(
            self.windows.retention_ms, self.windows.grace_ms + 2 * difference
        ):
            self.tally.boundary += 1
        step = _Step(self, self._keys.setdefault(key, _Key()), key, timestamp, value, close)
        if timestamp < difference:
            step.early()
        else:
            step.usual()

    @property
    def floor(self) -> int:
        """The greatest start that the store no longer finds."""
        return self._latest_start - self.windows.retention_ms

    def started(self, start: int) -> None:
        """Advance the store's stream time to the start of a new window."""
        self._latest_start = max(self._latest_start, start)

    def _sweep(self) -> None:
        """Drop expired windows, also those of keys without further records."""
        for key, found in list(self._keys.items()):
            self.tally.expired += found.expire(self.floor)
            if not (found.held or found.gone):
                del self._keys[key]

    def puts(self) -> Iterator[tuple[bytes, int, bytes | None, int]]:
        """Yield the last write for each window that has not expired: key, start, value, timestamp."""
        for key, found in self._keys.items():
            for start, (aggregate, timestamp) in found.held.items():
                if start > self.floor:
                    yield key, start, self.steps.encode(aggregate), timestamp
                else:
                    self.tally.expired += 1
            for start, timestamp in found.gone.items():
                if start > self.floor:
                    yield key, start, None, timestamp


@dataclass
class _Step:
    """The update of a key's windows by one record."""

    task: TaskWindows
    windows: _Key
    key: bytes
    timestamp: int
    value: Any
    close: int

    def usual(self) -> None:
        """Process a record that is not early, from its last window to its first (``processReverse``)."""
        difference, at = self.task.windows.size_ms, self.timestamp
        before: Held | None = None  # the window of the previous record
        after: Held | None = None
        previous: int | None = None  # the timestamp of the previous record
        has_left = has_right = False
        starts = self._starts(max(0, at - 2 * difference))
        for start in reversed(starts):
            held = self.windows.held[start]
            if start == at + 1:
                has_right = True
            elif start + difference > at:
                after = after or held
                self._update(start, held)
            elif start + difference == at:
                has_left = True
                self._update(start, held)
                if held[1] >= at:
                    return
                previous = held[1]
            else:
                before, previous = held, held[1]
                break
        if previous is not None and previous + 1 not in starts and previous + 1 + difference >= at:
            self._update(previous + 1, self._empty())
        if not has_left:
            reached = previous is not None and at - difference <= previous and before is not None
            self._update(at - difference, (before[0], at) if reached and before is not None else self._empty())
        self._open_right(after, has_right)

    def early(self) -> None:
        """Process a record before the first complete window: these share the window that starts at 0 (``processEarly``)."""
        at, after, previous, has_right = self.timestamp, None, None, False
        combined: Held | None = None
        starts = self._starts(0)
        for start in starts:
            held = self.windows.held[start]
            if start == 0:
                combined = held
                if held[1] < at:
                    previous = held[1]
            elif start <= at:
                after = held
                self._update(start, held)
            else:
                has_right = True
        if after is None and combined is not None and combined[1] > at:
            after = combined
        self._open_right(after, has_right)
        if previous is not None and previous + 1 not in starts:
            self._update(previous + 1, self._empty())
        self._update(0, combined or self._empty())

    def _empty(self) -> Held:
        return self.task.steps.initial(), self.timestamp

    def _starts(self, low: int) -> list[int]:
        """Return the windows that the store finds from ``low`` to right after the record."""
        starts, floor = self.windows.starts, self.task.floor
        if starts and starts[0] <= floor:
            self.task.tally.expired += self.windows.expire(floor)
        return starts[bisect_left(starts, max(low, floor + 1)) : bisect_right(starts, self.timestamp + 1)]

    def _open_right(self, after: Held | None, has_right: bool) -> None:
        """Create the window right after the record if it contains a later record."""
        if not has_right and after is not None and after[1] > self.timestamp:
            self._put(self.timestamp + 1, after)

    def _update(self, start: int, held: Held) -> None:
        """Add the record to a window, unless it is closed."""
        if start + self.task.windows.size_ms < self.close:
            return
        aggregate, newest = held
        added = self.task.steps.add(self.key, self.value, aggregate)
        self._put(start, (added, self.timestamp if aggregate is None else max(self.timestamp, newest)))

    def _put(self, start: int, held: Held) -> None:
        self.task.started(start)
        known = start in self.windows.held
        if held[0] is None:
            if known:
                del self.windows.held[start]
                del self.windows.starts[bisect_left(self.windows.starts, start)]
            self.windows.gone[start] = self.timestamp
            return
        if not known:
            insort(self.windows.starts, start)
            self.windows.gone.pop(start, None)
        self.windows.held[start] = held
