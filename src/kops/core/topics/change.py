"""Changes to many topics, decided together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kops.core.models import NewTopic, Setting
from kops.core.topics.settings import own_settings, same_value

Settings = Mapping[str, "str | None"]
"""Settings of a topic by name: the value to set, None to take the topic's own value away."""


@dataclass(frozen=True)
class Changes:
    """What is to become of topics.

    :param create: topics that do not exist
    :param alter: settings by topic
    :param grow: partitions in all, by topic
    :param delete: topics that exist
    """

    create: tuple[NewTopic, ...] = ()
    alter: Mapping[str, Settings] = field(default_factory=dict)
    grow: Mapping[str, int] = field(default_factory=dict)
    delete: tuple[str, ...] = ()

    @property
    def altered(self) -> tuple[str, ...]:
        """Return the topics that stay and change, in order."""
        return tuple(dict.fromkeys((*self.alter, *self.grow)))

    def as_json(self) -> dict[str, Any]:
        """Return JSON that :func:`changes_of_json` reads."""
        return {
            "create": [{**vars(topic), "settings": dict(topic.settings)} for topic in self.create],
            "alter": {name: dict(settings) for name, settings in self.alter.items()},
            "grow": dict(self.grow),
            "delete": list(self.delete),
        }


def changes_of_json(body: Mapping[str, Any]) -> Changes:
    """Read changes back."""
    return Changes(tuple(NewTopic(**topic) for topic in body["create"]), body["alter"], body["grow"], tuple(body["delete"]))


def still_to_alter(found: Mapping[str, Setting], wanted: Settings) -> dict[str, str | None]:
    """Return the settings of a topic that are not as wanted."""
    own = own_settings(found)
    return {name: value for name, value in wanted.items() if not same_value(name, value, own.get(name))}


def value_after(found: Mapping[str, Setting], name: str, value: str | None) -> str | None:
    """Return what a setting would be with this value of the topic's own; None when it is not known."""
    return value if value is not None else found[name].inherited if name in found else None


def source_after(found: Mapping[str, Setting], name: str, value: str | None) -> str:
    """Return where the value of a setting would come from."""
    if value is not None:
        return "topic"
    return found[name].source if name in found and found[name].source != "topic" else "inherited"
