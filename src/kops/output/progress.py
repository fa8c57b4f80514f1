"""Progress on stderr: one line that is rewritten on a terminal, sparse plain lines in a pipe."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TextIO

from kops.core.visible import visible
from kops.output.guard import unguarded

PLAIN_INTERVAL_SECONDS = 10.0
TERMINAL_INTERVAL_SECONDS = 0.1
SURE_SECONDS = 30.0
"""After so long, or with a tenth done, what is left can be told; earlier, what takes its time to begin makes it many times too much."""


def describe_advance(done: int, total: int | None, unit: str, seconds: float) -> str:
    """Return ``1,200 of 5,000 records, 400/s, 9 s left``."""
    rate = done / seconds if seconds > 0 else 0.0
    of = f" of {total:,}" if total else ""
    is_sure = total is not None and (10 * done >= total or seconds >= SURE_SECONDS)
    left = f", {(total - done) / rate:.0f} s left" if total and rate and is_sure and done < total else ""
    return f"{done:,}{of} {unit}, {rate:,.0f}/s{left}"


class StreamProgress:
    """Writes progress to a text stream, normally stderr."""

    def __init__(self, stream: TextIO, *, terminal: bool) -> None:
        self._stream = unguarded(stream)
        self._terminal = terminal
        self._step = ""
        self._started = self._shown = time.monotonic()
        self._dirty = False

    def step(self, text: str) -> None:
        """Begin a step on a line of its own."""
        self._finish_line()
        self._step = visible(text)
        self._started = self._shown = time.monotonic()
        self._write(f"{self._step} ...\n")

    def advance(self, done: int, total: int | None, unit: str) -> None:
        """Show how far the step is, at most ten times a second (every ten seconds in a pipe)."""
        now = time.monotonic()
        if now - self._shown < (TERMINAL_INTERVAL_SECONDS if self._terminal else PLAIN_INTERVAL_SECONDS):
            return
        self._shown = now
        line = "  " + visible(describe_advance(done, total, unit, now - self._started))
        if self._terminal:
            self._write(f"\r{line}\x1b[K")
            self._dirty = True
        else:
            self._write(f"{line}\n")

    def _finish_line(self) -> None:
        if self._dirty:
            self._write("\r\x1b[K")
            self._dirty = False

    def _write(self, text: str) -> None:
        """Write at once; a mutation is not stopped in the middle because nobody reads its progress any more."""
        with suppress(BrokenPipeError):
            self._stream.write(text)
            self._stream.flush()
