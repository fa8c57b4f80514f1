"""Avro's dates and times as text and back, without the limits of Python's calendar. Pure."""

from __future__ import annotations

import datetime
import re

UNITS = {"millis": 1_000, "micros": 1_000_000, "nanos": 1_000_000_000}
"""Per second."""
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""The days of Python's calendar since 1970, from year 1 to 9999."""
_ERA_DAYS, _ERA_YEARS = 146_097, 400
_DAY_SECONDS = 86_400
_DATE = re.compile(r"([-+]?)(\d{4,9})-(\d\d)-(\d\d)")
_TIME = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?")
_ZONE = re.compile(r"(?:Z|([-+])(\d\d):?(\d\d))?")


def date_text(days: int) -> str:
    """Return a date as ISO 8601 has it, ``+10000-01-01`` and ``-0001-01-01`` too, as Java shows them.

    :param days: since 1970
    """
    era = 0 if FIRST_DAY <= days <= LAST_DAY else (days - FIRST_DAY) // _ERA_DAYS
    day = datetime.date.fromordinal(days - era * _ERA_DAYS - FIRST_DAY + 1)
    year = day.year + era * _ERA_YEARS
    return day.isoformat() if not era else f"{'+' if year > 0 else '-' if year < 0 else ''}{abs(year):04d}{day:-%m-%d}"


def instant_text(count: int, unit: str, *, zone: str = "Z") -> str:
    """Return a time as ISO 8601 has it, with milliseconds, or as many digits more as it needs.

    :param count: units since 1970
    :param zone: what follows; empty for a local time
    """
    seconds, fraction = divmod(count, UNITS[unit])
    days, second = divmod(seconds, _DAY_SECONDS)
    return f"{date_text(days)}T{_clock(second)}.{_fraction(fraction, unit, 3)}{zone}"


def time_text(count: int, unit: str) -> str:
    """Return a time of day with as many digits as it needs.

    :param count: units since midnight
    """
    second, fraction = divmod(count, UNITS[unit])
    return _clock(second) + (f".{_fraction(fraction, unit, 6)}" if fraction else "")


def _clock(second: int) -> str:
    return f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"


def _fraction(fraction: int, unit: str, least: int) -> str:
    nanos = fraction * (UNITS["nanos"] // UNITS[unit])
    digits = 9 if nanos % 1_000 else 6 if nanos % 1_000_000 else 3
    return f"{nanos:09d}"[: max(digits, least)]


def is_time(count: int, unit: str) -> bool:
    return 0 <= count < _DAY_SECONDS * UNITS[unit]


def parse_time(text: str, logical: str) -> int:
    """Return the number that stands for a date, an instant or a time of day.

    :param text: as it is shown; an instant without a zone is in UTC
    :param logical: ``date``, ``time-millis``, ``timestamp-micros``, ``local-timestamp-nanos`` ...
    :raises ValueError: saying what is written instead
    """
    kind, _, unit = logical.rpartition("-")
    if logical == "date":
        return _days(text)
    if kind == "time":
        return _units(text, unit)
    date, _, rest = text.partition("T")
    found = _TIME.match(rest)
    zone = _ZONE.fullmatch(rest[found.end() :]) if found else None
    if found is None or zone is None or (kind == "local-timestamp" and zone[0]):
        raise ValueError(f"such as 2026-11-20T14:05:00.000{'' if kind == 'local-timestamp' else 'Z'}")
    seconds = (int(zone[2]) * 3600 + int(zone[3]) * 60) * (-1 if zone[1] == "-" else 1) if zone[1] else 0
    return (_days(date) * _DAY_SECONDS - seconds) * UNITS[unit] + _units(found[0], unit)


def _days(text: str) -> int:
    found = _DATE.fullmatch(text) if text.isascii() else None
    if found is None:
        raise ValueError("such as 2026-11-20")
    year = int(found[2]) * (-1 if found[1] == "-" else 1)
    era = 0 if datetime.MINYEAR <= year <= datetime.MAXYEAR else (year - 1) // _ERA_YEARS
    day = datetime.date(year - era * _ERA_YEARS, int(found[3]), int(found[4]))
    return day.toordinal() + era * _ERA_DAYS + FIRST_DAY - 1


def _units(text: str, unit: str) -> int:
    found = _TIME.fullmatch(text) if text.isascii() else None
    if found is None or not (int(found[1]) <= 23 and int(found[2]) <= 59 and int(found[3] or 0) <= 59):  # noqa: PLR2004 - of a clock
        raise ValueError("such as 14:05:00.000")
    nanos = int((found[4] or "").ljust(9, "0"))
    count, rest = divmod(nanos, UNITS["nanos"] // UNITS[unit])
    if rest:
        raise ValueError(f"which has no parts of a second below {unit}")
    return (int(found[1]) * 3600 + int(found[2]) * 60 + int(found[3] or 0)) * UNITS[unit] + count
