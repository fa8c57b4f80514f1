"""Tables: text for people, or, drawn by `tabulate`, Markdown, HTML or Jira's markup for a ticket."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from io import StringIO
from itertools import accumulate, chain, islice, zip_longest
from textwrap import fill
from typing import Any, TextIO

from kops.core.blocks import Block, Row
from kops.core.visible import visible
from kops.output.colour import has_colours, painted_column, unpainted, write_coloured
from kops.output.markup import MARKUP, escaped, write_markup

TOGETHER = 1_000
"""How many lines are written at once."""
NARROWEST = 12
"""Minimum width of a shrunk column: below it, names could no longer be distinguished."""
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")


@dataclass(frozen=True)
class Column:
    """A column of a table or CSV.

    :param key: the key of the row that it shows
    :param title: its heading; if empty, the key in upper case
    """

    key: str
    title: str = ""

    @property
    def heading(self) -> str:
        return self.title or self.key.upper().replace("_", " ")


def as_columns(columns: Sequence[str | Column]) -> list[Column]:
    return [column if isinstance(column, Column) else Column(column) for column in columns]


def cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={cell(part)}" for key, part in value.items()) or "-"
    if isinstance(value, (list, tuple)):
        return ",".join(cell(part) for part in value) or "-"
    return str(value)


def line_cell(value: Any) -> str:
    """Format a value for people, on one line without control characters."""
    return visible(cell(value))


def is_number(value: Any) -> bool:
    """Whether this value allows its column to be right-aligned."""
    return value is None or (isinstance(value, (int, float, Decimal)) and not isinstance(value, bool))


@dataclass(frozen=True)
class TextTable:
    """A table whose cells are text.

    :param titles: the headings; empty for none
    :param columns: the cells of each column
    :param right: the columns that are right-aligned
    :param keys: keys of the columns, which decide what their words mean
    :param widths: widths of the columns
    """

    titles: Sequence[str]
    columns: Sequence[Sequence[str]]
    right: Sequence[bool]
    keys: Sequence[str]
    widths: Sequence[int]


def table_of(rows: Sequence[Row], columns: Sequence[Column], *, headings: bool = True) -> TextTable:
    """Build a table from rows: columns of numbers are right-aligned."""
    values = [[row.get(column.key) for row in rows] for column in columns]
    titles = [column.heading for column in columns] if headings else []
    cells = [[line_cell(value) for value in column] for column in values]
    widths = [max(map(text_width, [*column, *titles[at : at + 1]]), default=0) for at, column in enumerate(cells)]
    right = [bool(rows) and all(map(is_number, column)) for column in values]
    return TextTable(titles, cells, right, [column.key for column in columns], widths)


def table_of_blocks(
    blocks: Iterable[Block], columns: Sequence[Column], texts: Mapping[str, Callable[[Any], str]] | None = None
) -> TextTable:
    """Build a table from very many rows in a fraction of the time and memory: a value shared by many rows is formatted once.

    :param texts: functions that format the values of some columns, by key
    """
    values: list[list[Any]] = [[] for _ in columns]
    for block in blocks:
        for column, kept in zip(columns, values, strict=True):
            kept.extend(block.column(column.key))
    titles, cells, right, widths = [], [], [], []
    for column, kept in zip(columns, values, strict=True):
        different = set(kept)
        write = (texts or {}).get(column.key, line_cell)
        known = {value: "-" if value is None else write(value) for value in different}
        titles.append(column.heading)
        cells.append([known[value] for value in kept])
        right.append(bool(different) and all(map(is_number, different)))
        widths.append(max(map(text_width, [column.heading, *known.values()])))
    return TextTable(titles, cells, right, [column.key for column in columns], widths)


def write_table(table: TextTable, stream: TextIO, *, output_format: str = "table", terminal: bool = False, whole: bool = False) -> None:
    """Write a table: one row per line, without borders, so that grep and awk work on it; or as markup.

    :param terminal: make it fit the terminal's width: a listing keeps a line per row, with texts shortened, because it is read by column
    :param whole: wrap sentences that are too long instead of cutting anything: for plans, results, settings, where each value counts
    """
    if output_format in MARKUP:
        cells = [[escaped(text, output_format) for text in row] for row in zip(*table.columns, strict=True)]
        titles = [escaped(title, output_format) for title in table.titles or map(str.upper, table.keys)]
        write_markup(_drawn(cells, table.right, MARKUP[output_format], titles) + "\n", stream)
        return
    limit = shutil.get_terminal_size().columns if terminal else 0
    if limit and _whole_width(table) > limit:
        table = _wrapped(table, limit) if whole else _fit(table, limit)
    colours = terminal and has_colours(stream) and _whole_width(table) <= limit
    columns = list(map(painted_column, table.keys, table.columns)) if colours else table.columns
    rows: Iterable[tuple[str, ...]] = chain([tuple(table.titles)] if table.titles else [], zip(*columns, strict=True))
    if whole:  # cells may be wrapped
        rows = chain.from_iterable(zip_longest(*(text.split("\n") for text in row), fillvalue="") for row in rows)
    lines = Lines(table.widths, table.right, 0 if whole or colours else limit, coloured=colours)
    if colours:
        lines.write(rows, text := StringIO())
        write_coloured(text.getvalue(), stream)
    else:
        lines.write(rows, stream)


def _whole_width(table: TextTable) -> int:
    return sum(table.widths) + 2 * (len(table.widths) - 1)


def _drawn(rows: Sequence[Sequence[str]], right: Sequence[bool], style: str, titles: Sequence[str]) -> str:
    from tabulate import tabulate  # which imports importlib.metadata, and with it email and socket

    aligned = ["right" if each else "left" for each in right]
    return tabulate(rows, titles, style, disable_numparse=True, colalign=aligned if rows else None, preserve_whitespace=True)


class Lines:
    """Writes any number of lines of a plain table whose widths are known.

    :param coloured: whether there are cells in colour
    """

    def __init__(self, widths: Sequence[int], right: Sequence[bool], limit: int = 0, *, coloured: bool = False) -> None:
        self._widths = list(zip(widths, right, strict=True))
        self._form = "  ".join(f"%{width}s" if number else f"%-{width}s" for width, number in self._widths)
        self._limit = limit
        self._coloured = coloured

    def write(self, rows: Iterable[tuple[str, ...]], stream: TextIO) -> None:
        remaining = iter(rows)
        while some := list(islice(remaining, TOGETHER)):
            lines = [(self._form % row).rstrip() for row in some]
            if self._coloured or not all(map(str.isascii, lines)):  # "%-9s" counts characters: some are two columns wide, or none
                lines = [
                    line if line.isascii() and "\x1b" not in line else self._padded(row) for line, row in zip(lines, some, strict=True)
                ]
            stream.write("\n".join([cut(line, self._limit) for line in lines] if self._limit else lines) + "\n")

    def _padded(self, row: Sequence[str]) -> str:
        cells = []
        for text, (width, right) in zip(row, self._widths, strict=True):
            space = " " * (width - text_width(unpainted(text) if self._coloured else text))
            cells.append(space + text if right else text + space)
        return "  ".join(cells).rstrip()


def text_width(text: str) -> int:
    """Return how many columns of a terminal a text occupies."""
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth

    width: int = wcswidth(text)
    return width if width >= 0 else len(text)


def cut(text: str, limit: int) -> str:
    """Cut a line to a width; 0 means no limit."""
    return _head(text, limit - 1) + "…" if limit and text_width(text) > limit else text


def _head(text: str, width: int) -> str:
    if text.isascii():
        return text[:width]
    return text[: sum(so_far <= width for so_far in accumulate(map(text_width, text)))]


def _may_shrink(table: TextTable) -> tuple[list[bool], list[bool]]:
    """Return which columns may become narrower, and which of those contain sentences."""
    some = [column[:TOGETHER] for column in table.columns]
    may_shrink = [not (right or are_times(column)) for right, column in zip(table.right, some, strict=True)]
    return may_shrink, [may and any(" " in text for text in column) for may, column in zip(may_shrink, some, strict=True)]


def _wrapped(table: TextTable, limit: int) -> TextTable:
    """Wrap sentences over several lines; no word is broken, and names stay whole.

    The first column, which names the row, is not wrapped: so no text from elsewhere, wrapped, looks like a row of its own.
    """
    widths = fitted(table.widths, [False, *_may_shrink(table)[1][1:]], limit)
    columns = [
        column if width == before else [fill(text, width, break_long_words=False, break_on_hyphens=False) for text in column]
        for column, width, before in zip(table.columns, widths, table.widths, strict=True)
    ]
    return TextTable(table.titles, columns, table.right, table.keys, widths)


def _fit(table: TextTable, limit: int) -> TextTable:
    """Shorten the longest texts, sentences before names."""
    may_shrink, sentences = _may_shrink(table)
    # A name says more than the end of a sentence, so it stays whole as long as there is room.
    widths = fitted(fitted(table.widths, sentences, limit), may_shrink, limit)
    columns = [
        column if width == before else [shortened(text, width) for text in column]
        for column, width, before in zip(table.columns, widths, table.widths, strict=True)
    ]
    titles = [shortened(title, width) for title, width in zip(table.titles, widths, strict=True)] if table.titles else []
    return TextTable(titles, columns, table.right, table.keys, widths)


def fitted(widths: Sequence[int], may_shrink: Sequence[bool], limit: int) -> list[int]:
    """Return widths that fit into a line, with two spaces between columns: the widest columns shrink first, to the same width.

    :param may_shrink: which columns may become narrower, but not below ``NARROWEST``
    :param limit: width of the line, in columns of the terminal
    """
    room = limit - 2 * (len(widths) - 1)
    for cap in range(min(max(widths, default=0), room), NARROWEST - 1, -1):
        shrunk = [min(width, cap) if may else width for width, may in zip(widths, may_shrink, strict=True)]
        if sum(shrunk) <= room:
            return shrunk
    return [min(width, NARROWEST) if may else width for width, may in zip(widths, may_shrink, strict=True)]


def shortened(text: str, width: int) -> str:
    """Shorten a text to a width: a sentence keeps its beginning, a name both ends, as either may distinguish it."""
    if text_width(text) <= width:
        return text
    if " " in text:
        return cut(text, width)
    tail = (width - 1) // 2
    return _head(text, width - 1 - tail) + "…" + _head(text[::-1], tail)[::-1]


def are_times(texts: Sequence[str]) -> bool:
    """Whether a column contains times, no part of which may be left out."""
    return any(map(_TIME.fullmatch, texts))
