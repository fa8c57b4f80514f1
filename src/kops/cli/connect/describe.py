"""``kops connect``: workers, list, status, describe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from kops.cli.connect.shared import connectors, group
from kops.cli.frame.session import Session
from kops.core.errors import KopsError, answers_of
from kops.core.visible import indented, visible
from kops.output.json_text import json_text
from kops.output.table import Column

if TYPE_CHECKING:
    from kops.core.connect.models import Connector

LIST_COLUMNS = ("name", "type", "state", Column("shown", "TASKS"), "plugin")
STATUS_COLUMNS = ("name", "task", "state", "worker", Column("cause", "ERROR"))


@group.command("workers")
@click.pass_obj
def workers(session: Session, /) -> int:
    """Ask each worker of connect_urls for its version and Kafka cluster; exit code 1 if one does not answer."""
    from kops.operations.connect.describe import worker_rows

    rows = worker_rows(session)
    columns = ["url", "version", "commit", "kafka_cluster_id", "problem"]
    session.render(rows, columns if session.output_format != "table" or any(row["problem"] for row in rows) else columns[:-1])
    return int(any(row["problem"] for row in rows))


@group.command("list")
@connectors(required=False)
@click.pass_obj
def list_connectors(session: Session, /, *, patterns: tuple[str, ...], regex: bool) -> None:
    """List connectors: all of them, or those that names and globs match. One request, however many there are."""
    from kops.operations.connect.describe import list_row
    from kops.operations.connect.select import select

    rows = [list_row(connector) for connector in select(session, patterns, regex=regex)]
    if session.output_format == "table":
        shown = [{**row, "shown": f"{row['tasks_running']}/{row['tasks']}", "plugin": row["plugin"].rsplit(".", 1)[-1]} for row in rows]
        session.render(shown, LIST_COLUMNS)
    else:
        session.render(rows, ["name", "type", "state", "tasks_running", "tasks_failed", "tasks", "plugin"])


@group.command("status")
@connectors(required=False)
@click.option("--failed", is_flag=True, help="Only connectors that have failed, or whose tasks have.")
@click.option("--trace", is_flag=True, help="Show whole stack traces instead of the last cause.")
@click.option("--watch", is_flag=True, help="Poll until Ctrl-C; one line per change, or JSON per poll.")
@click.option("--interval", default="2s", show_default=True, metavar="DURATION", help="How often to poll with --watch.")
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="End --watch after N polls.")
@click.pass_obj
def status(session: Session, /, *, patterns: tuple[str, ...], regex: bool, failed: bool, watch: bool, **options: Any) -> int:
    """Show states of connectors and their tasks, where they run, what failed, and which topics a RUNNING connector lacks.

    The exit code is 1 when a connector or a task has FAILED. One request to Connect and one to the brokers, however many there are.
    """
    from kops.operations.connect.select import select

    def look() -> list[Connector]:
        return [one for one in select(session, patterns, regex=regex) if one.failed or not failed]

    if watch:
        return _watched(session, look, options["interval"], options["count"], trace=options["trace"])
    found = look()
    show_status(session, found, trace=options["trace"])
    return int(any(connector.failed for connector in found))


def show_status(session: Session, found: Sequence[Connector], *, trace: bool) -> None:
    """Write states, what connectors lack, and a summary; for people states first, since brokers that do not answer take their time."""
    from kops.operations.connect.describe import lacks_of_running, status_body, status_rows, summary
    from kops.operations.connect.topics import TopicLook

    look = TopicLook(session)
    if session.output_format == "table":
        bodies = [status_body(connector, trace=trace) for connector in found]
        rows = status_rows(bodies)
        session.render(rows, STATUS_COLUMNS if any(row["cause"] for row in rows) else STATUS_COLUMNS[:-1], whole=True)
        if trace:
            _write_traces(bodies)
        sys.stdout.flush()
        session.note(summary(found))
        lacks = lacks_of_running(look, found)
        for text in (f"{name}: {lack.text}" for name, some in lacks.items() for lack in some):
            if session.markup:
                session.note(text)
            else:
                click.echo(visible(text))
    else:
        lacks = lacks_of_running(look, found)
        bodies = [status_body(connector, trace=trace, lacks=lacks.get(connector.name)) for connector in found]
        if session.output_format == "csv":
            session.render(status_rows(bodies), ["name", "task", "state", "worker", "error", "cause", "lacks"])
        else:
            session.render(bodies, ["name"])
        session.note(summary(found))
    session.note(*(f"{name}: {lack.hint}" for name, some in lacks.items() for lack in some), *look.notes)


def _write_traces(bodies: Sequence[dict[str, Any]]) -> None:
    for body in bodies:
        for what, one in ((body["name"], body), *((f"{body['name']} task {task['id']}", task) for task in body["tasks"])):
            if one["trace"]:
                click.echo(f"\n{visible(what)} ({visible(one['worker'])})\n  {indented(one['trace'].rstrip())}")


def _watched(session: Session, look: Callable[[], list[Connector]], interval: str, count: int | None, *, trace: bool) -> int:
    from kops.cli.frame.watch import clock, watch_interval, watched
    from kops.operations.connect.describe import lacks_of_running, status_body, summary
    from kops.operations.connect.topics import TopicLook

    before: dict[str, str] | None = None
    topics = TopicLook(session)

    def once_more() -> int:
        nonlocal before, topics
        now, found = clock(session), look()
        said = topics.notes
        topics = topics if topics.problem is not None else TopicLook(session)  # brokers that do not answer would delay each poll
        lacks = lacks_of_running(topics, found)
        session.note(*(note for note in topics.notes if note not in said))
        bodies = [status_body(connector, trace=trace, lacks=lacks.get(connector.name)) for connector in found]
        if session.output_format == "json":
            sys.stdout.write(json_text({"time": now, "connectors": bodies}) + "\n")
        else:
            after = _states(bodies)
            every = [summary(found), *(f"{key} {value}" for key, value in after.items())]
            for line in every if before is None else _changes(before, after):
                sys.stdout.write(f"{now}  {visible(line)}\n")
            before = after
        sys.stdout.flush()
        return int(any(connector.failed for connector in found))

    return watched(session, watch_interval(session, interval), count, once_more, passing=(KopsError,))


def _states(bodies: Sequence[dict[str, Any]]) -> dict[str, str]:
    states = {}
    for body in bodies:
        states[body["name"]] = _state(body)
        states |= {f"{body['name']} task {task['id']}": _state(task) for task in body["tasks"]}
    return states


def _state(one: dict[str, Any]) -> str:
    wrong = one["cause"] or "; ".join(lack["message"] for lack in one.get("lacks") or ())
    return f"{one['state']} on {one['worker']}{': ' + wrong if wrong else ''}"


def _changes(before: dict[str, str], after: dict[str, str]) -> list[str]:
    changed = [f"{key} {value}" for key, value in after.items() if before.get(key) != value]
    return changed + [f"{key} is gone" for key in before if key not in after]


@group.command("describe")
@connectors()
@click.option("--trace", is_flag=True, help="Show whole stack traces instead of the last cause.")
@click.pass_obj
def describe(session: Session, /, *, patterns: tuple[str, ...], regex: bool, trace: bool) -> int:
    """Show everything about connectors: states, plugin, group and topics, and the configuration, secrets hidden."""
    from kops.operations.connect.describe import describe_body, status_rows
    from kops.operations.connect.select import select_some

    problems: dict[str, KopsError] = {}
    found = {connector.name: connector for connector in select_some(session, patterns, regex=regex)}
    bodies = list(answers_of(found, lambda name: describe_body(session, found[name], trace=trace), problems).values())
    if session.output_format != "table":
        session.render(bodies, ["name", "type", "state", "worker", "plugin", "group", "topics", "config"])
        return session.missing(problems)
    for number, body in enumerate(bodies):
        click.echo(("\n" if number else "") + visible(f"{body['name']}  {body['type']}, {body['state']}, {body['plugin']}"))
        session.render_object({key: body[key] for key in ("worker", "group", "topics", "cause") if body[key]})
        rows = status_rows([body])[1:]
        if rows:
            click.echo("tasks")
            session.render(rows, [*STATUS_COLUMNS[1:-1], *(STATUS_COLUMNS[-1:] if any(row["cause"] for row in rows) else ())], whole=True)
        click.echo("configuration")
        session.render_object(body["config"])
        if trace:
            _write_traces([body])
    return session.missing(problems)
