"""A shadow: a program that runs again under another application id, until it has read what the application had committed. Pure."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kops.core.findings import counted
from kops.core.models import TopicPartition
from kops.core.streams.capture import BUFFER, VERSIONED, Capture, Processor, Source, Store
from kops.core.streams.program import nodes_of, topics_of, topology_facts

_NAMED = 3
_STREAM_TIME, _WALL_CLOCK_TIME = "STREAM_TIME", "WALL_CLOCK_TIME"


def new_shadow(application: str) -> str:
    """Return the application id of a new shadow; names that begin with the application's are what its rights may be for."""
    return f"{application}-shadow-{secrets.token_hex(4)}"


def shadow_topic(name: str, application: str, shadow: str) -> str:
    """Return the name that an internal topic of an application has for its shadow."""
    return shadow + name.removeprefix(application)


@dataclass(frozen=True)
class Progress:
    """How far a shadow is.

    :param state: of its KafkaStreams, such as RUNNING
    :param positions: the next offset to read, of partitions that it was given
    :param after: of each, the offset after the last record that its tasks were given; 0: there was none
    :param records: how many its tasks were given
    :param skipped: how many the library dropped, such as late ones
    :param without_key: its repartition topics with records whose partition is any
    :param calls: of clocks, random numbers and the network; known when it was closed, as what follows
    :param initial_calls: those of constructors and static initializers outside of its threads, whatever they are of
    :param kept: fields of the functions given to its topology that changed while it ran
    :param stream_time_schedules: how many punctuators its tasks scheduled by stream time, by sub-topology
    :param wall_clock_schedules: how many by wall-clock time
    :param again: how many of its records its tasks had been given before, as when it had fallen out of its group
    """

    state: str
    positions: Mapping[TopicPartition, int]
    after: Mapping[TopicPartition, int]
    records: int = 0
    skipped: int = 0
    without_key: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    initial_calls: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    stream_time_schedules: Mapping[int, int] = field(default_factory=dict)
    wall_clock_schedules: Mapping[int, int] = field(default_factory=dict)
    again: int = 0


def progress_of(seen: Mapping[str, str]) -> Progress:
    """Read what the agent says."""
    positions, after = {}, {}
    schedules: dict[str, dict[int, int]] = {_STREAM_TIME: {}, _WALL_CLOCK_TIME: {}}
    for name, value in seen.items():
        kind, _, what = name.partition(".")
        if kind == "place":
            topic, _, number = what.rpartition(":")
            place = TopicPartition(topic, int(number))
            position, _, given = value.partition(",")
            positions[place], after[place] = int(position), int(given)
        elif kind == "schedules":
            time, _, subtopology = what.partition(".")
            schedules[time][int(subtopology)] = int(value)
    return Progress(
        state=seen["state"],
        positions=positions,
        after=after,
        records=int(seen["records"]),
        skipped=int(seen["skipped"]),
        without_key=tuple(filter(None, seen["without_key"].split(","))),
        calls=tuple(seen.get("calls", "").splitlines()),
        initial_calls=tuple(seen.get("initial_calls", "").splitlines()),
        kept=tuple(seen.get("kept", "").splitlines()),
        stream_time_schedules=schedules[_STREAM_TIME],
        wall_clock_schedules=schedules[_WALL_CLOCK_TIME],
        again=int(seen["again"]),
    )


def waited_for(
    ranges: Mapping[TopicPartition, tuple[int, int]], progress: Progress, committed: Mapping[TopicPartition, int]
) -> dict[TopicPartition, str]:
    """Return the partitions that a shadow is not through, and why in a few words.

    A partition is through when it was read to its end, which may lie behind the last record, and all records that the tasks were given
    are committed: an application commits what its caches held, and all that it has sent, before the offsets.

    :param ranges: of the input, and of its own repartition topics as they are now
    :param committed: by its group
    """
    found = {}
    for place, (start, end) in ranges.items():
        position, after = progress.positions.get(place), progress.after.get(place, 0)
        if start >= end:
            continue
        if position is None or position < end:
            found[place] = f"at {start if position is None else position} of {end}"
        elif committed.get(place, 0) < after:
            found[place] = f"{committed.get(place, 0)} of {after} committed"
    return found


def waited_text(waited: Mapping[TopicPartition, str]) -> str:
    named = [f"{place} ({why})" for place, why in sorted(waited.items())]
    return ", ".join(named[:_NAMED]) + (f" and {len(named) - _NAMED} more" if len(named) > _NAMED else "")


def done_of(ranges: Mapping[TopicPartition, tuple[int, int]], progress: Progress) -> tuple[int, int]:
    """Return how many offsets of the input were read, of how many."""
    total = sum(end - start for start, end in ranges.values() if end > start)
    done = sum(min(end, max(start, progress.positions.get(place, start))) - start for place, (start, end) in ranges.items() if end > start)
    return done, total


def facts_before_start(capture: Capture) -> dict[str, str]:
    """Return what a program that is as it was captured says of its topology before it starts: nothing yet of what reads by a pattern."""
    reading = {node.name for node in capture.nodes if isinstance(node, Source) and node.pattern}
    known = tuple(each for each in capture.subtopologies if not reading & set(each.nodes))
    return topology_facts(replace(capture, subtopologies=known))


def reason_against_shadow(capture: Capture, store: Store) -> str:
    """Return why what a shadow writes for a store could not be what the application wrote; empty when it could."""
    found = capture.subtopology_of(store.name)
    if store.kind == VERSIONED:
        return "it is versioned, and a shadow's changelog is compacted: only each key's last version would be left"
    if store.kind == BUFFER and found and found.repartition_topics:
        return "its records name the topic that they came from, and a shadow's repartition topic has another name"
    return ""


def of_repeated(seen: Progress, *, exactly_once: bool) -> tuple[str, ...]:
    """Say that records may have counted twice: what was made of them before is still in stores, unless a transaction was aborted.

    :param seen: of the shadow, when it was closed
    """
    if exactly_once or not seen.again:
        return ()
    return (f"{seen.again:,} records were given to the shadow's tasks again, as after a rebalance, and may have counted twice",)


def wall_clock_doubts(capture: Capture, store: Store, seen: Progress) -> tuple[str, ...]:
    """Name the program's processors that may act on wall-clock time, which was another when the shadow ran, or say how many punctuators do.

    :param seen: of the shadow, when it was closed
    """
    found = capture.subtopology_of(store.name)
    if found is None:
        return ()
    numbers = (found.number, *topics_of(capture, found.number).upstream)
    own = [node for node in nodes_of(capture, numbers) if isinstance(node, Processor) and node.program_class]
    named = [node.name for node in own if node.may_act_on_wall_clock]
    another = "wall-clock time, which was another when the shadow ran"
    scheduled = sum(seen.wall_clock_schedules.get(number, 0) for number in numbers)
    if named:
        return (f"these may act on {another}: {', '.join(named)}",)
    return (f"the program schedules {counted(scheduled, 'punctuator')} by {another}",) if scheduled else ()
