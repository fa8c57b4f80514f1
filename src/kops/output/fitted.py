"""A table on a terminal that is narrower: long names are shortened, so that every column is to be seen."""

from __future__ import annotations

import re
from collections.abc import Sequence

LEAST = 12
"""No column is made narrower: its names could not be told apart any more."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")


def fitted(widths: Sequence[int], may_shrink: Sequence[bool], limit: int) -> list[int]:
    """Return widths that fit a line, with two spaces between columns: the widest columns give way first, to the same width.

    :param may_shrink: the columns that may become narrower, none of them narrower than ``LEAST``
    :param limit: of the line, in characters
    """
    room = limit - 2 * (len(widths) - 1)
    for cap in range(min(max(widths, default=0), room), LEAST - 1, -1):
        shrunk = [min(width, cap) if may else width for width, may in zip(widths, may_shrink, strict=True)]
        if sum(shrunk) <= room:
            return shrunk
    return [min(width, LEAST) if may else width for width, may in zip(widths, may_shrink, strict=True)]


def shortened(text: str, width: int) -> str:
    """Return a text that is no longer than this: of a sentence the beginning, of a name both ends, as either may be what tells it apart."""
    if len(text) <= width:
        return text
    if " " in text:
        return text[: width - 1] + "…"
    tail = (width - 1) // 2
    return text[: width - 1 - tail] + "…" + text[len(text) - tail :]


def are_times(texts: Sequence[str]) -> bool:
    """Tell whether a column has times, of which no part can be left out."""
    return any(map(_TIME.fullmatch, texts))
