"""One renderer for everything that goes to stdout: table, json, yaml, csv, name, markdown, html, jira.

JSON, YAML and CSV are a stable contract; tables are for people and may change. Rows are mappings of JSON values.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

from kops.core.blocks import Row
from kops.core.json_values import write_json as whole_json
from kops.core.visible import visible
from kops.output.json_text import write_json, write_json_list
from kops.output.table import Column, as_columns, table_of, write_table
from kops.output.yaml_text import write_yaml


def render_rows(
    rows: Iterable[Row], columns: Sequence[str | Column], output_format: str, stream: TextIO, *, terminal: bool = False, whole: bool = False
) -> None:
    """Write rows as a list.

    :param columns: of tables and CSV; JSON and YAML contain every key. ``name`` prints the first one
    :param terminal: make the table fit the terminal's width, and escape what would control it in CSV and names
    :param whole: wrap the table's sentences instead of cutting anything
    """
    shown = as_columns(columns)
    if output_format == "json":
        write_json_list(rows, stream)
    elif output_format == "yaml":
        write_yaml([dict(row) for row in rows], stream)
    elif output_format == "csv":
        write_csv_rows(rows, shown, stream, terminal=terminal)
    elif output_format == "name":
        stream.writelines(f"{name_text(row.get(shown[0].key), terminal=terminal)}\n" for row in rows)
    else:
        write_table(table_of(list(rows), shown), stream, output_format=output_format, terminal=terminal, whole=whole)


def render_object(body: Row, output_format: str, stream: TextIO, *, name: str = "name", terminal: bool = False) -> None:
    """Write one object: as a table aligned ``key value`` lines, as JSON or YAML the object itself."""
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
            table = table_of(rows, as_columns(["key", "value"]), headings=False)
            write_table(table, stream, output_format=output_format, terminal=terminal, whole=True)


def write_csv_rows(rows: Iterable[Row], columns: Sequence[Column], stream: TextIO, *, terminal: bool, heading: bool = True) -> None:
    """Write rows as CSV.

    :param terminal: escape what would control it, each text on one line
    """
    writer = csv.writer(stream, lineterminator="\n")
    if heading:
        writer.writerow([column.key for column in columns])
    shown_as = visible_csv_cell if terminal else csv_cell
    writer.writerows([shown_as(row.get(column.key)) for column in columns] for row in rows)


def csv_cell(value: Any) -> Any:
    """Return a value for CSV: empty for None, JSON for booleans, objects and lists."""
    if value is None:
        return ""
    if isinstance(value, (bool, Mapping, list, tuple)):
        return whole_json(value)
    return value


def visible_csv_cell(value: Any) -> Any:
    """Return a value for CSV on a terminal: text is on one line, without control characters."""
    held = csv_cell(value)
    return visible(held) if isinstance(held, str) else held


def name_text(value: Any, *, terminal: bool) -> str:
    """Return the line of ``-o name``: unchanged for programs; on a terminal, control characters are escaped."""
    return visible(str(value)) if terminal else str(value)
