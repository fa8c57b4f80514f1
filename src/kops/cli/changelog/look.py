"""``kops changelog``: many keys, and many topics."""

from __future__ import annotations

import click

from kops.cli.changelog.shared import ReadingOptions, choose, engine_of, group, named_of, reading_options
from kops.cli.frame.session import Session


@group.command("inspect")
@click.argument("names", nargs=-1, metavar="TOPIC|APPLICATION STORE")
@reading_options
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
    how: ReadingOptions,
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
    from kops.cli.changelog.view import show_rows
    from kops.core.changelog.filters import parse_times
    from kops.core.times import Times
    from kops.operations.changelog.inspect import inspecting
    from kops.operations.changelog.rows import key_bytes
    from kops.operations.changelog.view import RowFilter
    from kops.operations.records.formats import format_for

    named = named_of(session, how)
    if named.key is not None and key_equals is not None:
        key_bytes(named.key, key_equals)  # what is wrong with the key is reported before anything is read
    windows = parse_times(window, session.now(), what="--window") if window else Times()
    between = parse_times(times, session.now(), what="--times") if times else Times()
    engine = engine_of(session, how)
    target, detected, named = choose(session, names, how, named)
    key = None if key_equals is None else key_bytes(named.key or format_for(session, "bytes"), key_equals)
    wanted = RowFilter(key, windows, between, tombstones)
    with inspecting(session, target, detected, wanted, named=named, limit=limit, skip=how.skip_undecodable, engine=engine) as found:
        show_rows(session, found.rows)
        session.note(*found.all_notes)


@group.command("list")
@click.argument("application", required=False, metavar="[APPLICATION]")
@click.option("--application", "named", metavar="ID", help="In place of the argument.")
@click.option("--all", "everything", is_flag=True, help="The internal topics of every application.")
@click.pass_obj
def list_command(session: Session, /, *, application: str | None, named: str | None, everything: bool) -> None:
    """List an application's changelogs and repartition topics.

    Types are guessed. CLEANING says what a client can see: compacted (its first records are gone), no-sign (closed segments, yet the
    first record is there), active (all may lie in the segment that is written to, which is never cleaned), empty, off.
    """
    from kops.cli.changelog.view import show_listing
    from kops.operations.changelog.listing import list_changelogs

    wanted = application or named
    if bool(wanted) == everything or (application and named):
        raise click.UsageError("name one application, or say --all")
    found = list_changelogs(session, wanted)
    show_listing(session, found.rows, applications=everything)
    session.note(*found.notes)


@group.command("stats")
@click.argument("names", nargs=-1, metavar="TOPIC|APPLICATION STORE")
@reading_options
@click.pass_obj
def stats_command(session: Session, /, *, names: tuple[str, ...], how: ReadingOptions) -> None:
    """Count what a changelog holds: keys, tombstones, what compaction has still to take, what is wrong.

    Every record of the TOPIC (or of TOPIC:PARTITIONS) is read. Undecodable ones are counted and the first named, whatever --on-error says.
    """
    from kops.cli.changelog.view import show_stats
    from kops.operations.changelog.stats import body_of, count, notes_of, shape_for

    named, engine = named_of(session, how), engine_of(session, how)
    target, detected, named = choose(session, names, how, named)
    shape, sentence = shape_for(detected, named)
    stats = count(session, target, shape, engine)
    show_stats(session, body_of(target, detected, shape, stats))
    for note in [*([sentence] if sentence else []), *notes_of(target, detected, stats)]:
        session.note(f"note: {note}")
