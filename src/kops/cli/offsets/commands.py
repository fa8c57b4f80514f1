"""``kops offsets``: every verb but reset, which has a file of its own."""

from __future__ import annotations

import sys

import click

from kops.cli.frame.lazy import Group
from kops.cli.frame.options import Approval, mutation, regex_option
from kops.cli.frame.session import Session
from kops.cli.offsets.reset import group_argument, move_options, reset
from kops.core.errors import KopsError, UsageProblem
from kops.output.guard import for_data


@click.group(cls=Group)
def group() -> None:
    """Show and move committed offsets, and see where they were.

    Partitions are named like orders, orders:0 or orders:0,3-5; times like @-1h, @2026-11-20T14:05 (UTC) or @1700000000000.
    """


group.add_command(reset)


@group.command("history")
@group_argument
@click.option("--topic", "topics", metavar="TOPIC[:PARTITIONS]", multiple=True, help="Only these; repeatable.")
@click.option("--at", metavar="TIME", help="Show each partition's offset at a time such as @-1h or @2026-11-20T14:05.")
@click.option("--since", metavar="TIME", help="Only commits from this time on: @-1h, 14:45 (local time).")
@click.option("--jumps", is_flag=True, help="Only commits made by tools, such as resets, and deletions.")
@click.pass_obj
def history(session: Session, *, group_id: str, topics: tuple[str, ...], at: str | None, since: str | None, jumps: bool) -> None:
    """Show the past commits of a group.

    Reads every commit that is left in __consumer_offsets. That topic is compacted: how far back it goes depends on the brokers' log
    cleaner. `kops offsets reset GROUP --all-topics --to-history TIME` goes back to where the group stood.
    """
    from kops.operations.offsets.history import history_rows, history_time

    moment = None if at is None else history_time(at, session.now())
    if moment is not None and (since is not None or jumps):
        raise UsageProblem("--at shows where the group stood at one time", hint="leave --since and --jumps out, or --at")
    begin = None if since is None else history_time(since, session.now())
    rows, notes = history_rows(session, group_id, topics, moment, since=begin, only_jumps=jumps)
    if moment is None:
        columns = ["time", "topic", "partition", "event", "offset", "moved", "leader_epoch", "metadata"]
    else:
        columns = ["topic", "partition", "offset", "committed", "note"]
    if session.output_format == "table":
        columns = columns[:6] + [name for name in columns[6:] if any(row[name] not in (None, "") for row in rows)]
    session.render(rows, columns)
    session.note(*notes)


@group.command("delete")
@group_argument
@click.option("--topic", "topics", metavar="TOPIC[:PARTITIONS]", multiple=True, help="What to delete: orders, orders:0,3-5 or 'old-*'.")
@click.option("--regex", is_flag=True, help="Topics are regular expressions that match whole names.")
@mutation
@click.pass_obj
def delete(session: Session, *, group_id: str, topics: tuple[str, ...], regex: bool, approval: Approval) -> int:
    """Delete a group's offsets in topics that it no longer reads.

    The group may have members, as long as none reads the topic. `kops undo` restores the offsets.
    """
    from kops.operations.offsets.delete import plan_delete

    return session.carry_out(plan_delete(session, group_id, topics, regex=regex), approval)


@group.command("edit")
@group_argument
@click.option("--topic", "topics", metavar="TOPIC[:PARTITIONS]", multiple=True, help="Only these; repeatable.")
@click.option("--wait-empty", metavar="DURATION", help="Wait up to this long for the group to become empty, such as 60s.")
@mutation
@click.pass_obj
def edit(session: Session, *, group_id: str, topics: tuple[str, ...], wait_empty: str | None, approval: Approval) -> int:
    """Change a group's offsets in your editor: $VISUAL, or $EDITOR.

    Your changes become a plan: shown, approved, read back. An unchanged file does nothing; a file with an error is refused, naming the
    line.
    """
    from kops.operations.offsets.edit import plan_edit, sheet_of

    sheet = sheet_of(session, group_id, topics, may_be_active=wait_empty is not None)
    edited = click.edit(sheet.text, extension=".yaml", require_save=False)
    if edited is None or edited == sheet.text:
        session.note("nothing to do: the file was not changed")
        return 0
    return session.carry_out(plan_edit(session, sheet, edited, wait_empty=wait_empty), approval)


