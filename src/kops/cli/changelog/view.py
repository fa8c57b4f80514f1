"""Rows of a changelog for people: what a type of store has besides keys and values, in columns that fit 80 characters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import click

from kops.cli.frame.session import Session
from kops.core.sizes import size_text
from kops.output.records import as_cells, as_line, columns, shorter_time, window_cells
from kops.output.table import Column

_START, _END = Column("start", "START"), Column("end", "END")
_PARTS = ("side", "sequence", "primary_key", "buffer_time")
"""Columns before the value; the prior value stands behind it, and the others are in JSON and CSV."""
_LISTED = (
    "topic",
    "application",
    "store",
    "kind",
    "type",
    "type_confidence",
    "partitions",
    "offsets",
    "size_bytes",
    "cleanup_policy",
    "cleaning",
    "differences",
)


def show_rows(session: Session, rows: Iterable[dict[str, Any]]) -> None:
    """Write rows of a changelog to stdout, as they come, except for a table."""
    if session.output_format == "table":
        whole = list(rows)
        session.render([_cells(row) for row in whole], _columns(whole))
        return
    coming = iter(rows)
    first = list(islice(coming, 1))
    session.render(chain(first, coming), columns(first, session.output_format))


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
    return [
        *timed,
        *(name for name in _PARTS if name in first and not ("window_start" in first and name == "buffer_time")),
        "value",
        *(["prior"] if "buffer_time" in first else usual[5:]),
    ]


def _cells(row: Mapping[str, Any]) -> dict[str, Any]:
    cells = as_cells(row)
    cells |= window_cells(row)
    if "record_time" in row:
        cells["start"] = shorter_time(row["record_time"] or row["record_time_ms"])
    if "buffer_time" in row:
        cells["buffer_time"] = shorter_time(row["buffer_time"])
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


def show_history(session: Session, rows: list[dict[str, Any]]) -> None:
    """Write the versions of one key to stdout; a table leaves the key out, which is the same in every row."""
    if session.output_format != "table":
        session.render(rows, columns(rows, session.output_format))
        return
    timed = ["start", "end"] if rows and "window_start" in rows[0] else []
    shown: list[str | Column] = [Column("partition", "P"), "offset", "timestamp", *timed, Column("missing_before", "MISSING"), "value"]
    session.render([_cells(row) for row in rows], shown)


def show_listing(session: Session, rows: list[dict[str, Any]], *, applications: bool) -> None:
    """Write internal topics to stdout."""
    if session.output_format == "csv":
        session.render(rows, _LISTED)
        return
    if session.output_format != "table":
        session.render(rows, ["topic"])
        return
    people = [
        {
            **row,
            "store": row["store"] or row["topic"].removeprefix(f"{row['application']}-"),
            "size": size_text(row["size_bytes"]),
            "type": row["type"] + ("" if row["type_confidence"] == "high" else "?"),
            "differs": len(row["differences"]) or None,
        }
        for row in rows
    ]
    shown: list[str | Column] = [Column("partitions", "P"), "offsets", "size", "cleaning", "differs", "type"]
    session.render(people, [*shown, *(["application"] if applications else []), "store"])


def show_stats(session: Session, body: dict[str, Any]) -> None:
    """Write what was counted to stdout: one object as JSON and YAML, a row a partition as CSV, two tables for people."""
    rows = body["partitions"]
    if session.output_format == "csv":
        session.render(rows, list(rows[0]) if rows else ["partition"])
        return
    if session.output_format != "table":
        session.render_object(body, name="topic")
        return
    shown = [*rows, *([{"partition": "all", **body["total"]}] if len(rows) > 1 else [])]
    session.render(
        [{**row, "partition": str(row["partition"])} for row in shown],
        [
            Column("partition", "P"),
            "records",
            "keys",
            "tombstones",
            "superseded",
            "missing",
            Column("wrong_partition", "WRONG P"),
            "undecodable",
        ],
    )
    counts = body["total"]
    if counts["oldest"]:
        sizes = f"keys {size_text(counts['key_bytes'])}, values {size_text(counts['value_bytes'])}"
        click.echo(f"\nrecords from {counts['oldest']} to {counts['newest']}; {sizes}")
    largest = [
        {**row, "what": what, "bytes": row[f"{what}_bytes"], "key": as_line(row["key"], row["key_encoding"])}
        for what in ("value", "key")
        for row in body[f"largest_{what}s"]
    ]
    if largest:
        click.echo()
        session.render(largest, [Column("what", "LARGEST"), "bytes", Column("partition", "P"), "offset", "key"])
