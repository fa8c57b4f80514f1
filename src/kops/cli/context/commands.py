"""``kops context``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kops.cli.context.options import only_name, save_options, settings_options, table_of
from kops.cli.frame.lazy import Group
from kops.cli.frame.session import Session
from kops.core.errors import ApprovalRequired, KopsError, Unreachable

if TYPE_CHECKING:
    from kops.config.connection import Connection


no_test_option = click.option(
    "--no-test", is_flag=True, help="Do not connect, as the cluster is out of reach; certificates and passwords are still loaded."
)


@click.group(cls=Group)
def group() -> None:
    """Clusters that kops knows, and how to reach them.

    Precedence, for each setting: -B and -X, then --command-config, then KOPS_* (KOPS_BOOTSTRAP_SERVERS, KOPS_PASSWORD_FILE ...), then
    the context of -c or KOPS_CONTEXT, then the current context, which is used only if none of the others names brokers.
    """


@group.command("list")
@click.pass_obj
def list_(session: Session) -> None:
    """List contexts."""
    from kops.operations.contexts.manage import list_contexts

    rows = list_contexts(session.directories)
    if not rows:
        session.note("no contexts; `kops context add NAME --bootstrap-servers host:9092` makes one, and so does `kops sandbox up`")
    columns = ["name", "current", "bootstrap_servers", "security_protocol", "protected", "read_only"]
    session.render(rows, [*columns, "problem"] if any(row["problem"] for row in rows) else columns)


@group.command("use")
@click.argument("name")
@click.pass_obj
def use(session: Session, *, name: str) -> None:
    """Make a context the current one."""
    from kops.config.contexts import use_context

    use_context(session.directories, name)
    session.note(f"the current context is {name}")
    if session.output_format != "table":
        session.render_object({"name": name, "current": True})


@group.command("show")
@click.argument("name", required=False)
@click.option("--resolved", is_flag=True, help="Show the values from flags, environment and files, and the origin of each.")
@click.pass_obj
def show(session: Session, *, name: str | None, resolved: bool) -> None:
    """Show a context, the current one by default. Secrets are never shown, only where they come from."""
    from kops.operations.contexts.manage import show_context, show_resolved

    only_name(session, name)
    if resolved:
        connection = session.connection
        if session.settings.get("timeout"):
            connection = replace(connection, sources={**connection.sources, "timeout": "flag --timeout"})
        body = show_resolved(connection)
    else:
        body = show_context(session.directories, session.settings.get("context") or os.environ.get("KOPS_CONTEXT"))
    if session.output_format in {"table", "csv"}:
        # A long path comes last: on a narrow terminal it runs on, and the column of sources stays straight.
        columns = ["setting", "source", "value"] if resolved and session.output_format == "table" else ["setting", "value", "source"]
        session.render(body["settings"], columns if resolved else ["setting", "value"], whole=True)
    else:
        session.render_object(body)


@group.command("add")
@click.argument("name")
@settings_options
@no_test_option
@save_options
@click.pass_obj
def add(session: Session, /, *, name: str, no_test: bool, current: bool, replace_: bool, **values: Any) -> None:
    """Add a context. Secrets are read from a file, command or variable; on a command line `ps` would show them.

    It is saved only after a broker has answered. -B, -X and --timeout become part of it. The first context becomes the current one.
    """
    from kops.operations.contexts.manage import add_context

    table = table_of(values, session.settings)
    works = _proof(session, name, no_test=no_test)
    _report(session, add_context(session.directories, os.environ, name, table, current=current, replace=replace_, prove=works))


def _proof(session: Session, name: str, *, no_test: bool) -> Callable[[Connection], None]:
    """Return a check that refuses a connection that does not work, before its context is saved."""
    from kops.operations.contexts.probe import prove

    def works(connection: Connection) -> None:
        try:
            prove(connection, session.progress, connects=not no_test)
        except KopsError as broken:
            broken.message = f"{broken.message}; context {name} is not saved"
            if isinstance(broken, Unreachable):
                broken.hint = f"{broken.hint + '; or ' if broken.hint else ''}save it without connecting: --no-test"
            raise

    return works


@group.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--name", required=True, metavar="NAME", help="Name of the new context.")
@click.option("--bootstrap-servers", metavar="HOST:PORT,...", help="Brokers, if the file names none.")
@no_test_option
@save_options
@click.pass_obj
def import_(
    session: Session, *, file: Path, name: str, bootstrap_servers: str | None, no_test: bool, current: bool, replace_: bool
) -> None:
    """Create a context from a Java client.properties, the file that Apache's tools take with --command-config.

    It is saved only after a broker has answered. A password in it goes into a file that only you can read.
    """
    from kops.operations.contexts.manage import import_context

    works = _proof(session, name, no_test=no_test)
    text = bootstrap_servers or session.settings.get("bootstrap_server") or ""
    servers = [one.strip() for one in text.split(",") if one.strip()]
    options = {"current": current, "replace": replace_}
    _report(session, import_context(session.directories, os.environ, name, file, bootstrap_servers=servers, prove=works, **options))


@group.command("test")
@click.argument("name", required=False)
@click.pass_obj
def test(session: Session, *, name: str | None) -> None:
    """Connect to a context's cluster, and show its id, its brokers and our principal.

    The exit code is 3 when no broker answers or the login is refused.
    """
    from kops.operations.contexts.probe import probe

    only_name(session, name)
    body = probe(session)
    if session.output_format in {"table", "csv"}:
        body["brokers"] = [f"{broker['id']}={broker['address']}" for broker in body["brokers"]]
    session.render_object(body, name="cluster_id")


@group.command("remove")
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help="Apply the plan without asking.")
@click.pass_obj
def remove(session: Session, *, name: str, yes: bool) -> None:
    """Remove a context, and the password files that `kops context import` wrote for it."""
    from kops.config.contexts import remove_context
    from kops.operations.contexts.manage import show_context

    show_context(session.directories, name)
    _agree(f"Remove the context {name} from {session.directories.config_file}?", yes=yes)
    files = remove_context(session.directories, name)
    for file in files:
        session.note(f"removed {file}")
    session.note(f"removed the context {name}")
    if session.output_format != "table":
        session.render_object({"name": name, "removed_files": [str(file) for file in files]})


def _agree(question: str, *, yes: bool) -> None:
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ApprovalRequired("there is no terminal to ask on", hint="add --yes; nothing was changed")
    if not click.confirm(question, err=True, default=False):
        raise ApprovalRequired("not approved", hint="nothing was changed")


def _report(session: Session, saved: Any) -> None:
    for note in saved.notes:
        session.note(f"note: {note}")
    current = ", and it is the current one" if saved.current else f"; use it with -c {saved.name}, or kops context use {saved.name}"
    session.note(f"saved the context {saved.name} in {saved.file}{current}")
    if session.output_format != "table":
        session.render_object(saved.as_json())
