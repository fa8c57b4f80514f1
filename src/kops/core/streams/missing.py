"""Internal topics of a Kafka Streams application that no longer exist. Pure.

Without a changelog the application cannot restore its store, and without a repartition topic it does not start.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from kops.core.findings import Finding, Severity, command, names_text
from kops.core.models import Group, WorkingGroup
from kops.core.streams.topics import CHANGELOG, REPARTITION, is_named_of

MISSING_CHECK = "missing_internal_topics"
_AGGREGATE = re.compile(r"(?:COGROUP)?K(?:STREAM|TABLE)-(?:AGGREGATE|REDUCE)-STATE-STORE-\d{10}")
"""A store that the DSL named gives its name to the repartition topic before it and to its changelog."""
_JOIN_SIDE = re.compile(r"(?P<operator>KSTREAM-(?:JOIN|OUTER))(?P<side>THIS|OTHER)-(?P<number>\d{10})-store")
"""The two window stores of a join have consecutive numbers."""


@dataclass(frozen=True)
class MissingTopic:
    """An internal topic that does not exist.

    :param why: how kops knows of it, half a sentence
    :param sure: whether the application is known to need it; otherwise only names suggest it
    """

    topic: str
    why: str
    sure: bool = True


def missing_topics(group: Group, existing: Collection[str], deleted: Iterable[str], noted: Iterable[MissingTopic]) -> list[MissingTopic]:
    """Return the internal topics that an application should have but that do not exist.

    :param deleted: topics for which commits of the group were deleted
    :param noted: this application's topics according to kops' journal
    """
    application = group.group_id
    found: dict[str, MissingTopic] = {}
    if isinstance(group, WorkingGroup):
        for part in group.subtopologies:
            for name in (*part.repartition_topics, *part.changelog_topics):
                topic = name if name.startswith(f"{application}-") else f"{application}-{name}"
                found[topic] = MissingTopic(topic, "the group registered it")
    for topic in deleted:
        if is_named_of(topic, application):
            found.setdefault(topic, MissingTopic(topic, "the group had committed offsets of it"))
    for one in noted:
        found.setdefault(one.topic, one)
    for topic, why in _siblings(application, existing):
        found.setdefault(topic, MissingTopic(topic, why, sure=False))
    return [one for topic, one in sorted(found.items()) if topic not in existing]


def _siblings(application: str, existing: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the topics that must exist because others do, by the names that the DSL generates."""
    prefix = f"{application}-"
    for topic in existing:
        if not is_named_of(topic, application):
            continue
        name = topic[len(prefix) :]
        if name.endswith(REPARTITION) and _AGGREGATE.fullmatch(store := name.removesuffix(REPARTITION)):
            yield f"{prefix}{store}{CHANGELOG}", f"{topic} feeds its store"
        elif name.endswith(CHANGELOG) and (side := _JOIN_SIDE.fullmatch(name.removesuffix(CHANGELOG))):
            this = side["side"] == "THIS"
            number = int(side["number"]) + (1 if this else -1)
            operators = (side["operator"], "KSTREAM-OUTER" if side["operator"] == "KSTREAM-JOIN" else "KSTREAM-JOIN")
            others = [f"{prefix}{operator}{'OTHER' if this else 'THIS'}-{number:010d}-store{CHANGELOG}" for operator in operators]
            if not any(other in existing for other in others):
                yield others[0], f"{topic} is the other side of its join"


def missing_finding(application: str, missing: Collection[MissingTopic]) -> Finding:
    sure = any(one.sure for one in missing)
    named = names_text([f"{one.topic} ({one.why})" for one in missing])
    changelogs = [one.topic for one in missing if one.topic.endswith(CHANGELOG)]
    text = f"internal topics {'are' if sure else 'seem to be'} missing: {named}"
    if changelogs:
        text += "; stores that are restored now come back empty: do not start it; `kops state rebuild FILE --write replace` recreates them"
    facts = {"topics": [one.topic for one in missing], "sure": sure}
    severity = Severity.CRITICAL if sure else Severity.WARNING
    return Finding(severity, MISSING_CHECK, f"group {application}", text, (command("streams", "describe", application),), facts)
