"""Which application an internal topic belongs to, by its name. Pure.

Kafka Streams names its own topics ``<application.id>-<name>-changelog`` and ``-repartition``; nothing else identifies the owner, and one
``application.id`` may be a prefix of another: ``orders`` and ``orders-v2``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kops.core.models import Group
from kops.core.offsets.arithmetic import is_streams_metadata

CHANGELOG, REPARTITION = "-changelog", "-repartition"
ADDED_MS = 86_400_000
"""What Kafka Streams adds to the retention of windows and versions in changelogs (``windowstore.changelog.additional.retention.ms``)."""
REPARTITION_SETTINGS = {
    "cleanup.policy": "delete",
    "message.timestamp.type": "CreateTime",
    "retention.ms": "-1",
    "segment.bytes": "52428800",
}
"""With which Kafka Streams creates repartition topics (``RepartitionTopicConfig``)."""

_INTERNAL = re.compile(
    r".+-(?:changelog|repartition|subscription-registration-topic|subscription-response-topic)"
    r"|(?:.+-)?KTABLE-FK-JOIN-SUBSCRIPTION-(?:REGISTRATION|RESPONSE)-[0-9]+-topic"
)
"""From ``StreamsResetter.matchesInternalTopicFormat``."""
_GENERATED = re.compile(r"(?:^|-)((?:COGROUP)?(?:KSTREAM|KTABLE)-[A-Z-]+-\d{10}(?!\d))")
"""A name that the DSL generated: an operator and ten digits."""


def is_internal_name(topic: str) -> bool:
    """Whether a topic has a name like those that Kafka Streams gives internal topics."""
    return _INTERNAL.fullmatch(topic) is not None


def is_named_of(topic: str, application: str) -> bool:
    """Whether a topic is named like an internal topic of this application, with something between its id and the suffix."""
    return bool(application) and topic.startswith(f"{application}-") and is_internal_name(topic[len(application) + 1 :])


def owner_of(topic: str, applications: Iterable[str]) -> str | None:
    """Return the application that owns an internal topic by its name, the longest matching ``application.id``; None if none matches.

    :param applications: a set or a dictionary is used without a copy, which matters if there are thousands
    """
    if not is_internal_name(topic):
        return None
    known = applications if isinstance(applications, (set, frozenset, dict)) else set(applications)
    ends = (at for at in range(len(topic) - 1, 0, -1) if topic[at] == "-")
    return next((topic[:at] for at in ends if topic[:at] in known and is_internal_name(topic[at + 1 :])), None)


def store_of(topic: str, application: str) -> str | None:
    """Return the store of a changelog topic; None if it is not a changelog of this application."""
    if not is_named_of(topic, application) or not topic.endswith(CHANGELOG):
        return None
    return topic[len(application) + 1 : -len(CHANGELOG)]


@dataclass(frozen=True)
class Doubt:
    """A topic that may belong to another application, whose group is gone.

    :param other: that application's id
    :param reason: half a sentence after the topic's name
    """

    topic: str
    other: str
    reason: str


def doubts(application: str, topics: Collection[str]) -> tuple[Doubt, ...]:
    """Return which topics named like this application's may belong to a neighbour: ``orders-v2-counts-changelog``.

    A neighbour shows if a generated name does not directly follow this application's id, or if another of these topics has the same name
    without the neighbour's part, as with a second version of an application.
    """
    names = {topic: topic[len(application) + 1 :] for topic in topics}
    found: list[Doubt] = []
    for topic in sorted(topics):
        rest = names[topic]
        generated = _GENERATED.search(rest)
        if generated and generated.start(1) > 0:
            other = f"{application}-{rest[: generated.start(1) - 1]}"
            found.append(Doubt(topic, other, f"has the generated name {generated[1]} behind {other}"))
            continue
        twin = max((name for name in names.values() if name != rest and rest.endswith(f"-{name}")), key=len, default=None)
        if twin:
            other = f"{application}-{rest[: -len(twin) - 1]}"
            found.append(Doubt(topic, other, f"is to {other} what {application}-{twin} is to {application}"))
    return tuple(found)


def looks_like_streams(group_id: str, group: Group | None, topics: Iterable[str], metadata: Iterable[str | None]) -> bool:
    """Whether a group is a Kafka Streams application: by its type, by its commits, or by its repartition topics."""
    if group is not None and group.type == "streams":
        return True
    if any(topic.startswith(f"{group_id}-") and topic.endswith("-repartition") for topic in topics):
        return True
    return any(is_streams_metadata(text) for text in metadata)
