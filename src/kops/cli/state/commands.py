"""``kops state``: the verbs that compute; the others are in files of their own."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from kops.cli.frame import options
from kops.cli.frame.lazy import Group
from kops.cli.frame.options import Approval, spark_option
from kops.cli.frame.session import Session
from kops.cli.state.init import init
from kops.cli.state.query import query
from kops.cli.state.repartition import repartition
from kops.cli.state.shared import (
    PROGRAM_DECIDES,
    Source,
    chosen_stores,
    exit_code,
    no_network_option,
    refuse_early,
    wait_option,
    wait_until_stopped,
    with_source,
)
from kops.cli.state.snapshot import restore, snapshot

VERIFY_COLUMNS = ("store", "status", "keys", "missing", "different", "unexpected", "exactness")

EPILOG = """\b
A state file says how each store comes from its topic:
  application: prices-app
  streams: {guarantee: at_least_once}
  stores:
    totals:
      from: {topic: prices-in, key: string,
             value: {format: json, schema: "item string, price double"}}
      where: value.price is not null
      key_by: value.item
      aggregate: {sum: value.price, as: double}
"""


@click.group("state", cls=Group, epilog=EPILOG)
def group() -> None:
    """Rebuild, verify, ask, keep and move a Kafka Streams application's state.

    The stores are computed again from their topics, up to the application's committed offsets, and compared with their changelogs.
    SOURCE is a state file, which says how, or what `kops streams capture` wrote of the program, which then computes them.
    """


def computing_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument and the options that every verb has; the command gets the state file and ``how``."""

    @with_source
    @click.option("--store", "stores", metavar="NAME", multiple=True, help="This store only; repeatable. [default: all]")
    @click.option("--at", metavar="POSITION", default="committed", show_default=True, help="Up to where the input counts: end, or @TIME.")
    @click.option(
        "--from-archive", "archives", metavar="PATH", multiple=True, help="Read before its topic, see `kops replay archive`; repeatable."
    )
    @click.option(
        "--damaged", metavar="STORE[:PARTITIONS]", multiple=True, help="Its keys prove nothing, such as totals or totals:0,2; repeatable."
    )
    @click.option("--from-snapshot", "snapshot", metavar="DIR", help="Start from `kops state snapshot`; compute what came since.")
    @click.option("--on-error", type=click.Choice(["fail", "skip"]), default="fail", show_default=True, help="With undecodable records.")
    @no_network_option
    @click.option(
        "--disturb",
        type=click.Choice(["sample", "all"]),
        default="sample",
        show_default=True,
        help="How much of its input a program is given twice, to see on what else its result depends.",
    )
    @spark_option()
    @wraps(command)
    def wrapped(
        *,
        source: Source,
        stores: tuple[str, ...],
        at: str,
        archives: tuple[str, ...],
        damaged: tuple[str, ...],
        snapshot: str | None,
        on_error: str,
        no_network: bool,
        disturb: str,
        master: str | None,
        **rest: Any,
    ) -> Any:
        from dataclasses import replace

        from kops.operations.state.computation import ComputeOptions
        from kops.operations.state.evidence import parse_damaged
        from kops.operations.state.input_offsets import parse_cut

        session: Session = click.get_current_context().obj
        if source.captured and on_error == "skip":
            raise click.UsageError(PROGRAM_DECIDES)
        if disturb == "all" and not source.captured:
            raise click.UsageError("--disturb is for a program: with a state file none is run")
        moves = "--into" if rest.get("into") else "--at" if at != "committed" and "way" in rest else ""
        state_file, program = chosen_stores(session, source, stores, moves=moves, no_network=no_network)
        compute_options = ComputeOptions(
            at=parse_cut(at, session.now()),
            skip_undecodable=on_error == "skip",
            archives=archives,
            snapshot=snapshot,
            master=master,
            damaged=parse_damaged(damaged, state_file),
            program=program and replace(program, all_disturbed=disturb == "all"),
        )
        return command(session, state_file, compute_options, **rest)

    return wrapped


def _refuse_together(compute_options: Any, *, into: str | None, offsets_of: str | None, replaces: bool) -> None:
    """Refuse what a rebuild cannot do at once."""
    if offsets_of and not into:
        raise click.UsageError("--offsets-of goes with --into")
    if into and compute_options.snapshot:
        raise click.UsageError(
            "--into builds another application, and --from-snapshot is of this one: `kops state restore DIR --application NAME`"
        )
    if into and replaces:
        raise click.UsageError("--into writes to another application, so --write replace does not apply")
    if into and compute_options.damaged:
        raise click.UsageError("--into compares with no changelog: --damaged has nothing to leave out")


