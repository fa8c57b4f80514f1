"""``kops connect loggers``: list, set."""

from __future__ import annotations

import click

from kops.cli.connect.shared import group
from kops.cli.frame.options import Approval, mutation, regex_option
from kops.cli.frame.session import Session


@group.group("loggers")
def loggers() -> None:
    """Show and set log levels of the workers."""


@loggers.command("list")
@click.argument("patterns", metavar="[LOGGER_OR_GLOB]...", nargs=-1)
@regex_option
@click.pass_obj
def list_loggers(session: Session, /, *, patterns: tuple[str, ...], regex: bool) -> None:
    """List loggers and their levels on the worker that answers."""
    from kops.operations.connect.loggers import logger_rows

    session.render(logger_rows(session, patterns, regex=regex), ["logger", "level", "last_modified"])


@loggers.command("set")
@click.argument("names", metavar="LOGGER...", nargs=-1, required=True)
@click.option("--level", required=True, metavar="LEVEL", help="OFF, FATAL, ERROR, WARN, INFO, DEBUG or TRACE.")
@mutation
@click.pass_obj
def set_loggers(session: Session, /, *, names: tuple[str, ...], level: str, approval: Approval) -> int:
    """Set loggers, and those below them, on every worker until it restarts (KIP-976).

    A connector's own logger is its class, or its package.
    """
    from kops.operations.connect.loggers import plan_loggers

    return session.carry_out(plan_loggers(session, names, level), approval)
