"""Very many rows: as ``render`` writes them, in a fraction of the time and memory.

Rows come in blocks (``kops.core.blocks``), are read once, and may come from a generator. They all have the same keys in the same order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TextIO

from kops.core.blocks import Block
from kops.output.render import Column, is_number, line_cell, write_array, write_lines

MOST_TEXTS = 100_000


class _Texts(dict[Any, str]):
    """The JSON of values that were seen before: strings, whole numbers and None; neither true nor 1.0, which would pass for a 1."""

    def __missing__(self, value: str | int | None) -> str:
        text = self[value] = json.dumps(value, ensure_ascii=False)
        return text


def write_json_rows(blocks: Iterable[Block], stream: TextIO) -> None:
    """Write a JSON array, one row a line, byte for byte as ``render.write_json_list`` does.

    :param blocks: of strings, whole numbers, None, and objects of whatever; neither true nor 1.0
    """
    write_array(chain.from_iterable(_json_blocks(blocks)), stream)


def _json_blocks(blocks: Iterable[Block]) -> Iterator[list[str]]:
    texts = _Texts()
    for block in blocks:
        try:
            yield _json_block(block, texts)
        except TypeError:  # an object, which has no hash
            yield [json.dumps(row, ensure_ascii=False) for row in block.rows()]
        if len(texts) > MOST_TEXTS:
            texts.clear()


def _json_block(block: Block, texts: _Texts) -> list[str]:
    """Return the text of each row: that of the common values is written once."""
    fixed = {key: texts[value].replace("%", "%%") for key, value in block.common.items() if key not in block.each}
    parts = [f"{texts[key]}: {fixed.get(key, '%s')}" for key in block.common]
    line = "{" + ", ".join(parts) + "}"
    each = [map(texts.__getitem__, block.each[key]) for key in block.common if key in block.each]
    return [line % row for row in zip(*each, strict=True)] if each else [line % ()] * block.length


def write_wide(
    blocks: Iterable[Block],
    columns: Sequence[Column],
    stream: TextIO,
    *,
    terminal: bool = False,
    texts: Mapping[str, Callable[[Any], str]] | None = None,
) -> None:
    """Write a table byte for byte as ``render.write_table`` does.

    :param terminal: cut it to the terminal's width
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
