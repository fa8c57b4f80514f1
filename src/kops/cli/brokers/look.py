"""``kops brokers``: list, describe, config, log-dirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from kops.cli.brokers.shared import BROKER_ID, group, ids_argument
from kops.cli.frame.findings_view import note_gaps
from kops.cli.frame.session import Session
from kops.core.sizes import size_text
from kops.output.table import Column, as_columns

SHARE_COLUMNS = (
    *("id", "address", "rack", Column("in_service", "UP"), "leaders", Column("preferred_leaders", "PREFERRED"), "replicas"),
    *(Column("out_of_sync_replicas", "OUT OF SYNC"), "size"),
)
RARE_COLUMNS = ("rack", "out_of_sync_replicas")
"""Omitted when empty, to fit into 80 columns."""
DISK_COLUMNS = (Column("id", "BROKER"), "size", "free", "replicas", "problem", Column("path", "LOG DIRECTORY"))
CSV_COLUMNS = (
    *("id", "host", "port", "rack", "in_service", "leaders", "preferred_leaders", "replicas"),
    *("out_of_sync_replicas", "size_bytes", "offline_log_dirs"),
)
SETTING_COLUMNS = (Column("brokers"), Column("name"), Column("value"), Column("source"), Column("needs_restart", "RESTART"))
REPLICA_COLUMNS = ("broker", "topic", "partition", "size", "moving", Column("path", "LOG DIRECTORY"))


@group.command("list")
@click.pass_obj
def list_(session: Session, /) -> int:
    """List the brokers: racks, leaders, replicas, and the sizes of their log directories.

    PREFERRED counts the partitions of which a broker is the first replica: those that it leads when leadership is balanced.
    """
    from kops.operations.cluster.describe import brokers as find

    rows, gaps = find(session)
    if session.output_format == "table":
        _show_brokers(session, rows)
    else:
        session.render(rows, CSV_COLUMNS)
    return note_gaps(session, gaps)


@group.command("describe")
@click.argument("broker", metavar="ID", type=BROKER_ID)
@click.pass_obj
def describe(session: Session, /, *, broker: int) -> int:
    """Show everything about a broker: its share of the data, log directories, and settings that were changed while it runs."""
    from kops.operations.brokers.settings import describe_broker

    body, gaps = describe_broker(session, broker)
    if session.output_format == "table":
        _show_brokers(session, [body])
        if body["settings"]:
            click.echo()
            session.render([_readable(row) for row in body["settings"]], SETTING_COLUMNS[1:4], whole=True)
    elif session.output_format == "csv":
        session.render([body], CSV_COLUMNS)
    else:
        session.render_object(body, name="id")
    return note_gaps(session, gaps)


@group.command("log-dirs")
@ids_argument
@click.option("--replicas", is_flag=True, help="List each replica, the largest first.")
@click.pass_obj
def log_dirs(session: Session, /, *, ids: tuple[int, ...], replicas: bool) -> int:
    """Show the log directories of brokers: sizes, room on their volumes, and what is in them."""
    from kops.operations.brokers.log_dirs import directory_rows, replica_rows

    rows, problems = (replica_rows if replicas else directory_rows)(session, ids)
    if session.output_format != "table":
        session.render(rows, [key if key != "size" else "size_bytes" for key in (LOG_DIR_KEYS if not replicas else REPLICA_COLUMNS)])
    elif replicas:
        session.render([{**row, "size": size_text(row["size_bytes"]), "moving": row["moving"] or None} for row in rows], REPLICA_COLUMNS)
    else:
        _show_disks(session, [{**row, "id": row["broker"]} for row in rows])
    return session.missing({f"broker {name}": problem for name, problem in problems.items()})


LOG_DIR_KEYS = ("broker", "path", "replicas", "future_replicas", "size", "usable_bytes", "total_bytes", "problem")


@group.command("config")
@ids_argument
@click.option("--all", "everything", is_flag=True, help="Show settings that have Kafka's defaults too.")
@click.pass_obj
def config(session: Session, /, *, ids: tuple[int, ...], everything: bool) -> int:
    """Show the settings of brokers, and where each comes from.

    SOURCE is broker (set while it runs), broker default (set for all while they run), server.properties or default, in this order of
    precedence. RESTART: only server.properties and a restart change it.
    """
    from kops.operations.brokers.settings import setting_rows

    rows, problems = setting_rows(session, ids, everything=everything)
    if session.output_format == "table":
        session.render([_readable(row) for row in rows], SETTING_COLUMNS, whole=True)
    else:
        session.render(rows, [*SETTING_COLUMNS, "sensitive"])
    return session.missing({f"broker {name}": problem for name, problem in problems.items()})


def _readable(row: dict[str, object]) -> dict[str, object]:
    from kops.core.topics.settings import readable_value

    value = row["value"]
    shown = "(hidden)" if value is None and row["sensitive"] else readable_value(str(row["name"]), str(value)) if value else value
    return {**row, "value": shown, "needs_restart": "yes" if row["needs_restart"] else None}


def _show_brokers(session: Session, rows: Sequence[Mapping[str, Any]]) -> None:
    empty = [key for key in RARE_COLUMNS if not any(row[key] for row in rows)]
    shown = [column for column in as_columns(SHARE_COLUMNS) if column.key not in empty]
    session.render([{**with_address(row), "size": size_text(row["size_bytes"])} for row in rows], shown)
    disks = [{**found, "id": row["id"]} for row in rows for found in row["log_dirs"]]
    if disks:
        click.echo()
        _show_disks(session, disks)


def _show_disks(session: Session, disks: Sequence[Mapping[str, Any]]) -> None:
    rows = [{**disk, "size": size_text(disk["size_bytes"]), "free": _free(disk)} for disk in disks]
    problems = any(disk["problem"] for disk in disks)
    session.render(rows, [column for column in DISK_COLUMNS if problems or column != "problem"])


def _free(found: Mapping[str, Any]) -> str | None:
    usable, total = found["usable_bytes"], found["total_bytes"]
    return f"{size_text(usable)} ({usable / total:.0%})" if usable is not None and total else None


def with_address(broker: Mapping[str, Any]) -> dict[str, Any]:
    """Return a broker's row with its host and port in one."""
    return {**broker, "address": f"{broker['host']}:{broker['port']}" if broker["host"] else None}
