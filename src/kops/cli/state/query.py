"""``kops state query``."""

from __future__ import annotations

import click

from kops.cli.frame.lazy import Command
from kops.cli.frame.options import on_error_option, spark_option
from kops.cli.frame.session import Session
from kops.cli.state.shared import chosen_stores, no_network_option, source_of, stores_option


@click.command("query", cls=Command)
@click.argument("file", metavar="[SOURCE]", type=click.Path(), required=False)
@click.argument("key", metavar="[KEY]", required=False)
@click.option("--app", metavar="CAPTURE", type=click.Path(), help="The same as SOURCE.")
@click.option("--all", "whole", is_flag=True, help="Show the whole table instead of one key.")
@stores_option
@click.option("--at", metavar="POSITION", help="As of end, committed, @TIME, or an offset of the changelog. [default: now]")
@click.option(
    "--from",
    "origin",
    type=click.Choice(["changelog", "input"]),
    default="changelog",
    show_default=True,
    help="Read the changelog, or compute it from its input.",
)
@on_error_option
@no_network_option
@spark_option("for --from input")
@click.pass_obj
def query(
    session: Session,
    *,
    file: str | None,
    key: str | None,
    app: str | None,
    whole: bool,
    stores: tuple[str, ...],
    at: str | None,
    origin: str,
    on_error: str,
    no_network: bool,
    master: str | None,
) -> int:
    """Show one key, or a whole table, across all instances. Reads Kafka, never the instances.

    KEY is written in the format of the store's keys; windowed stores show each window of it. It is read from the changelog or, with
    --from input, recomputed up to the committed offsets: by the program, if SOURCE is a capture. Exit code 1: no store has the key.
    """
    from kops.cli.state.view import show_answers
    from kops.operations.state.query import parse_moment
    from kops.operations.state.query import query as ask

    if app is not None:
        if key is not None:
            raise click.UsageError("--app takes the place of SOURCE: name a key, or --all for the whole table")
        file, key = app, file
    source = source_of(file, captured=app is not None)
    if (key is None) == (not whole):
        raise click.UsageError("name either a key, or --all for the whole table")
    if no_network and origin != "input":
        raise click.UsageError("--no-network goes with --from input: a changelog is read without the program")
    position = parse_moment(at, origin, session.now())
    runs = origin == "input"
    skip = on_error == "skip"
    state_file, recipe = chosen_stores(session, source, stores, no_network=no_network, skip_undecodable=skip, reused=True, runs=runs)
    found = ask(session, state_file, key, at=position, origin=origin, recipe=recipe, master=master)
    session.note(*found.notes)
    show_answers(session, found.rows)
    if key is not None and not found.rows:
        session.note(f"no store has the key {key}")
        return 1
    return 0
