"""What differs between a topic and its declaration, and what can be done about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from kops.core.models import Setting, Topic
from kops.core.topics.file import Declared
from kops.core.topics.settings import own_settings, same_value


class Remedy(str, Enum):
    """What makes a topic as declared."""

    CREATE = "create"
    ALTER = "alter"
    GROW = "add partitions"
    RESET = "reset"
    """Take a setting away that no file mentions."""
    DELETE = "delete"
    LEAVE = "unmanaged"
    """A setting that no file mentions, and that stays."""
    NONE = "cannot"
    """Kafka has no way: fewer partitions, or another replication factor without moving replicas."""


@dataclass(frozen=True)
class Difference:
    """One thing that is not as declared.

    :param field: ``partitions``, ``replication_factor``, a setting by Kafka's name; empty for a whole topic
    :param actual: what the brokers have; None when it is not there
    :param declared: what the files want; None when they do not mention it
    """

    topic: str
    field: str
    actual: str | int | None
    declared: str | int | None
    remedy: Remedy
    note: str = ""


def compare(declared: Declared, topic: Topic | None, settings: Mapping[str, Setting], *, reset: bool = False) -> Iterator[Difference]:
    """Yield the differences of one topic.

    :param topic: None when it does not exist
    :param reset: whether settings that the file does not mention are to be taken away
    """
    name = declared.name
    if topic is None:
        yield Difference(name, "", None, None, Remedy.CREATE)
        return
    actual = len(topic.partitions)
    if declared.partitions is not None and declared.partitions != actual:
        grows = declared.partitions > actual
        note = "" if grows else "Kafka cannot shrink"
        yield Difference(name, "partitions", actual, declared.partitions, Remedy.GROW if grows else Remedy.NONE, note)
    if declared.replication_factor not in (None, topic.replication_factor):
        note = "needs reassignment"
        yield Difference(name, "replication_factor", topic.replication_factor, declared.replication_factor, Remedy.NONE, note)
    own = own_settings(settings)
    for key, value in declared.settings.items():
        if not same_value(key, value, own.get(key)):
            found = settings.get(key)
            note = (
                ""
                if found is None or found.source == "topic"
                else "Kafka's default"
                if found.source == "default"
                else "the brokers' default"
            )
            yield Difference(name, key, found.value if found else None, value, Remedy.ALTER, note)
    for key, value in own.items():
        if key not in declared.settings and "throttled" not in key:  # those belong to a reassignment that runs
            yield Difference(name, key, value, None, Remedy.RESET if reset else Remedy.LEAVE)
