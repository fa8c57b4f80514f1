"""Progress on stderr: one line that is rewritten on a terminal, and sparse plain lines in a pipe."""

from __future__ import annotations

import time
from collections import deque
from contextlib import suppress
from typing import TextIO

from kops.core.visible import visible
from kops.output.guard import TransientLine, unguarded

PLAIN_INTERVAL_SECONDS = 10.0
TERMINAL_INTERVAL_SECONDS = 0.1
RECENT_SECONDS = 20.0
"""The rate shown is that of the last seconds: the time that a step takes to begin, such as Spark's start, says nothing about the rest."""
SURE_SECONDS = 10.0
"""After this long at work, or with a tenth done, the remaining time can be estimated."""
BAR_CELLS = 20
LARGEST = 100
"""Seconds and minutes from this number on are shown in the next unit."""


def describe_advance(done: int, total: int | None, unit: str, rate: float | None, *, sure: bool) -> str:
    """Return ``1,200 of 5,000 records, 400/s, ~10s left``.

    :param rate: per second; None while unknown
    :param sure: whether the remaining time can be estimated
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


def bar(done: int, total: int | None) -> str:
    """Return ``  [#######.............]``, empty if the total is unknown."""
    full = BAR_CELLS * min(done, total) // total if total else 0
    return f"  [{'#' * full}{'.' * (BAR_CELLS - full)}]" if total else ""


class Pace:
    """The recent rate of a step."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()
        self._began = 0.0

    def at(self, now: float, done: int, total: int | None) -> tuple[float | None, bool]:
        """Return the rate per second, None if not known yet, and whether the remaining time can be estimated.

        :param now: seconds, on a monotonic clock
        """
        if not self._seen and not done:  # nothing was done yet
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
        TransientLine.end()
        self._shown = time.monotonic()
        self._pace = Pace()
        self._write(f"{visible(text)} ...\n")

    def advance(self, done: int, total: int | None, unit: str) -> None:
        """Show the progress of the step, at most ten times per second (every ten seconds in a pipe).

        On a terminal the line stays until anything else is written to stdout or stderr.
        """
        now = time.monotonic()
        if now - self._shown < (TERMINAL_INTERVAL_SECONDS if self._terminal else PLAIN_INTERVAL_SECONDS):
            return
        self._shown = now
        rate, sure = self._pace.at(now, done, total)
        line = "  " + visible(describe_advance(done, total, unit, rate, sure=sure))
        if self._terminal:
            line += bar(done, total)
            self._write(f"\r{line}\x1b[K")
            TransientLine.clear = self._clear
        else:
            self._write(f"{line}\n")

    def _clear(self) -> None:
        self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        """Write and flush; a mutation must not stop halfway because its progress is no longer read."""
        with suppress(BrokenPipeError):
            self._stream.write(text)
            self._stream.flush()
