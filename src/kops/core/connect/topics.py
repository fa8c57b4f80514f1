"""The topics that a connector uses, as far as its configuration says, and those of them that are missing. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from kops.core.connect.causes import DEAD_LETTERS
from kops.core.connect.files import CLASS
from kops.core.connect.models import RUNNING, Connector
from kops.core.findings import Finding, Severity, command, counted, names_text

DEAD_LETTER_REPLICAS = "errors.deadletterqueue.topic.replication.factor"
DEFAULT_REPLICAS = 3
"""Of a dead letter topic that Connect creates (``SinkConnectorConfig``)."""
CREATED_REPLICAS = "topic.creation.default.replication.factor"
"""With it, Connect creates the topics of a source (KIP-158)."""
_TOPICS, _PATTERN = "topics", "topics.regex"
_OTHER_CLUSTER = ".override.bootstrap.servers"
_KEEPS_THE_TOPIC = re.compile(
    r"(?:org\.apache\.kafka\.connect\.transforms\.)?(?:Cast|DropHeaders|ExtractField|Filter|Flatten|HeaderFrom|HoistField|InsertField"
    r"|InsertHeader|MaskField|ReplaceField|SetSchemaMetadata|TimestampConverter|ValueToKey)(?:\$(?:Key|Value))?"
)
"""Kafka's transforms that leave a record in its topic; any other may route it elsewhere."""
_OF_JAVA_ONLY = re.compile(r"&&|\[[^\]]*\[")
"""What Python reads in another way than Java: intersections and unions of character classes."""


class Use(Enum):
    READS = "reads"
    WRITES = "writes"
    DEAD_LETTERS = "dead letters"


@dataclass(frozen=True)
class UsedTopic:
    """A topic that a connector uses.

    :param setting: the setting that names it; empty for one that the connector has written to, as Connect reports
    :param replicas: of the topic that Connect itself creates if there is none, -1 for the brokers' default; None if it creates none
    :param sure: whether the connector certainly uses it: ``topic`` of a source may be another system's
    """

    name: str
    use: Use
    setting: str
    replicas: int | None = None
    sure: bool = True


@dataclass(frozen=True)
class UsedTopics:
    """The topics of a connector.

    :param named: without those that match ``pattern``
    :param pattern: ``topics.regex`` of a sink
    :param unknown: why these may not be all; empty if they are
    """

    named: tuple[UsedTopic, ...] = ()
    pattern: str | None = None
    unknown: str = ""


def used_topics(kind: str, config: Mapping[str, str], seen: Collection[str] = ()) -> UsedTopics:
    """Return the topics of a connector; a reference such as ``${env:TOPIC}`` is not resolved.

    :param kind: sink or source
    :param seen: those that it has used, as Connect reports them (KIP-558): of a source whose settings do not say them, all that is known
    """
    other = next((name for name in config if name.endswith(_OTHER_CLUSTER)), None)
    if other is not None:
        return UsedTopics(unknown=f"{other} leads to another Kafka cluster")
    return _sink_topics(config) if kind == "sink" else _source_topics(config, seen)


def _sink_topics(config: Mapping[str, str]) -> UsedTopics:
    names = [name.strip() for name in config.get(_TOPICS, "").split(",") if name.strip()]
    named = [UsedTopic(name, Use.READS, _TOPICS) for name in dict.fromkeys(names) if _is_name(name)]
    dead = config.get(DEAD_LETTERS, "").strip()
    if _is_name(dead):
        named.append(UsedTopic(dead, Use.DEAD_LETTERS, DEAD_LETTERS, _number(config.get(DEAD_LETTER_REPLICAS), DEFAULT_REPLICAS)))
    unread = [_TOPICS for name in names if not _is_name(name)] + ([DEAD_LETTERS] if dead and not _is_name(dead) else [])
    unknown = f"{unread[0]} has a reference that only the workers resolve" if unread else ""
    return UsedTopics(tuple(named), config.get(_PATTERN) or None, unknown)


