"""``kops share-groups``: lag, reset, delete-offsets, delete."""

from __future__ import annotations

import click

from kops.cli.frame.lazy import Group
from kops.cli.frame.options import Approval, mutation
from kops.cli.frame.session import Session
from kops.core.errors import KopsError
from kops.output.table import Column

COLUMNS = (
    *("group", "topic", Column("partition", "P"), Column("start_offset", "START"), Column("log_end_offset", "LOG END"), "lag"),
    *("processed", "note"),
)
group_argument = click.argument("name", metavar="GROUP")
topic_option = click.option("--topic", "topics", metavar="TOPIC[:PARTITIONS]", multiple=True, help="Only these; repeatable.")


@click.group(cls=Group)
def group() -> None:
    """Share groups: lag, start offsets, delete.

    `kops groups list`, `describe`, `config` and `remove-members` are for share groups too.
    """


@group.command("lag")
@click.argument("patterns", metavar="[GROUP]...", nargs=-1)
@click.pass_obj
def lag(session: Session, /, *, patterns: tuple[str, ...]) -> int:
    """Show the start offsets of share groups, what is not processed (LAG), and what is PROCESSED after the start offset."""
    from kops.operations.share_groups.look import lag_rows

    problems: dict[str, KopsError] = {}
    session.render(lag_rows(session, patterns, problems), COLUMNS)
    return session.missing(problems)


@group.command("reset")
@group_argument
@topic_option
@click.option("--to", metavar="POSITION", required=True, help="start, end, an offset, or a time such as @-1h.")
@mutation
@click.pass_obj
def reset(session: Session, /, *, name: str, topics: tuple[str, ...], to: str, approval: Approval) -> int:
    """Move the start offsets of a share group that has no members: in all its topics, or those that are named."""
    from kops.operations.share_groups.change import plan_reset

    return session.carry_out(plan_reset(session, name, topics, to), approval)


@group.command("delete-offsets")
@group_argument
@click.option("--topic", "topics", metavar="TOPIC", multiple=True, required=True, help="In this topic; repeatable.")
@mutation
@click.pass_obj
def delete_offsets(session: Session, /, *, name: str, topics: tuple[str, ...], approval: Approval) -> int:
    """Delete the start offsets of a share group in topics that it no longer reads. Undo sets them again."""
    from kops.operations.share_groups.change import plan_forget

    return session.carry_out(plan_forget(session, name, topics), approval)


@group.command("delete")
@group_argument
@mutation
@click.pass_obj
def delete(session: Session, /, *, name: str, approval: Approval) -> int:
    """Delete a share group that has no members. Undo creates it again with its start offsets."""
    from kops.operations.share_groups.change import plan_delete

    return session.carry_out(plan_delete(session, name), approval)
