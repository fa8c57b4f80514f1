"""``kops streams reset``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kops.cli.frame.options import Approval, mutation
from kops.cli.frame.session import Session


@click.argument("application", metavar="[APPLICATION]", required=False)
@click.option("--application-id", metavar="ID", help="The application, as Apache's tool takes it.")
@click.option(
    "--input-topic",
    "--input-topics",
    "input_topics",
    metavar="TOPIC[:PARTITIONS]",
    multiple=True,
    help="Move these only; repeatable, or with commas. [default: all that it reads]",
)
@click.option("--to", metavar="POSITION", help="start, end, an offset, or a time such as @-1h. [default: start]")
@click.option("--to-earliest", is_flag=True, help="To the log start.")
@click.option("--to-latest", is_flag=True, help="To the log end.")
@click.option("--to-offset", type=int, metavar="OFFSET", help="To one offset, or the nearest that the log has.")
@click.option("--to-datetime", metavar="TIME", help="To the first record at or after YYYY-MM-DDTHH:mm:SS.sss.")
@click.option("--by-duration", metavar="DURATION", help="To the first record of the last PnDTnHnMnS, or 6h.")
@click.option("--shift-by", type=int, metavar="N", help="By N offsets forwards, or backwards if negative.")
@click.option("--from-file", type=click.Path(dir_okay=False, path_type=Path), help="To the positions in a file, such as Apache's CSV.")
@click.option(
    "--internal-topic",
    "--internal-topics",
    "internal_topics",
    metavar="TOPIC",
    multiple=True,
    help="Delete these only; repeatable, or with commas. [default: all that belong to it]",
)
@click.option("--output-topic", "output_topics", metavar="TOPIC", multiple=True, help="A topic that it writes, to see who reads it.")
@click.option("--topology", "topology_file", metavar="FILE", type=click.Path(), help="A file with what Topology.describe() prints.")
@click.option("--wait-empty", metavar="DURATION", help="Wait up to this long for all instances to stop, such as 60s.")
@mutation
@click.pass_obj
def reset(
    session: Session,
    /,
    *,
    application: str | None,
    application_id: str | None,
    input_topics: tuple[str, ...],
    internal_topics: tuple[str, ...],
    output_topics: tuple[str, ...],
    topology_file: str | None,
    wait_empty: str | None,
    approval: Approval,
    **given: Any,
) -> int:
    """Reset an application: move its input offsets, delete its internal topics.

    Does what kafka-streams-application-reset does, and takes its flags. All instances must be stopped. Deletes the topics that the group
    registered or --topology names; otherwise topics named after the application ID, but none that could belong to another
    application (`orders` and `orders-v2`).

    Local state of the instances is not deleted: the plan says what to delete there. Undo moves the offsets back, but does not restore
    deleted topics.
    """
    from kops.operations.offsets.strategies import Choice
    from kops.operations.protocol.mutation import refuse_read_only
    from kops.operations.streams.inspection import read_topology
    from kops.operations.streams.reset import ResetOptions, plan_reset, split_topics

    if (application is None) == (application_id is None):
        raise click.UsageError("name one APPLICATION, as an argument or with --application-id")
    chosen = [f"--{name.replace('_', '-')}" for name, value in given.items() if value is not None and value is not False]
    if len(chosen) > 1:
        raise click.UsageError(f"{' and '.join(chosen)} exclude each other")
    choice = Choice(**given) if chosen else Choice(to_earliest=True)
    if wait_empty and not approval.dry_run and not approval.plan_out:
        refuse_read_only(session.connection)
    wanted = ResetOptions(split_topics(input_topics), split_topics(internal_topics), split_topics(output_topics), wait_empty)
    topology = read_topology(topology_file) if topology_file else None
    return session.carry_out(plan_reset(session, application or application_id or "", choice, wanted, topology), approval)
