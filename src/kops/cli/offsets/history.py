"""``kops offsets history``: where a group stood, and when."""

from __future__ import annotations

import click

from kops.cli.frame.lazy import Command
from kops.cli.frame.session import Session
from kops.cli.offsets.options import named


@click.command("history", cls=Command)
@named
@click.option("--topic", "topics", metavar="TOPIC[:PARTITIONS]", multiple=True, help="Only these; repeatable.")
@click.option("--at", metavar="TIME", help="Where each partition stood at a time such as @-1h or @2026-11-20T14:05.")
@click.option("--since", metavar="TIME", help="Only what was committed then or later: @-1h, 14:45 (local time).")
@click.option("--jumps", is_flag=True, help="Only commits that tools made, such as resets, and deletions.")
@click.pass_obj
def history(session: Session, *, group_id: str, topics: tuple[str, ...], at: str | None, since: str | None, jumps: bool) -> None:
    """Show where a group stood, and when.

    Every commit that the cluster still knows, from __consumer_offsets. That topic is compacted: how far back it goes depends on the
    brokers' log cleaner. `kops offsets reset GROUP --all-topics --to-history TIME` goes back to where the group stood.
    """
    from kops.operations.offsets.history import history_rows, history_time

    moment = None if at is None else history_time(at, session.now())
    from kops.core.errors import UsageProblem

    if moment is not None and (since is not None or jumps):
        raise UsageProblem("--at shows where the group stood at one time", hint="leave --since and --jumps out, or --at")
    begin = None if since is None else history_time(since, session.now())
    rows, notes = history_rows(session, group_id, topics, moment, since=begin, only_jumps=jumps)
    if moment is None:
        columns = ["time", "topic", "partition", "event", "offset", "moved", "leader_epoch", "metadata"]
    else:
        columns = ["topic", "partition", "offset", "committed", "note"]
    if session.output_format == "table":
        columns = columns[:6] + [name for name in columns[6:] if any(row[name] not in (None, "") for row in rows)]
    session.render(rows, columns)
    for note in notes:
        session.note(note)
