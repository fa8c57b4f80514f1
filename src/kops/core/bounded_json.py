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
    level = [value]
    for _ in range(MOST_DEPTH):
        level = [each for outer in level for each in _inside(outer)]
        if not level:
            return value
    raise ValueError(f"nested deeper than {MOST_DEPTH} levels")


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
