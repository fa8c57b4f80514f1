"""``kops brokers``: alter."""

from __future__ import annotations

import click

from kops.cli.brokers.shared import group, ids_argument
from kops.cli.frame.options import Approval, mutation
from kops.cli.frame.session import Session
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
