"""What several verbs of ``kops state`` do before they read anything."""

from __future__ import annotations

import click

from kops.cli.frame.options import Approval
from kops.cli.frame.session import Session

wait_option = click.option("--wait-empty", metavar="DURATION", help="Wait up to this long for the application to stop, such as 60s.")


def refuse_early(session: Session, approval: Approval) -> None:
    """Refuse a read-only context before stores are computed, unless the plan is only shown or saved."""
    from kops.operations.protocol.mutation import refuse_read_only

    if not approval.dry_run and not approval.plan_out:
        refuse_read_only(session.connection)


def wait_until_stopped(session: Session, application: str, duration: str) -> None:
    from kops.core.durations import parse_duration
    from kops.operations.groups.matching import wait_until_empty

    wait_until_empty(session, application, parse_duration(duration))
