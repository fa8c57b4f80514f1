"""``kops state repartition``."""

from __future__ import annotations

import click

from kops.cli.frame import options
from kops.cli.frame.lazy import Command
from kops.cli.frame.options import Approval, spark_option
from kops.cli.frame.session import Session
from kops.cli.state.shared import (
    Source,
    movable_stores,
    no_network_option,
    refuse_early,
    stores_option,
    wait_option,
    wait_until_stopped,
    with_source,
)


@click.command("repartition", cls=Command)
@with_source
@click.option("--partitions", metavar="N", type=click.IntRange(1, 2**31 - 1), help="The new number of partitions.")
@stores_option
@click.option("--grow-inputs", is_flag=True, help="Add partitions to input topics that have fewer. This cannot be undone.")
@click.option("--input", "instead", metavar="OLD=NEW", multiple=True, help="The application reads NEW from now on; repeatable.")
@click.option("--keep-inputs", is_flag=True, help="The program sets the partitions of its repartition topics (withNumberOfPartitions).")
@click.option("--confirm-done", is_flag=True, help="Delete the saved previous state; no undo after that.")
@wait_option
@no_network_option
@spark_option()
@options.mutation
@click.pass_obj
def repartition(
    session: Session,
    *,
    source: Source,
    partitions: int | None,
    stores: tuple[str, ...],
    grow_inputs: bool,
    instead: tuple[str, ...],
    keep_inputs: bool,
    confirm_done: bool,
    wait_empty: str | None,
    no_network: bool,
    master: str | None,
    approval: Approval,
) -> int:
    """Move an application to another number of partitions, with its state.

    Recreates changelogs and repartition topics with N partitions, and writes each key to the partition of the default partitioner. Stop
    the application after it has drained its repartition topics: records still in them could reach a task without their key's state. The
    previous state is kept until --confirm-done, and undo restores it. After a kill, `kops journal finish` does the rest.

    If SOURCE is a capture, the application's own program also runs over its input as it would lie in N partitions, and nothing is moved
    where it computes something else than the changelogs hold.
    """
    from kops.operations.state.repartition import forget_kept, plan_repartition
    from kops.operations.state.repartition_inputs import InputChoice, parse_replaced_inputs

    if (partitions is None) == (not confirm_done):
        raise click.UsageError("say --partitions N, or --confirm-done for an earlier move")
    state_file, recipe = movable_stores(session, source, stores, partitions=partitions, no_network=no_network)
    if confirm_done:
        for stage in forget_kept(session.journal, state_file.application):
            session.note(f"deleted {stage}")
        return 0
    refuse_early(session, approval, [state_file.application])
    if wait_empty:
        wait_until_stopped(session, state_file.application, wait_empty)
    choice = InputChoice(grow_inputs, keep_inputs, parse_replaced_inputs(instead))
    plan = plan_repartition(session, state_file, partitions or 0, choice, master=master, recipe=recipe)
    return session.carry_out(plan, approval)
