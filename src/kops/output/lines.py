"""Writes rows as they come, without limit: one JSON object per line, CSV, or a table without an end."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from typing import TextIO

from kops.core.blocks import Row
from kops.core.visible import escaped_json
from kops.output.json_text import json_text
from kops.output.markup import MARKUP
from kops.output.render import name_text, write_csv_rows
from kops.output.table import Column, Lines, as_columns, is_number, line_cell, table_of, text_width, write_table
from kops.output.yaml_text import write_yaml_documents

WIDEST = 30
"""Most characters of a column other than the last; a longer text pushes the rest of its line to the right."""


def write_bytes(data: bytes) -> None:
    """Write all bytes to stdout: with PYTHONUNBUFFERED, a single write may write only part of them."""
    left = memoryview(data)
    while left:
        left = left[sys.stdout.buffer.write(left) or 0 :]


def write_json_lines(lines: Sequence[str], stream: TextIO) -> None:
    """Write lines of JSON, which include their line ends."""
    stream.write(escaped_json("".join(lines)))


class LineWriter:
    """Writes batches of rows.

    Markup is written at the end, when all rows are known.

    :param columns: of the table and the CSV, chosen by the first batch; JSON and YAML contain every key. ``name`` prints the first one
    :param terminal: cut the table's lines to the terminal's width, and escape what would control it in CSV and names
    """

    def __init__(
        self, columns: Callable[[Sequence[Row]], Sequence[str | Column]], output_format: str, stream: TextIO, *, terminal: bool = False
    ) -> None:
        self._choose = columns
        self._columns: list[Column] | None = None
        self._lines: Lines | None = None
        self._kept: list[Row] = []
        self._stream = stream
        self._terminal = terminal
        self._format = output_format
        self._write = {"json": self._json, "yaml": self._yaml, "csv": self._csv, "name": self._name}.get(
            output_format, self._keep if output_format in MARKUP else self._table
        )

    def write(self, rows: Sequence[Row]) -> None:
        if rows:
            self._write(rows)

    def finish(self) -> None:
        """Write what is pending: the heading of a CSV without rows, or markup."""
        if self._format == "csv" and self._columns is None:
            self._csv(())
        if self._format in MARKUP:
            table = table_of(self._kept, as_columns(self._choose(self._kept)))
            write_table(table, self._stream, output_format=self._format)

    def _keep(self, rows: Sequence[Row]) -> None:
        self._kept.extend(rows)

    def _json(self, rows: Sequence[Row]) -> None:
        write_json_lines([json_text(row) + "\n" for row in rows], self._stream)

    def _yaml(self, rows: Sequence[Row]) -> None:
        write_yaml_documents([dict(row) for row in rows], self._stream)

    def _csv(self, rows: Sequence[Row]) -> None:
        first = self._columns is None
        columns = self._columns = self._columns or as_columns(self._choose(rows))
        write_csv_rows(rows, columns, self._stream, terminal=self._terminal, heading=first)

    def _name(self, rows: Sequence[Row]) -> None:
        first = as_columns(self._choose(rows))[0].key
        self._stream.writelines(f"{name_text(row.get(first), terminal=self._terminal)}\n" for row in rows)

    def _table(self, rows: Sequence[Row]) -> None:
        lines: list[tuple[str, ...]] = []
        if self._columns is None:
            self._columns = as_columns(self._choose(rows))
            lines.append(tuple(column.heading for column in self._columns))
        columns = self._columns
        lines += [tuple(line_cell(row.get(column.key)) for column in columns) for row in rows]
        if self._lines is None:
            widths = [min(max(map(text_width, texts)), WIDEST) for texts in zip(*lines, strict=True)]
            right = [all(is_number(row.get(column.key)) for row in rows) for column in columns]
            self._lines = Lines(widths, right, shutil.get_terminal_size().columns if self._terminal else 0)
        self._lines.write(lines, self._stream)