@group.command("copy")
@click.argument("source", metavar="GROUP")
@click.argument("target", metavar="[TO_GROUP]", required=False)
@click.option("--topic", "topics", metavar="TOPIC[:PARTITIONS]", multiple=True, help="Only these, or 'orders-*'; repeatable.")
@click.option("--rename", "renames", metavar="TOPIC=OTHER", multiple=True, help="Copy to another topic; repeatable.")
@click.option(
    "--by", type=click.Choice(["offset", "time"]), default="offset", show_default=True, help="Copy the offsets, or look them up by time."
)
@move_options
@click.pass_obj
def copy(
    session: Session,
    *,
    source: str,
    target: str | None,
    topics: tuple[str, ...],
    renames: tuple[str, ...],
    by: str,
    new_group: bool,
    wait_empty: str | None,
    approval: Approval,
) -> int:
    """Copy committed offsets to another group or topic.

    `kops offsets copy billing billing-v2 --new-group` copies them to a new group. --rename copies them to another topic, such as a mirror's
    or a recreated one, with or without TO_GROUP. --by time looks up the first record at or after the time of the record that GROUP would
    read next.
    """
    from kops.operations.offsets.copy import parse_renames, plan_copy

    plan = plan_copy(
        session,
        source,
        source if target is None else target,
        topics=topics,
        renames=parse_renames(renames),
        by=by,
        new_group=new_group,
        wait_empty=wait_empty,
    )
    return session.carry_out(plan, approval)


@group.command("show")
@group_argument
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
        session.note(f"group {group_id} shows no committed offsets{' there' if topics else ''}")


@group.command("export")
@click.argument("names", metavar="GROUP...", nargs=-1, required=True)
@regex_option
@click.option("--with-group", is_flag=True, help="Write the group in the first column, even for a single group.")
@click.pass_obj
def export(session: Session, *, names: tuple[str, ...], regex: bool, with_group: bool) -> int:
    """Write committed offsets as the CSV of Apache's --export.

    `--from-file` reads it back, here and in Apache's tools. Also as -o json or yaml. Names may be globs.
    """
    from dataclasses import replace

    from kops.core.offsets.apache_csv import write_offsets
    from kops.core.visible import visible
    from kops.operations.offsets.listing import export as rows
    from kops.operations.offsets.listing import export_table

    problems: dict[str, KopsError] = {}
    found = rows(session, names, problems, regex=regex, with_group=with_group)
    if session.output_format in ("json", "yaml"):
        session.render(export_table(found), ["topic"])
    else:
        shown = [replace(row, group=row.group and visible(row.group)) for row in found] if sys.stdout.isatty() else found
        for_data(sys.stdout).write(write_offsets(shown))
    return session.missing(problems)


@group.command("seek")
@click.argument("group_id", metavar="GROUP")
@click.argument("positions", metavar="TOPIC:PARTITIONS=POSITION...", nargs=-1, required=True)
@move_options
@click.pass_obj
def seek(
    session: Session, *, group_id: str, positions: tuple[str, ...], new_group: bool, wait_empty: str | None, approval: Approval
) -> int:
    """Move partitions of a group to exact positions.

    A position is an offset (orders:0=1200), a step forward (orders:0=+1), start, end, or a time (orders=@-1h).
    An offset that the log does not have is refused.

    `orders:0=skip:1` reads the log and moves past the next record that the group would read. A step such as +1 counts offsets; compacted
    records, transaction markers and aborted records have offsets too.
    """
    from kops.operations.offsets.reset import plan_seek

    return session.carry_out(plan_seek(session, group_id, positions, new_group=new_group, wait_empty=wait_empty), approval)
