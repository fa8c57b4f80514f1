"""Durations as people write them (``7d``, ``1h30m``, ``500ms``) and as Java does (``P7D``, ``PT1H30M``), in milliseconds."""

from __future__ import annotations

import re

from kops.core.errors import UsageProblem

MILLISECONDS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 7 * 86_400_000}

_PLAIN = re.compile(r"(\d{1,18})(ms|[smhdw])")
_NUMBER = r"[-+]?\d{1,18}"
_JAVA = re.compile(
    rf"(?P<sign>[-+])?P(?:(?P<d>{_NUMBER})D)?(?:(?P<time>T)(?:(?P<h>{_NUMBER})H)?(?:(?P<m>{_NUMBER})M)?(?:(?P<s>{_NUMBER}(?:[.,]\d{{0,9}})?)S)?)?",
    re.IGNORECASE,
)
_LONGEST = 2**63 - 1


def parse_duration(text: str, *, what: str = "duration", negative: bool = False) -> int:
    """Parse a duration into milliseconds; fractions are truncated.

    ``P7D`` and ``PT1H30M5.5S`` follow ``java.time.Duration.parse``, which Apache's ``--by-duration`` uses: no weeks, months, years.

    :param what: what it is, for the error message
    :param negative: whether it may be negative
    :raises UsageProblem: if it is not a valid duration
    """
    milliseconds = _plain(text) if text[:1].isdigit() else _java(text)
    if milliseconds is None or (milliseconds < 0 and not negative) or abs(milliseconds) > _LONGEST:
        raise UsageProblem(
            f"{text!r} is not a valid {what}", hint="write it like 7d, 12h, 1h30m, 30s, 500ms, or as Java does: P7D, PT1H30M"
        )
    return milliseconds


def duration_text(milliseconds: int) -> str:
    """Format a duration as :func:`parse_duration` reads it, in the largest units that fit: 90 min -> ``1h30m``."""
    if milliseconds < 0:
        raise ValueError(f"{milliseconds} ms is not a duration")
    parts = []
    for unit in ("d", "h", "m", "s", "ms"):
        count, milliseconds = divmod(milliseconds, MILLISECONDS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0ms"


def _plain(text: str) -> int | None:
    parts = _PLAIN.findall(text)
    units = [unit for _, unit in parts]
    in_order = sorted(units, key=lambda unit: -MILLISECONDS[unit]) == units and len(set(units)) == len(units)
    if not text.isascii() or "".join(number + unit for number, unit in parts) != text or not in_order:
        return None
    return sum(int(number) * MILLISECONDS[unit] for number, unit in parts)


def _java(text: str) -> int | None:
    match = _JAVA.fullmatch(text) if text.isascii() else None
    if match is None or not any(match[unit] for unit in "dhms") or (match["time"] and not any(match[unit] for unit in "hms")):
        return None
    from decimal import Decimal

    total = sum(Decimal((match[unit] or "0").replace(",", ".")) * MILLISECONDS[unit] for unit in "dhms")
    # Java floors to whole milliseconds; rounding towards zero is the same for durations that people write.
    return int(-total if match["sign"] == "-" else total)
