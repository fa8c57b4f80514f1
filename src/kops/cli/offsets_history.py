"""``kops offsets history``: where a group stood, and when."""

from __future__ import annotations

import click

from kops.cli.lazy import Command
from kops.cli.offsets_options import named
from kops.cli.session import Session


@click.command("history", cls=Command)
@named
@click.option("--topic", "topics", metavar="TOPIC[:PARTITIONS]", multiple=True, help="Only these; repeatable.")
@click.option("--at", metavar="TIME", help="Where each partition stood at a time such as @-1h or @2026-11-20T14:05.")
@click.pass_obj
def history(session: Session, *, group_id: str, topics: tuple[str, ...], at: str | None) -> None:
    """Show where a group stood, and when.

    Every commit that the cluster still knows, from __consumer_offsets. That topic is compacted: how far back it goes depends on the
    brokers' log cleaner. `kops offsets reset GROUP --all-topics --to-history TIME` goes back to where the group stood.
    """
    from kops.operations.offsets_history import history_rows, history_time

    moment = None if at is None else history_time(at, session.now())
    rows, notes = history_rows(session, group_id, topics, moment)
    if moment is None:
        columns = ["time", "topic", "partition", "event", "offset", "leader_epoch", "metadata"]
    else:
        columns = ["topic", "partition", "offset", "committed", "note"]
    if session.output_format == "table":
        columns = columns[:5] + [name for name in columns[5:] if any(row[name] not in (None, "") for row in rows)]
    session.render(rows, columns)
    for note in notes:
        session.note(note)
