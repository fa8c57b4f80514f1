"""``kops client-metrics``: list, set, delete."""

from __future__ import annotations

import click

from kops.cli.frame.lazy import Group
from kops.cli.frame.options import Approval, mutation
from kops.cli.frame.session import Session
from kops.output.table import Column

COLUMNS = ("name", "metrics", Column("interval_ms", "INTERVAL MS"), "match")


@click.group(cls=Group)
def group() -> None:
    """Subscriptions to metrics that clients send to the brokers.

    Brokers do not report which connected clients a subscription matches.
    """


@group.command("list")
@click.argument("patterns", metavar="[NAME_OR_GLOB]...", nargs=-1)
@click.pass_obj
def list_(session: Session, /, *, patterns: tuple[str, ...]) -> int:
    """Show subscriptions: which metrics, how often, from which clients."""
    from kops.operations.client_metrics.subscriptions import subscription_rows

    session.render(subscription_rows(session, patterns), COLUMNS)
    return 0


@group.command("set")
@click.argument("name", metavar="NAME")
@click.option("--metrics", metavar="PREFIX,...", help="Prefixes of metric names, such as org.apache.kafka.consumer.; '*' for all.")
@click.option("--interval", metavar="DURATION", help="How often clients send them, such as 30s.")
@click.option("--match", metavar="KEY=REGEX,...", help="Only from these clients, such as client_software_name=librdkafka.")
@mutation
@click.pass_obj
def set_(session: Session, /, *, name: str, metrics: str | None, interval: str | None, match: str | None, approval: Approval) -> int:
    """Create a subscription, or change what is named of one."""
    from kops.core.durations import parse_duration
    from kops.operations.client_metrics.subscriptions import plan_set

    milliseconds = None if interval is None else str(parse_duration(interval, what="duration for --interval"))
    given = {"metrics": metrics, "interval.ms": milliseconds, "match": match}
    return session.carry_out(plan_set(session, name, {key: value for key, value in given.items() if value is not None}), approval)


@group.command("delete")
@click.argument("name", metavar="NAME")
@mutation
@click.pass_obj
def delete(session: Session, /, *, name: str, approval: Approval) -> int:
    """Delete a subscription: its clients stop to send what only it asks for."""
    from kops.operations.client_metrics.subscriptions import plan_delete

    return session.carry_out(plan_delete(session, name), approval)
