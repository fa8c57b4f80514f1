"""``kops streams``: list, describe, reset, delete, capture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kops.cli.frame.lazy import Group
from kops.cli.frame.options import Approval, mutation
from kops.cli.frame.session import Session
from kops.cli.streams.capture import capture
from kops.core.findings import names_text
from kops.core.visible import visible

SHOWN = 5


@click.group("streams", cls=Group)
def group() -> None:
    """Kafka Streams applications: list, describe, reset, delete, capture.

    kops sees them from outside, by their groups and topics: it joins no group and causes no rebalance. Only `capture` starts a program.
    """


@group.command("list")
@click.argument("names", metavar="[APPLICATION]...", nargs=-1)
@click.pass_obj
def list_applications(session: Session, *, names: tuple[str, ...]) -> int:
    """List the Kafka Streams applications, running or stopped.

    Names may be globs, such as 'orders-*'.
    """
    from kops.core.errors import ExitCode, KopsError, NotFound
    from kops.core.selection import names_matching
    from kops.operations.streams.find import find_applications
    from kops.operations.streams.rows import found_row
    from kops.output.table import Column

    problems: dict[str, KopsError] = {}
    found, orphans = find_applications(session, problems)
    try:
        wanted = set(names_matching(names, [one.application.application for one in found], what="application"))
    except NotFound:
        session.missing(problems)
        raise
    rows = [found_row(one) for one in found if one.application.application in wanted]
    if session.output_format == "table":
        rows = [{**row, "stores": len(row["stores"]), "internal_topics": len(row["internal_topics"])} for row in rows]
    session.render(rows, ["application", "protocol", "state", "instances", "members", "stores", Column("internal_topics", "TOPICS")])
    vague = [one.application for one in found if one.application.unknown and one.application.application in wanted]
    for application in vague:
        for sentence in application.unknown:
            session.note(f"warning: {application.application}: {sentence}")
    if orphans and not names:
        session.note(f"internal topics that no application is there for: {names_text(orphans, SHOWN)}")
    return session.missing(problems) or int(ExitCode.PARTIAL if vague else ExitCode.DONE)


@group.command("describe")
@click.argument("application", metavar="[APPLICATION]", required=False)
@click.option(
    "--topology", "topology_file", metavar="FILE", type=click.Path(), help="A file with what the application's Topology.describe() prints."
)
@click.option("--capture", "capture_file", metavar="FILE", type=click.Path(), help="What `kops streams capture` wrote of the program.")
@click.option("--key", metavar="KEY", help="Show which partition and which instance answers for this key.")
@click.option("--key-format", metavar="FORMAT", default="string", show_default=True, help="Of --key, as the store's serde writes it.")
@click.option("--store", "stores", metavar="NAME", multiple=True, help="With --key: in this store only; repeatable. [default: all]")
@click.pass_obj
def describe(
    session: Session,
    *,
    application: str | None,
    topology_file: str | None,
    capture_file: str | None,
    key: str | None,
    key_format: str,
    stores: tuple[str, ...],
) -> None:
    """Show sub-topologies, topics, stores, and what each instance holds.

    The classic protocol shows tasks and topics; a group of the streams protocol its whole topology. --topology adds what neither
    shows: output topics, and in the classic protocol which sub-topology has which store.

    --capture adds the same from the program itself, and where the cluster differs from it: internal topics that are missing or that the
    program does not have, partition counts, settings.

    --key answers as KafkaStreams.queryMetadataForKey does, with the default partitioner. For windows and sessions give the record's key.
    """
    from kops.operations.streams.capture import capture_notes, difference_row, named_application, program_differences, read_program
    from kops.operations.streams.inspection import inspect_application, read_topology
    from kops.operations.streams.rows import look_json

    if stores and key is None:
        raise click.UsageError("--store goes with --key")
    if capture_file and topology_file:
        raise click.UsageError("--capture has the topology: leave out --topology")
    program, topology = read_program(capture_file) if capture_file else (None, read_topology(topology_file) if topology_file else None)
    look = inspect_application(session, named_application(application, program), topology)
    if key is not None:
        _render_key(session, look, key, key_format, stores)
        return
    rows = [difference_row(each) for each in program_differences(session, program, look)] if program else None
    notes = capture_notes(program) if program else []
    if session.output_format in ("json", "yaml"):
        session.render_object(look_json(look) | ({} if rows is None else {"differences": rows, "program_notes": notes}), name="application")
    else:
        _render_look(session, look)
        _render_differences(session, rows)
        for sentence in notes:
            session.note(f"note: {sentence}")


def _render_key(session: Session, look: Any, key: str, key_format: str, stores: tuple[str, ...]) -> None:
    from kops.operations.records.formats import format_for
    from kops.operations.streams.keys import key_rows, key_table

    named = format_for(session, key_format)
    rows = key_rows(look, named.encode(named.parse(key)) or b"", key, stores)
    columns = ["store", "partition", "task", "active", "standby", "note"]
    if session.output_format == "table":
        rows = key_table(rows)
        columns = [column for column in columns if column in ("store", "partition") or any(row[column] for row in rows)]
    session.render(rows, columns)


def _render_look(session: Session, look: Any) -> None:
    from kops.operations.streams.rows import instance_table, look_notes, part_table, store_table
    from kops.output.table import Column

    application = look.application
    if session.output_format != "table":
        session.render(instance_table(look), ["instance", "members", "active", "standby"])
        return
    click.echo(visible(f"{application.application}: {application.protocol} protocol, {application.state}"))
    click.echo(f"reads   {', '.join(look.input_topics) or '-'}")
    if look.output_topics is not None:
        click.echo(f"writes  {', '.join(look.output_topics) or '-'}")
    part = Column("part", "SUB-TOPOLOGY")
    tables: tuple[tuple[list[dict[str, Any]], list[Column]], ...] = (
        (part_table(look), [part, *map(Column, ("reads", "writes", "stores", "tasks"))]),
        (store_table(look), [Column("store"), part, Column("partitions"), Column("changelog")]),
        (instance_table(look), [*map(Column, ("instance", "members", "active", "standby"))]),
    )
    for rows, columns in tables:
        if rows:
            click.echo()
            session.render(rows, [column for column in columns if any(row[column.key] for row in rows)])
    for sentence in (*look.notes, *look_notes(look)):
        session.note(f"note: {sentence}")


def _render_differences(session: Session, rows: list[dict[str, Any]] | None) -> None:
    if session.output_format != "table" or rows is None:
        return
    if not rows:
        session.note("note: the cluster has the internal topics that the program has, with its partitions and settings")
        return
    click.echo()
    shown = [{**row, "difference": f"{row['difference']} {row['setting'] or ''}".strip()} for row in rows]
    session.render(shown, ["topic", "store", "difference", "program", "cluster"])


_internal_topics = click.option(
    "--internal-topic",
    "--internal-topics",
    "internal_topics",
    metavar="TOPIC",
    multiple=True,
    help="Delete these only; repeatable, or with commas. [default: all that belong to it]",
)
_topology = click.option(
    "--topology", "topology_file", metavar="FILE", type=click.Path(), help="A file with what Topology.describe() prints."
)
_wait_empty = click.option("--wait-empty", metavar="DURATION", help="Wait up to this long for all instances to stop, such as 60s.")


@group.command("reset")
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
@click.option("--to-offset", type=int, metavar="OFFSET", help="To this offset, or the nearest in the log.")
@click.option("--to-datetime", metavar="TIME", help="To the first record at or after YYYY-MM-DDTHH:mm:SS.sss.")
@click.option("--by-duration", metavar="DURATION", help="To the first record of the last PnDTnHnMnS, or 6h.")
@click.option("--shift-by", type=int, metavar="N", help="By N offsets forwards, or backwards if negative.")
@click.option("--from-file", type=click.Path(dir_okay=False, path_type=Path), help="To the positions in a file, such as Apache's CSV.")
@_internal_topics
@click.option(
    "--output-topic",
    "output_topics",
    metavar="TOPIC",
    multiple=True,
    help="A topic that the application writes; the plan shows who reads it.",
)
@_topology
@_wait_empty
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

    Does what Apache's tool for it does, and takes its flags. All instances must be stopped. Deletes the topics that the group
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


@group.command("delete")
@click.argument("application", metavar="APPLICATION")
@_internal_topics
@_topology
@_wait_empty
@mutation
@click.pass_obj
def delete(
    session: Session,
    /,
    *,
    application: str,
    internal_topics: tuple[str, ...],
    topology_file: str | None,
    wait_empty: str | None,
    approval: Approval,
) -> int:
    """Delete an application that is no longer used: its group with the offsets, and its internal topics.

    All instances must be stopped. Which topics are its own is decided as by `reset`. Its input and output topics stay, and so does local
    state: the plan says what to delete where.

    Undo commits the offsets again and creates the topics empty; the state that was in them is gone.
    """
    from kops.operations.protocol.mutation import refuse_read_only
    from kops.operations.streams.delete import plan_delete
    from kops.operations.streams.inspection import read_topology
    from kops.operations.streams.reset import split_topics

    if wait_empty and not approval.dry_run and not approval.plan_out:
        refuse_read_only(session.connection)
    topology = read_topology(topology_file) if topology_file else None
    return session.carry_out(plan_delete(session, application, split_topics(internal_topics), topology, wait_empty), approval)


group.add_command(capture)
