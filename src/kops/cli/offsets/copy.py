"""``kops offsets copy``: from group to group, and from topic to topic."""

from __future__ import annotations

import click

from kops.cli.frame.lazy import Command
from kops.cli.frame.options import Approval
from kops.cli.frame.session import Session
from kops.cli.offsets.options import moving


@click.command("copy", cls=Command)
@click.argument("source", metavar="GROUP")
@click.argument("target", metavar="[TO_GROUP]", required=False)
@click.option("--topic", "topics", metavar="TOPIC[:PARTITIONS]", multiple=True, help="Only these, or 'orders-*'; repeatable.")
@click.option("--rename", "renames", metavar="TOPIC=OTHER", multiple=True, help="Copy to another topic; repeatable.")
@click.option("--by", type=click.Choice(["offset", "time"]), default="offset", show_default=True, help="Same offsets, or times.")
@moving
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
    """Put a group where another group stands.

    `kops offsets copy billing billing-v2 --new-group` makes a copy. With --rename, and TO_GROUP or without it, offsets of a topic go to
    another one, such as that of a mirror or of a recreated topic; --by time finds the first record that is as old as the one that would be
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
