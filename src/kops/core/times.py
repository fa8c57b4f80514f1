"""The time grammar: ``@-1h``, ``@14:05``, ``@2026-11-20T14:05``, ``@1700000000000``, ``@now``, and positions: ``start``, ``end``, ``1``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import lru_cache

from kops.core.durations import parse_duration
from kops.core.errors import UsageProblem

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_ISO = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)(?:T(?P<minute>\d\d:\d\d)(?::(?P<second>\d\d)(?:\.(?P<milli>\d{3}))?)?(?P<zone>Z|[-+]\d\d(?::?\d\d)?)?)?"
)
_CLOCK = re.compile(r"(\d\d):(\d\d)(?::(\d\d))?")
_HINT = (
    "write it like @-1h, @14:05 (the most recent one in local time), @2026-11-20T14:05 (UTC), @2026-11-20T14:05:30.500+01:00,"
    " @1700000000000 (milliseconds) or @now"
)
_LAST = 2**63 - 1
_MOST_DIGITS = 19
_CYCLE = 146_097 * 86_400_000
"""Milliseconds of 400 years, after which the calendar repeats: Python's own ends with the year 9999."""
_LAST_PLAIN_YEAR = 9999
CLOCKS_DIFFER_MS = 5_000
"""By as much the clocks of two machines may differ before it is worth a word: a record that is dated later than this has a wrong date."""
_SECONDS_FROM, _SECONDS_TO = 10**9, 10**10  # 2001 to 2286 in seconds; read as milliseconds, they would be in 1970


@dataclass(frozen=True)
class Position:
    """A position in every partition.

    :param kind: start, end, time or offset
    :param value: milliseconds since the epoch, or the offset; 0 for the others
    :param relative: whether the time depends on this machine's clock
    """

    kind: str
    value: int = 0
    relative: bool = field(default=False, compare=False)


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


ANY_TIME = Times()
"""Also that of records without a timestamp."""


def parse_position(text: str, now: datetime) -> Position:
    """Parse a position: ``start``, ``end``, an offset, or a time.

    :raises UsageProblem: if it is anything else; Kafka's codes -1 (end) and -2 (start) are not accepted
    """
    if text in ("start", "end"):
        return Position(text)
    if text.startswith("@"):
        return Position("time", parse_time(text, now), is_relative(text))
    if _is_number(text) and int(text) <= _LAST:
        return Position("offset", int(text))
    hint = "write end for -1 and start for -2" if text in ("-1", "-2") else f"start, end, an offset such as 1200, or a time: {_HINT}"
    raise UsageProblem(f"{text!r} is not a valid position", hint=hint)


def parse_time(text: str, now: datetime) -> int:
    """Parse a time of the grammar, including ``@``, into milliseconds since the epoch.

    :param now: what ``@-1h`` is relative to
    :raises UsageProblem: if it is not a valid time
    """
    body = text[1:]
    if not text.startswith("@") or not body:
        raise UsageProblem(f"{text!r} is not a valid time", hint=_HINT)
    if body == "now":
        return to_milliseconds(now)
    if body.startswith("-"):
        return _since_epoch(to_milliseconds(now) - parse_duration(body[1:], what="time"), text)
    if _is_number(body):
        number = int(body)
        if _SECONDS_FROM <= number < _SECONDS_TO:
            raise UsageProblem(f"{text} looks like seconds; times are in milliseconds", hint=f"write @{number * 1000}")
        return _since_epoch(number, text)
    if clock := _CLOCK.fullmatch(body):
        return _last_time_of_day(clock, now, text)
    return _iso(body, text)


def is_relative(text: str) -> bool:
    """Whether a time of the grammar depends on this machine's clock: ``@-1h``, ``@now``, ``@14:05``."""
    body = text[1:]
    return text.startswith("@") and (body == "now" or body.startswith("-") or _CLOCK.fullmatch(body) is not None)


def _last_time_of_day(clock: re.Match[str], now: datetime, shown: str) -> int:
    """Return when the local clock last showed this time: today, or yesterday if it is still ahead today."""
    local = now.astimezone()
    try:
        wanted = local.replace(hour=int(clock[1]), minute=int(clock[2]), second=int(clock[3] or 0), microsecond=0)
    except ValueError as error:
        raise UsageProblem(f"{shown!r} is not a valid time: {error}", hint=_HINT) from error
    if wanted > local:
        wanted -= timedelta(days=1)
    # The UTC offset of the day before may differ: daylight saving time.
    return to_milliseconds(wanted.replace(tzinfo=None).astimezone())


def parse_datetime(text: str) -> int:
    """Parse Apache's ``--to-datetime`` into milliseconds since the epoch.

    Its format is ``YYYY-MM-DDTHH:mm:SS.sss`` with an optional zone, and UTC without one (``Utils.getDateTime``). Here seconds and
    milliseconds may be left out, and the minutes of a zone such as ``+05:30`` are respected, which Apache drops.

    :raises UsageProblem: if it is not a valid date and time
    """
    if "T" not in text:
        raise UsageProblem(
            f"{text!r} is not a valid date and time",
            hint="write it like 2026-11-20T14:05:00.000 (UTC), 2026-11-20T14:05:00.000+01:00 or @-1h",
        )
    return _iso(text, text)


def to_milliseconds(moment: datetime) -> int:
    """Return an aware datetime as milliseconds since the epoch, rounded down."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)


@lru_cache(maxsize=10_000)  # many groups are at the same record: caching halves the time for their rows
def time_text(milliseconds: int) -> str:
    """Format milliseconds since the epoch as ISO 8601 in UTC; years beyond four digits with a sign, as Java's ``Instant`` does."""
    cycle, rest = divmod(milliseconds, _CYCLE)
    moment = _EPOCH + timedelta(milliseconds=rest)
    year = moment.year + 400 * cycle
    years = f"{year:04d}" if 0 <= year <= _LAST_PLAIN_YEAR else f"{year:+05d}"
    return f"{years}-{moment:%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def _iso(body: str, shown: str) -> int:
    match = _ISO.fullmatch(body) if body.isascii() else None
    if match is None:
        raise UsageProblem(f"{shown!r} is not a valid time", hint=_HINT)
    zone = match["zone"] or "Z"
    digits = "0000" if zone == "Z" else zone[1:].replace(":", "").ljust(4, "0")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:])) * (-1 if zone[0] == "-" else 1)
    try:
        moment = datetime.strptime(f"{match['date']} {match['minute'] or '00:00'}:{match['second'] or '00'} +0000", "%Y-%m-%d %H:%M:%S %z")
    except ValueError as error:
        raise UsageProblem(f"{shown!r} is not a valid time: {error}", hint=_HINT) from error
    return _since_epoch(to_milliseconds(moment) - offset // timedelta(milliseconds=1) + int(match["milli"] or 0), shown)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS


def _since_epoch(milliseconds: int, shown: str) -> int:
    """Check that Kafka can be asked for a time: it reads negative times as codes, such as -1 for the end."""
    if not 0 <= milliseconds <= _LAST:
        raise UsageProblem(f"{shown!r} is before 1970 or later than Kafka can store", hint="use start and end for the ends of the log")
    return milliseconds
