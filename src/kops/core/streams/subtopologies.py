"""The sub-topologies of an application, combined from its group, its members, its topics and a description. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from kops.core.streams.models import Application, Part
from kops.core.streams.topics import CHANGELOG, store_of
from kops.core.streams.topology import Topology


@dataclass(frozen=True)
class StoreLook:
    """A store.

    :param subtopology: None if several sub-topologies may have it
    :param candidates: the sub-topologies that may have it
    :param changelog: its changelog topic; None if it has none: logging disabled, a global store, or the source topic serves as changelog
    :param partitions: number of partitions by which Kafka Streams locates a key in the store; None if unknown
    :param several_counts: possible numbers if its sub-topology reads topics with different numbers of partitions
    """

    store: str
    subtopology: str | None
    candidates: tuple[str, ...]
    changelog: str | None
    partitions: int | None
    is_global: bool = False
    several_counts: tuple[int, ...] = ()


def parts_of(application: str, topology: Topology, existing: Collection[str]) -> tuple[Part, ...]:
    """Return the sub-topologies of a description, with their topics named as on the cluster."""
    internal = topology.internal_topics

    def named(topics: Sequence[str]) -> tuple[str, ...]:
        return tuple(internal_name(application, topic, existing) for topic in topics if topic in internal)

    def outer(topics: Sequence[str]) -> tuple[str, ...]:
        return tuple(topic for topic in topics if topic not in internal)

    made = []
    for part in topology.parts:
        changelogs = [f"{application}-{store}{CHANGELOG}" for store in part.stores]
        made.append(
            Part(
                str(part.number),
                outer(part.source_topics),
                part.patterns,
                named(part.source_topics),
                tuple(topic for topic in changelogs if topic in existing and not part.is_global),
                outer(part.sink_topics),
                named(part.sink_topics),
                part.stores,
                part.is_global,
            )
        )
    return tuple(made)


def internal_name(application: str, topic: str, existing: Collection[str]) -> str:
    """Return the name on the cluster of an internal topic of a description, which leaves out the ``application.id``."""
    return topic if topic.startswith(f"{application}-") and topic in existing else f"{application}-{topic}"


def merged(application: Application, topology: Topology | None, existing: Collection[str]) -> tuple[Application, tuple[str, ...]]:
    """Return an application with the sub-topologies of a description, and how the two disagree.

    :param topology: None: only with the stores that its changelogs name
    """
    if topology is None:
        return replace(application, parts=tuple(_with_stores(part, application.application) for part in application.parts)), ()
    parts = parts_of(application.application, topology, existing)
    differing = []
    known = {part.subtopology: part for part in parts}
    for part in application.parts:
        other = known.get(part.subtopology)
        reads = {*part.source_topics, *part.repartition_topics}
        if other is None:
            differing.append(f"the group has a sub-topology {part.subtopology}, and the description has none")
        elif not other.patterns and (unknown := reads - {*other.source_topics, *other.repartition_topics}):
            differing.append(f"sub-topology {part.subtopology} reads {', '.join(sorted(unknown))}, and the description does not say so")
    return replace(application, parts=parts, complete=True), tuple(differing)


def _with_stores(part: Part, application: str) -> Part:
    return replace(part, stores=tuple(store for topic in part.changelog_topics if (store := store_of(topic, application))))


def stores_of(
    application: Application, topology: Topology | None, changelogs: Sequence[str], partitions: Mapping[str, int]
) -> list[StoreLook]:
    """Return the known stores, sorted by name.

    :param changelogs: the application's changelog topics on the cluster
    :param partitions: number of partitions by existing topic
    """
    found: dict[str, StoreLook] = {}
    name = application.application
    for part in application.parts:
        for store in part.stores:
            changelog = f"{name}-{store}{CHANGELOG}"
            counts = _partitions(part, topology, store, name, partitions)
            logged = changelog if changelog in changelogs else None
            several = tuple(sorted(counts)) if len(counts) > 1 and topology is None else ()
            count = max(counts, default=partitions.get(changelog))
            found[store] = StoreLook(store, part.subtopology, (part.subtopology,), logged, count, part.is_global, several)
    for topic in changelogs:
        unplaced = store_of(topic, name)
        if unplaced is None or unplaced in found:
            continue
        count = partitions.get(topic)
        fitting = [part.subtopology for part in application.parts if not part.stores and _most(part, partitions) in (count, None)]
        sure = fitting[0] if len(fitting) == 1 else None
        found[unplaced] = StoreLook(unplaced, sure, tuple(fitting), topic, count)
    return [found[store] for store in sorted(found)]


def _partitions(part: Part, topology: Topology | None, store: str, application: str, partitions: Mapping[str, int]) -> set[int]:
    """Return the partition counts of a store's topics: of its own sources if a description names them, otherwise of its part.

    ``StreamsMetadataState`` takes the largest of its own sources.
    """
    topics: Sequence[str] = (*part.source_topics, *part.repartition_topics)
    if topology is not None:
        sources = topology.sources_of(store)
        internal = topology.internal_topics
        if not any(node.pattern for node in sources):
            topics = [
                internal_name(application, topic, partitions) if topic in internal else topic for node in sources for topic in node.topics
            ]
    return {partitions[topic] for topic in topics if topic in partitions}


def _most(part: Part, partitions: Mapping[str, int]) -> int | None:
    return max((partitions[topic] for topic in (*part.source_topics, *part.repartition_topics) if topic in partitions), default=None)


def task_count(part: Part, partitions: Mapping[str, int]) -> int | None:
    """Return how many tasks a sub-topology has; None if its topics are unknown, 0 for that of a global store."""
    return 0 if part.is_global else _most(part, partitions)
