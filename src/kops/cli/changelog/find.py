"""``kops changelog``: one key."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from kops.cli.changelog.shared import ReadingOptions, choose, engine_of, group, named_of, reading_options
from kops.cli.frame.session import Session

if TYPE_CHECKING:
    from kops.operations.changelog.rows import NotedRows


def key_options(command: Any) -> Any:
    """Add the arguments and options of the verbs that look for one key."""
    for decorate in (
        click.option("--window", metavar="FROM..TO", help="Windows that begin in this time, such as @-1h..@-30m; @TIME: that one."),
        click.option("--all-partitions", is_flag=True, help="Not only the partition that murmur2 of the key gives."),
        reading_options,
        click.argument("names", nargs=-1, metavar="TOPIC|APPLICATION STORE... KEY"),
    ):
        command = decorate(command)
    return command


@group.command("get")
@key_options
@click.pass_obj
def get_command(session: Session, /, *, names: tuple[str, ...], how: ReadingOptions, **options: Any) -> None:
    """Show what a store holds for one KEY; exit 1 when it holds nothing.

    Only the partition of the key is read: murmur2 of it, and for windows of the key in them, unless TOPIC:PARTITIONS says which.
    """
    from kops.cli.changelog.view import show_rows
    from kops.operations.changelog.find import get

    _find(session, names, how, options, look=get, show=show_rows)


@group.command("history")
@key_options
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="The newest N versions.")
@click.pass_obj
def history_command(session: Session, /, *, names: tuple[str, ...], how: ReadingOptions, limit: int | None, **options: Any) -> None:
    """Show every record of one KEY that is left, tombstones too; exit 1 when there is none.

    MISSING counts the offsets before a record, since the one above, that no longer have a record: compaction took them, or they are
    of transactions.
    """
    from kops.cli.changelog.view import show_history
    from kops.operations.changelog.find import history

    _find(session, names, how, options, look=history, show=show_history, limit=limit)


def _find(
    session: Session,
    names: tuple[str, ...],
    how: ReadingOptions,
    options: dict[str, Any],
    *,
    look: Callable[..., NotedRows],
    show: Callable[[Session, list[dict[str, Any]]], None],
    limit: int | None = None,
) -> None:
    """Read what is left of a key, and show what ``look`` finds in it."""
    from kops.core.changelog.filters import parse_times
    from kops.core.times import Times
    from kops.operations.changelog.find import read_versions, seek
    from kops.operations.changelog.rows import key_bytes

    if not names:
        raise click.UsageError("name the changelog topic, or the application and its store, and then the key")
    window = options["window"]
    windows = parse_times(window, session.now(), what="--window") if window else Times()
    named = named_of(session, how)
    if named.key is not None:
        key_bytes(named.key, names[-1])  # what is wrong with the key is reported before anything is read
    engine = engine_of(session, how)
    target, detected, named = choose(session, names[:-1], how, named)
    query, named = seek(target, detected, names[-1], named, everywhere=options["all_partitions"], windows=windows)
    versions = read_versions(session, target, detected.layout, query, limit=limit, engine=engine)
    found = look(target, detected, query, versions, named, skip=how.skip_undecodable)
    show(session, found.rows)
    session.note(*found.notes)
