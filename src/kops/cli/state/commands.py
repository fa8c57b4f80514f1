"""``kops state``: the verbs that compute; the others are in files of their own."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from kops.cli.frame import options
from kops.cli.frame.lazy import Group
from kops.cli.frame.options import Approval, on_error_option, spark_option
from kops.cli.frame.session import Session
from kops.cli.state.init import init
from kops.cli.state.query import query
from kops.cli.state.repartition import repartition
from kops.cli.state.shared import (
    Source,
    chosen_stores,
    no_network_option,
    refuse_early,
    stores_option,
    wait_option,
    wait_until_stopped,
    with_source,
)
from kops.cli.state.snapshot import restore, snapshot

VERIFY_COLUMNS = ("store", "verdict", "keys", "proven", "missing", "different", "unexpected")

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
    @stores_option
    @click.option("--at", metavar="POSITION", default="committed", show_default=True, help="Use input up to this position: end, or @TIME.")
    @click.option(
        "--from-archive", "archives", metavar="PATH", multiple=True, help="Read this archive of an input before its topic; repeatable."
    )
    @click.option("--damaged", metavar="STORE[:PARTITIONS]", multiple=True, help="Do not trust the keys in this changelog; repeatable.")
    @click.option("--from-snapshot", "snapshot", metavar="DIR", help="Start from this snapshot, and compute what came after it.")
    @on_error_option
    @no_network_option
    @click.option(
        "--disturb",
        type=click.Choice(["sample", "all"]),
        default="sample",
        show_default=True,
        help="Input to run a program over twice, once disturbed.",
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
        from kops.operations.state.computation import ComputeOptions
        from kops.operations.state.input_offsets import parse_cut
        from kops.operations.state.rules.witnesses import parse_damaged

        session: Session = click.get_current_context().obj
        moves = "--into" if rest.get("into") else "--at" if at != "committed" and "way" in rest else ""
        if no_network and rest.get("against"):
            raise click.UsageError("--against compares changelogs: no program is run, and --no-network is for one")
        skip = on_error == "skip"
        state_file, recipe = chosen_stores(
            session, source, stores, moves=moves, no_network=no_network, skip_undecodable=skip, all_disturbed=disturb == "all"
        )
        compute_options = ComputeOptions(
            recipe=recipe,
            at=parse_cut(at, session.now()),
            archives=archives,
            snapshot=snapshot,
            master=master,
            damaged=parse_damaged(damaged, state_file),
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
@click.option("--accept-doubtful", is_flag=True, help="Write doubtful keys too.")
@click.option(
    "--write",
    "way",
    type=click.Choice(["append", "replace"]),
    default="append",
    show_default=True,
    help="Append what is missing, or delete and recreate changelogs.",
)
@click.option("--into", metavar="APPLICATION", help="Write the state for this other application.id.")
@click.option("--offsets-of", metavar="GROUP", help="With --into: use the committed offsets of this group. [default: the application's]")
@wait_option
@click.option("--report", metavar="FILE", type=click.Path(), help="Write an HTML report of what was wrong, written and read back.")
@options.mutation
def rebuild(
    session: Session,
    state_file: Any,
    compute_options: Any,
    *,
    accept_doubtful: bool,
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

    What is proven or computed is written with --yes. Doubtful keys need --accept-doubtful: the findings say what may be wrong with them.
    What its input or code cannot give is never written.

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
    compute_options = replace(compute_options, accept_doubtful=accept_doubtful)
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
@click.option("--snapshot", "compared", metavar="DIR", help="Compare with this snapshot instead of the changelogs.")
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

    A key is proven where a record that survived agrees; computed where none is left to compare with; doubtful where a finding says why it
    may be otherwise, or such a record differs; impossible where its input or code cannot give it.

    Exit 1 when the changelogs differ, and 7 when that is unknown: the computation failed or is in doubt, or there is nothing to compare
    with.

    With --snapshot an older snapshot stands for the changelogs: it shows whether SOURCE is right even after they are lost.
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
    return found.outcome


@group.command("diff")
@computing_options
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="Show at most this many keys of each store.")
@click.option("--against", metavar="APPLICATION", help="Compare with this application's changelogs; compute nothing.")
def diff(session: Session, state_file: Any, compute_options: Any, *, limit: int, against: str | None) -> int:
    """Show the keys whose changelog differs from what it should hold; exit 1 when there are any, 7 when that is unknown.

    With --against two applications with the same stores are compared, as they are now: what is expected is the state file's.
    """
    from kops.cli.state.view import show_differences
    from kops.operations.state.compare import diff as compare
    from kops.operations.state.compare import diff_against

    if against and (compute_options.archives or compute_options.snapshot):
        raise click.UsageError("--against compares changelogs: nothing is read --from-archive or --from-snapshot")
    if against and compute_options.damaged:
        raise click.UsageError("--against compares changelogs: --damaged is for what is computed")
    if against:
        found = diff_against(session, state_file, against, limit=limit, master=compute_options.master)
    else:
        found = compare(session, state_file, compute_options, limit=limit)
    session.note(*found.notes)
    show_differences(session, found.rows)
    return found.outcome


group.add_command(init)
group.add_command(query)
group.add_command(snapshot)
group.add_command(restore)
group.add_command(repartition)
