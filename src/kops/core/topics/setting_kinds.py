"""The types that settings of a topic have, as Java's ``ConfigDef`` has them: a value is checked, and written as Kafka would show it."""

from __future__ import annotations

import re
from dataclasses import dataclass

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


@dataclass(frozen=True)
class Whole:
    """A whole number: Java's INT or LONG.

    :param special: one value allowed outside of the range
    """

    least: int
    most: int = LONG_MAX
    special: int | None = None

    def read(self, text: str) -> str:
        """Return the number as Kafka shows it."""
        if not re.fullmatch(r"[+-]?[0-9]+", text):
            raise ValueError("it must be a whole number")
        number = int(text)
        if number != self.special and not self.least <= number <= self.most:
            also = f", or {self.special}" if self.special is not None else ""
            raise ValueError(f"it must be {self._range()}{also}")
        return str(number)

    def _range(self) -> str:
        return f"at least {self.least}" if self.most in (INT_MAX, LONG_MAX) else f"between {self.least} and {self.most}"


@dataclass(frozen=True)
class Ratio:
    """A number between 0 and 1: Java's DOUBLE."""

    def read(self, text: str) -> str:
        """Return the number as Kafka shows it."""
        if not re.fullmatch(r"[0-9]*\.?[0-9]+", text) or not 0 <= float(text) <= 1:
            raise ValueError("it must be a number between 0 and 1")
        return text


@dataclass(frozen=True)
class Choice:
    """One of some words, as they are written."""

    words: tuple[str, ...]

    def read(self, text: str) -> str:
        """Return the word."""
        if text not in self.words:
            raise ValueError(f"it must be one of {', '.join(self.words)}")
        return text


@dataclass(frozen=True)
class Flag:
    """Java's BOOLEAN."""

    def read(self, text: str) -> str:
        """Return the word in lower case."""
        if text.lower() not in ("true", "false"):
            raise ValueError("it must be true or false")
        return text.lower()


@dataclass(frozen=True)
class Words:
    """A list of some words; empty is allowed."""

    words: tuple[str, ...]

    def read(self, text: str) -> str:
        """Return the list with commas alone between its words, none twice."""
        parts = [part.strip() for part in text.split(",")] if text.strip() else []
        if not set(parts) <= set(self.words):
            raise ValueError(f"it must be a list of {' and '.join(self.words)}")
        return ",".join(dict.fromkeys(parts))


@dataclass(frozen=True)
class Replicas:
    """Throttled replicas: ``*`` or ``partition:broker,...``."""

    def read(self, text: str) -> str:
        """Return the list."""
        if text not in ("", "*") and not all(re.fullmatch(r"\d+:\d+", part.strip()) for part in text.split(",")):
            raise ValueError("it must be * or a list like 0:1,1:2 (partition:broker)")
        return text


Kind = Whole | Ratio | Choice | Flag | Words | Replicas
