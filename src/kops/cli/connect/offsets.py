"""``kops connect offsets``: show, alter, reset."""

from __future__ import annotations

from pathlib import Path

import click

from kops.cli.connect.shared import connectors, group
from kops.cli.frame.options import Approval, mutation
from kops.cli.frame.session import Session
from kops.core.errors import KopsError
from kops.output.table import Column


@group.group("offsets")
def offsets() -> None:
    """Show and move the offsets of sources and sinks.

    A connector is stopped, its offsets are changed and read back, and it is resumed; if a step fails, everything is restored.
    """


@offsets.command("show")
@connectors()
@click.pass_obj
def show(session: Session, /, *, patterns: tuple[str, ...], regex: bool) -> int:
    """Show the offsets of connectors; for sinks, with the log ends of their partitions."""
    from kops.operations.connect.offsets import name_of, offset_rows, shown_offset
    from kops.operations.connect.select import select_some

    found = select_some(session, patterns, regex=regex)
    problems: dict[str, KopsError] = {}
    rows = offset_rows(session, found, problems)
    columns: list[str | Column] = ["connector", "partition", "offset"]
    if session.output_format != "table" or any(row["log_end_offset"] is not None for row in rows):
        columns += [Column("log_end_offset", "END"), "lag"]
    if session.output_format in ("table", "csv"):
        rows = [{**row, "partition": name_of(row["partition"]), "offset": shown_offset(row["offset"])} for row in rows]
    session.render(rows, columns, whole=True)
    if not session.connection.bootstrap_servers and any(row["type"] == "sink" for row in rows):
        session.note("log ends of sink partitions are unknown without brokers: pass -B HOST:PORT")
    without = [connector.name for connector in found if connector.name not in {row["connector"] for row in rows} | problems.keys()]
    if without:
        session.note(f"without offsets: {', '.join(without)}")
    return session.missing(problems)


@offsets.command("alter")
@click.argument("connector", metavar="CONNECTOR")
@click.argument("positions", metavar="[TOPIC:PARTITIONS=POSITION]...", nargs=-1)
@click.option("--partition", metavar="JSON", help="A partition of a source, as `offsets show` prints it.")
@click.option("--offset", metavar="JSON", help="The new offset; null deletes it.")
@click.option(
    "--from-file",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Offsets in the format of `offsets show -o json` or of Connect.",
)
@mutation
@click.pass_obj
def alter(
    session: Session,
    /,
    *,
    connector: str,
    positions: tuple[str, ...],
    partition: str | None,
    offset: str | None,
    file: Path | None,
    approval: Approval,
) -> int:
    """Set offsets of a connector: stop it, change them, read them back, resume it.

    For a sink, positions as `kops offsets seek` takes them: orders:0=1200, orders=start, orders:0=+1, orders=@-1h. For a source,
    --partition and --offset. Both can come from a file.
    """
    from kops.operations.connect.offsets_plan import plan_alter

    given = [bool(positions), partition is not None or offset is not None, file is not None]
    if sum(given) > 1:
        raise click.UsageError("positions, --partition with --offset, and --from-file are mutually exclusive", click.get_current_context())
    return session.carry_out(plan_alter(session, connector, positions, partition=partition, offset=offset, file=file), approval)


@offsets.command("reset")
@click.argument("connector", metavar="CONNECTOR")
@click.option("--topic", "topics", metavar="TOPIC[:PARTITIONS]", multiple=True, help="Only these partitions of a sink; repeatable.")
@click.option("--partition", "partitions", metavar="JSON", multiple=True, help="Only this partition of a source; repeatable.")
@mutation
@click.pass_obj
def reset(session: Session, /, *, connector: str, topics: tuple[str, ...], partitions: tuple[str, ...], approval: Approval) -> int:
    """Delete offsets of a connector, so that it starts over: stop it, delete them, read back, resume it."""
    from kops.operations.connect.offsets_plan import plan_reset

    return session.carry_out(plan_reset(session, connector, [*topics, *partitions]), approval)
