"""Options that many commands share.

The shared ones work before and after the verb: each stores its value in ``ctx.meta``, where the inner one wins.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
"""A command, for what decorates one."""

MARKUP = ("markdown", "html", "jira")
"""Formats in which tables can be pasted into a ticket."""
OUTPUT_FORMATS = ("table", "json", "yaml", "csv", "name", *MARKUP)
META = "kops.settings"
FORMATS = "string, bytes, long, int, short, double, float, json, uuid, avro, json-schema, protobuf, or a plugin's."
"""For the help of options that take a format."""


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    settings = ctx.meta.setdefault(META, {})
    if param.name and value not in (None, (), False):
        settings[param.name] = (*settings.get(param.name, ()), *value) if isinstance(value, tuple) else value


def _shared(*names: str, **attributes: Any) -> Callable[[], click.Option]:
    return lambda: click.Option(names, callback=_remember, expose_value=False, **attributes)


SHARED_OPTIONS: tuple[Callable[[], click.Option], ...] = (
    _shared("-o", "--output", type=click.Choice(OUTPUT_FORMATS), help="Format of stdout. [default: table]"),
    _shared("-c", "--context", metavar="NAME", help="Context to use; see `kops context list`."),
    _shared("-B", "--bootstrap-server", "bootstrap_server", metavar="HOST:PORT", help="Brokers to use instead of the context's."),
    _shared("-X", "--property", "properties", metavar="KEY=VALUE", multiple=True, help="A client property; repeatable."),
    _shared("--command-config", metavar="FILE", help="A Java client.properties, as Apache's tools take it."),
    _shared("--timeout", type=click.FloatRange(min=0.1), metavar="SECONDS", help="Time limit of one request. [default: 30]"),
    _shared("-q", "--quiet", is_flag=True, help="No progress or notes on stderr."),
    _shared("-v", "--verbose", is_flag=True, help="Show the client library's log on stderr."),
    _shared("--debug", is_flag=True, help="Show a traceback with every error."),
)


class Approval(NamedTuple):
    """What the command line says about approving a plan."""

    dry_run: bool = False
    yes: bool = False
    confirm: tuple[str, ...] = ()
    plan_out: str | None = None


def mutation(command: F) -> F:
    """Add ``--dry-run``, ``--yes``, ``--confirm`` and ``--plan-out``; the command gets them as ``approval``."""

    @click.option("-n", "--dry-run", is_flag=True, help="Show the plan and change nothing.")
    @click.option("-y", "--yes", is_flag=True, help="Apply the plan without asking.")
    @click.option(
        "--confirm",
        metavar="NAME",
        multiple=True,
        help="Confirm by name instead of at the prompt: what is deleted or replaced, or a protected context; repeatable.",
    )
    @click.option(
        "--plan-out", metavar="FILE", type=click.Path(dir_okay=False), help="Save the plan for `kops apply FILE`; change nothing."
    )
    @wraps(command)
    def wrapped(*args: Any, dry_run: bool, yes: bool, confirm: tuple[str, ...], plan_out: str | None, **kwargs: Any) -> Any:
        return command(*args, approval=Approval(dry_run, yes, confirm, plan_out), **kwargs)

    return wrapped  # type: ignore[return-value]


regex_option = click.option("--regex", is_flag=True, help="Names are regular expressions that match whole names.")
isolation_option = click.option(
    "--isolation",
    type=click.Choice(["read_committed", "read_uncommitted"]),
    default="read_committed",
    show_default=True,
    help="read_committed leaves out aborted and open transactions.",
)
on_error_option = click.option(
    "--on-error", type=click.Choice(["fail", "skip"]), default="fail", show_default=True, help="What to do with an undecodable record."
)
take_over_option = click.option(
    "--take-over", is_flag=True, help="Also resume an entry that another machine left open; asks to confirm its HOST:PID."
)
"""Of the verbs that act on an entry of the journal."""


def spark_option(only: str = "") -> Callable[[F], F]:
    """Add ``--master``, which takes what ``--remote`` takes too; the command gets either as ``master``.

    :param only: when it counts, if not always
    """
    where = f"Where Spark runs{f', {only}' if only else ''}: a master, or sc://HOST:PORT of Spark Connect."
    return click.option("--master", "--remote", "master", metavar="URL", help=f"{where} [default: the context's, or local[*]]")
