"""``kops quotas``: list, set, remove, explain."""

from __future__ import annotations

import click

from kops.cli.frame.lazy import Group
from kops.cli.frame.options import Approval, F, mutation
from kops.cli.frame.session import Session
from kops.core.quotas import TYPES, entity_of

COLUMNS = ("entity", "key", "value")
EXPLAINED = ("key", "value", "rule", "shared_by", "unit")


@click.group("quotas", cls=Group)
def group() -> None:
    """Quotas of users, client ids and addresses: list, set, remove, explain.

    \b
    producer_byte_rate, consumer_byte_rate   bytes a second, on each broker
    request_percentage                       of one thread's time, on each broker
    controller_mutation_rate                 partitions created or deleted a second
    connection_creation_rate                 connections a second, of an address
    """  # noqa: D301 - click wants a real backspace to keep these lines


def _entity_options(command: F) -> F:
    options = (
        click.option("--user", metavar="NAME", help="Name of the principal: a SCRAM user, or a certificate's."),
        click.option("--client-id", metavar="ID", help="The client.id of clients."),
        click.option("--ip", metavar="ADDRESS", help="The address that clients connect from."),
        click.option("--default", "defaults", type=click.Choice(TYPES), multiple=True, help="The default of this type; repeatable."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@group.command("list")
@_entity_options
@click.pass_obj
def list_quotas(session: Session, /, *, user: str | None, client_id: str | None, ip: str | None, defaults: tuple[str, ...]) -> None:
    """List quotas: all, or those whose entity has these names."""
    from kops.operations.quotas import quota_rows

    named = user is not None or client_id is not None or ip is not None or bool(defaults)
    session.render(quota_rows(session, entity_of(user, client_id, ip, defaults) if named else {}), COLUMNS)


@group.command("set")
@_entity_options
@click.argument("given", metavar="KEY=VALUE...", nargs=-1, required=True)
@mutation
@click.pass_obj
def set_quotas(
    session: Session,
    /,
    *,
    user: str | None,
    client_id: str | None,
    ip: str | None,
    defaults: tuple[str, ...],
    given: tuple[str, ...],
    approval: Approval,
) -> int:
    """Set quotas of one entity, such as a user, a client id of a user, or a default.

    \b
    Examples:
      kops quotas set --user reports consumer_byte_rate=10MB
      kops quotas set --user reports --default client-id request_percentage=50
      kops quotas set --default ip connection_creation_rate=20
    """  # noqa: D301 - click wants a real backspace to keep these lines
    from kops.operations.quotas import plan_set

    return session.carry_out(plan_set(session, entity_of(user, client_id, ip, defaults), given), approval)


@group.command("remove")
@_entity_options
@click.argument("keys", metavar="[KEY]...", nargs=-1)
@mutation
@click.pass_obj
def remove(
    session: Session,
    /,
    *,
    user: str | None,
    client_id: str | None,
    ip: str | None,
    defaults: tuple[str, ...],
    keys: tuple[str, ...],
    approval: Approval,
) -> int:
    """Remove quotas of one entity: some, or all that it has."""
    from kops.operations.quotas import plan_remove

    return session.carry_out(plan_remove(session, entity_of(user, client_id, ip, defaults), keys), approval)


@group.command("explain")
@click.option("--user", metavar="NAME", default="ANONYMOUS", show_default=True, help="Name of the client's principal.")
@click.option("--client-id", metavar="ID", default="", help="The client's client.id. [default: none]")
@click.option("--ip", metavar="ADDRESS", help="The client's address, for the rate of its connections.")
@click.pass_obj
def explain(session: Session, /, *, user: str, client_id: str, ip: str | None) -> None:
    """Show which quotas apply to a client, by which entity, and with which clients it shares each.

    What brokers decide by a client.quota.callback.class of their own, and connection limits in their settings, is not looked at.
    """
    from kops.operations.quotas import explain_rows

    session.render(explain_rows(session, user, client_id, ip), EXPLAINED)
