"""``kops connect``: validate, diff, apply, for connectors that files declare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from kops.cli.connect.shared import group
from kops.cli.frame.options import Approval, mutation
from kops.cli.frame.session import Session
from kops.core.errors import ExitCode
from kops.core.visible import visible

PROBLEM_COLUMNS = ("connector", "setting", "level", "message", "value", "recommended", "hint")
DIFF_COLUMNS = ("connector", "setting", "actual", "declared", "action")

paths_argument = click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path())
OWNED = "connectors that the files own (owns: [shop-*]) and do not declare"


@group.command("validate")
@paths_argument
@click.pass_obj
def validate(session: Session, /, *, paths: tuple[str, ...]) -> int:
    """Validate configurations with the workers' plugins; nothing is created.

    Each invalid setting is shown with its plugin's message and recommended values. The exit code is 2 if there is one.
    PATH is a YAML, JSON or properties file, or a directory of them.
    """
    from kops.operations.connect.validate import ERROR, validate_files

    count, rows, unknown = validate_files(session, paths)
    if session.output_format == "table":
        _write(rows)
    else:
        session.render(rows, PROBLEM_COLUMNS)
    wrong = {row["connector"] for row in rows if row["level"] == ERROR}
    settings = sum(row["level"] == ERROR for row in rows)
    checked = f"{count} configuration{'' if count == 1 else 's'} checked"
    found = f"{settings} invalid setting{'' if settings == 1 else 's'} in {len(wrong)} of them" if wrong else "all valid"
    session.note(f"{checked}, {found}")
    for text in unknown:
        session.note(text)
    return int(ExitCode.USAGE if wrong else ExitCode.DONE)


def _write(rows: Sequence[Mapping[str, Any]]) -> None:
    """Write problems for people: one line each, followed by what to do."""
    for row in rows:
        value = f" = {row['value']}" if row["value"] is not None else ""
        click.echo(visible(f"{row['level']}: {row['connector']}: {row['setting']}{value}: {row['message']}"))
        recommended = "" if row["hint"] else ", ".join(row["recommended"])  # a full list would bury the likely fix
        for label, text in (("recommended", recommended), ("hint", row["hint"]), ("in", row["place"])):
            if text:
                click.echo(visible(f"  {label}: {text}"))


@group.command("diff")
@paths_argument
@click.option("--prune", is_flag=True, help=f"As for `apply --prune`: count {OWNED}.")
@click.pass_obj
def diff(session: Session, /, *, paths: tuple[str, ...], prune: bool) -> int:
    """Compare connectors with the files that declare them, secrets hidden; exit code 1 if one differs."""
    from kops.operations.connect.files import compare_files, difference_rows

    comparison = compare_files(session, paths, prune=prune)
    rows = difference_rows(comparison)
    if rows or session.output_format != "table":
        session.render(rows, DIFF_COLUMNS, whole=True)
    declared, different = len(comparison.declaration.connectors), len(comparison.changes)
    session.note(f"{declared} declared, {different} not as declared" if different else f"{declared} declared, all as declared")
    return int(ExitCode.FAILED if different else ExitCode.DONE)


@group.command("apply")
@paths_argument
@click.option("--prune", is_flag=True, help=f"Delete {OWNED}.")
@click.option("--no-validate", "validate", is_flag=True, default=True, flag_value=False, help="Skip validation by the plugins.")
@click.option("--create-topics", is_flag=True, help="Create missing topics first, in the same plan.")
@mutation
@click.pass_obj
def apply(session: Session, /, *, paths: tuple[str, ...], prune: bool, validate: bool, create_topics: bool, approval: Approval) -> int:
    """Create and change connectors as files declare them, in one plan.

    PATH is a YAML or JSON file, whose documents have name and config as in Connect's REST API, a properties file as for
    a standalone worker, or a directory of them. Connect resolves ${file:...} and ${env:...}. Nothing is deleted without --prune.
    """
    from kops.operations.connect.apply import plan_apply

    return session.carry_out(plan_apply(session, paths, prune=prune, validate=validate, create_topics=create_topics), approval)