@group.command("rebuild")
@computing_options
@click.option("--accept-inexact", is_flag=True, help="Proceed although the result cannot be exact.")
@click.option(
    "--write",
    "way",
    type=click.Choice(["append", "replace"]),
    default="append",
    show_default=True,
    help="replace deletes and recreates changelogs.",
)
@click.option("--into", metavar="APPLICATION", help="Build another application's state, side by side; see --offsets-of.")
@click.option("--offsets-of", metavar="GROUP", help="Whose committed offsets count, with --into. [default: the state file's]")
@wait_option
@click.option("--report", metavar="FILE", type=click.Path(), help="Write an HTML report of what was wrong, written and read back.")
@options.mutation
def rebuild(
    session: Session,
    state_file: Any,
    compute_options: Any,
    *,
    accept_inexact: bool,
    way: str,
    into: str | None,
    offsets_of: str | None,
    wait_empty: str | None,
    report: str | None,
    approval: Approval,
) -> int:
    """Append to the changelogs what they lack, so that the application restores the right state.

    Stores are written as Kafka Streams itself would have: the same bytes, timestamps and partitions. The application must be stopped, and
    resumes at its committed offsets. With --at it is moved to that position. With --into the state is written for another
    application.id, which resumes at the same offsets; the existing application is not touched.

    --write replace deletes the changelogs that differ and recreates them with their settings: for versioned stores, a wrong number of
    partitions, and missing changelogs. Local state has to be deleted then, on every instance.
    """
    from dataclasses import replace

    from kops.operations.state.into import plan_into
    from kops.operations.state.rebuild import plan_rebuild
    from kops.operations.state.replace import plan_replace
    from kops.operations.state.report import entry_of, refuse_report, report_of_rebuild, write_report

    _refuse_together(compute_options, into=into, offsets_of=offsets_of, replaces=way == "replace")
    if report:
        refuse_report(report)
    recreated = () if way != "replace" else (*(store.changelog for store in state_file.stores), state_file.application)
    refuse_early(session, approval, recreated)
    if wait_empty:
        wait_until_stopped(session, into or state_file.application, wait_empty)
    compute_options = replace(compute_options, accept_inexact=accept_inexact)
    if into:
        plan = plan_into(session, state_file, into, compute_options, offsets_of=offsets_of or "")
    else:
        plan = (plan_replace if way == "replace" else plan_rebuild)(session, state_file, compute_options)
    code = session.carry_out(plan, approval)
    if report:
        write_report(report_of_rebuild(session, state_file, plan, entry_of(session.journal, plan)), report)
        session.note(f"the report is in {report}")
    return code


@group.command("verify")
@computing_options
@wait_option
@click.option("--report", metavar="FILE", type=click.Path(), help="Write an HTML report of what is wrong.")
@click.option("--snapshot", "compared", metavar="DIR", help="Compare this `kops state snapshot`, computing up to its offsets.")
def verify(
    session: Session,
    state_file: Any,
    compute_options: Any,
    *,
    wait_empty: str | None,
    report: str | None,
    compared: str | None,
) -> int:
    """Compare the changelogs with what they should hold, and count.

    Exit 1 when they differ, and 7 when that is unknown: the computation failed, its result cannot be exact, or there is nothing to
    compare with.

    With --snapshot an older snapshot stands for the changelogs: it proves the state file even after they are lost.
    """
    from dataclasses import replace

    from kops.operations.state.compare import verify as compare
    from kops.operations.state.input_offsets import COMMITTED
    from kops.operations.state.report import refuse_report, report_of_verify, write_report

    if compared and (compute_options.snapshot or compute_options.at != COMMITTED):
        raise click.UsageError("--snapshot has offsets of its own: it goes with neither --at nor --from-snapshot")
    compute_options = replace(compute_options, compared=compared)
    if report:
        refuse_report(report)
    if wait_empty:
        wait_until_stopped(session, state_file.application, wait_empty)

    def look(engine: Any, computed: Any) -> None:
        if report:
            write_report(report_of_verify(session, state_file, engine, computed), report)

    found = compare(session, state_file, compute_options, look=look)
    if report:
        session.note(f"the report is in {report}")
    session.note(*found.notes)
    session.render(found.rows, VERIFY_COLUMNS)
    return exit_code(found.status)


@group.command("diff")
@computing_options
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="The most keys to show for each store.")
@click.option("--against", metavar="APPLICATION", help="Compare with the changelogs of this application, computing nothing.")
def diff(session: Session, state_file: Any, compute_options: Any, *, limit: int, against: str | None) -> int:
    """Show the keys whose changelog differs from what it should hold; exit 1 when there are any, 7 when that is unknown.

    With --against two applications with the same stores are compared, as they are now: what is expected is the state file's.
    """
    from kops.cli.state.view import show_differences
    from kops.operations.state.compare import diff as compare
    from kops.operations.state.compare import diff_against

    if against and (compute_options.archives or compute_options.snapshot):
        raise click.UsageError("--against compares changelogs: nothing is read --from-archive or --from-snapshot")
    if against and compute_options.program and compute_options.program.alone:
        raise click.UsageError("--against compares changelogs: no program is run, and --no-network is for one")
    if against and compute_options.damaged:
        raise click.UsageError("--against compares changelogs: --damaged is for what is computed")
    if against:
        found = diff_against(session, state_file, against, limit=limit, master=compute_options.master)
    else:
        found = compare(session, state_file, compute_options, limit=limit)
    session.note(*found.notes)
    show_differences(session, found.rows)
    return exit_code(found.status)


group.add_command(init)
group.add_command(query)
group.add_command(snapshot)
group.add_command(restore)
group.add_command(repartition)
