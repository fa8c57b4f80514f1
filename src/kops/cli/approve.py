"""Asking a person: on stderr, on a terminal, or not at all."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable

import click

from kops.cli.options import Approval
from kops.config.connection import Connection
from kops.core.errors import ApprovalRequired
from kops.core.plan import Plan, Severity


def name_to_type(plan: Plan, connection: Connection) -> str:
    """Return what has to be typed to approve; empty when ``y`` is enough."""
    if plan.severity is Severity.SEVERE:
        return plan.confirm
    return connection.label if connection.protected else ""


def approve(plan: Plan, approval: Approval, connection: Connection, show: Callable[[Plan], None]) -> None:
    """Get a yes, or raise.

    :param show: shows the plan on stderr
    :raises ApprovalRequired: nobody is there to ask, or the answer was no; nothing has been changed
    """
    name = name_to_type(plan, connection)
    show(plan)
    if name and approval.confirm is not None:
        if approval.confirm != name:
            raise ApprovalRequired(
                f"--confirm {shlex.quote(approval.confirm)} is not what this changes",
                hint=f"it needs --confirm {shlex.quote(name)}; nothing was changed",
            )
        return
    if not name and approval.yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        flag = f"--confirm {shlex.quote(name)}" if name else "--yes"
        raise ApprovalRequired(
            "there is no terminal to ask on", hint=f"look at the plan with --dry-run, then add {flag}; nothing was changed"
        )
    if name:
        answer = click.prompt(f"Type {name} to go on", err=True, default="", show_default=False)
        agreed = answer == name
    else:
        agreed = click.confirm("Do it?", err=True, default=False)
    if not agreed:
        raise ApprovalRequired("not approved", hint="nothing was changed")
