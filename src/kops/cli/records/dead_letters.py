"""``kops records dead-letters``, loaded when it runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from kops.cli.frame.session import Session
from kops.cli.records.sinks import report
from kops.core.errors import ExitCode, UsageProblem
from kops.core.records.filters import parse_filter
from kops.core.records.ranges import Span, parse_span
from kops.core.selection import parse_selection
from kops.operations.records import consume as records
from kops.operations.records import dead_letters
from kops.operations.records.consume import Stream
from kops.operations.records.formats import format_for, format_of_each
from kops.operations.records.rows import BYTES
from kops.output.json_text import json_text
from kops.output.records import as_line
from kops.output.table import Column

COLUMNS = (Column("partition", "P"), "offset", "timestamp", Column("sentence", "WHAT HAPPENED"))
COUNTS = ("count", Column("who", "BY"), "task", "last", "cause")


def run(
    session: Session,
    topic: str | None,
    span: str | None,
    *,
    connector: str | None,
    count: bool,
    last: int | None,
    filters: Sequence[str],
    key_name: str | None,
    value_name: str | None,
    isolation: str,
) -> int:
    if (topic is None) == (connector is None):
        raise UsageProblem("name either the dead-letter topic, or --connector", hint="kops records dead-letters --connector NAME")
    if count and last is not None:
        raise UsageProblem("--count counts all of a range", hint="leave --last out, or name a range such as @-1h..")
    notes: list[str] = []
    if connector is not None:
        topic, notes = dead_letters.topic_of(session, connector)
        session.note(f"connector {connector} sends them to {topic}")
    selection = parse_selection(topic or "")
    conditions = [parse_filter(text) for text in filters]
    chosen = parse_span(span, session.now()) if span is not None else Span() if count else None
    wanted = records.choose(
        selection, span=chosen, last=last, limit=None, follow=False, latest=False, filtered=bool(conditions), isolation=isolation
    )
    key, value = (format_for(session, name) if name else BYTES for name in (key_name, value_name))
    stream = Stream(selection.topic, progress=session.progress)
    batches = records.read(session, wanted, stream)
    if conditions:
        batches = records.filtered(batches, conditions, key, value, skip=True, stream=stream)
    if count:
        _show_counts(session, dead_letters.counted(batches, stream))
    else:
        keys, values = (format_of_each(session, name) for name in (key_name, value_name))
        rows = [dead_letters.row(record, keys, values, stream) for batch in batches for record in batch]
        stream.given = len(rows)
        _show(session, rows)
    stream.notes.extend(notes)
    report(session, stream)
    return int(ExitCode.DONE)


def _show(session: Session, rows: list[dict[str, Any]]) -> None:
    if session.output_format == "json":
        sys.stdout.writelines(f"{json_text(row)}\n" for row in rows)
    elif session.output_format == "table":
        lines = [{**row, "sentence": as_line(row["sentence"])} for row in rows]
        session.render(lines, COLUMNS)
    else:
        session.render(rows, ["topic", "partition", "offset", "timestamp", "key", "value", "written_by", "error", "origin", "cause"])


def _show_counts(session: Session, rows: list[dict[str, Any]]) -> None:
    if session.output_format == "table":
        rows = [_counted(row) for row in rows]
        session.render(rows, COUNTS)
    else:
        session.render(rows, list(rows[0]) if rows else ["count", "cause"])


def _counted(row: dict[str, Any]) -> dict[str, Any]:
    who = row["connector"] or row["group"] or row["written_by"]
    return {**row, "who": who, "last": row["last_timestamp"], "cause": as_line(row["cause"])}
