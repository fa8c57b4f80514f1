"""``kops brokers``: alter, drain, demote, move-replicas, unregister."""

from __future__ import annotations

import click

from kops.cli.brokers.shared import BROKER_ID, group, ids_argument
from kops.cli.frame.options import Approval, mutation
from kops.cli.frame.session import Session
from kops.cli.topics.replicas import broker_ids, moving_options, rate_of
from kops.cli.topics.shared import key_and_value


@group.command("alter")
@ids_argument
@click.option("--default", is_flag=True, help="Change what applies to every broker that has no value of its own.")
@click.option(
    "--config", "settings", metavar="KEY=VALUE", multiple=True, help="A setting to set, such as log.cleaner.threads=2; repeatable."
)
@click.option("--delete-config", "remove", metavar="KEY", multiple=True, help="A setting to remove; repeatable.")
@mutation
@click.pass_obj
def alter(
    session: Session,
    /,
    *,
    ids: tuple[int, ...],
    default: bool,
    settings: tuple[str, ...],
    remove: tuple[str, ...],
    approval: Approval,
) -> int:
    """Change settings of running brokers.

    Settings that need a restart are refused: `kops brokers config` shows which. The brokers check values before the plan is shown.
    """
    from kops.operations.brokers.settings import plan_alter

    return session.carry_out(plan_alter(session, ids, dict(map(key_and_value, settings)), remove, default=default), approval)


@group.command("drain")
@click.argument("broker", metavar="ID", type=BROKER_ID)
@click.option(
    "--to-brokers", metavar="ID,...", multiple=True, callback=broker_ids, help="The brokers that take over. [default: all others]"
)
@moving_options
@mutation
@click.pass_obj
def drain(session: Session, /, *, broker: int, to_brokers: tuple[int, ...], throttle: str | None, batch: int, approval: Approval) -> int:
    """Move every replica off a broker, those of internal topics too.

    It is `kops topics reassign --off-broker` of all topics. Afterwards the broker can be stopped without any partition having fewer
    replicas. Topics that are created meanwhile may still get replicas there.
    """
    from kops.operations.replicas.plan import Request, plan_reassign

    request = Request(to_brokers=to_brokers, off_brokers=(broker,), rate=rate_of(throttle), batch=batch)
    return session.carry_out(plan_reassign(session, (), request), approval)


@group.command("demote")
@click.argument("broker", metavar="ID", type=BROKER_ID)
@mutation
@click.pass_obj
def demote(session: Session, /, *, broker: int, approval: Approval) -> int:
    """Let other brokers lead what a broker leads, and make it the last choice; its replicas stay, and nothing is copied.

    A partition whose only replica is there keeps its leader.
    """
    from kops.operations.replicas.plan import Request, plan_reassign

    return session.carry_out(plan_reassign(session, (), Request(last=(broker,))), approval)


@group.command("move-replicas")
@click.argument("broker", metavar="ID", type=BROKER_ID)
@click.argument("patterns", metavar="TOPIC[:PARTITIONS]...", nargs=-1, required=True)
@click.option("--to", "directory", metavar="DIRECTORY", required=True, help="The log directory, as `kops brokers log-dirs` shows it.")
@mutation
@click.pass_obj
def move_replicas(session: Session, /, *, broker: int, patterns: tuple[str, ...], directory: str, approval: Approval) -> int:
    """Move replicas of a broker to another log directory of the same broker, and wait until they are there."""
    from kops.operations.brokers.log_dirs import plan_move

    return session.carry_out(plan_move(session, broker, patterns, directory), approval)


@group.command("unregister")
@click.argument("broker", metavar="ID", type=BROKER_ID)
@mutation
@click.pass_obj
def unregister(session: Session, /, *, broker: int, approval: Approval) -> int:
    """Make the controllers forget a broker that is down for good. This cannot be undone.

    Refused while it is in service or has replicas. To approve, its id is typed (--confirm ID). A broker of this id that is started
    registers itself again.
    """
    from kops.operations.brokers.unregister import plan_unregister

    return session.carry_out(plan_unregister(session, broker), approval)
