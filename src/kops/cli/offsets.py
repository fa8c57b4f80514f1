"""``kops offsets``: show, seek, reset, export."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from kops.cli.lazy import Group
from kops.cli.options import Approval, mutation
from kops.cli.session import Session

F = TypeVar("F", bound=Callable[..., Any])


@click.group(cls=Group)
def group() -> None:
    """Show and move committed offsets: show, seek, reset, export.

    Partitions are named like orders, orders:0 or orders:0,3-5; times like @-1h, @2026-11-20T14:05 (UTC) or @1700000000000.
    """


def _named(command: F) -> F:
    """Take the group as an argument, or as ``--group`` as Apache's tools do."""
    import functools

    @click.argument("name", metavar="GROUP", required=False)
    @click.option("--group", "group_option", metavar="GROUP", help="The group, as Apache's tools take it.")
    @functools.wraps(command)
    def wrapped(*args: Any, name: str | None, group_option: str | None, **kwargs: Any) -> Any:
        if (name is None) == (group_option is None):
            raise click.UsageError("name one GROUP, as an argument or with --group", click.get_current_context())
        return command(*args, group_id=name if name is not None else group_option, **kwargs)

    return wrapped  # type: ignore[return-value]


def _moving(command: F) -> F:
    """Add what every command that moves a group takes."""
    new_group = click.option("--new-group", is_flag=True, help="Allow a group that does not exist yet.")
    wait = click.option("--wait-empty", metavar="DURATION", help="Wait so long for the group to have no members, such as 60s.")
    return new_group(wait(mutation(command)))


@group.command("show")
@_named
@click.option("--topic", "topics", metavar="TOPIC[:PARTITIONS]", multiple=True, help="Only these; repeatable.")
@click.pass_obj
def show(session: Session, *, group_id: str, topics: tuple[str, ...]) -> None:
    """Show what a group has committed, with the metadata of each offset."""
    from kops.operations.offsets import show as rows

    found = rows(session, group_id, topics)
    columns = ["topic", "partition", "offset", "leader_epoch", "stream_time", "metadata"]
    if session.output_format == "table":
        columns = columns[:3] + [name for name in columns[3:] if any(row[name] not in (None, "") for row in found)]
    session.render(found, columns)
    if not found:
        session.note(f"group {group_id} has no committed offsets{' there' if topics else ''}")


@group.command("export")
@click.argument("names", metavar="GROUP...", nargs=-1, required=True)
@click.option("--regex", is_flag=True, help="The names are regular expressions on the whole name.")
@click.option("--with-group", is_flag=True, help="Write the group in the first column, also for a single one.")
@click.pass_obj
def export(session: Session, *, names: tuple[str, ...], regex: bool, with_group: bool) -> None:
    """Write committed offsets as the CSV of Apache's --export.

    `--from-file` reads it back, here and in Apache's tools. Also as -o json or yaml. Names may be globs.
    """
    from kops.core.apache_csv import write_offsets
    from kops.operations.offsets import export as rows
    from kops.operations.offsets import export_table

    found = rows(session, names, regex=regex, with_group=with_group)
    if session.output_format in ("json", "yaml"):
        session.render(export_table(found), ["topic"])
    else:
        sys.stdout.write(write_offsets(found))


@group.command("seek")
@click.argument("group_id", metavar="GROUP")
@click.argument("positions", metavar="TOPIC:PARTITIONS=POSITION...", nargs=-1, required=True)
@_moving
@click.pass_obj
def seek(
    session: Session, *, group_id: str, positions: tuple[str, ...], new_group: bool, wait_empty: str | None, approval: Approval
) -> int:
    """Move partitions of a group to exact positions.

    A position is an offset (orders:0=1200), a step on (orders:0=+1 skips one), start, end, or a time (orders=@-1h).
    An offset that the log does not have is refused.
    """
    from kops.operations.offsets_reset import plan_seek

    return session.carry_out(plan_seek(session, group_id, positions, new_group=new_group, wait_empty=wait_empty), approval)


@group.command("reset")
@_named
@click.option("--topic", "topics", metavar="TOPIC[:PARTITIONS]", multiple=True, help="What to move: orders or orders:0,3-5; repeatable.")
@click.option("--all-topics", is_flag=True, help="Move every partition that the group has committed.")
@click.option("--to", metavar="POSITION", help="start, end, current, an offset, or a time such as @-1h.")
@click.option("--to-earliest", is_flag=True, help="To the log start.")
@click.option("--to-latest", is_flag=True, help="To the log end.")
@click.option("--to-current", is_flag=True, help="Stay; partitions without a commit go to the log end.")
@click.option("--to-offset", type=int, metavar="OFFSET", help="To one offset, or the nearest that the log has.")
@click.option("--to-datetime", metavar="TIME", help="To the first record at or after YYYY-MM-DDTHH:mm:SS.sss, UTC unless it has a zone.")
@click.option("--by-duration", metavar="DURATION", help="To the first record of the last PnDTnHnMnS, or 6h.")
@click.option("--shift-by", type=int, metavar="N", help="So many offsets on, or back when negative.")
@click.option("--from-file", type=click.Path(dir_okay=False, path_type=Path), help="To the offsets of a CSV that an export wrote.")
@click.option("--execute", is_flag=True, help="As in Apache's tools. The plan is shown and approved all the same.")
@_moving
@click.pass_obj
def reset(
    session: Session,
    /,
    *,
    group_id: str,
    topics: tuple[str, ...],
    all_topics: bool,
    execute: bool,
    new_group: bool,
    wait_empty: str | None,
    approval: Approval,
    **choice: Any,
) -> int:
    """Move a group, with the flags of Apache's tools.

    Offsets that the log does not have become the nearest that it has; a time after the last record is the log end.
    """
    from kops.operations.offsets_reset import plan_reset
    from kops.operations.offsets_strategies import Choice

    if execute and approval.dry_run:
        raise click.UsageError("--execute and --dry-run exclude each other", click.get_current_context())
    plan = plan_reset(session, group_id, Choice(**choice), topics=topics, all_topics=all_topics, new_group=new_group, wait_empty=wait_empty)
    return session.carry_out(plan, approval)
