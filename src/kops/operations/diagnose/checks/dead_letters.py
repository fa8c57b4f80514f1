"""Dead letter topics that grow."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kops.core.connect.causes import DEAD_LETTERS
from kops.core.durations import MILLISECONDS
from kops.core.findings import Finding, Severity, command, counted, names_text
from kops.core.models import Bounds
from kops.operations.diagnose.check import TOPIC, Check
from kops.operations.diagnose.incident import Incident

NEW_MS = 600_000
OLD_MS = MILLISECONDS["d"]
_BY_NAME = re.compile(r"(?:^|[._-])(?:dlq|dlt|dead[._-]?letters?(?:[._-](?:queue|topic))?)$", re.IGNORECASE)
"""What connectors, Spring (``-dlt``) and most people call such topics."""


@dataclass(frozen=True)
class _DeadLetters:
    """A dead letter topic.

    :param connectors: those that write to it; none if only its name says what it is
    :param recent: records of the last ten minutes, by timestamp
    :param day: of the last 24 hours
    """

    connectors: tuple[str, ...]
    recent: int
    day: int


def _look(incident: Incident) -> Mapping[str, _DeadLetters]:
    writers: dict[str, list[str]] = {}
    for name, connector in incident.connectors.items():
        if topic := connector.config.get(DEAD_LETTERS):
            writers.setdefault(topic, []).append(name)
    topics = [topic for topic in incident.topic_names if topic in writers or (topic in incident.places and _BY_NAME.search(topic))]
    if not topics:
        return {}
    offsets = incident.services.kafka.offsets
    places = [place for some in offsets.partitions_of(topics).values() for place in some]
    bounds = {place: found for place, found in offsets.bounds_or_errors(places).items() if isinstance(found, Bounds)}
    filled = [place for place, found in bounds.items() if not found.empty]
    counts = []
    for length in (NEW_MS, OLD_MS):
        first = offsets.at_time(filled, incident.now - length) if filled else {}
        counts.append({place: bounds[place].log_end_offset - at for place, at in first.items() if at is not None})
    recent, day = counts
    found: dict[str, _DeadLetters] = {}
    for topic in sorted(topics):
        sums = [sum(count for place, count in each.items() if place.topic == topic) for each in (recent, day)]
        found[topic] = _DeadLetters(tuple(writers.get(topic, ())), *sums)
    return found


def _find(seen: Mapping[str, _DeadLetters], _incident: Incident) -> Iterable[Finding]:
    for topic, one in seen.items():
        if not one.day:
            continue
        by = f" of {names_text(one.connectors, of='connectors')}" if one.connectors else ", by its name a dead letter topic,"
        text = f"{counted(one.day, 'dead letter')}{by} in the last 24 h, {one.recent:,} of them in the last 10 minutes"
        if not one.connectors:
            text = f"by its name a dead letter topic: {counted(one.day, 'record')} in the last 24 h, {one.recent:,} in the last 10 minutes"
        facts = {"topics": [topic], "connectors": list(one.connectors), "last_10_minutes": one.recent, "last_24_hours": one.day}
        facts |= {"connector": one.connectors[0]} if one.connectors else {}
        severity = Severity.WARNING if one.recent else Severity.NOTE
        commands = (command("records", "dead-letters", topic, "--count"), command("records", "dead-letters", topic))
        yield Finding(severity, "dead_letters", f"topic {topic}", text, commands, facts)


CHECK = Check(
    "dead letters", TOPIC, ("dead_letters",), "DESCRIBE on the topics; an address of Connect for those of connectors", _look, _find
)
