"""``kops topics``: reassign, reassignments, elect-leaders."""

from __future__ import annotations

from typing import Any

import click

from kops.cli.frame.options import Approval, mutation, regex_option
from kops.cli.frame.session import Session
from kops.cli.topics.shared import group, required, topic_option
from kops.core.errors import ExitCode

UNDER_WAY_COLUMNS = ("topic", "partition", "replicas", "adding", "removing", "left")


def broker_ids(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[int, ...]:
    """Read ids separated by commas, from an option that may be repeated."""
    parts = [part.strip() for text in texts for part in text.split(",")]
    if wrong := [part for part in parts if not (part.isascii() and part.isdigit())]:
        raise click.BadParameter(f"{wrong[0]!r} is not the id of a broker", ctx, param)
    return tuple(dict.fromkeys(map(int, parts)))


def moving_options(command: Any) -> Any:
    """Add ``--throttle`` and ``--batch``."""
    batch = click.option(
        "--batch",
        type=click.IntRange(min=1),
        metavar="N",
        default=100,
        show_default=True,
        help="Partitions that are moved at the same time.",
    )
    throttle = click.option("--throttle", metavar="SIZE", help="What each broker copies in a second at most, such as 50MB.")
    return throttle(batch(command))


def rate_of(throttle: str | None) -> int | None:
    from kops.core.sizes import parse_size

    if throttle is None:
        return None
    rate = parse_size(throttle.removesuffix("/s"), what="rate for --throttle")
    if rate == 0:
        raise click.UsageError("--throttle 0 would let nothing be copied", click.get_current_context())
    return rate


@group.command("reassign")
@click.argument("patterns", metavar="TOPIC[:PARTITIONS]...", nargs=-1)
@topic_option
@regex_option
@click.option("--replication-factor", "factor", type=click.IntRange(1, 2**15 - 1), metavar="N", help="Copies of each partition.")
@click.option("--to-brokers", metavar="ID,...", multiple=True, callback=broker_ids, help="The brokers that may have replicas afterwards.")
@click.option("--off-broker", "off_brokers", metavar="ID,...", multiple=True, callback=broker_ids, help="Brokers that may not.")
@click.option("--balance", is_flag=True, help="Even out replicas and leaders of these topics, and keep racks apart.")
@moving_options
@mutation
@click.pass_obj
def reassign(
    session: Session,
    /,
    *,
    patterns: tuple[str, ...],
    more: tuple[str, ...],
    regex: bool,
    throttle: str | None,
    approval: Approval,
    **given: Any,
) -> int:
    """Move, add or remove replicas of topics.

    As little as possible is copied, replicas stay in as many racks as there are, and the plan shows what each broker receives and
    whether it fits. --throttle limits the copying; it is removed at the end, after a kill by `kops journal finish`.
    """
    from kops.operations.replicas.plan import Request, plan_reassign

    request = Request(rate=rate_of(throttle), **given)
    return session.carry_out(plan_reassign(session, required(patterns, more), request, regex=regex), approval)


@group.command("reassignments")
@click.argument("patterns", metavar="[TOPIC[:PARTITIONS]]...", nargs=-1)
@regex_option
@click.option("--cancel", is_flag=True, help="Cancel them: new replicas are deleted, and the old ones stay.")
@mutation
@click.pass_obj
def reassignments(session: Session, /, *, patterns: tuple[str, ...], regex: bool, cancel: bool, approval: Approval) -> int:
    """Show the partitions that are being moved, whoever began it, and what is left to copy.

    With --cancel, these are cancelled; to undo that begins them again.
    """
    from kops.core.sizes import size_text
    from kops.operations.replicas.underway import plan_cancel, rows_under_way

    if cancel:
        return session.carry_out(plan_cancel(session, patterns, regex=regex), approval)
    if any(approval):
        raise click.UsageError("nothing is changed without --cancel", click.get_current_context())
    rows, warnings = rows_under_way(session, patterns, regex=regex)
    if session.output_format == "table":
        session.render([{**row, "left": size_text(row["left_bytes"])} for row in rows], UNDER_WAY_COLUMNS)
    else:
        session.render(rows, [*UNDER_WAY_COLUMNS[:-1], "left_bytes"])
    session.note(*(f"warning: {warning}" for warning in warnings), *([] if rows else ["nothing is being moved"]))
    return int(ExitCode.PARTIAL if warnings else ExitCode.DONE)


@group.command("elect-leaders")
@click.argument("patterns", metavar="[TOPIC[:PARTITIONS]]...", nargs=-1)
@topic_option
@regex_option
@click.option("--unclean", is_flag=True, help="Of partitions without a leader: let a replica lead that is up. Records are lost.")
@mutation
@click.pass_obj
def elect_leaders(
    session: Session, /, *, patterns: tuple[str, ...], more: tuple[str, ...], regex: bool, unclean: bool, approval: Approval
) -> int:
    """Let preferred replicas lead again: of some topics, or of all.

    --unclean is for partitions whose replicas in sync are all down and will not come back. What only those have is lost; to
    approve, the topic's name is typed, or 'N topics' for several (--confirm).
    """
    from kops.operations.replicas.elect import plan_elect

    if unclean and not (patterns or more):
        raise click.UsageError("--unclean needs the names of topics", click.get_current_context())
    return session.carry_out(plan_elect(session, [*patterns, *more], regex=regex, unclean=unclean), approval)
