"""``kops state restore``."""

from __future__ import annotations

from pathlib import Path

import click

from kops.cli.frame import options
from kops.cli.frame.lazy import Command
from kops.cli.frame.options import Approval, spark_option
from kops.cli.frame.session import Session


@click.command("restore", cls=Command)
@click.argument("path", metavar="PATH")
@click.option("--application", metavar="ID", default="", help="Into this application.id. [default: that of the snapshot]")
@click.option("--store", "stores", metavar="NAME", multiple=True, help="This store only, without offsets; repeatable. [default: all]")
@click.option("--no-offsets", is_flag=True, help="Leave the committed offsets as they are.")
@click.option("--wait-empty", metavar="DURATION", help="Wait up to this long for the application to stop, such as 60s.")
@spark_option()
@options.mutation
@click.pass_obj
def restore(
    session: Session,
    *,
    path: str,
    application: str,
    stores: tuple[str, ...],
    no_offsets: bool,
    wait_empty: str | None,
    master: str | None,
    approval: Approval,
) -> int:
    """Give an application the state of a snapshot: changelogs and committed offsets.

    Missing changelogs are created with their settings; to existing ones only differences are appended. The application must be
    stopped. It may be on another cluster (-c), or under another application.id.
    """
    from kops.core.durations import parse_duration
    from kops.operations.groups.matching import wait_until_empty
    from kops.operations.protocol.mutation import refuse_read_only
    from kops.operations.state.restore import plan_restore
    from kops.operations.state.snapshot_manifest import read_manifest

    if not approval.dry_run and not approval.plan_out:
        refuse_read_only(session.connection)
    if wait_empty:
        wait_until_empty(session, application or read_manifest(Path(path)).application, parse_duration(wait_empty))
    plan = plan_restore(session, path, application=application, stores=stores, offsets=not no_offsets, master=master)
    return session.carry_out(plan, approval)
