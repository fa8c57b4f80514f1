"""Keys of stores for people: differences and answers, in columns that fit 80 characters where keys and values are short."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import click

from kops.cli.frame.session import Session
from kops.output.records import as_line, shorter_time, window_cells
from kops.output.table import Column

_DIFFERENCES = ("store", "partition", "key", "status", "expected", "actual", "expected_timestamp", "actual_timestamp")
_ANSWERS = ("store", "key", "value", "timestamp", "partition")
_BOUNDS = ("window_start", "window_end")
_SIDES = {"missing": ("expected",), "unexpected": ("actual",), "different": ("expected", "actual")}
_PARTITION, _START, _END, _TIME = Column("partition", "P"), Column("start", "START"), Column("end", "END"), Column("time", "TIMESTAMP")


def show_differences(session: Session, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write keys that differ to stdout; a table has a line for what is missing or unexpected, and two for what is different.

    One table per store if there are several: their further columns differ.
    """
    if session.output_format != "table":
        windowed = _windowed(rows)
        session.render(rows, (*_DIFFERENCES[:3], *(_BOUNDS if windowed else ()), *_DIFFERENCES[3:]))
        return
    by_store: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_store.setdefault(row["store"], []).append(row)
    for number, (store, some) in enumerate(by_store.items()):
        if len(by_store) > 1:
            click.echo(("\n" if number else "") + f"{store}:")
        session.render(_sides(some), [_PARTITION, "key", *_window(some), Column("side", "STATUS"), _TIME, "value"])


def show_answers(session: Session, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write keys and their values to stdout."""
    windowed = _windowed(rows)
    if session.output_format != "table":
        session.render(rows, ("store", "key", *_BOUNDS, "value", "partition") if windowed else _ANSWERS)
        return
    cells = [{**row, **window_cells(row), "key": as_line(row["key"]), "value": as_line(row["value"]), "time": _time(row)} for row in rows]
    session.render(cells, ["store", _PARTITION, "key", *([_START, _END] if windowed else [_TIME]), "value"])


def _time(row: Mapping[str, Any]) -> str | None:
    return row["timestamp"] and shorter_time(row["timestamp"])


def _windowed(rows: Iterable[Mapping[str, Any]]) -> bool:
    return any("window_start" in row for row in rows)


def _window(rows: Sequence[Mapping[str, Any]]) -> list[Column]:
    """Return the columns of windows; the end is left out where all are of one length."""
    bounds = [(row["window_start_ms"], row["window_end_ms"]) for row in rows if "window_start" in row]
    lengths = {None if end is None else end - start for start, end in bounds}
    return [_START, *([_END] if len(lengths) > 1 else [])] if bounds else []


def _sides(rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        bounds = window_cells(row)
        for side in _SIDES[row["status"]]:
            time = row[f"{side}_timestamp"]
            yield {
                **row,
                **bounds,
                "key": as_line(row["key"]),
                "side": side if row["status"] == "different" else row["status"],
                "time": time and shorter_time(time, other=str(bounds.get("start", ""))),
                "value": as_line(row[side]),
            }
