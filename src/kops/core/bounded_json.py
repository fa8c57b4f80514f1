"""JSON that others wrote, with a limit to its nesting: code that walks a value recurses, and Python's recursion limit is 1,000."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

MOST_DEPTH = 200
"""Levels. Jackson, which Connect and the registries use, allows 1,000 (``StreamReadConstraints``); their answers have less than ten."""


def bounded_json(text: str | bytes) -> Any:
    """Parse JSON.

    :raises ValueError: when it is not JSON, or nested deeper than ``MOST_DEPTH``
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(f"nested deeper than {MOST_DEPTH} levels") from None
    if not has_level(value, MOST_DEPTH):
        return value
    raise ValueError(f"nested deeper than {MOST_DEPTH} levels")


def has_level(value: Any, level: int) -> bool:
    """Whether anything lies this many objects or arrays deep inside a value; looked at without recursion."""
    layer = [value]
    for _ in range(level):
        layer = [each for outer in layer for each in _inside(outer)]
        if not layer:
            return False
    return True


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
