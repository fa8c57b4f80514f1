"""``kops topics``: reassign."""

from __future__ import annotations

from typing import Any

import click

from kops.cli.frame.options import Approval, mutation, regex_option
from kops.cli.frame.session import Session
from kops.cli.topics.shared import group, required, topic_option


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
    whether it fits. --throttle limits the copying; it is taken away at the end, after a kill by `kops journal finish`.
    """
    from kops.operations.replicas.plan import Request, plan_reassign

    request = Request(rate=rate_of(throttle), **given)
    return session.carry_out(plan_reassign(session, required(patterns, more), request, regex=regex), approval)
