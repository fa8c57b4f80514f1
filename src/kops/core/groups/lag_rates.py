"""How lag changes between two looks. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Name: TypeAlias = tuple[str | int, ...]
"""What a line of the watch is about: ``(group,)``, ``(topic,)`` or ``(group, topic, partition)``."""
Partition: TypeAlias = tuple[str, str, int]

KEYS: Mapping[str, tuple[str, ...]] = {"group": ("group",), "topic": ("topic",), "partition": ("group", "topic", "partition")}
REMEMBERED = 60
BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Line:
    """One line of one look.

    :param history: lag at each look so far, this one last
    :param change: of lag, in records per second; None at the first look, as are ``consumed`` and ``produced``
    :param consumed: how far commits moved forward, in offsets per second; negative if they were moved back
    :param produced: how far the log ends moved, in offsets per second
    :param time_lag_ms: the largest known
    """

    name: Name
    lag: int
    history: tuple[int, ...]
    change: float | None = None
    consumed: float | None = None
    produced: float | None = None
    time_lag_ms: int | None = None

    @property
    def seconds_left(self) -> float | None:
        """Seconds until it has caught up at the current rates; None if it will not, or if that is unknown."""
        if self.lag == 0 or self.change is None or self.change >= 0:
            return 0.0 if self.lag == 0 else None
        return self.lag / -self.change


@dataclass(frozen=True)
class Look:
    """One look: its lines, largest lag first, and their total."""

    lines: tuple[Line, ...]
    total: Line


@dataclass
class Rates:
    """Compares each look with the previous one.

    :param by: group, topic or partition
    """

    by: str
    _seconds: float | None = None
    _places: dict[Partition, tuple[int | None, int | None]] = field(default_factory=dict)
    _histories: dict[Name, deque[int]] = field(default_factory=dict)

    def look(self, rows: Iterable[Mapping[str, Any]], seconds: float) -> Look:
        """Compare the rows of a look with the previous one.

        :param seconds: time of the look, on any monotonic clock
        """
        passed = None if self._seconds is None else max(seconds - self._seconds, 1e-9)
        sums: dict[Name, _Sum] = {(): _Sum()}
        places: dict[Partition, tuple[int | None, int | None]] = {}
        for row in rows:
            place = (row["group"], row["topic"], row["partition"])
            places[place] = (row["committed"], row["log_end_offset"])
            name = tuple(row[key] for key in KEYS[self.by])
            for one in (sums.setdefault(name, _Sum()), sums[()]):
                one.add(row, self._places.get(place))
        self._seconds, self._places = seconds, places
        lines = {name: self._line(name, found, passed) for name, found in sums.items()}
        total = lines.pop(())
        return Look(tuple(sorted(lines.values(), key=lambda line: (-line.lag, [str(part) for part in line.name]))), total)

    def _line(self, name: Name, found: _Sum, passed: float | None) -> Line:
        history = self._histories.setdefault(name, deque(maxlen=REMEMBERED))
        change = None if passed is None or not history else (found.lag - history[-1]) / passed
        history.append(found.lag)
        if passed is None:
            return Line(name, found.lag, tuple(history), time_lag_ms=found.time_lag_ms)
        return Line(name, found.lag, tuple(history), change, found.consumed / passed, found.produced / passed, found.time_lag_ms)


@dataclass
class _Sum:
    lag: int = 0
    consumed: int = 0
    produced: int = 0
    time_lag_ms: int | None = None

    def add(self, row: Mapping[str, Any], before: tuple[int | None, int | None] | None) -> None:
        self.lag += row["lag"] or 0
        if row["time_lag_ms"] is not None:
            self.time_lag_ms = max(row["time_lag_ms"], self.time_lag_ms or 0)
        if before is not None:
            self.consumed += _moved(before[0], row["committed"])
            self.produced += _moved(before[1], row["log_end_offset"])


def _moved(before: int | None, now: int | None) -> int:
    return 0 if before is None or now is None else now - before


def sparkline(values: Iterable[int], width: int) -> str:
    """Draw the last values as bars, from zero up to the largest of them."""
    shown = list(values)[-width:] if width > 0 else []
    top = max(shown, default=0)
    return "".join(BARS[0] if top == 0 else BARS[-(-value * (len(BARS) - 1) // top)] for value in shown)


def rate_text(rate: float | None) -> str:
    """Format a rate for people: ``1,200/s``, ``0.5/s``."""
    if rate is None:
        return "-"
    return f"{rate:,.0f}/s" if abs(rate) >= 10 or rate == int(rate) else f"{rate:.1f}/s"  # noqa: PLR2004 - one decimal for small ones
