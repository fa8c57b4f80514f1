"""Whose internal topics are whose, by their names. Pure.

Kafka Streams names its own topics ``<application.id>-<name>-changelog`` and ``-repartition``; nothing else says whose a topic is, and an
``application.id`` may begin with another one: ``orders`` and ``orders-v2``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kops.core.models import Group
from kops.core.offsets.arithmetic import is_streams_metadata

CHANGELOG, REPARTITION = "-changelog", "-repartition"

_INTERNAL = re.compile(
    r".+-(?:changelog|repartition|subscription-registration-topic|subscription-response-topic)"
    r"|(?:.+-)?KTABLE-FK-JOIN-SUBSCRIPTION-(?:REGISTRATION|RESPONSE)-[0-9]+-topic"
)
"""``StreamsResetter.matchesInternalTopicFormat``."""
_GENERATED = re.compile(r"(?:^|-)((?:COGROUP)?(?:KSTREAM|KTABLE)-[A-Z-]+-\d{10}(?!\d))")
"""A name that the DSL made up: an operator and its ten digits."""


def is_internal_name(topic: str) -> bool:
    """Whether a topic is named as Kafka Streams names its own."""
    return _INTERNAL.fullmatch(topic) is not None


def is_named_of(topic: str, application: str) -> bool:
    """Whether a topic is named as an internal one of this application: something stands between its id and the ending."""
    return bool(application) and topic.startswith(f"{application}-") and is_internal_name(topic[len(application) + 1 :])


def owner_of(topic: str, applications: Iterable[str]) -> str | None:
    """Return whose internal topic it is by its name: of several the longest ``application.id``; None where no one's matches.

    :param applications: a set or a dictionary is asked as it is, which counts where there are thousands
    """
    if not is_internal_name(topic):
        return None
    known = applications if isinstance(applications, (set, frozenset, dict)) else set(applications)
    ends = (at for at in range(len(topic) - 1, 0, -1) if topic[at] == "-")
    return next((topic[:at] for at in ends if topic[:at] in known and is_internal_name(topic[at + 1 :])), None)


def store_of(topic: str, application: str) -> str | None:
    """Return the store of a changelog topic; None when it is not one of this application."""
    if not is_named_of(topic, application) or not topic.endswith(CHANGELOG):
        return None
    return topic[len(application) + 1 : -len(CHANGELOG)]


@dataclass(frozen=True)
class Doubt:
    """A topic that may be another application's, whose group is gone.

    :param other: that application's id
    :param reason: half a sentence after the topic's name
    """

    topic: str
    other: str
    reason: str


def doubts(application: str, topics: Collection[str]) -> tuple[Doubt, ...]:
    """Return which of the topics named as this application's look like those of a neighbour: ``orders-v2-counts-changelog``.

    A neighbour shows where a generated name does not follow this application's id, and where another of these topics has the same
    name without the neighbour's part, as a second version of an application has.
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
    """Whether a group is a Kafka Streams application: by its type, by what it commits, or by its repartition topics."""
    if group is not None and group.type == "streams":
        return True
    if any(topic.startswith(f"{group_id}-") and topic.endswith("-repartition") for topic in topics):
        return True
    return any(is_streams_metadata(text) for text in metadata)
