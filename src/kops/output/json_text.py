"""JSON as kops writes it: an array has one line per element, so that elements are streamed and `grep` finds them.

Characters that would control a terminal are escaped, which means the same to a program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from json.encoder import encode_basestring
from typing import Any, TextIO

from kops.core.blocks import Block, Blocks, Row
from kops.core.json_values import write_json as whole_json
from kops.core.visible import escaped_json

LONG_LIST = 1_000
"""From this many elements on, indenting their contents would take most of a command's time."""
TOGETHER = 1_000
"""How many elements are written at once."""


def write_json_list(rows: Iterable[Row], stream: TextIO) -> None:
    """Write a JSON array with one row per line: rows are streamed, and `grep` still finds them."""
    write_array(map(json_text, rows), stream)


def write_json_blocks(blocks: Iterable[Block], stream: TextIO) -> None:
    """Write very many rows; the output is byte for byte that of ``write_json_list``."""
    write_array(block_texts(blocks), stream)


def write_array(elements: Iterable[str], stream: TextIO, *, indent: str = "  ", end: str = "\n") -> None:
    """Write a JSON array with one element per line.

    :param elements: JSON texts
    :param indent: indentation of each element; the closing bracket is indented by two less
    """
    remaining = iter(elements)
    opening, separator = f"[\n{indent}", f",\n{indent}"
    start = opening
    while some := list(islice(remaining, TOGETHER)):
        stream.write(start + escaped_json(separator.join(some)))
        start = separator
    stream.write(f"[]{end}" if start is opening else f"\n{indent[2:]}]{end}")


def write_json(body: Any, stream: TextIO) -> None:
    """Write indented JSON with a final newline; an object that contains a long list is written with one line per element."""
    if isinstance(body, Mapping) and any(_is_long(value) for value in body.values()):
        _write_long_object(body, stream)
    else:
        stream.write(escaped_json(whole_json(body, indent=2)))
    stream.write("\n")


def _is_long(value: Any) -> bool:
    return isinstance(value, Blocks) or (isinstance(value, list) and len(value) > LONG_LIST)


def _write_long_object(body: Mapping[str, Any], stream: TextIO) -> None:
    separator = "{\n  "
    for key, value in body.items():
        stream.write(f"{separator}{json_text(key)}: ")
        separator = ",\n  "
        if isinstance(value, Blocks):
            write_array(block_texts(value.blocks), stream, indent="    ", end="")
        elif isinstance(value, list):
            write_array(map(json_text, value), stream, indent="    ", end="")
        else:
            stream.write(json_text(value))
    stream.write("\n}")


def block_texts(blocks: Iterable[Block]) -> Iterator[str]:
    """Yield the JSON of each row on one line, as ``json_text`` returns it; values that all rows share are serialized once."""
    return chain.from_iterable(map(_block_texts, blocks))


def _block_texts(block: Block) -> list[str]:
    fields, columns = [], []
    for key, value in block.common.items():
        form, column = _column_texts(block.each[key]) if key in block.each else (_escaped(json_text(value)), ())
        fields.append(f"{_escaped(json_text(key))}: {form}")
        if column:
            columns.append(column)
    line = "{" + ", ".join(fields) + "}"
    return [line % row for row in zip(*columns, strict=True)] if columns else [line % ()] * block.length


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def _column_texts(column: Sequence[Any]) -> tuple[str, Iterable[Any]]:
    """Return the format of a column's values in a line, and the values; no values if all are the same string, or null."""
    kinds = set(map(type, column))
    if kinds == {int}:
        return "%d", column
    if kinds <= {str, type(None)} and kinds and column[0] == column[-1] and len(set(column)) == 1:
        return _escaped(json_text(column[0])), ()
    if kinds == {str}:
        return "%s", map(encode_basestring, column)
    if kinds == {int, type(None)}:
        return "%s", ["null" if value is None else value for value in column]
    if kinds == {str, type(None)}:
        return "%s", ["null" if value is None else encode_basestring(value) for value in column]
    return "%s", map(json_text, column)


def json_text(value: Any) -> str:
    """Return the JSON of a value on one line."""
    return escaped_json(whole_json(value))
