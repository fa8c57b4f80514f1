"""Where a cluster is not as a captured program says: its internal topics, their partitions and settings. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from kops.core.streams.capture import Capture, InternalTopic, Subtopology

MISSING, NOT_IN_PROGRAM, PARTITIONS, SETTING = "missing", "not in program", "partitions", "setting"


@dataclass(frozen=True)
class Difference:
    """A difference between a program and its cluster.

    :param kind: one of the constants above
    :param topic: an internal topic
    :param store: whose changelog it is, if the program has that store
    :param setting: its name, if that is what differs
    :param program: what the program would have, as text
    :param cluster: what the cluster has
    """

    kind: str
    topic: str
    store: str | None = None
    setting: str | None = None
    program: str | None = None
    cluster: str | None = None


def differences(
    capture: Capture, partitions: Mapping[str, int], settings: Mapping[str, Mapping[str, str | None]], own: Collection[str]
) -> list[Difference]:
    """Return where the cluster differs, by topic.

    :param partitions: number of partitions of every topic of the cluster
    :param settings: of the internal topics that exist
    :param own: the internal topics of the cluster that are the application's, by all that is known
    """
    stores = {store.changelog: store.name for store in capture.stores if store.changelog}
    needed = _repartitions(capture, partitions)
    found: list[Difference] = []
    for part in capture.subtopologies:
        tasks = _tasks(part, {**partitions, **needed})
        for topic in part.changelogs:
            found += _of_topic(topic, stores.get(topic.name), tasks, partitions, settings)
        for topic in part.repartition_topics:
            found += _of_topic(topic, None, needed.get(topic.name), partitions, settings)
    known = set(internal_topics(capture))
    found += [Difference(NOT_IN_PROGRAM, topic) for topic in own if topic not in known]
    return sorted(found, key=lambda each: (each.topic, each.setting or ""))


def internal_topics(capture: Capture) -> list[str]:
    """Return the changelogs and repartition topics of a program; of its own topics those that serve as changelogs."""
    return sorted({topic.name for part in capture.subtopologies for topic in (*part.changelogs, *part.repartition_topics)})


def _repartitions(capture: Capture, partitions: Mapping[str, int]) -> dict[str, int]:
    """Return how many partitions each repartition topic needs, where that is known.

    The library decides this without looking at those that exist, and then refuses to start with another number (``RepartitionTopics``,
    ``InternalTopicManager.validatePartitionCount``): the program says it, or it is as many as the topics have that are read by what writes
    into it. A changelog therefore goes by the number that its repartition topic should have, and not by the one that somebody gave it.
    """
    topics = {topic.name: topic for part in capture.subtopologies for topic in part.repartition_topics}
    needed = {name: topic.partitions for name, topic in topics.items() if topic.partitions is not None}
    for _ in topics:  # each turn settles at least one more of a chain of them
        for part in capture.subtopologies:
            tasks = _tasks(part, {**{name: count for name, count in partitions.items() if name not in topics}, **needed})
            written = topics.keys() & set(part.sink_topics or ())
            for name in written:
                if tasks is not None and topics[name].partitions is None:
                    needed[name] = max(tasks, needed.get(name, 0))
    return needed


def _tasks(part: Subtopology, partitions: Mapping[str, int]) -> int | None:
    """Return the number of tasks of a sub-topology, and so of the partitions of its changelogs; None if it is unknown.

    :param partitions: of topics, with repartition topics as they should be
    """
    if part.source_topics is None:
        return None
    counts = [partitions.get(topic) for topic in part.read_topics]
    known = [count for count in counts if count is not None]
    return max(known) if known and len(known) == len(counts) else None


def _of_topic(
    topic: InternalTopic,
    store: str | None,
    expected: int | None,
    partitions: Mapping[str, int],
    settings: Mapping[str, Mapping[str, str | None]],
) -> Iterator[Difference]:
    count = partitions.get(topic.name)
    if count is None:
        yield Difference(MISSING, topic.name, store, program=None if expected is None else f"{expected} partitions")
        return
    if expected is not None and count != expected and not topic.is_source_topic:
        yield Difference(PARTITIONS, topic.name, store, program=str(expected), cluster=str(count))
    there = settings.get(topic.name, {})
    if topic.is_source_topic:  # the library leaves its settings as they are, and needs only that it keeps the last record of each key
        if "compact" not in _items(there.get("cleanup.policy")):
            yield Difference(SETTING, topic.name, store, "cleanup.policy", "compact", there.get("cleanup.policy"))
        return
    for name, value in sorted((topic.settings or {}).items()):
        if name in there and _items(there[name]) != _items(value):
            yield Difference(SETTING, topic.name, store, name, value, there[name])


def _items(value: str | None) -> set[str]:
    """Return a list in a setting, whose order says nothing."""
    return {item.strip() for item in (value or "").split(",")}
