"""Which rows of a changelog are selected: by key, by the time of their records, by window. Pure."""

from __future__ import annotations

from datetime import datetime

from kops.core.errors import UsageProblem
from kops.core.records.ranges import parse_span
from kops.core.times import Position, Times, parse_time

_HINT = "write it like @-1h..@-30m, @2026-11-20T14:00..@2026-11-20T15:00, @-1h.. or ..@1700000000000"


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
