"""Topics as YAML files declare them: one document a topic, and documents that say which names the files own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kops.core.errors import ConfigError, UsageProblem
from kops.core.statefile.fields import Fields, nearest, owned_globs
from kops.core.topics.names import metric_name, name_problem
from kops.core.topics.settings import canonical_settings

TOPIC_FIELDS = ("name", "partitions", "replication_factor", "config")
OWNER_FIELDS = ("owns",)
_MOST = 2**31 - 1


@dataclass(frozen=True)
class Declared:
    """A topic as a file wants it; None: the brokers' choice when it is created, and whatever there is afterwards.

    :param settings: by Kafka's name, written as Kafka shows them
    :param place: file and document, for messages
    """

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    place: str = ""


@dataclass(frozen=True)
class Declaration:
    """All that some files say.

    :param owns: globs of the names that belong to the files: other topics under them may be pruned
    """

    topics: tuple[Declared, ...] = ()
    owns: tuple[str, ...] = ()


def parse_declaration(documents: Sequence[tuple[str, Any]], *, also_known: Callable[[], set[str]] = set) -> Declaration:
    """Read the documents of some files.

    :param documents: the place of each, and what YAML made of it
    :param also_known: the settings that the brokers know, asked for a name that is in no table
    :raises ConfigError: naming the file and the field
    """
    topics: dict[str, Declared] = {}
    metrics: dict[str, Declared] = {}
    owns: list[str] = []
    for place, body in documents:
        if isinstance(body, Mapping) and "owns" in body:
            owns += _owned(place, body)
            continue
        topic = _topic(place, body, also_known)
        other = topics.get(topic.name) or metrics.get(metric_name(topic.name))
        if other is not None:
            what = (
                "is declared already" if other.name == topic.name else f"collides with {other.name}: Kafka's metric names turn '.' into '_'"
            )
            raise ConfigError(f"{place}: name: {topic.name} {what}", hint=f"see {other.place}", file=place, field="name")
        topics[topic.name] = metrics[metric_name(topic.name)] = topic
    return Declaration(tuple(topics.values()), tuple(dict.fromkeys(owns)))


def _topic(place: str, body: Any, also_known: Callable[[], set[str]]) -> Declared:
    fields = _fields(place, body, TOPIC_FIELDS)
    name = fields.needed("name", "the name of the topic")
    problem = name_problem(name)
    if problem:
        raise fields.wrong("name", f"cannot be: {problem}", "letters, digits, '.', '_' and '-' are allowed")
    settings = _settings(fields, also_known) if fields.body.get("config") is not None else {}
    return Declared(name, _count(fields, "partitions"), _count(fields, "replication_factor", 2**15 - 1), settings, place)


def _fields(place: str, body: Any, known: Sequence[str]) -> Fields:
    fields = Fields(place, "", body)
    for name in fields.body:
        if name not in known:
            raise fields.wrong(name, "is not a field of a topic", f"{nearest(name, known)}fields: {', '.join(known)}")
    return fields


def _count(fields: Fields, name: str, most: int = _MOST) -> int | None:
    value = fields.body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise fields.wrong(name, f"is {value!r}", "a whole number from 1")
    return value


def _settings(fields: Fields, also_known: Callable[[], set[str]]) -> dict[str, str]:
    config = fields.inside("config")
    texts = {name: _text(config, name) for name in config.body}
    try:
        return canonical_settings(texts, also_known=also_known)
    except UsageProblem as problem:
        setting = str(problem.details.get("setting", ""))
        path = config.path(setting)
        raise ConfigError(f"{fields.file}: {path}: {problem.message}", hint=problem.hint, file=fields.file, field=path) from problem


def _text(config: Fields, name: str) -> str:
    value = config.body[name]
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return ",".join(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float)):
        return str(value)
    raise config.wrong(name, "has no value that a setting can have", "a text, a number, true or false, or a list of words")


def _owned(place: str, body: Mapping[str, Any]) -> list[str]:
    return owned_globs(_fields(place, body, OWNER_FIELDS), "topic")
