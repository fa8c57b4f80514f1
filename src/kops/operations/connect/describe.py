"""``kops connect list``, ``status``, ``describe`` and ``workers``. Secrets are always hidden."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kops.core.connect.files import CLASS
from kops.core.connect.models import FAILED, RUNNING, Connector, Task, first_line, own_config, root_cause
from kops.core.connect.secrets import masked, scrubbed, secret_texts
from kops.core.connect.topics import Lack, used_topics
from kops.core.errors import KopsError, UsageProblem
from kops.core.secret_shapes import without_login
from kops.operations.connect.select import counted
from kops.operations.connect.topics import TopicLook
from kops.operations.services import Services

_AT_ONCE = 8
Row = dict[str, Any]


def list_row(connector: Connector) -> Row:
    states = Counter(task.state for task in connector.tasks)
    return {
        "name": connector.name,
        "type": connector.type,
        "state": connector.state,
        "tasks_running": states[RUNNING],
        "tasks_failed": states[FAILED],
        "tasks": len(connector.tasks),
        "plugin": connector.plugin,
    }


def status_body(connector: Connector, *, trace: bool = False, lacks: Sequence[Lack] | None = None) -> Row:
    """Return a connector with its tasks.

    :param trace: include whole stack traces
    :param lacks: the topics that it lacks; None if that is not known
    """
    traces = connector.trace or any(task.trace for task in connector.tasks)
    secrets = secret_texts(connector.config) if traces else set()  # only for failed connectors: there may be hundreds of others
    return {
        "name": connector.name,
        "type": connector.type,
        "state": connector.state,
        "worker": connector.worker,
        **_error(connector.trace, secrets, trace=trace),
        "lacks": None if lacks is None else [lack.as_json() for lack in lacks],
        "tasks": [_task_body(task, secrets, trace=trace) for task in connector.tasks],
    }


def lacks_of_running(look: TopicLook, connectors: Sequence[Connector]) -> dict[str, tuple[Lack, ...]]:
    """Return the topics that connectors lack although they are RUNNING, since no state shows that; without those that could not be seen."""
    running = [one for one in connectors if one.state == RUNNING]
    found = {one.name: look.lacks(one.name, used_topics(one.type, one.config)) for one in running}
    return {name: lacks for name, lacks in found.items() if lacks or not (name in look.gaps or look.problem)}


def _task_body(task: Task, secrets: set[str], *, trace: bool) -> Row:
    return {"id": task.id, "state": task.state, "worker": task.worker, **_error(task.trace, secrets, trace=trace)}


def _error(text: str, secrets: set[str], *, trace: bool) -> Row:
    """Return ``error``, the first line of a stack trace; ``cause``, the last cause that it names; and ``trace`` if requested."""
    text = scrubbed(text, secrets) if text else ""
    body: Row = {"error": first_line(text), "cause": root_cause(text) if text else None}
    return body | ({"trace": text or None} if trace else {})


def status_rows(bodies: Sequence[Row]) -> list[Row]:
    rows = []
    for body in bodies:
        for task in ({"id": None, **body}, *body["tasks"]):
            row = {"name": body["name"], "task": task["id"], **{key: task[key] for key in ("state", "worker", "error", "cause")}}
            rows.append({**row, "lacks": "; ".join(lack["message"] for lack in task.get("lacks") or ()) or None})
    return rows


def summary(connectors: Sequence[Connector]) -> str:
    """Summarize the states of connectors and tasks in one sentence."""
    states = Counter(connector.state for connector in connectors)
    tasks = Counter(task.state for connector in connectors for task in connector.tasks)
    number = sum(tasks.values())
    parts = [f"{counted(connectors)}{_counts(states)}", f"{number} task{'' if number == 1 else 's'}{_counts(tasks)}"]
    return "; ".join(parts)


def _counts(states: Counter[str]) -> str:
    return ": " + ", ".join(f"{count} {state}" for state, count in states.most_common()) if states else ""


def describe_body(services: Services, connector: Connector, *, trace: bool = False) -> Row:
    """Return everything about a connector: status, plugin, topics, and its configuration with secrets hidden.

    The plugins are asked which settings are secrets, in addition to those with telling names.
    """
    passwords = password_settings(services, connector.config)
    return {
        **{key: value for key, value in status_body(connector, trace=trace).items() if key != "lacks"},
        "plugin": connector.plugin,
        "group": connector.group,
        "topics": list(services.connect.topics(connector.name)),
        "config": masked(own_config(connector.config), passwords),
    }


def password_settings(services: Services, config: Mapping[str, str]) -> frozenset[str]:
    """Return the settings that the plugins of a configuration declare as secrets; of those that cannot be asked, none.

    Besides the connector's these are its converters, transforms and predicates (KIP-769).
    """
    found: set[str] = set()
    for prefix, plugin in _plugins_of(config):
        try:
            settings = services.connect.plugin_settings(plugin)
        except KopsError:
            continue
        found |= {f"{prefix}{each['name']}" for each in settings if each.get("type") == "PASSWORD"}
    return frozenset(found)


def _plugins_of(config: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what the names of a plugin's settings begin with, and its class."""
    places = {"": CLASS} | {f"{kind}.converter.": f"{kind}.converter" for kind in ("key", "value", "header")}
    for kind in ("transforms", "predicates"):
        names = [name.strip() for name in config.get(kind, "").split(",") if name.strip()]
        places |= {f"{kind}.{name}.": f"{kind}.{name}.type" for name in names}
    yield from ((prefix, config[setting]) for prefix, setting in places.items() if config.get(setting))


def worker_rows(services: Services) -> list[dict[str, Any]]:
    """Query each address of ``connect_urls`` separately; ``problem`` says why one does not answer.

    :raises UsageProblem: when the context has no Connect
    """
    from concurrent.futures import ThreadPoolExecutor

    from kops.gateways.connect import Connect

    urls = services.connection.connect_urls
    if not urls:
        raise UsageProblem("no Connect worker is known", hint="set connect_urls in the context, or KOPS_CONNECT_URLS")

    def row(url: str) -> dict[str, Any]:
        found: dict[str, Any] = {"url": without_login(url), "version": None, "commit": None, "kafka_cluster_id": None, "problem": None}
        try:
            about = Connect(replace(services.connection, connect_urls=(url,))).about()
        except KopsError as error:
            return {**found, "problem": error.message}
        return {**found, **{key: about.get(key) for key in ("version", "commit", "kafka_cluster_id")}}

    with ThreadPoolExecutor(min(_AT_ONCE, len(urls))) as pool:
        return list(pool.map(row, urls))
