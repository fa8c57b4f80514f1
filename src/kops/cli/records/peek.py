"""``kops records peek``, loaded when it runs."""

from __future__ import annotations

from collections.abc import Sequence

from kops.cli.frame.session import Session
from kops.core.errors import ExitCode
from kops.operations.records import peek as records_peek
from kops.operations.records.formats import format_of_each
from kops.output.records import as_cells, stream_columns
from kops.output.table import Column


def peek(
    session: Session,
    group_id: str,
    topics: Sequence[str],
    *,
    before: int,
    after: int,
    key_name: str | None,
    value_name: str | None,
    isolation: str,
) -> int:
    key, value = (format_of_each(session, name) for name in (key_name, value_name))
    found = records_peek.peek(session, group_id, topics, before=before, after=after, isolation=isolation)
    problems: list[str] = []
    rows = [row for peeked in found for row in records_peek.rows(group_id, peeked, key, value, problems)]
    if session.output_format == "table":
        topic = ["topic"] if len({row["topic"] for row in rows}) > 1 else []
        rows = [{**as_cells(row), "mark": ">" if row["position"] == "next" else ""} for row in rows]
        session.render(rows, [Column("mark", "NEXT"), *topic, *stream_columns(rows, "table")])
    else:
        session.render(rows, list(rows[0]) if rows else ["group"])
    session.note(*(peeked.note for peeked in found if peeked.note))
    for problem in problems:
        session.note(f"warning: {problem}")
    return int(ExitCode.DONE)
