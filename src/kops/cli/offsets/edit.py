"""``kops offsets edit``: a group's offsets in an editor."""

from __future__ import annotations

import click

from kops.cli.frame.lazy import Command
from kops.cli.frame.options import Approval, mutation
from kops.cli.frame.session import Session
from kops.cli.offsets.options import named


@click.command("edit", cls=Command)
@named
@click.option("--topic", "topics", metavar="TOPIC[:PARTITIONS]", multiple=True, help="Only these; repeatable.")
@click.option("--wait-empty", metavar="DURATION", help="Wait up to this long for the group to become empty, such as 60s.")
@mutation
@click.pass_obj
def edit(session: Session, *, group_id: str, topics: tuple[str, ...], wait_empty: str | None, approval: Approval) -> int:
    """Change a group's offsets in your editor: $VISUAL, or $EDITOR.

    What you changed is a plan like any other: shown, approved, read back. A file that was not changed does nothing, and one that cannot be
    read names the line and does nothing either.
    """
    from kops.operations.offsets.edit import plan_edit, sheet_of

    sheet = sheet_of(session, group_id, topics, may_be_active=wait_empty is not None)
    edited = click.edit(sheet.text, extension=".yaml", require_save=False)
    if edited is None or edited == sheet.text:
        session.note("nothing to do: the file was not changed")
        return 0
    return session.carry_out(plan_edit(session, sheet, edited, wait_empty=wait_empty), approval)
