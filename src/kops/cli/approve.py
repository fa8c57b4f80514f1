"""Asking a person: on stderr, on a terminal, or not at all."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from typing import NoReturn

from kops.cli.options import Approval
from kops.config.connection import Connection
from kops.core.errors import ApprovalRequired
from kops.core.plan import Plan, Severity


def name_to_type(plan: Plan, connection: Connection) -> str:
    """Return what has to be typed to approve; empty when ``y`` is enough."""
    if plan.severity is Severity.SEVERE:
        return plan.confirm
    return connection.label if connection.protected else ""


def approve(plan: Plan, approval: Approval, connection: Connection, show: Callable[[Plan, bool], None]) -> None:
    """Get a yes, or raise.

    :param show: shows the plan on stderr; told whether a question follows, which makes no sense without the plan
    :raises ApprovalRequired: nobody is there to ask, or the answer was no; nothing has been changed
    """
    name = name_to_type(plan, connection)
    agreed = approval.confirm == name if name else approval.yes
    asking = not agreed and approval.confirm in (None, "") and sys.stdin.isatty() and sys.stderr.isatty()
    show(plan, asking)
    if asking:
        agreed = _answer(f"Type {name} to go on: ") == name if name else _answer("Do it? [y/N] ").lower() in ("y", "yes")
        if not agreed:
            raise ApprovalRequired("not approved", hint="nothing was changed")
    elif not agreed:
        _refuse(name, approval.confirm)


def _refuse(name: str, confirmed: str | None) -> NoReturn:
    flag = f"--confirm {shlex.quote(name)}" if name else "--yes"
    if name and confirmed is not None:
        raise ApprovalRequired(
            f"--confirm {shlex.quote(confirmed)} is not what this changes", hint=f"it needs {flag}; nothing was changed", confirm=name
        )
    details = {"confirm": name} if name else {}
    hint = f"look at the plan with --dry-run, then add {flag}; nothing was changed"
    raise ApprovalRequired("there is no terminal to ask on", hint=hint, **details)


def _answer(question: str) -> str:
    """Ask on stderr; the end of the input is no answer, Ctrl-C ends kops."""
    sys.stderr.write(question)
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line.endswith("\n"):
        sys.stderr.write("\n")
    return line.strip()
