"""JSON that others wrote, with a limit to its nesting: code that walks a value recurses, and Python's recursion limit is 1,000."""

from __future__ import annotations

import json
from typing import Any

MOST_DEPTH = 200
"""Objects and arrays in one another, in answers, files and values of records alike: showing and writing a value recurses a few times per
level. Jackson, which Connect and the registries use, allows 1,000 (``StreamReadConstraints``); their answers have less than ten."""


def bounded_json(text: str | bytes) -> Any:
    """Parse JSON.

    :raises ValueError: when it is not JSON, or nested deeper than ``MOST_DEPTH``
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(f"nested deeper than {MOST_DEPTH} levels") from None
    if is_too_deep(value):
        raise ValueError(f"nested deeper than {MOST_DEPTH} levels")
    return value


def is_too_deep(value: Any) -> bool:
    """Whether a value of mappings and lists is nested deeper than ``MOST_DEPTH``; looked at without recursion."""
    layer = [value]
    for _ in range(MOST_DEPTH + 1):
        layer = [each for each in layer if isinstance(each, (dict, list))]
        if not layer:
            return False
        layer = [part for each in layer for part in (each.values() if isinstance(each, dict) else each)]
    return True
