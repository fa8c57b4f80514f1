"""``kops journal``, ``kops undo`` and ``kops apply``: changes and plans made earlier."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from kops.cli.frame.lazy import Command, Group
from kops.cli.frame.options import Approval, mutation, take_over_option
from kops.cli.frame.session import Session
from kops.core.errors import ConfigError, ExitCode


@click.group(cls=Group)
def group() -> None:
    """Show the changes made from this machine; each is recorded before it starts."""


@group.command("list")
@click.option("--unfinished", is_flag=True, help="Only entries that are open, interrupted, crashed or partly done.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="Show at most this many, newest first.")
@click.pass_obj
def list_entries(session: Session, *, unfinished: bool, limit: int) -> int:
    """List entries, newest first."""
    from itertools import islice

    from kops.operations.protocol.journal_actions import entry_row, is_unfinished

    damaged: list[ConfigError] = []
    entries = (entry for entry in session.journal.entries(damaged.append) if not unfinished or is_unfinished(entry))
    rows = map(entry_row, islice(entries, limit))
    shown = map(_with_later_entry, rows) if session.output_format == "table" else rows
    session.render(shown, ["id", "status", "operation", "context", "summary"])
    for error in damaged:
        session.note(f"warning: {error.message}")
    return int(ExitCode.PARTIAL if damaged else ExitCode.DONE)


def _with_later_entry(row: dict[str, Any]) -> dict[str, Any]:
    """Add to the status which later entry undid or finished it."""
    later = row["undone_by"] or row["finished_by"]
    return row if later in (None, row["id"]) else row | {"status": f"{row['status']} by {later}"}


@group.command("show")
@click.argument("entry_id", metavar="ID")
@click.pass_obj
def show(session: Session, *, entry_id: str) -> None:
    """Show everything about one entry: plan, prior values, results. ID may be `last`."""
    from dataclasses import replace

    from kops.cli.frame.plan_view import plan_text
    from kops.operations.protocol.journal_actions import entry_row, item_rows
    from kops.operations.protocol.registry import typed

    entry = session.journal.read(entry_id)
    entry = replace(entry, plan=typed(entry.plan))
    if session.output_format in ("json", "yaml"):
        session.render_object(json.loads(json.dumps(entry.as_json())) | {"status": entry_row(entry)["status"]})
        return
    for key, value in entry_row(entry).items():
        if value is not None:
            session.note(f"{key + ':':12} {value}")
    if session.markup or session.output_format != "table":
        session.render(item_rows(entry), ["target", "action", "before", "after", "status"])
        return
    click.echo(plan_text(entry.plan, terminal=sys.stdout.isatty()))
    session.render(item_rows(entry), ["target", "status"])


@group.command("finish")
@click.argument("entry_id", metavar="ID")
@take_over_option
@mutation
@click.pass_obj
def finish(session: Session, *, entry_id: str, take_over: bool, approval: Approval) -> int:
    """Finish an entry that was interrupted, crashed or partly done. ID may be `last`: the newest of this cluster."""
    from kops.operations.protocol.journal_actions import entry_named, plan_finish

    entry = entry_named(session, session.journal, entry_id)
    return session.carry_out(plan_finish(session, entry, take_over=take_over), approval, finishes=entry.id)


@click.command("undo", cls=Command)
@click.argument("entry_id", metavar="ID")
@click.option("--accept-loss", is_flag=True, help="Proceed even if later changes are lost.")
@click.option("--wait-empty", metavar="DURATION", help="Wait up to this long for groups to become empty, such as 60s.")
@take_over_option
@mutation
@click.pass_obj
def undo(session: Session, *, entry_id: str, accept_loss: bool, wait_empty: str | None, take_over: bool, approval: Approval) -> int:
    """Undo a change: restore the previous values, planned and approved like any change. ID may be `last`: the newest of this cluster.

    Refused if it would discard later changes: records, commits, settings made by others. With --accept-loss the plan shows what would be
    lost.
    """
    from kops.core.durations import parse_duration
    from kops.operations.groups.matching import once_empty
    from kops.operations.protocol.journal_actions import entry_named, half_undone, plan_finish, plan_undo

    patience = 0 if wait_empty is None else parse_duration(wait_empty)
    entry = entry_named(session, session.journal, entry_id)
    half = half_undone(session.journal, entry)
    if half is not None:
        session.note(f"{half.id} was to undo it and was stopped: this does what is left of that")
        return session.carry_out(once_empty(session, patience, lambda: plan_finish(session, half)), approval, finishes=half.id)
    plan = once_empty(session, patience, lambda: plan_undo(session, session.journal, entry, accept_loss=accept_loss, take_over=take_over))
    return session.carry_out(plan, approval, undoes=entry.id)


@click.command("apply", cls=Command)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@mutation
@click.pass_obj
def apply(session: Session, *, file: Path, approval: Approval) -> int:
    """Run a plan saved with --plan-out. Refused if the cluster has changed since it was made."""
    from kops.operations.protocol.journal_actions import read_plan

    return session.carry_out(read_plan(file), approval)
