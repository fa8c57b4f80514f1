"""``kops state snapshot``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kops.cli.frame.lazy import Command
from kops.cli.frame.options import spark_option
from kops.cli.frame.session import Session

STORE_COLUMNS = ("store", "type", "partitions", "records", "changelog")


def subject_of(text: str, stores: tuple[str, ...] = ()) -> Any:
    """Return the state file of that name, or else the text as an application's id."""
    from kops.operations.engine.state_files import read_state_file

    return read_state_file(text, stores) if Path(text).suffix in (".yaml", ".yml") or Path(text).is_file() else text


@click.command("snapshot", cls=Command)
@click.argument("subject", metavar="FILE|APPLICATION")
@click.option("--to", metavar="PATH", required=True, type=click.Path(), help="The folder to make; it must not exist.")
@click.option(
    "--guarantee",
    type=click.Choice(["at_least_once", "exactly_once_v2"]),
    help="The application's processing.guarantee, without a state file. [default: at_least_once]",
)
@click.option("--wait-empty", metavar="DURATION", help="Wait up to this long for the application to stop, such as 60s.")
@spark_option()
@click.pass_obj
def snapshot(session: Session, *, subject: str, to: str, guarantee: str | None, wait_empty: str | None, master: str | None) -> int:
    """Write an application's changelogs to a folder, with all that is needed to restore them elsewhere.

    FILE is a state file, APPLICATION an application.id; all of its stores are taken, as of one moment, so it must be stopped.
    The folder has Parquet (partition, key, value, timestamp, headers) and manifest.json: topics, settings, committed offsets.
    """
    from kops.core.durations import parse_duration
    from kops.operations.groups.matching import wait_until_empty
    from kops.operations.state.snapshot import described, take_snapshot

    chosen = subject_of(subject)
    if wait_empty:
        wait_until_empty(session, getattr(chosen, "application", subject), parse_duration(wait_empty))
    manifest = take_snapshot(session, chosen, to, guarantee=guarantee or "", master=master)
    body = described(manifest, to)
    if session.output_format in ("json", "yaml"):
        session.render_object(body)
    else:
        session.render(body["stores"], STORE_COLUMNS)
    for loss in manifest.losses:
        session.note(f"{loss}, and in this snapshot; `kops state verify` compares the state with its input")
    session.note(f"the state of {manifest.application} is in {to}; `kops state restore {to}` brings it back")
    return 0
