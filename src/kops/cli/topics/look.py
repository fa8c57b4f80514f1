"""``kops topics``: list, describe, offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from kops.cli.frame.options import regex_option
from kops.cli.frame.session import Session
from kops.cli.topics.shared import group, required, topic_option
from kops.core.findings import counted
from kops.core.sizes import size_text
from kops.output.table import Column

LIST_COLUMNS = (Column("name"), Column("partitions"), Column("replication_factor", "REPLICAS"))
LONG_COLUMNS = (
    Column("partitions", "P"),
    Column("replication_factor", "RF"),
    Column("cleanup_policy", "CLEANUP"),
    Column("retention", "RETENTION"),
    Column("min_insync_replicas", "MIN ISR"),
    Column("size", "SIZE"),
    Column("offsets", "OFFSETS"),
)
"""Of a table, beside the name: those of the data (``operations.topics.LONG_SETTINGS``) are wider than a terminal."""
TROUBLE_COLUMNS = (Column("under_replicated", "UNDER-REPLICATED"), Column("offline"))
TIER_COLUMNS = (Column("earliest_local_offset", "LOCAL START"), Column("latest_tiered_offset", "TIERED UP TO"))
PARTITION_COLUMNS = ("partition", "leader", "replicas", "in_sync_replicas")
SETTING_COLUMNS = ("name", "value", "source")
READER_COLUMNS = ("group", "committed", "active")


@group.command("list")
@click.argument("patterns", metavar="[NAME_OR_GLOB]...", nargs=-1)
@regex_option
@click.option("--internal", is_flag=True, help="Include the brokers' own topics.")
@click.option("-l", "--long", is_flag=True, help="Show settings, sizes and numbers of offsets too.")
@click.option(
    "--sort", type=click.Choice(["name", "size", "offsets", "partitions"]), default="name", help="Sort order; size and offsets imply -l."
)
@click.pass_obj
def list_(session: Session, /, *, patterns: tuple[str, ...], regex: bool, internal: bool, long: bool, sort: str) -> int:
    """List topics: all of them, or those that names and globs match.

    Size is that of the leaders' logs. Offsets are counted from log start to log end; some may have no record.
    """
    from kops.core.errors import ExitCode
    from kops.operations.topics.listing import LONG_SETTINGS, MEASURED, list_topics, select

    long = long or sort in MEASURED
    listing = list_topics(session, select(session, patterns, regex=regex, internal=internal).values(), long=long, sort=sort)
    rows = listing.rows
    trouble = [column for column in TROUBLE_COLUMNS if session.output_format != "table" or any(row[column.key] for row in rows)]
    if long and session.output_format == "table":
        shown = [{**row, "retention": _time_kept(row.get("retention_ms")), "size": size_text(row["size_bytes"])} for row in rows]
        session.render(shown, ["name", *LONG_COLUMNS, *trouble])
    else:
        session.render(rows, [*LIST_COLUMNS, *trouble, *((*LONG_SETTINGS.values(), "size_bytes", "offsets") if long else ())])
    for problem in listing.problems:
        session.note(f"warning: {problem}")
    return int(ExitCode.PARTIAL if listing.problems else ExitCode.DONE)


def _time_kept(milliseconds: int | None) -> str | None:
    from kops.core.durations import duration_text

    return None if milliseconds is None else "unlimited" if milliseconds < 0 else duration_text(milliseconds)


@group.command("describe")
@click.argument("patterns", metavar="NAME_OR_GLOB...", nargs=-1)
@topic_option
@regex_option
@click.option("--all-settings", is_flag=True, help="Show settings that have Kafka's defaults too.")
@click.option("--brief", is_flag=True, help="Leave out sizes and readers, which need a request to every broker and group.")
@click.pass_obj
def describe(session: Session, /, *, patterns: tuple[str, ...], more: tuple[str, ...], regex: bool, all_settings: bool, brief: bool) -> int:
    """Show everything about topics.

    Partitions with leaders, replicas and sizes; the settings that are not Kafka's defaults; for compacted topics, the settings that govern
    compaction; the groups that read them.
    """
    from kops.core.errors import ExitCode
    from kops.operations.topics.describe import describe_bodies
    from kops.operations.topics.listing import select

    found = select(session, required(patterns, more), regex=regex)
    bodies, problems = describe_bodies(session, found.values(), all_settings=all_settings, brief=brief)
    show_topics(session, bodies)
    for problem in problems:
        session.note(f"warning: {problem}")
    return int(ExitCode.PARTIAL if problems or session.kafka.down() else ExitCode.DONE)


@group.command("offsets")
@click.argument("patterns", metavar="TOPIC[:PARTITIONS]...", nargs=-1)
@topic_option
@regex_option
@click.option(
    "--at",
    metavar="@TIME",
    help="Also the first offset at or after a time, such as @-1h or @2026-11-20T14:05 (UTC); or the offset that is max-timestamp,"
    " earliest-local, latest-tiered or earliest-pending-upload.",
)
@click.option("--by", type=click.Choice(["partition", "topic"]), default="partition", show_default=True, help="Sum up.")
@click.pass_obj
def offsets(session: Session, /, *, patterns: tuple[str, ...], more: tuple[str, ...], regex: bool, at: str | None, by: str) -> int:
    """Show where partitions begin and end, and how many offsets lie between.

    Compaction and transactions leave offsets without a record, so there may be fewer records.
    """
    from kops.core.errors import ExitCode
    from kops.gateways.kafka.offsets import SPECS
    from kops.operations.topics.offsets import NO_RECORD, by_topic, offset_report, total_text

    names = required(patterns, more)
    report = offset_report(session, names, at=at, regex=regex)
    times = [Column("offset_at", "AT"), Column("timestamp_at", "OF"), Column("offsets_since", "SINCE")] if at is not None else []
    times = times[:2] if at in SPECS else times
    if by == "topic":
        session.render(by_topic(report.rows), ["topic", "partitions", "offsets", *times[2:]])
    else:
        start, end = Column("log_start_offset", "LOG START"), Column("log_end_offset", "LOG END")
        columns: list[str | Column] = ["topic", "partition", start, end, "offsets", *tier_columns(report.rows), *times]
        if session.output_format != "table":
            columns = ["topic", "partition", start, end, "offsets", *times, "last_stable_offset", "note", *TIER_COLUMNS]
        elif any(row["note"] not in ("", NO_RECORD) for row in report.rows):
            columns.append("note")
        session.render(report.rows, columns)
    session.note(total_text(report.rows) if report.rows else f"no topic matches {' '.join(names)}")
    for warning in report.warnings:
        session.note(f"warning: {warning}")
    return int(ExitCode.PARTIAL if report.failed else ExitCode.DONE)


def tier_columns(rows: Iterable[Mapping[str, Any]]) -> Sequence[Column]:
    """Return the columns of remote storage for people, if a topic has any."""
    return TIER_COLUMNS if any(row.get(column.key) is not None for row in rows for column in TIER_COLUMNS) else ()


def show_topics(session: Session, bodies: Sequence[dict[str, Any]]) -> None:
    """Write topics to stdout: whole as JSON and YAML, a row a partition as CSV, a few small tables each for people."""
    if session.output_format == "table":
        for number, body in enumerate(bodies):
            click.echo(("\n" if number else "") + headline(body))
            show_topic(session, body)
    elif session.output_format == "csv":
        session.render(
            ({"name": body["name"], **partition} for body in bodies for partition in body["partitions"]), ("name", *PARTITION_COLUMNS)
        )
    else:
        session.render(bodies, ["name"])


def show_topic(session: Session, body: dict[str, Any]) -> None:
    sizes = {(row["partition"], row["broker"]): row["size_bytes"] for row in body.get("replica_sizes", ())}
    rows = [{**row, "size": size_text(sizes.get((row["partition"], row["leader"])))} for row in body["partitions"]]
    session.render(rows, (*PARTITION_COLUMNS, *tier_columns(rows), *(["size"] if sizes else [])))
    own = body["settings"] or []
    shown = {setting["name"] for setting in own}
    settings = [*own, *(setting for setting in body["compaction"] or () if setting["name"] not in shown)]
    if settings:
        session.render(list(map(readable, settings)), SETTING_COLUMNS, whole=True)
    if body.get("readers"):
        marks = {True: "yes", False: None}
        session.render(
            [{**row, "committed": marks[row["committed"]], "active": marks[row["active"]]} for row in body["readers"]], READER_COLUMNS
        )


def headline(body: dict[str, Any]) -> str:
    """Return one line about a topic, trouble included."""
    trouble = [
        f"{body[key]} {text}" for key, text in (("offline", "without a leader"), ("under_replicated", "under-replicated")) if body[key]
    ]
    partitions = counted(len(body["partitions"]), "partition")
    size = size_text(body.get("size_bytes"))
    owner = body.get("streams_application")
    facts = [f"replication factor {body['replication_factor']}", *trouble, f"topic id {body['topic_id']}"]
    facts += [size] if size else []
    facts += [f"of the Kafka Streams application {owner}"] if owner else []
    return ", ".join([f"{body['name']}: {partitions}", *facts])


def readable(setting: dict[str, Any]) -> dict[str, Any]:
    """Return a setting with its value for people."""
    from kops.core.topics.settings import readable_value

    if setting["value"] is None:
        return {**setting, "value": "(hidden)" if setting["sensitive"] else None}
    return {**setting, "value": readable_value(setting["name"], setting["value"])}
