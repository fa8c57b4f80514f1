"""Sizes in bytes for people."""

from __future__ import annotations

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
