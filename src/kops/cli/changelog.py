"""``kops changelog``."""

from __future__ import annotations

import click

from kops.cli.changelog_options import How, named_of, reading, settled_of, target_of
from kops.cli.lazy import Group
from kops.cli.session import Session


@click.group(cls=Group)
def group() -> None:
    """Read the changelogs of Kafka Streams stores."""


@group.command("inspect")
@click.argument("names", nargs=-1, metavar="TOPIC|APPLICATION STORE")
@reading
@click.option("--key-equals", metavar="KEY", help="Show this key only, written in the format of --key.")
@click.option("--window", metavar="FROM..TO", help="Windows that begin in this time, such as @-1h..@-30m; @TIME: that one.")
@click.option("--times", metavar="FROM..TO", help="Records of this time only.")
@click.option("--tombstones", is_flag=True, help="Show deleted keys too, not only their number.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Show the first N rows.")
@click.pass_obj
def inspect_command(
    session: Session,
    /,
    *,
    names: tuple[str, ...],
    how: How,
    key_equals: str | None,
    window: str | None,
    times: str | None,
    tombstones: bool,
    limit: int | None,
) -> None:
    """Show the last record of every key: what Kafka Streams would restore.

    A TOPIC (`prices-app-totals-changelog`, or some of its partitions: `...-changelog:0,3-5`), or an application and its store.
    Nothing is written, and no group is joined.
    """
    from kops.cli.changelog_view import show_rows
    from kops.core.changelog_filters import Times, parse_times
    from kops.operations.changelog.inspect import inspect
    from kops.operations.changelog.view import Wanted
    from kops.operations.records_formats import format_for

    named = named_of(session, how)
    form = named.key or format_for(session, "bytes")
    wanted = Wanted(
        form.encode(form.parse(key_equals)) if key_equals is not None else None,
        parse_times(window, session.now(), what="--window") if window else Times(),
        parse_times(times, session.now(), what="--times") if times else Times(),
        tombstones,
    )
    target = target_of(session, names, how)
    settled = settled_of(session, target, how)
    found = inspect(session, target, settled, wanted, named=named, limit=limit, skip=how.skip_undecodable)
    for note in found.notes:
        session.note(note)
    show_rows(session, found.rows)
