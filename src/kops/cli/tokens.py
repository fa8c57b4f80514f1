"""``kops tokens``: list, create, renew, expire."""

from __future__ import annotations

from pathlib import Path

import click

from kops.cli.frame.lazy import Group
from kops.cli.frame.options import Approval, mutation
from kops.cli.frame.session import Session

COLUMNS = ("token", "owner", "state", "expires_at", "ends_at", "renewers")


@click.group("tokens", cls=Group)
def group() -> None:
    """List, create, renew and expire delegation tokens.

    A client that has a token does what its owner may, until it expires. Brokers want a login by SASL for these requests. What a client
    logs in with, the HMAC, is only ever written to the file of --to: it is in no plan, in no journal and in nothing that kops prints.
    """


@group.command("list")
@click.argument("owners", metavar="[PRINCIPAL]...", nargs=-1)
@click.pass_obj
def list_tokens(session: Session, /, *, owners: tuple[str, ...]) -> None:
    """List the tokens that your login may see: its own, those that it may renew, and those that its rights show."""
    from kops.core.acls.models import parse_principal
    from kops.operations.tokens import token_rows

    session.render(token_rows(session, [parse_principal(each) for each in owners]), COLUMNS)


@group.command("create")
@click.option("--to", "path", metavar="FILE", type=click.Path(dir_okay=False), required=True, help="New file for the HMAC (mode 0600).")
@click.option("--owner", metavar="PRINCIPAL", help="Whose rights it has. [default: those of your login]")
@click.option("--renewer", "renewers", metavar="PRINCIPAL", multiple=True, help="May renew it too; repeatable.")
@click.option("--max-life", metavar="DURATION", help="How long it can be renewed, such as 7d. [default: delegation.token.max.lifetime.ms]")
@mutation
@click.pass_obj
def create(
    session: Session, /, *, path: str, owner: str | None, renewers: tuple[str, ...], max_life: str | None, approval: Approval
) -> int:
    """Create a token. Undo removes it."""
    from kops.core.acls.models import parse_principal
    from kops.core.durations import parse_duration
    from kops.operations.tokens import plan_create

    life = parse_duration(max_life) if max_life else None
    principals = [parse_principal(each) for each in renewers]
    plan = plan_create(session, parse_principal(owner) if owner is not None else None, principals, life, str(Path(path).absolute()))
    return session.carry_out(plan, approval)


@group.command("renew")
@click.argument("token", metavar="TOKEN")
@click.option("--for", "period", metavar="DURATION", help="From now on, such as 12h. [default: delegation.token.expiry.time.ms]")
@mutation
@click.pass_obj
def renew(session: Session, /, *, token: str, period: str | None, approval: Approval) -> int:
    """Renew a token, named by its id. Undo lets it expire when it would have."""
    from kops.core.durations import parse_duration
    from kops.operations.tokens import plan_renew

    return session.carry_out(plan_renew(session, token, parse_duration(period) if period else None), approval)


@group.command("expire")
@click.argument("token", metavar="TOKEN")
@click.option("--in", "period", metavar="DURATION", help="From now on, such as 1h, which can be undone. [default: it is removed at once]")
@mutation
@click.pass_obj
def expire(session: Session, /, *, token: str, period: str | None, approval: Approval) -> int:
    """Let a token expire, at once or later. One that was removed cannot be restored."""
    from kops.core.durations import parse_duration
    from kops.operations.tokens import plan_expire

    return session.carry_out(plan_expire(session, token, parse_duration(period) if period else None), approval)
