"""``kops sandbox``, and ``kops demo``, which starts one for its tour."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kops.cli.frame.lazy import Command, Group
from kops.cli.frame.session import Session

if TYPE_CHECKING:
    from kops.sandbox.cluster import Status

_name = click.option("--name", default="sandbox", show_default=True, metavar="NAME", help="Name of the sandbox and of its context.")


@click.group(cls=Group)
def group() -> None:
    """Run a real Apache Kafka on this machine: KRaft, without containers."""


@group.command("up")
@_name
@click.option("--brokers", type=click.Choice(["1", "3"]), help="How many brokers. [default: 1]")
@click.option("--kafka-version", metavar="VERSION", help="Version of Apache Kafka, from 3.3.0 on. [default: 4.4.0]")
@click.option(
    "--security",
    type=click.Choice(["plaintext", "sasl-ssl", "acl"]),
    help="sasl-ssl: SCRAM over TLS, with its own CA; acl: with ACLs too, and you as super user. [default: plaintext]",
)
@click.option("--racks", is_flag=True, help="Make each broker a rack, with two log directories.")
@click.option(
    "--connect",
    type=click.Choice(["distributed", "standalone"]),
    is_flag=False,
    flag_value="distributed",
    help="Also run Kafka Connect, fetched the first time: distributed workers, or one standalone worker. Without a value: distributed.",
)
@click.option("--workers", type=click.IntRange(1, 5), metavar="N", help="How many Connect workers; implies --connect. [default: 1]")
@click.option(
    "--plugins",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    multiple=True,
    help="A directory of Connect plugin directories, in addition to `kops connect plugins add`; repeatable.",
)
@click.option("--registry", is_flag=True, help="Also run a schema registry with Confluent's API, fetched the first time.")
@click.option("--new-ports", is_flag=True, help="Use new free ports.")
@click.option(
    "--jars", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR", help="Use these jars instead of the cache."
)
@click.pass_obj
def up(
    session: Session,
    *,
    name: str,
    brokers: str | None,
    kafka_version: str | None,
    security: str | None,
    racks: bool,
    connect: str | None,
    workers: int | None,
    plugins: tuple[Path, ...],
    registry: bool,
    new_ports: bool,
    jars: Path | None,
) -> None:
    """Start a sandbox, with its data from last time.

    It registers a context of its name, outlives the shell, keeps its ports, and listens on 127.0.0.1 only. Connect and the
    registry, once added, start with it every time.
    """
    from kops.config.load import read_config
    from kops.operations.sandbox.manage import bring_up

    status = bring_up(
        session,
        name,
        brokers=int(brokers) if brokers else None,
        kafka_version=kafka_version,
        security=security,
        racks=racks,
        new_ports=new_ports,
        connect_workers=workers or int(bool(connect or plugins)),
        connect=connect,
        registry=registry,
        plugins=plugins,
        jars_directory=jars,
    )
    _show(session, status)
    current = read_config(session.directories).current == name
    session.note(f"{name} is the current context" if current else f"use it with -c {name}, or make it the default: kops context use {name}")


@group.command("down")
@_name
@click.option("--delete", is_flag=True, help="Also delete its data and its context.")
@click.pass_obj
def down(session: Session, *, name: str, delete: bool) -> None:
    """Stop a sandbox; its data stays unless --delete is given."""
    from kops.operations.sandbox.manage import take_down

    before = take_down(session, name, delete=delete)
    ran = [each.part.id for each in before.of("broker") if each.pid is not None]
    session.note(
        f"sandbox {name} {'is deleted' if delete else 'is stopped' if any(each.pid for each in before.parts) else 'was stopped already'}"
    )
    if session.output_format in ("json", "yaml"):
        session.render_object({"name": name, "state": "deleted" if delete else "stopped", "stopped_brokers": ran})


@group.command("status")
@_name
@click.pass_obj
def status(session: Session, *, name: str) -> int:
    """Show the status of a sandbox; exit code 1 if any part of it is not running."""
    from kops.operations.sandbox.manage import describe

    found = describe(session, name)
    _show(session, found)
    return 0 if found.state == "running" else 1


@group.command("logs")
@_name
@click.option("-f", "--follow", is_flag=True, help="Continue with new lines, until Ctrl-C.")
@click.option("--broker", type=int, metavar="N", help="Only this broker's.")
@click.option("--worker", type=int, metavar="N", help="Only this Connect worker's.")
@click.option("--registry", is_flag=True, help="Only the schema registry's.")
@click.option("--lines", type=click.IntRange(min=0), default=100, show_default=True, help="Show this many of the last lines of each.")
@click.pass_obj
def logs(session: Session, *, name: str, follow: bool, broker: int | None, worker: int | None, registry: bool, lines: int) -> None:
    """Show the logs of the brokers, Connect workers and registry."""
    from kops.operations.sandbox.manage import describe, read_logs
    from kops.output.json_text import json_text

    several = broker is None and worker is None and not registry and len(describe(session, name).parts) > 1
    for each in read_logs(session, name, broker=broker, worker=worker, registry=registry, lines=lines, follow=follow):
        number = each.part.id if each.part.kind == "broker" else None
        if session.output_format == "json":
            click.echo(json_text({"part": each.part.name, "broker": number, "line": each.line}))
        elif several:
            click.echo(f"{each.part.name if number is None else number} | {each.line}")
        else:
            click.echo(each.line)


def _show(session: Session, status: Status) -> None:
    """Show a sandbox: completely as JSON or YAML, briefly on a terminal."""
    from kops.operations.sandbox.manage import as_json

    body: dict[str, Any] = as_json(status)
    if session.output_format in ("json", "yaml"):
        session.render_object(body)
        return
    hidden = ("brokers", "workers", "registry", "connect_url", "cluster_id")
    shown = {key.replace("_", " "): value for key, value in body.items() if value not in (None, []) and key not in hidden}
    for each in status.parts:
        pid = f", pid {each.pid}" if each.pid else ""
        shown[each.part.name] = f"{each.state}{pid}, 127.0.0.1:{each.part.port}"
    session.render_object(shown)


@click.command("demo", cls=Command)
@click.option(
    "--guarantee",
    type=click.Choice(["at_least_once", "exactly_once_v2"]),
    default="at_least_once",
    show_default=True,
    help="Processing guarantee of the application.",
)
@click.pass_obj
def demo(session: Session, *, guarantee: str) -> None:
    """Lose an application's state on a real Kafka, and restore it exactly.

    Starts a Kafka and the Kafka Streams application of examples/prices on this machine, destroys the application's
    state, rebuilds it, and removes everything again. Takes about a minute.
    """
    from kops.core.extras import STATE, needs

    needs(STATE, "the demo rebuilds state, which needs")
    from kops.cli.sandbox.tour import run_tour

    run_tour(session.directories.cache, guarantee)
