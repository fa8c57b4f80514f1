"""``kops changelog``."""

from __future__ import annotations

from typing import Any

import click

from kops.cli.lazy import Group
from kops.cli.session import Session

FORMAT_HELP = "string, bytes, long, int, short, double, float, json, uuid, avro, json-schema, or a plugin's."


@click.group(cls=Group)
def group() -> None:
    """Read the changelog of a Kafka Streams store."""


@group.command()
@click.argument("topic", required=False, metavar="[TOPIC[:PARTITIONS]]")
@click.option("--application", metavar="ID", help="The application.id, with --store, in place of the topic.")
@click.option("--store", metavar="NAME", help="The store, with --application.")
@click.option("--key", "key_name", metavar="FORMAT", help=f"Format of the keys: {FORMAT_HELP}")
@click.option("--value", "value_name", metavar="FORMAT", help="Format of the values, likewise.")
@click.option("--key-equals", metavar="KEY", help="Show this key only, written in the format of --key.")
@click.option("--tombstones", is_flag=True, help="Show deleted keys too, not only their number.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Show the first N rows.")
@click.option(
    "--on-error", type=click.Choice(["fail", "skip"]), default="fail", show_default=True, help="What to do with an undecodable record."
)
@click.option(
    "--isolation",
    type=click.Choice(["read_committed", "read_uncommitted"]),
    default="read_committed",
    show_default=True,
    help="Whether to leave out aborted and open transactions.",
)
@click.pass_obj
def inspect(
    session: Session,
    *,
    topic: str | None,
    application: str | None,
    store: str | None,
    key_name: str | None,
    value_name: str | None,
    key_equals: str | None,
    tombstones: bool,
    limit: int | None,
    on_error: str,
    isolation: str,
) -> None:
    """Show the last record of every key: what Kafka Streams would restore.

    TOPIC is the changelog (`prices-app-totals-changelog`, or some of its partitions: `...-changelog:0,3-5`);
    --application and --store find it. Nothing is written, and no group is joined.
    """
    from kops.core.selection import parse_selection
    from kops.operations import changelog
    from kops.operations.records_formats import format_for

    key, value = (format_for(session, name) if name else None for name in (key_name, value_name))
    named = key or format_for(session, "bytes")
    wanted = named.encode(named.parse(key_equals)) if key_equals is not None else None
    if topic and not (application or store):
        chosen = parse_selection(topic)
        name, partitions = chosen.topic, chosen.partitions or ()
    elif application and store and not topic:
        name, partitions = changelog.changelog_topic(session, application, store), ()
    else:
        raise click.UsageError("name either the changelog topic, or --application and --store")
    view = changelog.read_view(session, name, partitions, isolation=isolation, key=wanted)
    session.note(changelog.summary(view, tombstones=tombstones, limit=limit))
    for sentence in changelog.oddities(view):
        session.note(f"note: {sentence}")
    key, value, sentence = changelog.choose_formats(view, key, value)
    if sentence:
        session.note(f"note: {sentence}")
    records = [record for record in view.latest if tombstones or record.value is not None]
    rows, skipped = changelog.decode(records[:limit], key, value, skip_undecodable=on_error == "skip")
    if skipped:
        session.note(f"warning: undecodable and left out: {len(skipped)} of {len(skipped) + len(rows)}; the first: {skipped[0].message}")
    _render(session, rows)


def _render(session: Session, rows: list[dict[str, Any]]) -> None:
    from kops.output.records import as_cells, columns

    session.render([as_cells(row) for row in rows] if session.output_format == "table" else rows, columns(rows, session.output_format))
