"""Whether Kafka Streams applications have all of their internal topics."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from kops.core.findings import Finding
from kops.core.groups.look import GroupLook
from kops.core.streams.missing import MissingTopic, missing_finding, missing_topics
from kops.core.streams.topics import CHANGELOG, is_named_of, looks_like_streams, owner_of
from kops.operations.cluster.observe import Gaps
from kops.operations.services import Services

_PREFIXES = ("state.", "topics.", "streams.")
_DELETION = "topics.delete"


def streams_findings(services: Services, looks: Sequence[GroupLook], gaps: Gaps) -> list[Finding]:
    """Return a finding per application whose internal topics are missing."""
    existing = (gaps.ask("topics", lambda: frozenset(services.kafka.topics.names())) if looks else None) or frozenset()
    if not existing:
        return []
    groups = {look.group.group_id for look in looks}
    owners = {owner for topic in existing if (owner := owner_of(topic, groups)) is not None}
    found = []
    for look in looks:
        name = look.group.group_id
        if name not in owners and not _is_streams(look):
            continue
        deleted = {partition.topic for partition, events in look.history.commits.items() if events and events[-1].committed is None}
        missing = missing_topics(look.group, existing, deleted, _noted(services, name, existing))
        if missing:
            found.append(missing_finding(name, missing))
    return found


def _is_streams(look: GroupLook) -> bool:
    committed = [one for one in look.partitions if one.committed is not None]
    topics = {one.partition.topic for one in look.partitions} | {partition.topic for partition in look.history.commits}
    return look.streams or looks_like_streams(
        look.group.group_id, look.group, topics, (one.committed.metadata for one in committed if one.committed is not None)
    )


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
