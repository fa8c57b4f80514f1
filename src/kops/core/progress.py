"""What a long operation tells while it runs; where it shows is decided elsewhere."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives what is going on. Implementations must be cheap and never raise."""

    def step(self, text: str) -> None:
        """Tell that a new step begins: a short sentence in the present tense."""

    def advance(self, done: int, total: int | None, unit: str) -> None:
        """Tell how far the current step is; ``total`` is None when it is not known."""


class Silent:
    """A progress that shows nothing."""

    def step(self, text: str) -> None:
        """Ignore the step."""

    def advance(self, done: int, total: int | None, unit: str) -> None:
        """Ignore the advance."""
