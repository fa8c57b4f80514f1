"""What follows from a capture for running the program's tasks again: their order, their inputs, which stores cannot be rebuilt. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from kops.core.errors import Refused
from kops.core.streams.capture import (
    BUFFER,
    LIST,
    SESSION,
    TIMESTAMPED_WINDOW,
    VERSIONED,
    WINDOW,
    Capture,
    Node,
    Sink,
    Source,
    Store,
    Subtopology,
)
from kops.core.streams.capture_differences import internal_topics
from kops.core.streams.foreign_keys import Ranks, late_topics, rounds_of

_WITH_TIMES = (WINDOW, TIMESTAMPED_WINDOW, SESSION)


@dataclass(frozen=True)
class Topics:
    """What a sub-topology reads, through any number of repartition topics.

    :param external: topics that others write, of this sub-topology and of all that write into it
    :param upstream: sub-topologies that write into it, and those that write into them
    """

    external: tuple[str, ...]
    upstream: tuple[int, ...]


def with_pattern_topics(capture: Capture, topics: Collection[str]) -> Capture:
    """Return a capture whose sub-topologies name the topics that their patterns match.

    :param topics: all that the cluster has
    :raises Refused: where a pattern matches a topic that the program itself makes, or only Java understands it
    """
    patterns = {node.name: node.pattern for node in capture.nodes if isinstance(node, Source) and node.pattern}
    if not patterns:
        return capture
    own = set(internal_topics(capture))
    found: dict[str, set[str]] = {}
    for name, pattern in patterns.items():
        try:
            found[name] = {topic for topic in topics if re.fullmatch(_in_python(pattern), topic)}
        except re.error as error:
            raise Refused(f"kops cannot read the pattern {pattern} of the program's source {name}: {error}") from error
        if found[name] & own:
            raise Refused(f"the pattern {pattern} of the program's source {name} matches {min(found[name] & own)}, which is its own")
    matched = [
        replace(node, topics=tuple(sorted(found[node.name]))) if isinstance(node, Source) and node.pattern else node
        for node in capture.nodes
    ]
    named = {node.name: node for node in matched}

    def resolved(each: Subtopology) -> Subtopology:
        mine = [named[name] for name in each.nodes]
        if not any(node.name in patterns for node in mine):
            return each
        read = {topic for node in mine if isinstance(node, Source) for topic in node.topics} - {
            topic.name for topic in each.repartition_topics
        }
        sinks = {node.topic for node in mine if isinstance(node, Sink) and node.topic}
        return replace(each, source_topics=tuple(sorted(read)), sink_topics=tuple(sorted(sinks)))

    return replace(capture, nodes=tuple(matched), subtopologies=tuple(map(resolved, capture.subtopologies)))


def _in_python(pattern: str) -> str:
    r"""Return a pattern of Java's as Python has it: with what stands between \Q and \E escaped."""
    return re.sub(r"\\Q(.*?)(?:\\E|$)", lambda found: re.escape(found[1]), pattern)


def tasks_of(capture: Capture) -> dict[int, Subtopology]:
    """Return the sub-topologies that have tasks, by number."""
    return {each.number: each for each in capture.subtopologies if not each.is_global}


def nodes_of(capture: Capture, numbers: Collection[int]) -> list[Node]:
    """Return the nodes of some sub-topologies that have tasks."""
    names = {name for number in numbers for name in tasks_of(capture)[number].nodes}
    return [node for node in capture.nodes if node.name in names]


def writers(capture: Capture, topic: str) -> list[int]:
    """Return which sub-topologies write into a repartition topic, also those whose own topics are given by a pattern."""
    sinks = {node.name for node in capture.nodes if isinstance(node, Sink) and node.topic == topic}
    return [number for number, each in tasks_of(capture).items() if topic in (each.sink_topics or ()) or sinks & set(each.nodes)]


def in_order(capture: Capture) -> list[int]:
    """Return the sub-topologies in an order in which none comes before one that writes into it, late topics of foreign-key joins aside.

    Those that write into each other in other ways are left out, with all that comes after them.
    """
    left, found = tasks_of(capture), list[int]()
    while True:
        ready = [number for number in sorted(left) if all(writer in found for writer in _before(capture, number))]
        if not ready:
            return found
        found += ready
        for number in ready:
            del left[number]


def _before(capture: Capture, number: int, *, late: bool = False) -> set[int]:
    left_out = () if late else late_topics(capture)
    topics = [topic.name for topic in tasks_of(capture)[number].repartition_topics if topic.name not in left_out]
    return {writer for topic in topics for writer in writers(capture, topic)}


@dataclass(frozen=True)
class Step:
    """A sub-topology whose tasks are run over what there is so far.

    :param topics: repartition topics that they read; with what foreign-key joins will answer to what they pass on, they are run again
    """

    number: int
    topics: tuple[str, ...]


