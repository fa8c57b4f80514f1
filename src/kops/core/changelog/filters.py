"""Which rows of a changelog are selected: by key, by the time of their records, by window. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from kops.core.errors import UsageProblem
from kops.core.records.ranges import parse_span
from kops.core.times import Position, parse_time

_HINT = "write it like @-1h..@-30m, @2026-11-20T14:00..@2026-11-20T15:00, @-1h.. or ..@1700000000000"


@dataclass(frozen=True)
class Times:
    """Times ``first`` <= time < ``end``, in milliseconds since the epoch; None means no bound."""

    first: int | None = None
    end: int | None = None

    def include(self, milliseconds: int | None) -> bool:
        """Whether a time is within the bounds; None (no time) is so only if there are no bounds."""
        if milliseconds is None:
            return self.first is None and self.end is None
        return (self.first is None or milliseconds >= self.first) and (self.end is None or milliseconds < self.end)

    def sql(self, column: str) -> str:
        bounds = [f"{column} >= {self.first}"] if self.first is not None else []
        bounds += [f"{column} < {self.end}"] if self.end is not None else []
        return " and ".join(bounds) or "true"


def parse_times(text: str, now: datetime, *, what: str) -> Times:
    """Parse ``FROM..TO``: both are times as written after ``@``, and either can be left out; ``@TIME`` alone is that millisecond."""
    if ".." not in text:
        try:
            only = parse_time(text, now)
        except UsageProblem as wrong:
            raise UsageProblem(f"{what} {text!r} is not a valid range of times: {wrong.message}", hint=_HINT) from wrong
        return Times(only, only + 1)
    try:
        span = parse_span(text, now)
    except UsageProblem as wrong:
        raise UsageProblem(f"{what} {wrong.message}", hint=_HINT) from wrong
    return Times(_time(span.start, text, what), _time(span.end, text, what))


def _time(position: Position, text: str, what: str) -> int | None:
    if position.kind == "offset":
        raise UsageProblem(f"{what} {text!r} has an offset, and takes times", hint=_HINT)
    return position.value if position.kind == "time" else None
