"""Rows of records for people: one line each, whatever their content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kops.core.json_values import write_json
from kops.core.visible import visible
from kops.output.table import Column

_DATE = len("2026-11-20T")
STREAM_KEYS = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestamp_ms",
    "key",
    "key_encoding",
    "value",
    "value_encoding",
    "headers",
    "tombstone",
)
PEOPLE = (Column("partition", "P"), "offset", "timestamp", "key", "value")


def columns(rows: Sequence[Mapping[str, Any]], output_format: str) -> list[str | Column]:
    """Return the columns of a table, which fit into 80 characters if keys and values are short; CSV has every key."""
    if output_format == "table":
        return [*PEOPLE, *(["headers"] if any(row["headers"] for row in rows) else [])]
    if output_format == "name":
        return ["key"]
    return list(rows[0]) if rows else ["topic", "partition", "offset", "timestamp", "timestamp_ms", "key", "value", "headers", "tombstone"]


def stream_columns(rows: Sequence[Mapping[str, Any]], output_format: str) -> list[str | Column]:
    """Return the columns of a table without an end: the value comes last, so that it can have any length."""
    if output_format != "table":
        return columns(rows, output_format) if rows else list(STREAM_KEYS)
    has_headers = any(row["headers"] for row in rows)
    return [*PEOPLE[:-1], *(["headers"] if has_headers else []), PEOPLE[-1]]


def raw_lines(values: Sequence[bytes | None]) -> bytes:
    """Return values unchanged, each with a line end; a tombstone is an empty line."""
    return b"\n".join([value or b"" for value in values] if None in values else values) + b"\n" if values else b""  # type: ignore[arg-type]


def as_cells(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with its key, value and headers as text on one line."""
    cells = {**row, "key": as_line(row["key"], row.get("key_encoding")), "value": as_line(row["value"], row.get("value_encoding"))}
    if row["tombstone"]:
        cells["value"] = "(tombstone)"
    cells["headers"] = " ".join(f"{visible(header['key'])}={as_line(header['value'], header['encoding'])}" for header in row["headers"])
    return cells


def as_line(value: Any, encoding: str | None = None) -> str:
    """Format a value on one line without control characters, so that it can neither break the table nor control the terminal.

    :param encoding: ``base64`` is shown as a prefix
    """
    if value is None:
        return "-"
    text = value if isinstance(value, str) else write_json(value, compact=True)
    prefix = "base64:" if encoding == "base64" else ""
    return prefix + visible(text)


def window_cells(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ``start`` and ``end`` of a row's window or session for a table; empty for a row without window."""
    if "window_start" not in row:
        return {}
    start, end = row["window_start"] or row["window_start_ms"], row["window_end"] or row["window_end_ms"]
    return {"start": shorter_time(start), "end": "unknown" if end is None else shorter_time(end, other=str(start))}


def shorter_time(time: Any, *, other: str = "") -> str:
    """Return a time without milliseconds if they are zero, and without its date if the other time has the same."""
    text = str(time)
    if text.endswith(".000Z"):
        text = text.removesuffix(".000Z") + "Z"
    return text[_DATE:] if other[:_DATE] == text[:_DATE] and text.endswith("Z") else text
