"""``kops offsets``: show, export, seek; the other verbs have files of their own."""

from __future__ import annotations

import sys

import click

from kops.cli.frame.lazy import Group
from kops.cli.frame.options import Approval
from kops.cli.frame.session import Session
from kops.cli.offsets.copy import copy
from kops.cli.offsets.delete import delete
from kops.cli.offsets.edit import edit
from kops.cli.offsets.history import history
from kops.cli.offsets.options import moving, named
from kops.cli.offsets.reset import reset
from kops.output.guard import for_data


@click.group(cls=Group)
def group() -> None:
    """Show and move committed offsets, and see where they were.

    Partitions are named like orders, orders:0 or orders:0,3-5; times like @-1h, @2026-11-20T14:05 (UTC) or @1700000000000.
    """


@group.command("show")
@named
@click.option("--topic", "topics", metavar="TOPIC[:PARTITIONS]", multiple=True, help="Only these; repeatable.")
@click.pass_obj
def show(session: Session, *, group_id: str, topics: tuple[str, ...]) -> None:
    """Show what a group has committed, with the metadata of each offset."""
    from kops.operations.offsets.listing import show as rows

    found = rows(session, group_id, topics)
    columns = ["topic", "partition", "offset", "leader_epoch", "stream_time", "metadata"]
    if session.output_format == "table":
        columns = columns[:3] + [name for name in columns[3:] if any(row[name] not in (None, "") for row in found)]
    session.render(found, columns)
    if not found:
        session.note(f"group {group_id} has no committed offsets{' there' if topics else ''}")


@group.command("export")
@click.argument("names", metavar="GROUP...", nargs=-1, required=True)
@click.option("--regex", is_flag=True, help="Names are regular expressions that match whole names.")
@click.option("--with-group", is_flag=True, help="Write the group in the first column, also for a single one.")
@click.pass_obj
def export(session: Session, *, names: tuple[str, ...], regex: bool, with_group: bool) -> None:
    """Write committed offsets as the CSV of Apache's --export.

    `--from-file` reads it back, here and in Apache's tools. Also as -o json or yaml. Names may be globs.
    """
    from dataclasses import replace

    from kops.core.offsets.apache_csv import write_offsets
    from kops.core.visible import visible
    from kops.operations.offsets.listing import export as rows
    from kops.operations.offsets.listing import export_table

    found = rows(session, names, regex=regex, with_group=with_group)
    if session.output_format in ("json", "yaml"):
        session.render(export_table(found), ["topic"])
    else:
        shown = [replace(row, group=row.group and visible(row.group)) for row in found] if sys.stdout.isatty() else found
        for_data(sys.stdout).write(write_offsets(shown))


@group.command("seek")
@click.argument("group_id", metavar="GROUP")
@click.argument("positions", metavar="TOPIC:PARTITIONS=POSITION...", nargs=-1, required=True)
@moving
@click.pass_obj
def seek(
    session: Session, *, group_id: str, positions: tuple[str, ...], new_group: bool, wait_empty: str | None, approval: Approval
) -> int:
    """Move partitions of a group to exact positions.

    A position is an offset (orders:0=1200), a step on (orders:0=+1), start, end, or a time (orders=@-1h).
    An offset that the log does not have is refused.

    `orders:0=skip:1` reads the log and goes behind the next record that the group would read: what compaction removed, transaction
    markers and aborted records have offsets too, and a step counts them.
    """
    from kops.operations.offsets.reset import plan_seek

    return session.carry_out(plan_seek(session, group_id, positions, new_group=new_group, wait_empty=wait_empty), approval)


for command in (reset, copy, edit, delete, history):
    group.add_command(command)
