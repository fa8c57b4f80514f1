"""``kops state check``."""

from __future__ import annotations

import click

from kops.cli.frame.lazy import Command
from kops.cli.frame.options import spark_option
from kops.cli.frame.session import Session
from kops.cli.state.shared import exit_code, no_network_option

COLUMNS = ("store", "status", "equal", "missing", "different", "unexpected")


@click.command("check", cls=Command)
@click.argument("file", metavar="FILE", type=click.Path())
@click.option("--app", metavar="CAPTURE", required=True, type=click.Path(), help="The program, as `kops streams capture` found it.")
@click.option("--store", "stores", metavar="NAME", multiple=True, help="This store only; repeatable. [default: all]")
@click.option("--at", metavar="POSITION", default="committed", show_default=True, help="Up to where the input counts: end, or @TIME.")
@click.option("--first", metavar="N", type=click.IntRange(min=1), help="Only the first N offsets of each partition. [default: all]")
@click.option("--one-key-in", metavar="N", type=click.IntRange(min=1), default=1, help="Only one in N keys of the input. [default: all]")
@click.option("--limit", type=click.IntRange(min=1), default=10, show_default=True, help="The most keys to show for each store.")
@click.option("--on-error", type=click.Choice(["fail", "skip"]), default="fail", show_default=True, help="Where the file cannot decode.")
@no_network_option
@spark_option()
@click.pass_obj
def check(
    session: Session,
    *,
    file: str,
    app: str,
    stores: tuple[str, ...],
    at: str,
    first: int | None,
    one_key_in: int,
    limit: int,
    on_error: str,
    no_network: bool,
    master: str | None,
) -> int:
    """Compare what a state file says with the application's own program, over the same input.

    Both compute all keys of the stores; changelogs are not compared, and nothing is written. What is expected is the program's: a key is
    missing if only the program has it. Exit 1 when keys differ, and 7 when that is unknown: a computation failed, its result need not be
    the same twice, or there are no keys.
    """
    from kops.cli.state.view import show_differences
    from kops.operations.engine.state_files import read_state_file
    from kops.operations.state.check import CheckOptions
    from kops.operations.state.check import check as compare
    from kops.operations.state.computation import ComputeOptions
    from kops.operations.state.input_offsets import parse_cut
    from kops.operations.state.own_code.registries import program_run
    from kops.operations.state.own_code.stores import with_topics
    from kops.operations.streams.capture import load_capture

    capture = with_topics(session, load_capture(app))
    program = program_run(session, capture, no_network=no_network)
    state_file, how = read_state_file(file, stores), CheckOptions(program, app, limit, first, one_key_in)
    options = ComputeOptions(at=parse_cut(at, session.now()), skip_undecodable=on_error == "skip", master=master)
    found = compare(session, state_file, options, how)
    session.note(*found.notes)
    session.render(found.rows, COLUMNS)
    differing = [row for store in found.rows for row in store["first"]]
    if differing and session.output_format == "table":
        click.echo()
        show_differences(session, differing)
    return exit_code(found.status)
