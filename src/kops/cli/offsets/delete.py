"""``kops offsets delete``: of a group's offsets for a topic."""

from __future__ import annotations

import click

from kops.cli.frame.lazy import Command
from kops.cli.frame.options import Approval, mutation
from kops.cli.frame.session import Session
from kops.cli.offsets.options import named


@click.command("delete", cls=Command)
@named
@click.option("--topic", "topics", metavar="TOPIC[:PARTITIONS]", multiple=True, help="What to delete: orders, orders:0,3-5 or 'old-*'.")
@click.option("--regex", is_flag=True, help="Topics are regular expressions that match whole names.")
@mutation
@click.pass_obj
def delete(session: Session, *, group_id: str, topics: tuple[str, ...], regex: bool, approval: Approval) -> int:
    """Delete offsets of topics that a group left.

    The group may have members, as long as none reads the topic. `kops undo` puts the offsets back.
    """
    from kops.operations.offsets.delete import plan_delete

    return session.carry_out(plan_delete(session, group_id, topics, regex=regex), approval)
