"""Connectors of Kafka Connect and their states. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kops.core.connect.causes import advice
from kops.core.findings import Finding, Severity, command, counted

RUNNING, PAUSED, STOPPED = "RUNNING", "PAUSED", "STOPPED"
FAILED = "FAILED"
UNASSIGNED = "UNASSIGNED"
GROUP_PREFIX = "connect-"
"""Sink connectors read as the group ``connect-NAME`` unless their configuration says otherwise."""
_CAUSE = "Caused by: "
_TOPIC = re.compile(r"\btopic\s*(?:[=:]\s*['\"\[]?|['\"\[])([\w.-]+)")
_LONGEST_CAUSE, _LEAST = 320, 60
"""Longer causes keep head and tail: Debezium prints all its details in between, and the advice last."""
_SENTENCE_END = re.compile(r"(?<=[.;!?\]])\s+(?=[A-Z(\[])")
_PACKAGE = re.compile(r"^(?:\w+\.)+(?=\w+(?:Exception|Error)\b)")
_EXCEPTION = re.compile(r"^(?:\w+\.)+\w+(?:Exception|Error): ")


@dataclass(frozen=True)
class Task:
    id: int
    state: str
    worker: str
    trace: str = ""


@dataclass(frozen=True)
class Connector:
    """A connector and its tasks.

    :param type: source or sink
    """

    name: str
    state: str
    type: str
    worker: str
    tasks: tuple[Task, ...] = ()
    trace: str = ""
    config: Mapping[str, str] = field(default_factory=dict)

    @property
    def group(self) -> str | None:
        """The group that a sink connector reads as; None for a source."""
        if self.type != "sink":
            return None
        return self.config.get("consumer.override.group.id") or f"{GROUP_PREFIX}{self.name}"

    @property
    def plugin(self) -> str:
        return self.config.get("connector.class", "")

    @property
    def failed(self) -> bool:
        return self.state == FAILED or any(task.state == FAILED for task in self.tasks)

    @property
    def wanted_state(self) -> str:
        """The state that was last requested, as far as the current one shows it: a failed connector was meant to run."""
        return self.state if self.state in (PAUSED, STOPPED) else RUNNING

    @property
    def topics(self) -> frozenset[str]:
        """The topics that a sink connector is configured to read; a regular expression is not resolved."""
        return frozenset(name.strip() for name in self.config.get("topics", "").split(",") if name.strip())


def connector_of(name: str, body: Mapping[str, Any]) -> Connector:
    """Parse an item of Connect's ``GET /connectors?expand=status&expand=info``."""
    status, info = body.get("status") or {}, body.get("info") or {}
    connector = status.get("connector") or {}
    return Connector(
        name,
        connector.get("state", "UNKNOWN"),
        status.get("type") or info.get("type") or "unknown",
        connector.get("worker_id", ""),
        tuple(
            Task(task["id"], task.get("state", "UNKNOWN"), task.get("worker_id", ""), task.get("trace", ""))
            for task in status.get("tasks", ())
        ),
        connector.get("trace", ""),
        info.get("config") or {},
    )


def own_config(config: Mapping[str, str]) -> dict[str, str]:
    """Return a configuration without the name that Connect adds in its answers."""
    return {name: value for name, value in config.items() if name != "name"}


def root_cause(trace: str, names: Iterable[str] = ()) -> str:
    """Return the last cause that a Java stack trace names, otherwise its first line; shortened by whole sentences.

    The cause nearest to the last that names a topic comes before it, if it names none itself: that a topic cannot be created, and why.

    :param names: of topics and the like that are looked for too
    """
    lines = [line.strip() for line in trace.splitlines() if line.strip()]
    first = [line for line in lines[:1] if not line.startswith(_CAUSE)]
    causes = [*first, *(line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE))] or ["no reason given"]
    last = causes[-1]
    topics = [found[1] for cause in causes[:-1] if (found := _TOPIC.search(cause))]
    wanted = [re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])") for name in (*names, *topics) if name]
    if not any(pattern.search(last) for pattern in wanted):
        outer = next((one for one in reversed(causes[:-1]) if any(pattern.search(one) for pattern in wanted)), None)
        if outer is not None:
            return f"{_shortened(_EXCEPTION.sub('', outer))}; {_shortened(_PACKAGE.sub('', last))}"
    return _shortened(last)


