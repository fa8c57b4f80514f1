"""What several verbs of ``kops state`` do before they read anything, and how they end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kops.cli.frame.options import Approval
from kops.cli.frame.session import Session

if TYPE_CHECKING:
    from kops.core.statefile import StateFile
    from kops.core.streams.capture import Capture
    from kops.operations.state.recipe import Recipe

stores_option = click.option("--store", "stores", metavar="NAME", multiple=True, help="This store only; repeatable. [default: all]")

no_network_option = click.option(
    "--no-network", is_flag=True, help="Run the program without a network (Linux); its schema registry is read through kops."
)
wait_option = click.option("--wait-empty", metavar="DURATION", help="Wait up to this long for the application to stop, such as 60s.")


class Source(NamedTuple):
    """Where the stores of an application are read from.

    :param captured: whether it is a program of ``kops streams capture``, and not a state file
    """

    path: str
    captured: bool


def with_source(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument SOURCE, whose kind its content decides, and its older form --app; the command gets ``source``."""

    @click.argument("file", metavar="[SOURCE]", type=click.Path(), required=False)
    @click.option("--app", metavar="CAPTURE", type=click.Path(), help="The same as SOURCE.")
    @wraps(command)
    def wrapped(*, file: str | None, app: str | None, **rest: Any) -> Any:
        if app is not None and file is not None:
            raise click.UsageError("--app takes the place of SOURCE: leave out one of them")
        return command(source=source_of(app or file, captured=app is not None), **rest)

    return wrapped


def source_of(path: str | None, *, captured: bool = False) -> Source:
    """Return a source.

    :param captured: it is named as a capture, whatever it holds
    """
    from kops.operations.streams.capture import is_capture

    if path is None:
        raise click.MissingParameter(
            "Name a state file, or what `kops streams capture` wrote", param_type="argument", param_hint="'SOURCE'"
        )
    return Source(path, captured or is_capture(path))


def refuse_early(session: Session, approval: Approval, names: Sequence[str] = ()) -> None:
    """Refuse a read-only context, or a wrong ``--confirm``, before stores are computed, unless the plan is only shown or saved.

    :param names: all of which the plan may ask for one; none: it is not known
    """
    from kops.cli.frame.approve import refuse_other_names
    from kops.operations.protocol.mutation import refuse_read_only

    if not approval.dry_run and not approval.plan_out:
        refuse_read_only(session.connection)
        if names:
            refuse_other_names(approval, names, session.connection)


def wait_until_stopped(session: Session, application: str, duration: str) -> None:
    from kops.core.durations import parse_duration
    from kops.operations.groups.matching import wait_until_empty

    wait_until_empty(session, application, parse_duration(duration))


def chosen_stores(
    session: Session,
    source: Source,
    stores: tuple[str, ...],
    *,
    moves: str = "",
    no_network: bool = False,
    skip_undecodable: bool = False,
    all_disturbed: bool = False,
    reused: bool = False,
    runs: bool = True,
) -> tuple[StateFile, Recipe]:
    """Return the stores of a state file or of a captured program, and how they are computed. What follows does not know which it was.

    :param stores: all when empty; of a program all that can be rebuilt, and a note names the others
    :param moves: the option that moves the application, or makes another one; empty when none does
    :param no_network: the program gets none
    :param skip_undecodable: skip records that are not in the formats of a state file
    :param all_disturbed: a program's second run, which is disturbed, is over all of its input
    :param reused: of a program those are among them whose changelog is a topic that it reads
    :param runs: the program is run, and its changelogs are not only read
    """
    if not source.captured:
        from kops.operations.engine.state_files import read_state_file
        from kops.operations.state.file_recipe import FileRecipe

        if no_network:
            raise click.UsageError("--no-network is for a program: with a state file none is run")
        if all_disturbed:
            raise click.UsageError("--disturb is for a program: with a state file none is run")
        return read_state_file(source.path, stores), FileRecipe(skip_undecodable)
    from kops.operations.state.own_code.stores import refuse_moving

    if skip_undecodable:
        raise click.UsageError("a program itself decides what becomes of records that it cannot read: leave out --on-error")
    capture, state_file, unfit = _captured(session, source, stores, reused=reused, runs=runs)
    if moves:
        refuse_moving(state_file, () if stores else unfit, moves)
    for sentence in unfit:
        session.note(f"note: {sentence}")
    return state_file, _by_program(session, capture, no_network=no_network, all_disturbed=all_disturbed, runs=runs)


def _captured(
    session: Session, source: Source, stores: tuple[str, ...], *, reused: bool = False, runs: bool = True
) -> tuple[Capture, StateFile, list[str]]:
    """Return a captured program, its stores, and why others of them are left out, one sentence each."""
    from kops.operations.state.own_code.stores import program_state_file, refuse_older_library, with_topics
    from kops.operations.streams.capture import load_capture

    capture = load_capture(source.path)
    if runs:
        refuse_older_library(capture, source.path)
    capture = with_topics(session, capture)
    return capture, *program_state_file(capture, source.path, stores, reused=reused)


def _by_program(session: Session, capture: Capture, *, no_network: bool, all_disturbed: bool = False, runs: bool = True) -> Recipe:
    """Return how a program's stores are computed; say where it has other surroundings than when it was captured, before it is started."""
    from kops.operations.state.own_code.program_recipe import ProgramRecipe
    from kops.operations.state.own_code.registries import program_run

    program = program_run(session, capture, no_network=no_network)
    for each in program.differences if runs else ():
        session.note(f"note: {each.text}")
    return ProgramRecipe(replace(program, all_disturbed=all_disturbed))


def movable_stores(
    session: Session, source: Source, stores: tuple[str, ...], *, partitions: int | None, no_network: bool
) -> tuple[StateFile, Recipe]:
    """Return what is to move to another number of partitions, as ``chosen_stores`` does; of a program it is all of its stores.

    :param partitions: None: nothing moves
    """
    if not source.captured:
        return chosen_stores(session, source, stores, no_network=no_network)
    from kops.operations.state.own_code.repartition import refuse_unmovable

    if stores:
        raise click.UsageError("all stores of a program move: leave out --store")
    capture, state_file, unfit = _captured(session, source, ())
    if partitions is not None:
        refuse_unmovable(capture, unfit, partitions)
    return state_file, _by_program(session, capture, no_network=no_network)
