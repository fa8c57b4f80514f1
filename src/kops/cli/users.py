"""``kops users``: list, create, alter, delete."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kops.cli.frame.lazy import Group
from kops.cli.frame.options import Approval, F, mutation
from kops.cli.frame.session import Session
from kops.core.visible import visible

if TYPE_CHECKING:
    from kops.operations.users import Password

COLUMNS = ("user", "mechanism", "iterations")
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")


@click.group("users", cls=Group)
def group() -> None:
    """SCRAM users: list, create, alter, delete.

    Passwords are typed, read from a file, printed by a command or made by kops: they are never on a command line, in a plan, in the
    journal or in what kops prints.
    """


def _mechanisms(*, default: str) -> Callable[[F], F]:
    return click.option(
        "--mechanism",
        "mechanisms",
        type=click.Choice(MECHANISMS, case_sensitive=False),
        multiple=True,
        help=f"Mechanism of SASL; repeatable. [default: {default}]",
    )


def _password_options(command: F) -> F:
    path = click.Path(dir_okay=False)
    options = (
        click.option("--password-file", metavar="FILE", type=path, help="Read the password from this file."),
        click.option("--password-command", metavar="COMMAND", help="Run this without a shell: it prints the password."),
        click.option("--generate", metavar="FILE", type=path, help="Make a password, and write it to this new file (mode 0600)."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _iterations(*, default: str) -> Callable[[F], F]:
    return click.option("--iterations", type=click.IntRange(4096, 16384), metavar="N", help=f"4096 to 16384. [default: {default}]")


@group.command("list")
@click.argument("patterns", metavar="[USER|GLOB]...", nargs=-1)
@click.pass_obj
def list_users(session: Session, /, *, patterns: tuple[str, ...]) -> None:
    """List users that have a SCRAM password, with mechanisms and iterations."""
    from kops.operations.users import user_rows

    session.render(user_rows(session, patterns), COLUMNS)


@group.command("create")
@click.argument("user", metavar="NAME")
@_mechanisms(default="SCRAM-SHA-512")
@_iterations(default="4096")
@_password_options
@mutation
@click.pass_obj
def create(
    session: Session, /, *, user: str, mechanisms: tuple[str, ...], iterations: int | None, approval: Approval, **source: str | None
) -> int:
    """Create a user: give it a password, which is asked for unless an option says where it is.

    \b
    Examples:
      kops users create reports --generate reports.password
      kops users create reports --password-command 'pass show kafka/reports'
    """  # noqa: D301 - click wants a real backspace to keep these lines
    from kops.operations.users import plan_create

    password = _password(user, approval, **source)
    return session.carry_out(plan_create(session, user, mechanisms or MECHANISMS[1:], iterations or 4096, password), approval)


@group.command("alter")
@click.argument("user", metavar="USER")
@_mechanisms(default="all that the user has")
@_iterations(default="as before")
@_password_options
@mutation
@click.pass_obj
def alter(
    session: Session, /, *, user: str, mechanisms: tuple[str, ...], iterations: int | None, approval: Approval, **source: str | None
) -> int:
    """Replace the password of a user. The old one cannot be restored."""
    from kops.operations.users import plan_alter

    return session.carry_out(plan_alter(session, user, mechanisms, iterations, _password(user, approval, **source)), approval)


@group.command("delete")
@click.argument("user", metavar="USER")
@_mechanisms(default="all that the user has")
@mutation
@click.pass_obj
def delete(session: Session, /, *, user: str, mechanisms: tuple[str, ...], approval: Approval) -> int:
    """Delete the passwords of a user. They cannot be restored; the user's ACLs and quotas stay."""
    from kops.operations.users import plan_delete

    return session.carry_out(plan_delete(session, user, mechanisms), approval)


def _password(user: str, approval: Approval, *, password_file: str | None, password_command: str | None, generate: str | None) -> Password:
    """Return where the password comes from, after asking for it if it is to be typed."""
    from kops.config.secrets import from_command, from_value
    from kops.operations.users import FILE, GIVEN, MADE, Password

    if sum(each is not None for each in (password_file, password_command, generate)) > 1:
        raise click.UsageError("pass one of --password-file, --password-command and --generate")
    for kind, path in ((FILE, password_file), (MADE, generate)):
        if path is not None:
            return Password(kind, str(Path(path).absolute()))
    if approval.plan_out:
        raise click.UsageError("a saved plan holds no password: pass --password-file or --generate")
    if password_command is not None:
        return Password(GIVEN, secret=from_command(password_command))
    if approval.dry_run:
        return Password(GIVEN)
    if not sys.stdin.isatty():
        raise click.UsageError("there is no terminal to type the password at: pass --password-file, --password-command or --generate")
    return Password(
        GIVEN,
        secret=from_value("the prompt", click.prompt(f"Password of {visible(user)}", hide_input=True, confirmation_prompt=True, err=True)),
    )
