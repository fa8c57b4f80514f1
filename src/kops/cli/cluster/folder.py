"""``kops cluster``: the cluster as a folder of YAML files."""

from __future__ import annotations

import sys
from dataclasses import replace as replaced
from pathlib import Path

import click

from kops.cli.cluster.look import group
from kops.cli.frame.options import Approval, mutation
from kops.cli.frame.plan_view import plan_text
from kops.cli.frame.session import Session
from kops.core.errors import ExitCode
from kops.core.findings import counted

EXPORT_COLUMNS = ("kind", "documents", "file")
DIFF_COLUMNS = ("target", "action", "before", "after", "reason")
folder_argument = click.argument("folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
prune_option = click.option("--prune", is_flag=True, help="Remove what the folder's manifest owns and no file declares.")


@group.command("export")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option("--replace", is_flag=True, help="Replace files that are there.")
@click.pass_obj
def export(session: Session, /, *, folder: Path, replace: bool) -> int:
    """Write what the cluster has as YAML, a file a kind, for `kops cluster diff` and `apply`.

    Only this user can read the files. Secrets are not written. manifest.yaml says whose the folder is, and what --prune may
    remove; it stays as it is.
    """
    from kops.operations.folder.export import export as write

    found = write(session, folder, replace=replace)
    session.render([one.row() for one in found], EXPORT_COLUMNS)
    session.note(*(note for one in found for note in one.notes))
    return int(ExitCode.PARTIAL if any(one.failed for one in found) else ExitCode.DONE)


@group.command("diff")
@folder_argument
@prune_option
@click.pass_obj
def diff(session: Session, /, *, folder: Path, prune: bool) -> int:
    """Show how the cluster differs from a folder: what `kops cluster apply` would do, and what it cannot do.

    Exit code 1 when anything differs.
    """
    from kops.operations.folder.apply import plan_folder

    plan = plan_folder(session, folder, prune=prune)
    differing = tuple(item for item in plan.items if item.differs)
    rows = [item.as_json() for item in differing]
    if session.output_format != "table":
        session.render(rows, DIFF_COLUMNS)
    elif rows:
        click.echo(plan_text(replaced(plan, items=differing), terminal=sys.stdout.isatty()))
    session.note(*(f"warning: {warning}" for warning in plan.warnings), *plan.notes)
    session.note(f"{counted(len(rows), 'difference')}" if rows else "nothing differs")
    return int(ExitCode.FAILED if rows else ExitCode.DONE)


@group.command("apply")
@folder_argument
@prune_option
@mutation
@click.pass_obj
def apply(session: Session, /, *, folder: Path, prune: bool, approval: Approval) -> int:
    """Bring the cluster in line with a folder, in one plan.

    What others need comes first. A part that fails stops the rest: `kops journal finish` continues it. Nothing is removed
    without --prune.
    """
    from kops.operations.folder.apply import plan_folder

    return session.carry_out(plan_folder(session, folder, prune=prune), approval)