def steps_for(capture: Capture, wanted: Collection[int]) -> list[Step]:
    """Return what is run to fill all stores of some sub-topologies, in this order; the last run of a sub-topology is the whole one.

    In each round one more of the foreign-key joins that follow one another has answered, or been asked by its own sub-topology.
    """
    ranks, tasks, order = _ranks(capture), tasks_of(capture), in_order(capture)
    left = {(max((ranks.nodes.get(name, 0) for name in tasks[number].nodes), default=0), number) for number in wanted}
    found = dict[tuple[int, int], Step]()
    while left:
        rank, number = left.pop()
        topics = [topic.name for topic in tasks[number].repartition_topics if ranks.topics[topic.name] <= rank]
        found[rank, number] = Step(number, tuple(topics))
        before = {(ranks.of_sink(capture, topic, tasks[each].nodes), each) for topic in topics for each in writers(capture, topic)}
        left |= before - found.keys()
    return [found[each] for each in sorted(found, key=lambda each: (each[0], order.index(each[1])))]


def answers_of(capture: Capture, number: int) -> dict[str, int]:
    """Return the topics from which a sub-topology takes answers of foreign-key joins, or questions of its own, and in which order.

    They come after all else, by their rank.
    """
    ranks, late = _ranks(capture), late_topics(capture)
    return {topic.name: ranks.topics[topic.name] for topic in tasks_of(capture)[number].repartition_topics if topic.name in late}


def _ranks(capture: Capture) -> Ranks:
    found = rounds_of(capture)
    if found is None:
        raise ValueError(f"foreign-key joins of {capture.application} wait for one another")
    return found


def topics_of(capture: Capture, number: int) -> Topics:
    tasks, upstream = tasks_of(capture), _upstream(capture, number)
    if not _reason_against_order(capture, (number, *upstream)):
        upstream = {step.number for step in steps_for(capture, [number])} - {number}
    external = {topic for each in {number, *upstream} for topic in tasks[each].source_topics or ()}
    return Topics(tuple(sorted(external)), tuple(sorted(upstream)))


def _upstream(capture: Capture, number: int) -> set[int]:
    found, left = set[int](), {number}
    while left:
        left = {writer for each in left for writer in _before(capture, each, late=True)} - found - {number}
        found |= left
    return found


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
        for what, topics in (
            ("sources", each.read_topics),
            ("repartition", [topic.name for topic in each.repartition_topics]),
            ("changelogs", [topic.name for topic in each.changelogs]),
            ("sinks", each.sink_topics or ()),
        ):
            found[f"subtopology.{number}.{what}"] = ",".join(sorted(topics))
    return found


def reuses_source(capture: Capture, store: Store) -> bool:
    """Return whether a topic that the program reads is the changelog of a store itself (``topology.optimization``)."""
    found = capture.subtopology_of(store.name)
    return found is not None and any(topic.name == store.changelog and topic.is_source_topic for topic in found.changelogs)


def reason_against(capture: Capture, store: Store) -> str:
    """Return why the changelog of a store cannot be rebuilt by its program; empty when it can."""
    found = capture.subtopology_of(store.name)
    if store.changelog is None or found is None:
        return "it has no changelog"
    if reuses_source(capture, store):
        return f"{store.changelog}, which the program reads, is its changelog itself"
    if store.kind == VERSIONED and store.history_retention_ms is None:
        return "how long it keeps versions could not be read"
    if store.kind in _WITH_TIMES and store.retention_ms is None:
        return "how long it keeps its windows could not be read"
    return _reason_of_topics(capture, found.number)


def _reason_of_topics(capture: Capture, number: int) -> str:
    """Return why a sub-topology, with those before it, cannot be run by itself; empty when it can."""
    tasks = tasks_of(capture)
    concerned = (number, *_upstream(capture, number))
    if any(tasks[each].source_topics is None for each in concerned):
        return "its topics are given by a pattern"
    unwritten = [topic.name for each in concerned for topic in tasks[each].repartition_topics if not writers(capture, topic.name)]
    if unwritten:
        return f"what writes into {unwritten[0]} is not known"
    return _reason_against_order(capture, concerned)


def _reason_against_order(capture: Capture, concerned: Collection[int]) -> str:
    if not {*in_order(capture)}.issuperset(concerned):
        return "sub-topologies that fill it write into each other"
    return "" if rounds_of(capture) else "foreign-key joins wait for one another"


def count_of(capture: Capture, number: int, partitions: Mapping[str, int]) -> int:
    """Return how many tasks a sub-topology has."""
    return max((partitions.get(topic, 0) for topic in tasks_of(capture)[number].read_topics), default=0)
