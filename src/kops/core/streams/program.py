"""What follows from a capture for running the program's tasks again: their order, their inputs, and what cannot be claimed. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kops.core.streams.capture import BUFFER, LIST, VERSIONED, Capture, Processor, Source, Store, Subtopology

_WALL_CLOCK, _STREAM_TIME = "WALL_CLOCK_TIME", "STREAM_TIME"
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
    """Return which sub-topologies write into a repartition topic."""
    return [number for number, each in tasks_of(capture).items() if topic in (each.sink_topics or ())]


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


def global_topics(capture: Capture) -> list[str]:
    """Return the topics of global stores."""
    nodes = {name for each in capture.subtopologies if each.is_global for name in each.nodes}
    return sorted({topic for node in capture.nodes if isinstance(node, Source) and node.name in nodes for topic in node.topics})


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
    tasks = tasks_of(capture)
    concerned = (found.number, *topics_of(capture, found.number).upstream)
    if any(tasks[number].source_topics is None for number in concerned):
        return "its topics are given by a pattern"
    in_circle = found.number not in in_order(capture)
    return "sub-topologies that fill it write into each other, as in a foreign-key join" if in_circle else ""


def doubts_about(capture: Capture, store: Store, partitions: Mapping[str, int]) -> list[str]:
    """Return why what the program writes for a store may not be what it wrote, one sentence each; none: it is the same.

    :param partitions: of topics that are read
    """
    found = capture.subtopology_of(store.name)
    if found is None:
        return []
    concerned = (found.number, *topics_of(capture, found.number).upstream)
    return [
        *_of_order(capture, found.number, partitions),
        *_of_own_processors(capture, concerned),
        *_of_global_stores(capture),
        *_of_numbered_records(store),
    ]


def _of_order(capture: Capture, number: int, partitions: Mapping[str, int]) -> list[str]:
    """Name what feeds a task in an order that no log has, here or in a sub-topology before it."""
    here = tasks_of(capture)[number]
    several = [*(here.source_topics or ()), *(topic.name for topic in here.repartition_topics)]
    reasons = []
    if len(several) > 1:
        reasons.append(f"each task of sub-topology {number} reads {' and '.join(several)}, and in which order they met is not known")
    for topic in here.repartition_topics:
        before = writers(capture, topic.name)
        tasks = sum(count_of(capture, writer, partitions) for writer in before)
        if tasks > 1:
            reasons.append(f"{tasks} tasks write into {topic.name}, and in which order its records were is not known")
        for writer in before:
            reasons += _of_order(capture, writer, partitions)
    return list(dict.fromkeys(reasons))


def count_of(capture: Capture, number: int, partitions: Mapping[str, int]) -> int:
    """Return how many tasks a sub-topology has."""
    here = tasks_of(capture)[number]
    topics = [*(here.source_topics or ()), *(topic.name for topic in here.repartition_topics)]
    return max((partitions.get(topic, 0) for topic in topics), default=0)


def _of_own_processors(capture: Capture, concerned: Sequence[int]) -> list[str]:
    nodes = {name for number in concerned for name in tasks_of(capture)[number].nodes}
    found = [node for node in capture.nodes if isinstance(node, Processor) and node.name in nodes and node.program_class]
    own = [f"{node.name} ({node.processor})" for node in found]
    clocked = [node.name for node in found if _WALL_CLOCK in node.mentions]
    timed = [node.name for node in found if _STREAM_TIME in node.mentions]
    beside = "these processors are the program's own, and what they read besides their records is not known"
    return [
        *([f"{beside}: {', '.join(own)}"] if own else []),
        *([f"these may act on wall-clock time, which they are not given here: {', '.join(clocked)}"] if clocked else []),
        *([f"these may act on stream time, between other records than those here: {', '.join(timed)}"] if timed else []),
    ]


def _of_global_stores(capture: Capture) -> list[str]:
    names = ", ".join(store.name for store in capture.global_stores)
    return [f"the program has global stores ({names}), and how far they were when a record was read is not known"] if names else []


def _of_numbered_records(store: Store) -> list[str]:
    if store.kind == LIST or store.retain_duplicates:
        return ["its keys end with a number that counts from 0 again each time an instance of the application starts"]
    return []
