"""Which topics a connector needs, as far as its configuration says. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from kops.core.connect.topics import elsewhere
from kops.core.findings import command, counted

_DEAD_LETTERS = "errors.deadletterqueue.topic.name"
_DEAD_LETTERS_REPLICAS = "errors.deadletterqueue.topic.replication.factor"
_CREATED_REPLICAS = "topic.creation.default.replication.factor"
_OF_A_SOURCE = ("topic", "kafka.topic")
"""Settings in which sources usually name the topic that they write to; there is no common one."""
_REPLICAS = 3
"""Connect's default for its dead letter topics (``SinkConnectorConfig``)."""


@dataclass(frozen=True)
class Need:
    """A topic that a connector needs.

    :param setting: the setting that names it
    :param replicas: of the topic that Connect itself creates if there is none; None if Connect creates none
    """

    topic: str
    setting: str
    replicas: int | None = None


@dataclass(frozen=True)
class Lack:
    """A topic that is not there, or cannot be created by Connect.

    :param hint: what to do
    """

    setting: str
    message: str
    hint: str


def needs_of(kind: str, config: Mapping[str, str]) -> Iterator[Need]:
    """Yield the topics that a connector's settings name; a reference such as ``${env:TOPIC}`` is not resolved.

    :param kind: sink or source
    """
    if elsewhere(config) is not None:
        return
    if kind == "sink":
        yield from (Need(name.strip(), "topics") for name in config.get("topics", "").split(",") if _is_name(name))
        if _is_name(config.get(_DEAD_LETTERS, "")):
            yield Need(config[_DEAD_LETTERS].strip(), _DEAD_LETTERS, _number(config.get(_DEAD_LETTERS_REPLICAS), _REPLICAS))
        return
    replicas = config.get(_CREATED_REPLICAS)  # KIP-158: with it, Connect creates the topics of a source
    for setting in _OF_A_SOURCE:
        if _is_name(config.get(setting, "")):
            yield Need(config[setting].strip(), setting, None if replicas is None else _number(replicas, -1))


def lacks_of(kind: str, config: Mapping[str, str], there: Collection[str], *, brokers: int) -> Iterator[Lack]:
    """Yield the topics that a connector lacks.

    :param there: which of those that it needs exist
    :param brokers: how many there are
    """
    for need in needs_of(kind, config):
        if need.topic in there:
            continue
        create = f"create it: {command('topics', 'create', need.topic)}"
        if need.replicas is not None:
            if need.replicas > brokers:
                fewer = f"or set {_DEAD_LETTERS_REPLICAS if kind == 'sink' else _CREATED_REPLICAS}={brokers}"
                what = f"topic {need.topic} does not exist, and Connect cannot create it with {need.replicas} replicas on"
                yield Lack(need.setting, f"{what} {counted(brokers, 'broker')}: the task will fail", f"{create}, {fewer}")
        else:
            reads = "unless the brokers create it, the connector runs and reads nothing"
            writes = "if the connector writes to it, and the brokers do not create it, it runs and writes nothing"
            yield Lack(need.setting, f"topic {need.topic} does not exist: {reads if kind == 'sink' else writes}", create)


def names_topics(kind: str, config: Mapping[str, str]) -> bool:
    """Whether :func:`needs_of` and ``topics.regex`` say every topic that a connector reads, or that it writes to."""
    if kind == "sink":
        return "topics.regex" in config or all(_is_name(name) for name in config.get("topics", "").split(","))
    return any(True for _ in needs_of(kind, config))


def _is_name(text: str) -> bool:
    return bool(re.fullmatch(r"[\w.-]+", text.strip(), re.ASCII))


def _number(text: str | None, default: int) -> int:
    return int(text) if text and re.fullmatch(r"-?\d{1,9}", text.strip(), re.ASCII) else default
