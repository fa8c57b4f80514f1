"""The settings that Kafka Streams gives its internal topics, and how those of a topic differ. Pure.

From ``InternalTopicConfig`` and its subclasses ``UnwindowedUnversionedChangelogTopicConfig``, ``WindowedChangelogTopicConfig``,
``VersionedChangelogTopicConfig`` and ``RepartitionTopicConfig``. What an application sets itself (``topic.*``, ``withLoggingEnabled``)
comes on top of them, so a difference alone is not a mistake.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kops.core.models import Setting
from kops.core.topics.settings import POLICY, RETENTION, own_settings, people_value, same_value

DAY = 86_400_000
"""``windowstore.changelog.additional.retention.ms``; versioned stores add the same to their history."""
LAG = "min.compaction.lag.ms"
_TIME = {"message.timestamp.type": "CreateTime"}
_COMPACTED = {POLICY: "compact", **_TIME}
_WINDOWED = {POLICY: "compact,delete", RETENTION: f">={DAY}", **_TIME}
_JOIN = {**_WINDOWED, POLICY: "delete|compact,delete"}
"""``WindowStoreBuilder`` that retains duplicates: each record has its own key, so compaction removes nothing and does no harm."""
_VERSIONED = {POLICY: "compact", LAG: f">={DAY}", **_TIME}
_REPARTITION = {POLICY: "delete", RETENTION: "-1", "segment.bytes": "52428800", **_TIME}
_BY_TYPE: Mapping[str, Mapping[str, str]] = {
    "window": _WINDOWED,
    "session": _WINDOWED,
    "join": _JOIN,
    "versioned": _VERSIONED,
    "repartition": _REPARTITION,
    "grouped-table": _REPARTITION,
    "subscription-registration": _REPARTITION,
    "subscription-response": _REPARTITION,
}


@dataclass(frozen=True)
class Difference:
    """A setting that Kafka Streams would have set to another value, or not at all.

    :param expected: the value, ``>=`` before the least, ``|`` between several; None: it sets none, and the topic has one of its own
    """

    name: str
    value: str | None
    expected: str | None

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "value": self.value, "expected": self.expected}

    def __str__(self) -> str:
        has = people_value(self.name, self.value) if self.value is not None else "not known"
        if self.expected is None:
            return f"{self.name} is set to {has}; Kafka Streams sets none"
        least = self.expected.removeprefix(">=")
        wanted = people_value(self.name, least.replace("|", " or "))
        return f"{self.name} is {has}; Kafka Streams sets {f'at least {wanted}' if least != self.expected else wanted}"


def differences(store_type: str, settings: Mapping[str, Setting]) -> list[Difference]:
    expected = _BY_TYPE.get(store_type, _COMPACTED)
    found = []
    for name, wanted in expected.items():
        setting = settings.get(name)
        value = setting.value if setting is not None else None
        if not _fits(name, value, wanted):
            found.append(Difference(name, value, wanted))
    added = [Difference(name, value, None) for name, value in own_settings(settings).items() if name not in expected]
    return [*found, *added]


def _fits(name: str, value: str | None, wanted: str) -> bool:
    if wanted.startswith(">="):
        return value is not None and value.lstrip("-").isdigit() and int(value) >= int(wanted.removeprefix(">="))
    return any(same_value(name, value, one) for one in wanted.split("|"))
