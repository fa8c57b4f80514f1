"""Changes to topics: requests to create one, and changes to many, planned together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kops.core.errors import UsageProblem
from kops.core.models import NewTopic
from kops.core.plan import Arguments, Json
from kops.core.settings import Settings
from kops.core.topics.settings import POLICY, RETENTION


@dataclass(frozen=True)
class TopicRequest:
    """The request of `topics create`, which applies to all names of one command.

    :param partitions: None: that of ``like``, otherwise the brokers' default; the same for ``replication_factor``
    :param compacted: ``cleanup.policy=compact``, or ``compact,delete`` together with ``expire_ms``
    :param expire_ms: milliseconds after which records are deleted
    :param settings: Kafka's settings, as given
    :param like: an existing topic that provides everything that is not given
    """

    partitions: int | None = None
    replication_factor: int | None = None
    compacted: bool = False
    expire_ms: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    like: str | None = None

    def own_settings(self, inherited: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the settings to set on the topic itself.

        :param inherited: those of the topic ``like``
        :raises UsageProblem: if the options contradict each other
        """
        for option, given, name in (("--compacted", self.compacted, POLICY), ("--expire", self.expire_ms is not None, RETENTION)):
            if given and name in self.settings:
                raise UsageProblem(
                    f"{option} and --config {name}={self.settings[name]} contradict each other", hint="leave one of them out"
                )
        settings = {**(inherited or {}), **self.settings}
        if self.compacted:
            settings[POLICY] = "compact"
        if self.expire_ms is not None:
            settings[RETENTION] = str(self.expire_ms)
            if settings.get(POLICY) == "compact":
                settings[POLICY] = "compact,delete"
        return settings


@dataclass(frozen=True)
class Changes(Arguments):
    """Changes to topics: the arguments of ``topics.change``, and of ``topics.create`` and ``topics.delete``.

    :param create: topics that do not exist
    :param alter: settings by topic
    :param grow: total number of partitions, by topic
    :param delete: topics that exist
    """

    create: tuple[NewTopic, ...] = ()
    alter: Mapping[str, Settings] = field(default_factory=dict)
    grow: Mapping[str, int] = field(default_factory=dict)
    delete: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.create or self.alter or self.grow or self.delete)

    @property
    def created(self) -> tuple[str, ...]:
        return tuple(topic.name for topic in self.create)

    @property
    def altered(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.alter, *self.grow)))

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.created, *self.altered, *self.delete)

    def without(self, names: set[str]) -> Changes:
        """Return the changes to all topics except these."""
        return Changes(
            create=tuple(topic for topic in self.create if topic.name not in names),
            alter={name: settings for name, settings in self.alter.items() if name not in names},
            grow={name: total for name, total in self.grow.items() if name not in names},
            delete=tuple(name for name in self.delete if name not in names),
        )

    def as_json(self) -> Json:
        return {
            "create": [new_topic_json(topic) for topic in self.create],
            "alter": {name: dict(settings) for name, settings in self.alter.items()},
            "grow": dict(self.grow),
            "delete": list(self.delete),
        }

    @classmethod
    def of_json(cls, body: Json) -> Changes:
        return cls(tuple(NewTopic(**topic) for topic in body["create"]), body["alter"], body["grow"], tuple(body["delete"]))


def new_topic_json(topic: NewTopic) -> dict[str, Any]:
    """Return a topic to be created as JSON; ``NewTopic(**body)`` reads it back."""
    return {**vars(topic), "settings": dict(topic.settings)}
