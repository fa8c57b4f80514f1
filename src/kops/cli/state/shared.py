"""What several verbs of ``kops state`` do before they read anything, and how they end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kops.cli.frame.options import Approval
from kops.cli.frame.session import Session

if TYPE_CHECKING:
    from kops.core.statefile import StateFile
    from kops.operations.state.own_code import ProgramRun

wait_option = click.option("--wait-empty", metavar="DURATION", help="Wait up to this long for the application to stop, such as 60s.")

PROGRAM_DECIDES = "with --app the program itself decides what becomes of records that it cannot read: leave out --on-error"


def refuse_early(session: Session, approval: Approval) -> None:
    """Refuse a read-only context before stores are computed, unless the plan is only shown or saved."""
    from kops.operations.protocol.mutation import refuse_read_only

    if not approval.dry_run and not approval.plan_out:
        refuse_read_only(session.connection)


def wait_until_stopped(session: Session, application: str, duration: str) -> None:
    from kops.core.durations import parse_duration
    from kops.operations.groups.matching import wait_until_empty

    wait_until_empty(session, application, parse_duration(duration))


def of_program(session: Session, path: str, stores: tuple[str, ...], *, moves: str = "") -> tuple[StateFile, ProgramRun]:
    """Return a captured program's stores as a state file has them, and what runs it.

    :param stores: all that can be rebuilt when empty; a note names the others
    :param moves: the option that moves the application, or makes another one; empty when none does
    """
    from kops.operations.state.own_code import ProgramRun, program_state_file, refuse_moving, with_topics
    from kops.operations.streams.capture import load_capture

    capture = with_topics(session, load_capture(path))
    state_file, unfit = program_state_file(capture, path, stores)
    if moves:
        refuse_moving(state_file, () if stores else unfit, moves)
    for sentence in unfit:
        session.note(f"note: {sentence}")
    return state_file, ProgramRun(capture)


def exit_code(status: str) -> int:
    """Return how a comparison ends: with 0 if all is equal, 1 if something differs, 7 if that is unknown."""
    from kops.core.errors import ExitCode

    return {"equal": ExitCode.DONE, "different": ExitCode.FAILED, "unclear": ExitCode.UNCLEAR}[status]
