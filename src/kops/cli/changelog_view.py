"""Rows of a changelog for people: what a type of store has beside keys and values, in columns that fit 80 characters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kops.cli.session import Session
from kops.output.records import as_cells, as_line, columns
from kops.output.render import Column

_START, _END = Column("start", "START"), Column("end", "END")
_PARTS = ("side", "sequence", "primary_key", "valid_to", "buffer_time", "prior", "old", "source")
_DATE = len("2026-11-20T")


def show_rows(session: Session, rows: list[dict[str, Any]]) -> None:
    """Write rows of a changelog to stdout."""
    if session.output_format != "table":
        session.render(rows, columns(rows, session.output_format))
    else:
        session.render([_cells(row) for row in rows], _columns(rows))


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[str | Column]:
    """Return the columns of a table; where rows have a window, it stands in the place of the offset and of the record's time."""
    usual = columns(rows, "table")
    if not rows:
        return usual
    first = rows[0]
    if "window_start" in first:
        timed: list[str | Column] = [Column("partition", "P"), "key", _START, _END]
    elif "record_time" in first:
        timed = [Column("partition", "P"), "key", Column("start", "RECORD TIME")]
    else:
        timed = [Column("partition", "P"), "offset", "timestamp", "key"]
    return [*timed, *(name for name in _PARTS if name in first and name != "source"), "value", *usual[5:]]


def _cells(row: Mapping[str, Any]) -> dict[str, Any]:
    cells = as_cells(row)
    if "window_start" in row:
        start, end = row["window_start"] or row["window_start_ms"], row["window_end"] or row["window_end_ms"]
        cells |= {"start": shorter(start), "end": "unknown" if end is None else shorter(end, beside=str(start))}
    if "record_time" in row:
        cells["start"] = shorter(row["record_time"] or row["record_time_ms"])
    if "buffer_time" in row:
        cells["buffer_time"] = shorter(row["buffer_time"])
    for name in ("prior", "old", "primary_key"):
        if name in row:
            cells[name] = as_line(*_data(row[name]))
    if isinstance(row["value"], list):
        cells["value"] = " ".join(as_line(*_data(one)) for one in row["value"])
    return cells


def _data(value: Any) -> tuple[Any, str | None]:
    """Return a value that is shown, and how its text is to be read: bytes say it themselves."""
    if isinstance(value, dict) and set(value) == {"data", "encoding"}:
        return value["data"], value["encoding"]
    return value, None


def shorter(time: Any, *, beside: str = "") -> str:
    """Return a time without milliseconds where it has none, and without its date where the time beside has the same."""
    text = str(time)
    if text.endswith(".000Z"):
        text = text.removesuffix(".000Z") + "Z"
    return text[_DATE:] if beside[:_DATE] == text[:_DATE] and text.endswith("Z") else text
