"""``kops state snapshot`` and ``kops state restore``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kops.cli.frame import options
from kops.cli.frame.lazy import Command
from kops.cli.frame.options import Approval, spark_option
from kops.cli.frame.session import Session
from kops.cli.state.shared import refuse_early, wait_option, wait_until_stopped

STORE_COLUMNS = ("store", "type", "partitions", "records", "changelog")


@click.command("snapshot", cls=Command)
@click.argument("subject", metavar="FILE|APPLICATION")
@click.option("--to", metavar="PATH", required=True, type=click.Path(), help="The folder to make; it must not exist.")
@click.option(
    "--guarantee",
    type=click.Choice(["at_least_once", "exactly_once_v2"]),
    help="The application's processing.guarantee, without a state file. [default: at_least_once]",
)
@wait_option
@spark_option()
@click.pass_obj
def snapshot(session: Session, *, subject: str, to: str, guarantee: str | None, wait_empty: str | None, master: str | None) -> int:
    """Write an application's changelogs to a folder, with all that is needed to restore them elsewhere.

    FILE is a state file, APPLICATION an application.id; all of its stores are taken, as of one moment, so it must be stopped.
    The folder has Parquet (partition, key, value, timestamp, headers) and manifest.json: topics, settings, committed offsets.
    """
    from kops.operations.engine.state_files import read_state_file
    from kops.operations.state.snapshot import described, take_snapshot

    is_file = Path(subject).suffix in (".yaml", ".yml") or Path(subject).is_file()
    chosen: Any = read_state_file(subject) if is_file else subject
    if wait_empty:
        wait_until_stopped(session, getattr(chosen, "application", subject), wait_empty)
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


@click.command("restore", cls=Command)
@click.argument("path", metavar="PATH")
@click.option("--application", metavar="ID", default="", help="Into this application.id. [default: that of the snapshot]")
@click.option("--store", "stores", metavar="NAME", multiple=True, help="This store only, without offsets; repeatable. [default: all]")
@click.option("--no-offsets", is_flag=True, help="Leave the committed offsets as they are.")
@wait_option
@spark_option()
@options.mutation
@click.pass_obj
def restore(
    session: Session,
    *,
    path: str,
    application: str,
    stores: tuple[str, ...],
    no_offsets: bool,
    wait_empty: str | None,
    master: str | None,
    approval: Approval,
) -> int:
    """Give an application the state of a snapshot: changelogs and committed offsets.

    Missing changelogs are created with their settings; to existing ones only differences are appended. The application must be
    stopped. It may be on another cluster (-c), or under another application.id.
    """
    from kops.operations.state.restore import plan_restore
    from kops.operations.state.snapshot import read_manifest

    refuse_early(session, approval)
    if wait_empty:
        wait_until_stopped(session, application or read_manifest(Path(path)).application, wait_empty)
    plan = plan_restore(session, path, application=application, stores=stores, offsets=not no_offsets, master=master)
    return session.carry_out(plan, approval)
