"""Very many rows: as ``render`` writes them, in a fraction of the time and memory.

Rows are read once and may come from a generator. They all have the same keys in the same order.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from operator import itemgetter
from typing import Any, TextIO

from kops.output.render import Column, cell

BLOCK = 1_000
MOST_TEXTS = 100_000


class _Texts(dict[Any, str]):
    """The JSON of values that were seen before."""

    def __missing__(self, value: str | int | None) -> str:
        text = self[value] = json.dumps(value, ensure_ascii=False)
        return text


def write_json_rows(rows: Iterable[Mapping[str, Any]], stream: TextIO) -> None:
    """Write a JSON array, one row a line, byte for byte as ``render.write_json_list`` does.

    :param rows: of strings, whole numbers, None, and objects of whatever; neither true nor 1.0, which would pass for a 1
    """
    remaining = iter(rows)
    first = next(remaining, None)
    if first is None:
        stream.write("[]\n")
        return
    line = "{" + ", ".join(f"{json.dumps(key)}: %s" for key in first) + "}"
    texts, separator = _Texts(), "[\n  "
    remaining = chain([first], remaining)
    while block := list(islice(remaining, BLOCK)):
        try:
            lines = [line % tuple(map(texts.__getitem__, row.values())) for row in block]
        except TypeError:  # an object, which has no hash
            lines = [json.dumps(row, ensure_ascii=False) for row in block]
        stream.write(separator + ",\n  ".join(lines))
        separator = ",\n  "
        if len(texts) > MOST_TEXTS:
            texts.clear()
    stream.write("\n]\n")


def write_wide(
    rows: Iterable[Mapping[str, Any]],
    columns: Sequence[Column],
    stream: TextIO,
    *,
    terminal: bool = False,
    texts: Mapping[str, Callable[[Any], str]] | None = None,
) -> None:
    """Write a borderless table: numbers to the right, everything else to the left.

    :param terminal: cut it to the terminal's width
    :param texts: how to write the values of some columns, by key
    """
    kept, numeric, widths = _read(rows, columns, texts or {})
    formats = [f"%{width}s" if number else f"%-{width}s" for width, number in zip(widths, numeric, strict=True)]
    line = "  ".join(formats)
    if not numeric[-1]:
        line = "  ".join([*formats[:-1], "%s"])
    limit = shutil.get_terminal_size().columns if terminal else 0
    stream.write(_cut((line % tuple(column.heading for column in columns)).rstrip(), limit) + "\n")
    while block := list(islice(kept, BLOCK)):
        stream.write("".join([_cut((line % row).rstrip(), limit) + "\n" for row in block]))


def _read(
    rows: Iterable[Mapping[str, Any]], columns: Sequence[Column], texts: Mapping[str, Callable[[Any], str]]
) -> tuple[Iterator[tuple[Any, ...]], list[bool], list[int]]:
    """Return the values of each row, which columns are numbers, and how wide each is."""
    keys = [column.key for column in columns]
    pick = itemgetter(*keys)
    kept = [pick(row) for row in rows]
    values, numeric, widths = [], [], []
    for index, column in enumerate(columns):
        some = {row[index] for row in kept}  # few are different, compared with how many there are
        write = texts.get(column.key, cell)
        written = {value: "-" if value is None else write(value) for value in some}
        numeric.append(all(value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)) for value in some))
        widths.append(max([len(column.heading), *map(len, written.values())]))
        values.append(map(written.__getitem__, map(itemgetter(index), kept)))
    return zip(*values, strict=True), numeric, widths


def _cut(text: str, limit: int) -> str:
    return text[: limit - 1] + "…" if limit and len(text) > limit else text
