"""The topics of Kafka Streams applications."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from kops.core.findings import Finding, Severity, command, names_text
from kops.core.groups.look import GroupLook
from kops.core.models import WorkingGroup
from kops.core.streams.missing import MissingTopic, missing_finding, missing_topics
from kops.core.streams.topics import CHANGELOG, is_named_of, looks_like_streams, owner_of
from kops.operations.diagnose.check import GROUP, Check
from kops.operations.diagnose.incident import Incident
from kops.operations.services import Services

_PREFIXES = ("state.", "topics.", "streams.")
_DELETION = "topics.delete"


@dataclass(frozen=True)
class _Application:
    """An application: its internal topics that are missing, and the topics that it is registered to read and that are missing."""

    missing: tuple[MissingTopic, ...]
    sources: tuple[str, ...]


def _look(incident: Incident) -> Mapping[str, _Application]:
    looks = incident.groups
    if not looks:
        return {}
    existing = incident.topic_names
    owners = {owner for topic in existing if (owner := owner_of(topic, set(looks))) is not None}
    found: dict[str, _Application] = {}
    for name, look in looks.items():
        if name not in owners and not _is_streams(look):
            continue
        deleted = {partition.topic for partition, events in look.history.commits.items() if events and events[-1].committed is None}
        missing = missing_topics(look.group, existing, deleted, _noted(incident.services, name, existing))
        parts = look.group.subtopologies if isinstance(look.group, WorkingGroup) else ()
        sources = sorted({topic for part in parts for topic in part.source_topics if topic not in existing})
        found[name] = _Application(tuple(missing), tuple(sources))
    return found


def _find(seen: Mapping[str, _Application], _incident: Incident) -> Iterable[Finding]:
    for name, application in seen.items():
        if application.missing:
            yield missing_finding(name, list(application.missing))
        if application.sources:
            topics = list(application.sources)
            text = f"topics that it reads do not exist: {names_text(topics)}; its members get no tasks until they do"
            commands = (command("topics", "create", *topics), command("streams", "describe", name))
            yield Finding(Severity.CRITICAL, "source_topic_missing", f"group {name}", text, commands, {"topics": topics})


def _is_streams(look: GroupLook) -> bool:
    topics = {one.partition.topic for one in look.partitions} | {partition.topic for partition in look.history.commits}
    texts = (one.committed.metadata for one in look.partitions if one.committed is not None)
    return look.streams or looks_like_streams(look.group.group_id, look.group, topics, texts)


def _noted(services: Services, application: str, existing: Collection[str]) -> Iterator[MissingTopic]:
    """Yield the missing internal topics that the journal mentions, each by its newest entry.

    Only a changelog that was deleted on its own can be missed: what a change of state or a reset deleted, the application creates again.
    """
    from kops.operations.protocol.journal import Journal

    seen: set[str] = set()
    cluster_id = services.kafka.cluster().cluster_id
    journal = Journal(services.directories.state / "journal")
    for entry in journal.entries(lambda _damaged: None, mentioning=f"{application}-"):
        operation = entry.plan.operation
        if entry.plan.cluster_id != cluster_id or not operation.startswith(_PREFIXES):
            continue
        for item in entry.plan.items:
            topic = item.target.partition(":")[0]
            if topic in seen or topic in existing or not is_named_of(topic, application):
                continue
            seen.add(topic)
            if item.action != "delete":
                yield MissingTopic(topic, f"kops' journal has it ({entry.id})")
            elif operation == _DELETION and topic.endswith(CHANGELOG):
                yield MissingTopic(topic, f"kops deleted it: `kops undo {entry.id}` shows what can be restored", sure=False)


CHECK = Check(
    "topics of Kafka Streams",
    GROUP,
    ("missing_internal_topics", "source_topic_missing"),
    "DESCRIBE on the topics; the protocol of KIP-1071 for the topics that an application reads",
    _look,
    _find,
)
