"""Sizes in bytes as people write them (``50MB``, ``1.5GiB``) and read them."""

from __future__ import annotations

import re
from decimal import Decimal

from kops.core.errors import UsageProblem

BYTES = {"B": 1} | {
    f"{prefix}{unit}": base**power for power, prefix in enumerate("KMGTP", start=1) for unit, base in (("B", 1000), ("iB", 1024))
}
"""Powers of 1000 (SI) and of 1024 (IEC 80000-13)."""
_WRITTEN = re.compile(r"(\d{1,18}(?:\.\d{1,9})?) ?([KMGTP]?i?B)", re.ASCII | re.IGNORECASE)
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_STEP = 1024


def size_text(size: int | None) -> str | None:
    """Format a size in the largest unit that it fills: 1536 -> ``1.5 KiB``; None stays None."""
    if size is None:
        return None
    amount, unit = float(size), 0
    while amount >= _STEP and unit < len(_UNITS) - 1:
        amount, unit = amount / _STEP, unit + 1
    return f"{amount:.1f} {_UNITS[unit]}" if unit else f"{size} B"


def parse_size(text: str, *, what: str = "size") -> int:
    """Parse a size with its unit into bytes.

    :param what: what it is, for the error message
    :raises UsageProblem: if it is not a valid size, or not a whole number of bytes
    """
    found = _WRITTEN.fullmatch(text)
    unit = next((unit for unit in BYTES if found and unit.lower() == found[2].lower()), None)
    size = Decimal(found[1]) * BYTES[unit] if found and unit else None
    if size is None or size % 1:
        raise UsageProblem(f"{text!r} is not a valid {what}", hint="write it like 512KB, 50MB (powers of 1000) or 64MiB, 1.5GiB (of 1024)")
    return int(size)
