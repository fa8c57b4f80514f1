"""Very many rows: as ``render`` writes them, in a fraction of the time and memory.

Rows come in blocks (``kops.core.blocks``), are read once, and may come from a generator. They all have the same keys in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TextIO

from kops.core.blocks import Block
from kops.output.json_text import block_texts, write_array
from kops.output.render import Column, is_number, line_cell, write_lines


def write_json_rows(blocks: Iterable[Block], stream: TextIO) -> None:
    """Write a JSON array, one row a line, byte for byte as ``json_text.write_json_list`` does."""
    write_array(block_texts(blocks), stream)


def write_wide(
    blocks: Iterable[Block],
    columns: Sequence[Column],
    stream: TextIO,
    *,
    terminal: bool = False,
    texts: Mapping[str, Callable[[Any], str]] | None = None,
) -> None:
    """Write a table byte for byte as ``render.write_table`` does.

    :param terminal: make it fit the terminal's width
    :param texts: how to write the values of some columns, by key
    """
    values: list[list[Any]] = [[] for _ in columns]
    for block in blocks:
        for column, kept in zip(columns, values, strict=True):
            kept.extend(block.column(column.key))
    headings, numeric, widths, written = [], [], [], []
    for column, kept in zip(columns, values, strict=True):
        some = set(kept)  # few are different, compared with how many there are
        write = (texts or {}).get(column.key, line_cell)
        known = {value: "-" if value is None else write(value) for value in some}
        headings.append(column.heading)
        numeric.append(bool(some) and all(map(is_number, some)))
        widths.append(max(map(len, [column.heading, *known.values()])))
        written.append(map(known.__getitem__, kept))
    write_lines(zip(*written, strict=True), headings, widths, numeric, stream, terminal=terminal)
