"""What ``kops state rebuild --shadow`` does before it computes: which program, what is left of earlier shadows, and asking."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kops.cli.frame.options import Approval
from kops.cli.frame.session import Session

if TYPE_CHECKING:
    from kops.core.plan import Plan
    from kops.core.statefile import StateFile
    from kops.core.streams.capture import Capture
    from kops.operations.state.computation import ComputeOptions
    from kops.operations.state.own_code.start import ProgramRun
    from kops.operations.state.shadow_change import ShadowArguments

_STILL = "10m"
_CAPTURE_MS = 120_000


class PlanShown(Exception):
    """The plan of a shadow was shown, which is all that was asked for."""


def refuse_with_shadow(**given: Any) -> None:
    """Refuse options that a shadow has no use for.

    :param given: by the name of the option
    """
    for name, value in given.items():
        if value:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"--shadow computes up to the committed offsets, from the topics, and appends: leave out {option}")


def program_of_shadow(
    session: Session, app: str | None, words: tuple[str, ...], stores: tuple[str, ...]
) -> tuple[StateFile, ProgramRun | None]:
    """Return a program's stores as a state file has them, and the program; without a capture it is captured first.

    :param words: the command that starts it; empty: that of the capture
    """
    from kops.cli.state.shared import of_capture
    from kops.core.streams.capture_file import read_capture
    from kops.gateways.machine.agent import LAUNCH, command_text
    from kops.operations.state.own_code.stores import with_topics
    from kops.operations.streams.capture import capture_program, load_capture

    if not words and not app:
        raise click.UsageError("name the program to run: --shadow -- COMMAND..., or --app CAPTURE")
    if words and Path(words[0]).suffix in (".yaml", ".yml"):
        raise click.UsageError(f"--shadow runs a program in place of a state file: leave out {words[0]}")
    path = app or command_text(words)
    if app:
        capture = load_capture(app)
    else:
        session.progress.step(f"capturing {path}")
        capture = read_capture(capture_program(words, _CAPTURE_MS), path)
    if words:
        capture = replace(capture, command=words, folder=str(Path.cwd()))
    elif LAUNCH in capture.command:
        raise click.UsageError(f"{path} was captured with --topology-class, and not by a start command: name one, --shadow -- COMMAND...")
    capture = with_topics(session, capture)
    return of_capture(session, capture, path, stores or _fit(session, capture))


def _fit(session: Session, capture: Capture) -> tuple[str, ...]:
    """Return the stores that a shadow can rebuild; a note names the others that the program's own tasks could."""
    from kops.core.streams.program import reason_against
    from kops.core.streams.shadow import reason_against_shadow

    able = [store for store in capture.stores if not reason_against(capture, store)]
    unlike = {store.name: why for store in able if (why := reason_against_shadow(capture, store))}
    for name, why in unlike.items():
        session.note(f"note: store {name} is left as it is: {why}")
    return tuple(store.name for store in able if store.name not in unlike)


def with_shadow(
    session: Session, compute_options: ComputeOptions, application: str, approval: Approval, still_for: str | None
) -> ComputeOptions:
    """Return options by which the program runs as a shadow; what is left of others is removed first.

    :param still_for: how long it may stand still
    """
    from kops.core.durations import parse_duration
    from kops.operations.state.shadow_change import ShadowRun

    if compute_options.program is None:
        raise ValueError("a shadow without a program")
    run = ShadowRun(_carry_out(session, approval), parse_duration(still_for or _STILL))
    _take_away_left(session, application, approval)
    return replace(compute_options, program=replace(compute_options.program, shadow=run))


def _carry_out(session: Session, approval: Approval) -> Callable[[Plan[ShadowArguments]], None]:
    """Return what shows the plan of a shadow, asks for its word, and runs it.

    :raises PlanShown: for --dry-run, by what is returned
    """
    from kops.cli.frame.carry_out import asking_by, show_plan_as_data
    from kops.core.errors import ApprovalRequired
    from kops.operations.protocol.run import carry_out
    from kops.operations.state.shadow_change import SHADOW, refuse_left

    def run(plan: Plan[ShadowArguments]) -> None:
        if approval.dry_run:
            show_plan_as_data(session, plan)
            session.note("what the shadow would find is not known before it runs")
            raise PlanShown
        asks = sys.stdin.isatty() and sys.stderr.isatty()
        if not (asks or approval.yes or approval.plan_out or session.connection.protected):
            raise ApprovalRequired(
                "there is no terminal to ask on, neither for the shadow nor for what it finds",
                hint=f"add --confirm {plan.confirm} for the shadow, and --yes, or --plan-out FILE, for what it finds; nothing was changed",
            )
        own = approval._replace(confirm=tuple(each for each in approval.confirm if each in (plan.confirm, session.connection.label)))
        result, entry = carry_out(session, plan, SHADOW, approve=asking_by(session, own), journal=session.journal)
        session.note(*result.messages)
        refuse_left(result.items)
        session.note(f"{plan.arguments.shadow} has run, and is gone; journal {entry.id}")

    return run


def without_word(approval: Approval, application: str) -> Approval:
    """Return the answers for the plan of the rebuild itself."""
    from kops.operations.state.shadow_change import word_of

    return approval._replace(confirm=tuple(each for each in approval.confirm if each != word_of(application)))


def _take_away_left(session: Session, application: str, approval: Approval) -> None:
    """Show what killed commands have left of shadows of an application, and take it away if that is approved."""
    from kops.cli.frame.carry_out import asking_by
    from kops.operations.protocol.run import carry_out
    from kops.operations.state.shadow_change import SHADOW, refuse_left, unfinished_shadows

    for entry in list(unfinished_shadows(session.journal, session.kafka.cluster().cluster_id, application)):
        plan = SHADOW.resume(session, SHADOW.typed(entry.plan))
        if not plan.has_changes:
            session.journal.mark_finished(entry.id, by=entry.id)
        elif approval.dry_run:
            session.note(f"note: a shadow that was stopped has left {plan.items[0].before}; `kops journal finish {entry.id}` takes it away")
        else:
            own = asking_by(session, without_word(approval, application))
            result, _ = carry_out(session, plan, SHADOW, approve=own, journal=session.journal, finishes=entry.id)
            session.note(*result.messages)
            refuse_left(result.items)
            session.note(f"{plan.items[0].target}, which was stopped, is gone")
