"""Records dated ahead of the clock: retention, lag in time and resets by time go by these dates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kops.core.durations import MILLISECONDS
from kops.core.findings import Finding, Severity, command, partitions_text
from kops.core.models import TopicPartition
from kops.core.times import time_text
from kops.operations.diagnose.check import TOPIC, Check
from kops.operations.diagnose.incident import Incident
from kops.operations.groups.unread import MOST_PLACES

AHEAD_MS = MILLISECONDS["h"]
"""Clocks that differ by less are common, and brokers accept it by default (``message.timestamp.after.max.ms``)."""
_ACCEPTS = "message.timestamp.after.max.ms"


@dataclass(frozen=True)
class _Ahead:
    """Records of a topic that are dated ahead.

    :param first: the first such offset of each partition
    :param newest: the largest timestamp, in milliseconds since the epoch; None if the brokers do not report it
    :param place: where that record is
    """

    first: Mapping[TopicPartition, int]
    newest: int | None = None
    place: str = ""


def _look(incident: Incident) -> Mapping[str, _Ahead]:
    read = {one.partition.topic for look in incident.groups.values() for one in look.partitions}
    topics = [topic for topic in incident.places if topic in read or topic in incident.scope.topics]
    places = [place for topic in topics for place in incident.places[topic]]
    if len(places) > MOST_PLACES:
        raise incident.too_many(len(places), MOST_PLACES)
    offsets = incident.services.kafka.offsets
    ahead = {place: first for place, first in offsets.at_time(places, incident.now + AHEAD_MS).items() if first is not None}
    newest = offsets.newest(ahead) if ahead else {}
    found: dict[str, _Ahead] = {}
    for topic in topics:
        first = {place: ahead[place] for place in incident.places[topic] if place in ahead}
        worst = max((place for place in first if place in newest), key=lambda place: newest[place][1], default=None)
        found[topic] = _Ahead(first) if worst is None else _Ahead(first, newest[worst][1], f"{worst} at offset {newest[worst][0]}")
    return found


def _find(seen: Mapping[str, _Ahead], _incident: Incident) -> Iterable[Finding]:
    for topic, ahead in seen.items():
        if not ahead.first:
            continue
        until = "" if ahead.newest is None else f" up to {time_text(ahead.newest)} ({ahead.place})"
        text = f"records of {partitions_text(ahead.first)} are dated ahead{until}: retention.ms keeps their segments until after that time,"
        text += " lag in time and resets by time mislead; which client wrote them is not in the log"
        place, offset = min(ahead.first.items())
        commands = (
            command("records", "consume", f"{place}", "--range", f"{offset}..{offset + 5}"),
            command("topics", "alter", topic, "--config", f"{_ACCEPTS}={AHEAD_MS}"),
        )
        facts = {
            "partitions": [str(one) for one in ahead.first],
            "first": {str(one): first for one, first in ahead.first.items()},
            "newest": None if ahead.newest is None else time_text(ahead.newest),
        }
        yield Finding(Severity.WARNING, "future_timestamps", f"topic {topic}", text, commands, facts)


CHECK = Check(
    "timestamps", TOPIC, ("future_timestamps",), "DESCRIBE on the topics, of those that groups read or that are named", _look, _find
)
