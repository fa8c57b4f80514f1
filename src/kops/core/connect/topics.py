"""The topics that a connector uses, as far as its configuration says, and those of them that are missing. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from kops.core.connect.causes import DEAD_LETTERS
from kops.core.connect.models import RUNNING, Connector
from kops.core.findings import Finding, Severity, command, counted, names_text

DEAD_LETTER_COPIES = "errors.deadletterqueue.topic.replication.factor"
DEFAULT_COPIES = 3
"""Of a dead letter topic that Connect creates (``SinkConnectorConfig``)."""
_FILE_SOURCE = ("FileStreamSource", "FileStreamSourceConnector")
"""Its class, and the alias that Connect takes for it (``PluginUtils``)."""
_CREATION = "topic.creation.default.replication.factor"


@dataclass(frozen=True)
class UsedTopics:
    """Topics of a connector by its configuration.

    :param reads: of a sink, without those of ``topics.regex``
    :param pattern: ``topics.regex`` of a sink; None if it has none
    :param writes: of a source; None if only its plugin knows
    :param dead_letters: None if it has no dead letter topic
    """

    reads: tuple[str, ...] = ()
    pattern: str | None = None
    writes: tuple[str, ...] | None = ()
    dead_letters: str | None = None


def used_topics(connector: Connector, seen: Collection[str] = ()) -> UsedTopics:
    """Return the topics of a connector.

    :param seen: those that it has used, as Connect reports them (KIP-558)
    """
    config = connector.config
    if connector.type == "sink":
        dead_letters = config.get(DEAD_LETTERS) or None
        return UsedTopics(tuple(sorted(connector.topics)), config.get("topics.regex") or None, dead_letters=dead_letters)
    named = config.get("kafka.topic") or (config.get("topic") if connector.plugin.rpartition(".")[2] in _FILE_SOURCE else None)
    return UsedTopics(writes=tuple(sorted({*seen, *([named] if named else [])})) or None)


def elsewhere(config: Mapping[str, str]) -> str | None:
    """Return the setting by which a connector's topics are those of another cluster (KIP-458); None if it has none."""
    return next((name for name in config if name.endswith(".override.bootstrap.servers")), None)


def missing_topic_findings(connector: Connector, used: UsedTopics, existing: Collection[str], *, brokers: int) -> Iterator[Finding]:
    """Yield the topics of a connector that do not exist, and that nothing will create. On brokers that create topics there are none.

    :param existing: all topics of the cluster
    :param brokers: how many are in service
    """
    subject, facts = f"connector {connector.name}", {"connector": connector.name, "group": connector.group}
    look = command("connect", "status", connector.name)
    reads = [topic for topic in used.reads if topic not in existing]
    if reads:
        text = f"{names_text(reads)} {_absent(reads)}: nothing is read from there"
        commands = (_create(reads), look)
        yield Finding(_severity(connector), "connector_topic_missing", subject, text, commands, {**facts, "topics": reads})
    if used.pattern is not None and not _any_matches(used.pattern, existing):
        text = f"no topic matches topics.regex {used.pattern}: nothing is read"
        yield Finding(
            Severity.WARNING, "connector_topic_missing", subject, text, (look, command("topics", "list")), {**facts, "topics": []}
        )
    writes = [topic for topic in used.writes or () if topic not in existing]
    if writes and _CREATION not in connector.config:
        text = f"{names_text(writes)} {_absent(writes)}, and neither the brokers nor Connect create it: nothing can be written"
        commands = (_create(writes), look)
        yield Finding(_severity(connector), "connector_topic_missing", subject, text, commands, {**facts, "topics": writes})
    if used.dead_letters is not None and used.dead_letters not in existing:
        yield _missing_dead_letters(connector, used.dead_letters, brokers, facts)


def _missing_dead_letters(connector: Connector, topic: str, brokers: int, facts: dict[str, str | None]) -> Finding:
    text, copies = f"its dead letter topic {topic} does not exist", connector.config.get(DEAD_LETTER_COPIES, str(DEFAULT_COPIES))
    wanted = int(copies) if copies.isdigit() else DEFAULT_COPIES
    commands = [_create([topic], min(wanted, max(brokers, 1)))]
    if wanted > brokers:
        text += f", and cannot be created with {counted(wanted, 'replica')} on {counted(brokers, 'broker')} ({DEAD_LETTER_COPIES})"
    else:
        text += ": Connect creates it when a task starts"
    if connector.failed:
        commands.append(command("connect", "restart", connector.name, "--failed"))
    commands.append(command("connect", "status", connector.name, "--trace"))
    severity = Severity.CRITICAL if connector.failed else Severity.WARNING
    about = {**facts, "topics": [topic], "replication_factor": wanted, "brokers_in_service": brokers}
    return Finding(severity, "dead_letter_topic_missing", f"connector {connector.name}", text, tuple(commands), about)


def _severity(connector: Connector) -> Severity:
    return Severity.CRITICAL if connector.state == RUNNING else Severity.NOTE


def _absent(topics: Collection[str]) -> str:
    return "does not exist" if len(topics) == 1 else "do not exist"


def _create(topics: Collection[str], copies: int | None = None) -> str:
    return command("topics", "create", *topics, *(["--replication-factor", str(copies)] if copies else []))


def _any_matches(pattern: str, topics: Collection[str]) -> bool:
    """Whether a topic matches a Java pattern as a whole; taken for granted if Python cannot read the pattern."""
    try:
        compiled = re.compile(pattern)
    except re.error:
        return True
    return any(compiled.fullmatch(topic) for topic in topics)
