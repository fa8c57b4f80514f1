"""``kops state init``."""

from __future__ import annotations

import click

from kops.cli.frame.lazy import Command
from kops.cli.frame.session import Session


@click.command("init", cls=Command)
@click.argument("application", metavar="[APPLICATION]", required=False)
@click.option("--capture", "capture_file", metavar="FILE", type=click.Path(), help="What `kops streams capture` wrote of the program.")
@click.option("--topology", "topology_file", metavar="FILE", type=click.Path(), help="A file with what Topology.describe() prints.")
@click.option("--store", "stores", metavar="NAME", multiple=True, help="This store only; repeatable. [default: all]")
@click.option("--out", metavar="FILE", type=click.Path(dir_okay=False), help="Write to a new file. [default: stdout]")
@click.option("--force", is_flag=True, help="Let --out replace a file.")
@click.pass_obj
def init(
    session: Session,
    *,
    application: str | None,
    capture_file: str | None,
    topology_file: str | None,
    stores: tuple[str, ...],
    out: str | None,
    force: bool,
) -> int:
    """Draft the state file of an application.

    The topology, the topics, their settings and their newest records show much of it: stores, topics, repartitions, kinds of windows,
    formats. Everything else is marked TODO, with what to write there, and `kops state rebuild` lists what is still TODO.

    --capture takes what the program itself says: version, settings, types of stores, windows, grace, retention, serdes, extractors and
    start policies are facts then. What its functions compute stays TODO. APPLICATION is that of the capture.

    Without --topology and --capture only the group and the topics are examined, which do not show aggregations.
    """
    from kops.operations.streams.capture import named_application, read_program
    from kops.operations.streams.draft import draft_state_file, only_stores
    from kops.operations.streams.inspection import read_topology

    if force and not out:
        raise click.UsageError("--force goes with --out")
    if capture_file and topology_file:
        raise click.UsageError("--capture has the topology: leave out --topology")
    program, topology = read_program(capture_file) if capture_file else (None, read_topology(topology_file) if topology_file else None)
    name = named_application(application, program)
    draft = only_stores(draft_state_file(session, name, topology, program), stores)
    if out:
        _write(out, draft.text(), force=force)
        session.note(f"written: {out}")
    elif session.output_format == "json":
        session.render_object(draft.as_json(), name="application")
    else:
        click.echo(draft.text(), nl=False)
    for sentence in draft.notes:
        session.note(f"note: {sentence}")
    for store, why in draft.skipped.items():
        session.note(f"note: {store} is left out: {why}")
    left = [path for path, _ in draft.open_fields]
    session.note(f"still open: {', '.join(left)}" if left else "nothing is open; look at what was guessed, then run `kops state verify`")
    return 0


def _write(path: str, text: str, *, force: bool) -> None:
    """Write a file.

    :param force: replace one that is there
    :raises UsageProblem: when it exists or cannot be written
    """
    from pathlib import Path

    from kops.core.errors import UsageProblem

    try:
        with Path(path).open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageProblem(f"cannot write {path}: {error.strerror}", hint="name a file that does not exist yet, or add --force") from error
