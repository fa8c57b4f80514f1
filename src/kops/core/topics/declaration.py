"""Topics as YAML files declare them, compared with those that exist.

One document per topic, and documents that list the names that the files own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from kops.core.errors import ConfigError, UsageProblem
from kops.core.models import Setting, Topic
from kops.core.settings import own_settings, same_value
from kops.core.statefile.fields import Fields, config_text, known_fields, owned_globs
from kops.core.topics.names import metric_name, name_problem
from kops.core.topics.settings import canonical_settings

TOPIC_FIELDS = ("name", "partitions", "replication_factor", "config")
OWNER_FIELDS = ("owns",)
_MOST = 2**31 - 1
_NOTES = {"topic": "", "default": "Kafka's default"}
"""Where a value that differs comes from, by the source of the setting."""


@dataclass(frozen=True)
class DeclaredTopic:
    """A topic as a file declares it; None: the brokers choose at creation, and any value is accepted afterwards.

    :param settings: by Kafka's name, in the form in which Kafka shows them
    :param place: file and document, for messages
    """

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    place: str = ""


@dataclass(frozen=True)
class Declaration:
    """The contents of the files of one command.

    :param owns: globs of the names that belong to the files: undeclared topics among them may be pruned
    """

    topics: tuple[DeclaredTopic, ...] = ()
    owns: tuple[str, ...] = ()


def parse_declaration(documents: Sequence[tuple[str, Any]], *, also_known: Callable[[], set[str]] = set) -> Declaration:
    """Parse the documents of some files.

    :param documents: place (for messages) and YAML of each, whose scalars are the texts as written
    :param also_known: returns the settings that the brokers know; called only for a name that kops does not know
    :raises ConfigError: naming the file and the field
    """
    topics: dict[str, DeclaredTopic] = {}
    metrics: dict[str, DeclaredTopic] = {}
    owns: list[str] = []
    for place, body in documents:
        if isinstance(body, Mapping) and "owns" in body:
            owns += owned_globs(known_fields(place, "", body, OWNER_FIELDS, "a topic"), "topic")
            continue
        topic = _topic(place, body, also_known)
        fields = Fields(place, "", body)
        fields.refuse_second("name", topic.name, topics)
        if other := metrics.get(metric_name(topic.name)):
            what = f"{topic.name} collides with {other.name}: Kafka's metric names turn '.' into '_'"
            raise fields.wrong("name", what, f"see {other.place}")
        topics[topic.name] = metrics[metric_name(topic.name)] = topic
    return Declaration(tuple(topics.values()), tuple(dict.fromkeys(owns)))


def _topic(place: str, body: Any, also_known: Callable[[], set[str]]) -> DeclaredTopic:
    fields = known_fields(place, "", body, TOPIC_FIELDS, "a topic")
    name = fields.needed("name", "the name of the topic")
    problem = name_problem(name)
    if problem:
        raise fields.wrong("name", f"cannot be: {problem}", "letters, digits, '.', '_' and '-' are allowed")
    settings = _settings(fields, also_known) if fields.body.get("config") is not None else {}
    return DeclaredTopic(name, _count(fields, "partitions"), _count(fields, "replication_factor", 2**15 - 1), settings, place)


def _count(fields: Fields, name: str, most: int = _MOST) -> int | None:
    value = fields.body.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not re.fullmatch(r"\+?[0-9]{1,20}", value) or not 1 <= int(value) <= most:
        raise fields.wrong(name, f"is {value}", "a whole number from 1")
    return int(value)


def _settings(fields: Fields, also_known: Callable[[], set[str]]) -> dict[str, str]:
    config = fields.inside("config")
    texts = {name: config_text(config, name) for name in config.body}
    try:
        return canonical_settings(texts, also_known=also_known)
    except UsageProblem as problem:
        setting = str(problem.details.get("setting", ""))
        path = config.path(setting)
        raise ConfigError(f"{fields.file}: {path}: {problem.message}", hint=problem.hint, file=fields.file, field=path) from problem


class Remedy(str, Enum):
    """What brings a topic to its declared state."""

    CREATE = "create"
    ALTER = "alter"
    GROW = "add partitions"
    RESET = "reset"
    """Remove the topic's own value of a setting that no file mentions."""
    DELETE = "delete"
    LEAVE = "unmanaged"
    """Keep the topic's own value of a setting that no file mentions."""
    NONE = "cannot"
    """Kafka cannot do it: fewer partitions, or another replication factor without moving replicas."""


@dataclass(frozen=True)
class TopicDifference:
    """One difference between a topic and its declaration.

    :param field: ``partitions``, ``replication_factor``, a setting by Kafka's name; empty for a whole topic
    :param actual: the brokers' value; None if there is none
    :param declared: the declared value; None if the files do not mention it
    """

    topic: str
    field: str
    actual: str | int | None
    declared: str | int | None
    remedy: Remedy
    note: str = ""


def compare(
    declared: DeclaredTopic, topic: Topic | None, settings: Mapping[str, Setting], *, reset: bool = False
) -> Iterator[TopicDifference]:
    """Yield the differences of one topic.

    :param topic: None if it does not exist
    :param reset: whether settings that the file does not mention are to be removed
    """
    name = declared.name
    if topic is None:
        yield TopicDifference(name, "", None, None, Remedy.CREATE)
        return
    actual = len(topic.partitions)
    if declared.partitions is not None and declared.partitions != actual:
        grows = declared.partitions > actual
        note = "" if grows else "Kafka cannot shrink"
        yield TopicDifference(name, "partitions", actual, declared.partitions, Remedy.GROW if grows else Remedy.NONE, note)
    if declared.replication_factor not in (None, topic.replication_factor):
        note = "needs reassignment"
        yield TopicDifference(name, "replication_factor", topic.replication_factor, declared.replication_factor, Remedy.NONE, note)
    own = own_settings(settings)
    for key, value in declared.settings.items():
        if not same_value(key, value, own.get(key)):
            found = settings.get(key)
            note = "" if found is None else _NOTES.get(found.source, "the brokers' default")
            yield TopicDifference(name, key, found.value if found else None, value, Remedy.ALTER, note)
    for key, value in own.items():
        if key not in declared.settings and "throttled" not in key:  # these belong to a reassignment in progress
            yield TopicDifference(name, key, value, None, Remedy.RESET if reset else Remedy.LEAVE)
