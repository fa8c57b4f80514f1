"""Asking a person: on stderr, on a terminal, or not at all."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from kops.cli.frame.options import Approval
from kops.config.connection import Connection
from kops.core.errors import ApprovalRequired
from kops.core.plan import Plan, Severity
from kops.core.visible import visible


def names_to_type(plan: Plan, connection: Connection) -> list[str]:
    """Return the names to be typed to approve: of what a severe plan changes, and of the context if it is protected.

    None of them when ``y`` is enough. A topic that is named like its protected context has to be named twice.
    """
    own = [plan.confirm] if plan.severity is Severity.SEVERE and plan.confirm else []
    return own + ([connection.label] if connection.protected else [])


def refuse_other_names(approval: Approval, names: Sequence[str], connection: Connection) -> None:
    """Refuse what ``approve`` would refuse whatever the plan is, before one is computed that takes long.

    :param names: the plan asks for one of them
    :raises ApprovalRequired: a ``--confirm`` matches nothing that could be asked for, and the own name of the plan was not given either
    """
    missing, wrong = _compared([*names, *([connection.label] if connection.protected else [])], approval.confirm)
    if wrong and set(names) <= set(missing):
        raise _mismatch(wrong, f"may need {' or '.join(f'--confirm {shlex.quote(name)}' for name in names)}")


def approve(plan: Plan, approval: Approval, connection: Connection, show: Callable[[Plan, bool], None]) -> None:
    """Get a yes, or raise.

    :param show: shows the plan on stderr; its second argument: a question follows, which makes no sense without the plan
    :raises ApprovalRequired: there is no terminal to ask on, or the answer was no; nothing was changed
    """
    names = names_to_type(plan, connection)
    missing, wrong = _compared(names, approval.confirm)
    agreed = not missing if names else approval.yes
    asking = not agreed and not wrong and sys.stdin.isatty() and sys.stderr.isatty()
    show(plan, asking)
    if asking:
        if not (all(_typed(name) for name in missing) if names else _answer("Do it? [y/N] ").lower() in ("y", "yes")):
            raise ApprovalRequired("not approved", hint="nothing was changed")
    elif not agreed:
        _refuse(names, missing, wrong)


def _compared(names: Sequence[str], given: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the names that were not given, and what was given that is not among them; a name may be given as it is shown."""
    missing, wrong = list(names), []
    for each in filter(None, given):
        found = next((name for name in missing if each in (name, visible(name))), None)
        if found is None:
            wrong.append(each)
        else:
            missing.remove(found)
    return missing, wrong if names else []


def _refuse(names: Sequence[str], missing: Sequence[str], wrong: Sequence[str]) -> NoReturn:
    flags = " ".join(f"--confirm {shlex.quote(name)}" for name in missing) or "--yes"
    details = {"confirm": list(missing)} if missing else {}
    if wrong:
        raise _mismatch(wrong, f"needs {flags}", **details)
    if len(missing) < len(names):
        message = f"the context {missing[0]} is protected" if missing[0] == names[-1] else "the name of what this changes is missing"
        raise ApprovalRequired(message, hint=f"add {flags}; nothing was changed", **details)
    hint = f"look at the plan with --dry-run, then add {flags}; nothing was changed"
    raise ApprovalRequired("there is no terminal to ask on", hint=hint, **details)


def _mismatch(wrong: Sequence[str], needs: str, **details: list[str]) -> ApprovalRequired:
    message = f"--confirm {shlex.quote(wrong[0])} does not match what this changes"
    return ApprovalRequired(message, hint=f"it {needs}; nothing was changed", **details)


def _typed(name: str) -> bool:
    return _answer(f"Type {visible(name)} to continue: ") in (name, visible(name))


def _answer(question: str) -> str:
    """Ask on stderr; the end of the input is not an answer, Ctrl-C ends kops."""
    sys.stderr.write(question)
    sys.stderr.flush()
    line = sys.stdin.readline()
    if not line.endswith("\n"):
        sys.stderr.write("\n")
    return line.strip()
