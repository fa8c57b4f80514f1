"""Progress on stderr: one line that is rewritten on a terminal, sparse plain lines in a pipe."""

from __future__ import annotations

import time
from collections import deque
from contextlib import suppress
from typing import TextIO

from kops.core.visible import visible
from kops.output.guard import Passing, unguarded

PLAIN_INTERVAL_SECONDS = 10.0
TERMINAL_INTERVAL_SECONDS = 0.1
RECENT_SECONDS = 20.0
"""The speed shown is that of the last seconds: what a step takes to begin, such as Spark's start, says nothing about what is left."""
SURE_SECONDS = 10.0
"""After this long at work, or with a tenth done, the time left can be estimated."""
LARGEST = 100
"""Of seconds and of minutes before the next unit is used."""


def describe_advance(done: int, total: int | None, unit: str, rate: float | None = None, *, sure: bool = False) -> str:
    """Return ``1,200 of 5,000 records, 400/s, ~10s left``.

    :param rate: per second; None while it is not known
    :param sure: that the time left can be estimated
    """
    parts = [f"{done:,}{f' of {total:,}' if total else ''} {unit}"]
    if rate is not None:
        parts.append(f"{rate:,.0f}/s")
    if rate and sure and total and done < total:
        parts.append(f"~{_rough((total - done) / rate)} left")
    return ", ".join(parts)


def _rough(seconds: float) -> str:
    if seconds < LARGEST:
        return f"{max(1, round(seconds))}s"
    minutes = seconds / 60
    return f"{minutes:.0f}m" if minutes < LARGEST else f"{minutes / 60:.1f}h"


class Pace:
    """How fast a step has been of late."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()
        self._began = 0.0

    def at(self, now: float, done: int, total: int | None) -> tuple[float | None, bool]:
        """Return the speed per second, None when it is not known yet, and whether the time left can be estimated.

        :param now: seconds
        """
        if not self._seen and not done:  # nothing has begun
            return None, False
        if not self._seen:
            self._began = now
        self._seen.append((now, done))
        while len(self._seen) > 2 and now - self._seen[1][0] >= RECENT_SECONDS:  # noqa: PLR2004 - a beginning and an end
            self._seen.popleft()
        first, so_far = self._seen[0]
        if now <= first:
            return None, False
        return (done - so_far) / (now - first), total is not None and (10 * done >= total or now - self._began >= SURE_SECONDS)


class StreamProgress:
    """Writes progress to a text stream, normally stderr."""

    def __init__(self, stream: TextIO, *, terminal: bool) -> None:
        self._stream = unguarded(stream)
        self._terminal = terminal
        self._shown = time.monotonic()
        self._pace = Pace()

    def step(self, text: str) -> None:
        """Begin a step on a line of its own."""
        Passing.end()
        self._shown = time.monotonic()
        self._pace = Pace()
        self._write(f"{visible(text)} ...\n")

    def advance(self, done: int, total: int | None, unit: str) -> None:
        """Show how far the step is, at most ten times a second (every ten seconds in a pipe).

        The line stands until anything else is written to stdout or stderr.
        """
        now = time.monotonic()
        if now - self._shown < (TERMINAL_INTERVAL_SECONDS if self._terminal else PLAIN_INTERVAL_SECONDS):
            return
        self._shown = now
        rate, sure = self._pace.at(now, done, total)
        line = "  " + visible(describe_advance(done, total, unit, rate, sure=sure))
        if self._terminal:
            self._write(f"\r{line}\x1b[K")
            Passing.clear = self._clear
        else:
            self._write(f"{line}\n")

    def _clear(self) -> None:
        self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        """Write at once; a mutation is not stopped in the middle because its progress is no longer read."""
        with suppress(BrokenPipeError):
            self._stream.write(text)
            self._stream.flush()
