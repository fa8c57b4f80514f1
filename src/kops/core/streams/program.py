"""What follows from a capture for running the program's tasks again: their order, their inputs, which stores cannot be rebuilt. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kops.core.streams.capture import (
    BUFFER,
    LIST,
    SESSION,
    TIMESTAMPED_WINDOW,
    VERSIONED,
    WINDOW,
    Capture,
    Sink,
    Source,
    Store,
    Subtopology,
)

_WITH_TIMES = (WINDOW, TIMESTAMPED_WINDOW, SESSION)
_HEADERS = "the records of its changelog have headers"


@dataclass(frozen=True)
class Topics:
    """What a sub-topology reads, through any number of repartition topics.

    :param external: topics that others write, of this sub-topology and of all that write into it
    :param upstream: sub-topologies that write into it, and those that write into them
    """

    external: tuple[str, ...]
    upstream: tuple[int, ...]


def tasks_of(capture: Capture) -> dict[int, Subtopology]:
    """Return the sub-topologies that have tasks, by number."""
    return {each.number: each for each in capture.subtopologies if not each.is_global}


def writers(capture: Capture, topic: str) -> list[int]:
    """Return which sub-topologies write into a repartition topic, also those whose own topics are given by a pattern."""
    sinks = {node.name for node in capture.nodes if isinstance(node, Sink) and node.topic == topic}
    return [number for number, each in tasks_of(capture).items() if topic in (each.sink_topics or ()) or sinks & set(each.nodes)]


def in_order(capture: Capture) -> list[int]:
    """Return the sub-topologies in an order in which none comes before one that writes into it.

    Those that write into each other, as the sides of a foreign-key join do, are left out, with all that comes after them.
    """
    left, found = tasks_of(capture), list[int]()
    while True:
        ready = [number for number in sorted(left) if all(writer in found for writer in _before(capture, number))]
        if not ready:
            return found
        found += ready
        for number in ready:
            del left[number]


def _before(capture: Capture, number: int) -> set[int]:
    return {writer for topic in tasks_of(capture)[number].repartition_topics for writer in writers(capture, topic.name)}


def topics_of(capture: Capture, number: int) -> Topics:
    upstream, left = set[int](), {number}
    while left:
        left = {writer for each in left for writer in _before(capture, each)} - upstream - {number}
        upstream |= left
    tasks = tasks_of(capture)
    external = {topic for each in {number, *upstream} for topic in tasks[each].source_topics or ()}
    return Topics(tuple(sorted(external)), tuple(sorted(upstream)))


def repartition_topics(capture: Capture) -> list[str]:
    return sorted({topic.name for each in tasks_of(capture).values() for topic in each.repartition_topics})


def global_topics(capture: Capture) -> list[str]:
    """Return the topics of global stores."""
    nodes = {name for each in capture.subtopologies if each.is_global for name in each.nodes}
    return sorted({topic for node in capture.nodes if isinstance(node, Source) and node.name in nodes for topic in node.topics})


def has_windows(capture: Capture, numbers: Collection[int]) -> bool:
    """Return whether some sub-topologies have stores for which records may come too late."""
    timed = [store.name for store in capture.stores if store.kind in (*_WITH_TIMES, LIST, BUFFER, VERSIONED)]
    return any(found.number in numbers for name in timed if (found := capture.subtopology_of(name)))


def topology_facts(capture: Capture) -> dict[str, str]:
    """Return what the runner has to say of a program that is as it was captured; topics that a pattern names are left out."""
    found = {}
    for number, each in tasks_of(capture).items():
        if each.source_topics is None:
            continue
        repartition = [topic.name for topic in each.repartition_topics]
        for what, topics in (
            ("sources", [*each.source_topics, *repartition]),
            ("repartition", repartition),
            ("changelogs", [topic.name for topic in each.changelogs]),
            ("sinks", each.sink_topics or ()),
        ):
            found[f"subtopology.{number}.{what}"] = ",".join(sorted(topics))
    return found


def reason_against(capture: Capture, store: Store) -> str:
    """Return why the changelog of a store cannot be rebuilt by its program; empty when it can."""
    found = capture.subtopology_of(store.name)
    if store.changelog is None or found is None:
        return "it has no changelog"
    by_kind = {BUFFER: _HEADERS, VERSIONED: "it is versioned: each record of its changelog stays"}
    if any(topic.name == store.changelog and topic.is_source_topic for topic in found.changelogs):
        return f"{store.changelog}, which the program reads, is its changelog itself"
    if store.headers or store.kind in by_kind:
        return _HEADERS if store.headers else by_kind[store.kind or ""]
    if store.kind in _WITH_TIMES and store.retention_ms is None:
        return "how long it keeps its windows could not be read"
    return _reason_of_topics(capture, found.number)


def _reason_of_topics(capture: Capture, number: int) -> str:
    """Return why a sub-topology, with those before it, cannot be run by itself; empty when it can."""
    tasks = tasks_of(capture)
    concerned = (number, *topics_of(capture, number).upstream)
    if any(tasks[each].source_topics is None for each in concerned):
        return "its topics are given by a pattern"
    unwritten = [topic.name for each in concerned for topic in tasks[each].repartition_topics if not writers(capture, topic.name)]
    if unwritten:
        return f"what writes into {unwritten[0]} is not known"
    in_circle = number not in in_order(capture)
    return "sub-topologies that fill it write into each other, as in a foreign-key join" if in_circle else ""


def count_of(capture: Capture, number: int, partitions: Mapping[str, int]) -> int:
    """Return how many tasks a sub-topology has."""
    here = tasks_of(capture)[number]
    topics = [*(here.source_topics or ()), *(topic.name for topic in here.repartition_topics)]
    return max((partitions.get(topic, 0) for topic in topics), default=0)