def _shortened(text: str) -> str:
    """Return a text without the sentences in its middle, if it is long; only a sentence that is too long itself is cut."""
    if len(text) > _LONGEST_CAUSE:
        text = _PACKAGE.sub("", text)
    if len(text) <= _LONGEST_CAUSE:
        return text
    sentences = _SENTENCE_END.split(text)
    head, tail = sentences[:1], sentences[-1:] if len(sentences) > 1 else []
    while len(head) + len(tail) < len(sentences) and len(" ".join([*head, sentences[len(head)], *tail])) <= _LONGEST_CAUSE:
        head.append(sentences[len(head)])
    gap = ["..."] if len(head) + len(tail) < len(sentences) else []
    kept = [*head, *gap, *tail]
    longest = max(kept, key=len)
    room = _LONGEST_CAUSE - len(" ".join(kept)) + len(longest)
    return " ".join(_cut(each, max(room, _LEAST)) if each is longest else each for each in kept)


def _cut(sentence: str, room: int) -> str:
    """Return a sentence without the words in its middle, if it is longer than there is room for."""
    half = (room - len(" ... ")) // 2
    return sentence if len(sentence) <= room else f"{sentence[:half].rsplit(' ', 1)[0]} ... {sentence[-half:].split(' ', 1)[-1]}"


def first_line(trace: str) -> str | None:
    return next((line.strip() for line in trace.splitlines() if line.strip()), None)


def concerns(connector: Connector, groups: Collection[str], topics: Collection[str]) -> bool:
    return connector.group in groups or bool(connector.topics & set(topics))


def _named(connector: Connector) -> list[str]:
    """Return the topics that its configuration names, the longest first."""
    named = {name.strip() for key, value in connector.config.items() if "topic" in key for name in value.split(",")}
    return sorted((name for name in named if len(name) > 1), key=len, reverse=True)


def connector_findings(connector: Connector) -> Iterator[Finding]:
    """Report a failed connector, failed tasks, and tasks that no worker runs."""
    subject, about = f"connector {connector.name}", {"connector": connector.name, "group": connector.group}
    failed = [task for task in connector.tasks if task.state == FAILED]
    look = command("connect", "status", connector.name, "--trace")
    if connector.state == FAILED:
        text = f"failed: {root_cause(connector.trace, _named(connector))}"
        commands = advice(connector.name, connector.group, connector.trace, connector.config)
        yield Finding(Severity.CRITICAL, "connector_failed", subject, text, commands, {**about, "trace": connector.trace})
    if failed:
        causes = list(dict.fromkeys(root_cause(task.trace, _named(connector)) for task in failed))
        also = f" (and {counted(len(causes) - 1, 'other reason')})" if len(causes) > 1 else ""
        text = f"{len(failed)} of {counted(len(connector.tasks), 'task')} failed: {causes[0]}{also}"
        traces = [{"id": task.id, "worker": task.worker, "trace": task.trace} for task in failed]
        commands = advice(connector.name, connector.group, failed[0].trace, connector.config)
        yield Finding(Severity.CRITICAL, "tasks_failed", subject, text, commands, {**about, "tasks": traces})
    idle = [task.id for task in connector.tasks if task.state == UNASSIGNED]
    if connector.state == UNASSIGNED or idle:
        text = "no worker runs " + ("it" if connector.state == UNASSIGNED else counted(len(idle), "task"))
        text += ": Connect is rebalancing, or workers are down"
        yield Finding(Severity.WARNING, "connector_unassigned", subject, text, (look,), {**about, "tasks": idle})
