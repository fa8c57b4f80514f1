"""``kops topics``: diff and apply, for topics that files declare."""

from __future__ import annotations

import click

from kops.cli.frame.options import Approval, mutation
from kops.cli.frame.session import Session
from kops.cli.topics.shared import group, streams_option

COLUMNS = ("topic", "field", "actual", "declared", "action", "note")

paths_argument = click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path())
OWNED = "topics that the files own (owns: [shop-*]) and do not declare"


@group.command("diff")
@paths_argument
@click.option("--prune", is_flag=True, help=f"As for `apply --prune`: count {OWNED}.")
@click.option("--reset-unmanaged", "reset", is_flag=True, help="As for `apply --reset-unmanaged`: count settings that no file mentions.")
@click.pass_obj
def diff(session: Session, /, *, paths: tuple[str, ...], prune: bool, reset: bool) -> int:
    """Compare topics with the files that declare them.

    Exit code 1 when anything is not as declared. Settings that no file mentions are shown, and count with
    --reset-unmanaged.
    """
    from kops.core.errors import ExitCode
    from kops.operations.topics.declared import compare_files, difference_rows, spared_topics

    comparison = compare_files(session, paths, prune=prune, reset=reset)
    rows = difference_rows(comparison)
    if session.output_format != "table":
        session.render(rows, COLUMNS)
    elif rows:
        session.render(rows, [column for column in COLUMNS if any(row[column] not in (None, "") for row in rows)])
    for text in spared_topics(comparison):
        session.note(text)
    topics = len(comparison.declaration.topics)
    different = len({row["topic"] for row in rows if row["action"] != "unmanaged"})
    if different:
        session.note(f"{different} topic{'s differ' if different != 1 else ' differs'}, {topics} declared")
    else:
        session.note(f"{topics} topic{'s are' if topics != 1 else ' is'} as declared")
    return int(ExitCode.FAILED if comparison.differs else ExitCode.DONE)


@group.command("apply")
@paths_argument
@click.option("--prune", is_flag=True, help=f"Delete {OWNED}.")
@click.option("--reset-unmanaged", "reset", is_flag=True, help="Remove settings that no file mentions.")
@streams_option
@mutation
@click.pass_obj
def apply(session: Session, /, *, paths: tuple[str, ...], prune: bool, reset: bool, allow_streams: bool, approval: Approval) -> int:
    """Create, alter and grow topics as YAML files declare them, in one plan.

    PATH is a file, or a directory of them; a document has name, and may have partitions, replication_factor and config.
    Nothing shrinks, and nothing is deleted without --prune.
    """
    from kops.operations.topics.declared import plan_apply

    return session.carry_out(plan_apply(session, paths, prune=prune, reset=reset, allow_streams=allow_streams), approval)
