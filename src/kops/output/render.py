"""One renderer for everything that goes to stdout: table, json, yaml, csv, name.

JSON, YAML and CSV are a contract; the table is for people and may change. Rows are mappings of JSON values.
"""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TextIO

from kops.core.blocks import Row
from kops.core.visible import visible
from kops.output.json_text import write_json, write_json_list
from kops.output.yaml_text import write_yaml

FORMATS = ("table", "json", "yaml", "csv", "name")
TOGETHER = 1_000
"""So many lines are written at once."""


@dataclass(frozen=True)
class Column:
    """A column of a table or CSV.

    :param key: the key of the row that it shows
    :param title: its heading; the key in upper case when empty
    """

    key: str
    title: str = ""

    @property
    def heading(self) -> str:
        """Return the heading of the column."""
        return self.title or self.key.upper().replace("_", " ")


def as_columns(columns: Sequence[str | Column]) -> list[Column]:
    """Accept plain keys as columns."""
    return [column if isinstance(column, Column) else Column(column) for column in columns]


def cell(value: Any) -> str:
    """Return a value as text for a person."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={cell(part)}" for key, part in value.items()) or "-"
    if isinstance(value, (list, tuple)):
        return ",".join(cell(part) for part in value) or "-"
    return str(value)


def render_rows(
    rows: Iterable[Row], columns: Sequence[str | Column], output_format: str, stream: TextIO, *, terminal: bool = False
) -> None:
    """Write rows as a list.

    :param columns: of the table and the CSV; JSON and YAML carry every key. ``name`` prints the first one
    :param terminal: make the table fit the terminal's width, and show CSV and names without what acts on it
    """
    shown = as_columns(columns)
    if output_format == "json":
        write_json_list(rows, stream)
    elif output_format == "yaml":
        write_yaml([dict(row) for row in rows], stream)
    elif output_format == "csv":
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([column.key for column in shown])
        shown_as = visible_csv_cell if terminal else csv_cell
        writer.writerows([shown_as(row.get(column.key)) for column in shown] for row in rows)
    elif output_format == "name":
        stream.writelines(f"{name_text(row.get(shown[0].key), terminal=terminal)}\n" for row in rows)
    else:
        write_table(list(rows), shown, stream, terminal=terminal)


def render_object(body: Row, output_format: str, stream: TextIO, *, name: str = "name", terminal: bool = False) -> None:
    """Write one object: aligned ``key value`` lines as a table, the object itself as JSON or YAML."""
    if output_format == "json":
        write_json(body, stream)
    elif output_format == "yaml":
        write_yaml(dict(body), stream)
    elif output_format == "name":
        stream.write(f"{name_text(body.get(name), terminal=terminal)}\n")
    else:
        rows = [{"key": key, "value": value} for key, value in body.items()]
        if output_format == "csv":
            render_rows(rows, ["key", "value"], output_format, stream, terminal=terminal)
        else:
            write_table(rows, as_columns(["key", "value"]), stream, terminal=terminal, headings=False)


def csv_cell(value: Any) -> Any:
    """Return a value as CSV holds it: empty for None, JSON for a boolean and for what has parts."""
    if value is None:
        return ""
    if isinstance(value, (bool, Mapping, list, tuple)):
        return json.dumps(value, ensure_ascii=False)
    return value


def visible_csv_cell(value: Any) -> Any:
    """Return a value as CSV shows it on a terminal: a text on one line."""
    held = csv_cell(value)
    return visible(held) if isinstance(held, str) else held


def name_text(value: Any, *, terminal: bool) -> str:
    """Return the line of ``-o name``: as it is for programs, without what acts on a terminal for people."""
    return visible(str(value)) if terminal else str(value)


def write_table(rows: Sequence[Row], columns: Sequence[Column], stream: TextIO, *, terminal: bool, headings: bool = True) -> None:
    """Write a borderless table, one row a line, so that grep and awk work on it: numbers to the right, everything else to the left."""
    values = [[row.get(column.key) for row in rows] for column in columns]
    numeric = [bool(rows) and all(map(is_number, column)) for column in values]
    texts = [[line_cell(value) for value in column] for column in values]
    titles = [column.heading for column in columns] if headings else []
    widths = [max(map(len, [*column, *titles[at : at + 1]]), default=0) for at, column in enumerate(texts)]
    write_lines(zip(*texts, strict=True), titles, widths, numeric, stream, terminal=terminal)


def write_lines(
    rows: Iterable[tuple[str, ...]],
    headings: Sequence[str],
    widths: Sequence[int],
    numeric: Sequence[bool],
    stream: TextIO,
    *,
    terminal: bool,
) -> None:
    """Write the lines of a table.

    :param headings: empty for none
    :param widths: of the columns
    :param numeric: the columns that stand to the right
    :param terminal: make them fit the terminal's width
    """
    limit = shutil.get_terminal_size().columns if terminal else 0
    if limit and sum(widths) + 2 * (len(widths) - 1) > limit:
        headings, rows, widths = _fit(headings, list(rows), widths, numeric, limit)
    line = "  ".join(f"%{width}s" if number else f"%-{width}s" for width, number in zip(widths, numeric, strict=True))
    if headings:
        stream.write(_cut((line % tuple(headings)).rstrip(), limit) + "\n")
    remaining = iter(rows)
    while some := list(islice(remaining, TOGETHER)):
        texts = [(line % row).rstrip() for row in some]
        stream.write("\n".join([_cut(text, limit) for text in texts] if limit else texts) + "\n")


def _fit(
    headings: Sequence[str], rows: Sequence[tuple[str, ...]], widths: Sequence[int], numeric: Sequence[bool], limit: int
) -> tuple[Sequence[str], list[tuple[str, ...]], list[int]]:
    """Return a table with its longest texts shortened, sentences before names."""
    from kops.output.fitted import are_times, fitted, shortened

    columns = list(zip(*rows, strict=True)) or [()] * len(widths)
    some = [column[:TOGETHER] for column in columns]
    may_shrink = [not (number or are_times(column)) for number, column in zip(numeric, some, strict=True)]
    sentences = [may and any(" " in text for text in column) for may, column in zip(may_shrink, some, strict=True)]
    # A name tells more than the end of a sentence: it stays whole as long as there is room.
    narrower = fitted(fitted(widths, sentences, limit), may_shrink, limit)
    shown = (
        column if width == before else [shortened(text, width) for text in column]
        for column, width, before in zip(columns, narrower, widths, strict=True)
    )
    titles = [shortened(heading, width) for heading, width in zip(headings, narrower, strict=True)] if headings else []
    return titles, list(zip(*shown, strict=True)), narrower


def line_cell(value: Any) -> str:
    """Return a value as text for a person, on one line that acts on no terminal."""
    return visible(cell(value))


def _cut(text: str, limit: int) -> str:
    return text[: limit - 1] + "…" if limit and len(text) > limit else text


def is_number(value: Any) -> bool:
    """Tell whether a column may stand to the right because of this value."""
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))
