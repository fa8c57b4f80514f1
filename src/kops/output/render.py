"""One renderer for everything that goes to stdout: table, json, yaml, csv, name.

JSON, YAML and CSV are a contract; the table is for people and may change. Rows are mappings of JSON values.
"""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO, TypeAlias

FORMATS = ("table", "json", "yaml", "csv", "name")
LONG_LIST = 1_000
"""From so many elements on, indenting each of their parts would take most of a command's time."""

Row: TypeAlias = Mapping[str, Any]


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
    :param terminal: cut the table to the terminal's width
    """
    shown = as_columns(columns)
    if output_format == "json":
        write_json_list(rows, stream)
    elif output_format == "yaml":
        write_yaml([dict(row) for row in rows], stream)
    elif output_format == "csv":
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([column.key for column in shown])
        writer.writerows([csv_cell(row.get(column.key)) for column in shown] for row in rows)
    elif output_format == "name":
        stream.writelines(f"{row.get(shown[0].key)}\n" for row in rows)
    else:
        write_table(list(rows), shown, stream, terminal=terminal)


def render_object(body: Row, output_format: str, stream: TextIO, *, name: str = "name", terminal: bool = False) -> None:
    """Write one object: aligned ``key value`` lines as a table, the object itself as JSON or YAML."""
    if output_format == "json":
        write_json(body, stream)
    elif output_format == "yaml":
        write_yaml(dict(body), stream)
    elif output_format == "name":
        stream.write(f"{body.get(name)}\n")
    else:
        rows = [{"key": key, "value": value} for key, value in body.items()]
        if output_format == "csv":
            render_rows(rows, ["key", "value"], output_format, stream)
        else:
            write_table(rows, as_columns(["key", "value"]), stream, terminal=terminal, headings=False)


def csv_cell(value: Any) -> Any:
    """Return a value as CSV holds it: empty for None, JSON for a boolean and for what has parts."""
    if value is None:
        return ""
    if isinstance(value, (bool, Mapping, list, tuple)):
        return json.dumps(value, ensure_ascii=False)
    return value


def write_json_list(rows: Iterable[Row], stream: TextIO) -> None:
    """Write a JSON array, one row a line: many rows are written as they come, and `grep` still finds them."""
    separator = "[\n  "
    for row in rows:
        stream.write(separator + json.dumps(row, ensure_ascii=False))
        separator = ",\n  "
    stream.write("[]\n" if separator.startswith("[") else "\n]\n")


def write_json(body: Any, stream: TextIO) -> None:
    """Write indented JSON with a final newline; of an object with a long list, each element of it is one line."""
    if isinstance(body, Mapping) and any(isinstance(value, list) and len(value) > LONG_LIST for value in body.values()):
        _write_long_object(body, stream)
    else:
        json.dump(body, stream, indent=2, ensure_ascii=False)
    stream.write("\n")


def _write_long_object(body: Mapping[str, Any], stream: TextIO) -> None:
    encode = json.JSONEncoder(ensure_ascii=False).encode
    separator = "{\n  "
    for key, value in body.items():
        stream.write(f"{separator}{encode(key)}: ")
        separator = ",\n  "
        if isinstance(value, list) and value:
            between = "[\n    "
            for element in value:
                stream.write(between + encode(element))
                between = ",\n    "
            stream.write("\n  ]")
        else:
            stream.write(encode(value))
    stream.write("\n}")


def write_yaml(body: Any, stream: TextIO) -> None:
    """Write YAML in the order of the keys."""
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # ten times faster, where libyaml is there
    yaml.dump(body, stream, Dumper=dumper, sort_keys=False, allow_unicode=True)


def write_table(rows: Sequence[Row], columns: Sequence[Column], stream: TextIO, *, terminal: bool, headings: bool = True) -> None:
    """Write a borderless table, one row a line, so that grep and awk work on it."""
    import tabulate

    tabulate.MIN_PADDING = 0  # its two spaces more under each heading are columns that a terminal of 80 lacks
    body = [[cell(row.get(column.key)) for column in columns] for row in rows]
    numeric = [bool(rows) and all(is_number(row.get(column.key)) for row in rows) for column in columns]
    text = tabulate.tabulate(
        body,
        headers=[column.heading for column in columns] if headings else (),
        tablefmt="plain",
        disable_numparse=True,
        colalign=["right" if number else "left" for number in numeric] if body else None,
        preserve_whitespace=True,
    )
    width = shutil.get_terminal_size().columns if terminal else 0
    for line in text.splitlines():
        clean = line.rstrip()
        stream.write((clean[: width - 1] + "…" if width and len(clean) > width else clean) + "\n")


def is_number(value: Any) -> bool:
    """Tell whether a column may stand to the right because of this value."""
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))