def _source_topics(config: Mapping[str, str], seen: Collection[str]) -> UsedTopics:
    replicas = _number(config[CREATED_REPLICAS], -1) if CREATED_REPLICAS in config else None
    setting = next((name for name in ("kafka.topic", "topic") if _is_name(config.get(name, ""))), None)
    router = next(_routers(config), None)
    if setting is not None and router is None:
        sure = setting == "kafka.topic" or _short(config.get(CLASS, "")) == "FileStreamSource"
        return UsedTopics((UsedTopic(config[setting].strip(), Use.WRITES, setting, replicas, sure),))
    why = "only its plugin knows where it writes" if router is None else f"its transform {router} may send records to other topics"
    written = tuple(UsedTopic(name, Use.WRITES, "", replicas, sure=False) for name in sorted(seen))
    return UsedTopics(written, unknown="" if written else why)


def _routers(config: Mapping[str, str]) -> Iterator[str]:
    for name in filter(None, (each.strip() for each in config.get("transforms", "").split(","))):
        if not _KEEPS_THE_TOPIC.fullmatch(config.get(f"transforms.{name}.type", "")):
            yield name


def _short(plugin: str) -> str:
    return plugin.rpartition(".")[2].removesuffix("Connector")


def _is_name(text: str) -> bool:
    return bool(re.fullmatch(r"[\w.-]+", text.strip(), re.ASCII))


def _number(text: str | None, default: int) -> int:
    return int(text) if text and re.fullmatch(r"-?\d{1,9}", text.strip(), re.ASCII) else default


@dataclass(frozen=True)
class Brokers:
    """The brokers on which topics are missing.

    :param create: whether they create a topic that a client asks for (``auto.create.topics.enable``); None if that is not known
    """

    number: int
    create: bool | None


@dataclass(frozen=True)
class Lack:
    """Topics that a connector uses and that do not exist.

    :param topics: empty where no topic matches ``topics.regex``
    :param setting: the setting that names them
    :param text: what is wrong, a sentence without a final full stop that does not name the connector
    :param sure: whether the connector certainly needs them, and nothing will create them
    :param replicas: of a topic that Connect would create, as its setting says
    :param most_replicas: the number of brokers, if Connect cannot create the topic because there are too few
    :param creatable: whether Connect creates it when a task starts
    """

    topics: tuple[str, ...]
    use: Use
    setting: str
    text: str
    sure: bool = True
    replicas: int | None = None
    most_replicas: int | None = None
    creatable: bool = False

    @property
    def command(self) -> str:
        """The command that repairs it."""
        if not self.topics:
            return command("topics", "list")
        replicas = self.most_replicas or self.replicas
        own = ["--replication-factor", str(replicas)] if self.use is Use.DEAD_LETTERS and replicas is not None and replicas > 0 else []
        return command("topics", "create", *self.topics, *own)

    @property
    def hint(self) -> str:
        if not self.topics:
            return f"`{self.command}` shows those that there are"
        fewer = f", or set {replicas_setting(self.use)}={self.most_replicas}" if self.most_replicas else ""
        return f"create {'it' if len(self.topics) == 1 else 'them'}: `{self.command}`{fewer}"

    def as_json(self) -> dict[str, Any]:
        return {"topics": list(self.topics), "setting": self.setting or None, "message": self.text, "command": self.command}


def replicas_setting(use: Use) -> str:
    return DEAD_LETTER_REPLICAS if use is Use.DEAD_LETTERS else CREATED_REPLICAS


def lacks_of(used: UsedTopics, absent: Collection[str], *, unmatched: bool, brokers: Brokers) -> Iterator[Lack]:
    """Yield the topics of a connector that do not exist, and that nothing will create.

    :param absent: topics that do not exist
    :param unmatched: whether no topic matches ``pattern``
    """
    missing = [one for one in used.named if one.name in absent]
    reads = tuple(one.name for one in missing if one.use is Use.READS)
    if reads and not brokers.create:
        unless = "" if brokers.create is False else f"unless the brokers create {_it(reads)}, "
        text = f"{names_text(reads)} {_absent(reads)}: {unless}nothing is read from there"
        yield Lack(reads, Use.READS, _TOPICS, text, sure=not unless)
    if unmatched:
        text = f"no topic that kops can see matches {_PATTERN} {used.pattern}: nothing is read until one does"
        yield Lack((), Use.READS, _PATTERN, text, sure=False)
    writes = [one for one in missing if one.use is Use.WRITES]
    if writes:
        yield from _not_written(writes, brokers)
    yield from (_dead_letters(one, brokers.number) for one in missing if one.use is Use.DEAD_LETTERS)


