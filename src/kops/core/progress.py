"""Progress of a long operation; the caller decides where to show it."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives progress. Implementations must be cheap and never raise."""

    def step(self, text: str) -> None:
        """Begin a step; ``text`` is a short phrase in the present participle."""

    def advance(self, done: int, total: int | None, unit: str) -> None:
        """Report progress of the current step; ``total`` is None if it is unknown."""


class NoProgress:
    def step(self, text: str) -> None: ...

    def advance(self, done: int, total: int | None, unit: str) -> None: ...


SILENT: Progress = NoProgress()
