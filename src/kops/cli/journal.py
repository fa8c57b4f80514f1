"""``kops journal``, ``kops undo`` and ``kops apply``: plans that were made before."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from kops.cli.lazy import Command, Group
from kops.cli.options import Approval, mutation
from kops.cli.session import Session


@click.group(cls=Group)
def group() -> None:
    """Show what was changed from this machine: every mutation is an entry, written before it starts."""


@group.command("list")
@click.option("--unfinished", is_flag=True, help="Only entries that are open, interrupted or crashed.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="How many, newest first.")
@click.pass_obj
def list_entries(session: Session, *, unfinished: bool, limit: int) -> None:
    """List entries, newest first."""
    from itertools import islice

    from kops.operations.journal_actions import entry_row, is_unfinished

    entries = (
        entry
        for entry in session.journal.entries(lambda error: session.note(f"warning: {error.message}"))
        if not unfinished or is_unfinished(entry)
    )
    session.render(map(entry_row, islice(entries, limit)), ["id", "status", "operation", "context", "summary"])


@group.command("show")
@click.argument("entry_id", metavar="ID")
@click.pass_obj
def show(session: Session, *, entry_id: str) -> None:
    """Show one entry whole: plan, prior values, results. ID may be `last`."""
    from kops.operations.journal_actions import entry_row, item_rows

    entry = session.journal.read(entry_id)
    if session.output_format in ("json", "yaml"):
        session.render_object(json.loads(json.dumps(entry.as_json())) | {"status": entry_row(entry)["status"]})
        return
    for key, value in entry_row(entry).items():
        if value is not None:
            session.note(f"{key + ':':12} {value}")
    if session.output_format != "table":
        session.render(item_rows(entry), ["target", "action", "before", "after", "status"])
        return
    from kops.cli.plan_view import plan_text

    click.echo(plan_text(entry.plan, terminal=sys.stdout.isatty()))
    session.render(item_rows(entry), ["target", "status"])


@group.command("finish")
@click.argument("entry_id", metavar="ID")
@mutation
@click.pass_obj
def finish(session: Session, *, entry_id: str, approval: Approval) -> int:
    """Do what is left of an entry that was interrupted or crashed. ID may be `last`."""
    from kops.operations.journal_actions import plan_finish

    entry = session.journal.read(entry_id)
    return session.carry_out(plan_finish(session, entry), approval, finishes=entry.id)


@click.command("undo", cls=Command)
@click.argument("entry_id", metavar="ID")
@mutation
@click.pass_obj
def undo(session: Session, *, entry_id: str, approval: Approval) -> int:
    """Take back a journal entry: its prior values, through the same protocol. ID may be `last`."""
    from kops.operations.journal_actions import plan_undo

    entry = session.journal.read(entry_id)
    return session.carry_out(plan_undo(session, entry), approval, undoes=entry.id)


@click.command("apply", cls=Command)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@mutation
@click.pass_obj
def apply(session: Session, *, file: Path, approval: Approval) -> int:
    """Carry out a plan that --plan-out saved; refused when the cluster moved since."""
    from kops.operations.journal_actions import read_plan

    return session.carry_out(read_plan(file), approval)