def _not_written(missing: Sequence[UsedTopic], brokers: Brokers) -> Iterator[Lack]:
    first, names = missing[0], tuple(one.name for one in missing)
    if first.replicas is not None and first.replicas <= brokers.number:
        return
    text, result = f"{names_text(names)} {_absent(names)}", "nothing can be written"
    if not first.setting:
        text, result = f"it has written to {names_text(names)}, which {_absent(names)} now", f"if it still writes there, {result} there"
    elif not first.sure:
        result = f"if the connector writes there, {result}"
    if first.replicas is not None:
        text += f", and cannot be created with {_replicas(first.replicas, brokers.number)} ({CREATED_REPLICAS})"
        yield Lack(names, Use.WRITES, first.setting, text, first.sure, first.replicas, brokers.number)
    elif brokers.create is None:
        text += f", and Connect does not create {_it(names)}: unless the brokers do, {result}"
        yield Lack(names, Use.WRITES, first.setting, text, sure=False)
    elif not brokers.create:
        text += f", and neither the brokers nor Connect create {_it(names)}: {result}"
        yield Lack(names, Use.WRITES, first.setting, text, first.sure)


def _dead_letters(one: UsedTopic, brokers: int) -> Lack:
    text, wanted = f"its dead letter topic {one.name} does not exist", one.replicas
    assert wanted is not None  # noqa: S101 - Connect creates every dead letter topic
    if wanted <= brokers:
        return Lack((one.name,), one.use, one.setting, f"{text}: Connect creates it when a task starts", replicas=wanted, creatable=True)
    text += f", and cannot be created with {_replicas(wanted, brokers)} ({DEAD_LETTER_REPLICAS})"
    return Lack((one.name,), one.use, one.setting, text, replicas=wanted, most_replicas=brokers)


def _replicas(wanted: int, brokers: int) -> str:
    return f"{counted(wanted, 'replica')} on {counted(brokers, 'broker')}"


def _absent(topics: Collection[str]) -> str:
    return "does not exist" if len(topics) == 1 else "do not exist"


def _it(topics: Collection[str]) -> str:
    return "it" if len(topics) == 1 else "them"


def matches_any(pattern: str, topics: Iterable[str]) -> bool | None:
    """Whether a topic matches a Java pattern as a whole; None if Python cannot read the pattern as Java does."""
    if _OF_JAVA_ONLY.search(pattern):
        return None
    try:
        compiled = re.compile(pattern, re.ASCII)
    except re.error:
        return None
    return any(compiled.fullmatch(topic) for topic in topics)


def lack_findings(connector: Connector, lacks: Iterable[Lack], *, brokers: int) -> Iterator[Finding]:
    """Yield what a connector lacks as findings."""
    subject, facts = f"connector {connector.name}", {"connector": connector.name, "group": connector.group}
    look = command("connect", "status", connector.name)
    for lack in lacks:
        about: dict[str, Any] = {**facts, "topics": list(lack.topics)}
        if lack.use is Use.DEAD_LETTERS:
            severity = Severity.CRITICAL if connector.failed else Severity.WARNING
            restart = [command("connect", "restart", connector.name, "--failed")] if connector.failed else []
            about |= {"replication_factor": lack.replicas, "brokers_in_service": brokers}
            commands = (lack.command, *restart, f"{look} --trace")
            yield Finding(severity, "dead_letter_topic_missing", subject, lack.text, commands, about)
            continue
        severity = Severity.NOTE if connector.state != RUNNING else Severity.CRITICAL if lack.sure else Severity.WARNING
        commands = (lack.command, look) if lack.topics else (look, lack.command)
        yield Finding(severity, "connector_topic_missing", subject, lack.text, commands, about)
