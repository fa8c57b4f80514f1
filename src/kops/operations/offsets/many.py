"""``kops offsets reset`` of many groups: from names and patterns of groups to one plan."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kops.core.errors import GroupActive, KopsError, NotFound, Refused
from kops.core.findings import counted
from kops.core.models import Bounds, Group, GroupOffsets, TopicPartition
from kops.core.offsets.arithmetic import Strategy, ToTime
from kops.core.offsets.moves import GroupMoves
from kops.core.own_names import may_match
from kops.core.plan import Plan
from kops.core.selection import is_glob, names_matching
from kops.core.streams.topics import looks_like_streams
from kops.operations.groups.matching import POLL_SECONDS, WITH_OFFSETS, matching_groups, refuse_active
from kops.operations.groups.unlisted import unlisted
from kops.operations.offsets.checks import state_of
from kops.operations.offsets.move import plan_moves
from kops.operations.offsets.rules import Places, Rule, existing_partitions, places_of
from kops.operations.offsets.targets import Targets, topic_moves
from kops.operations.services import Services

EXPLAINED = 3
"""How many groups a warning names; it counts the others."""


@dataclass(frozen=True)
class Chosen:
    """Groups to move.

    :param groups: None: a group that is to be created
    :param named: those that were named in full
    :param active: those with members, which only a pattern matched
    :param left_out: number of matched groups whose type has no committed offsets
    """

    groups: Mapping[str, Group | None]
    named: frozenset[str]
    active: Mapping[str, GroupActive] = field(default_factory=dict)
    left_out: int = 0


def choose_groups(
    services: Services,
    names: Sequence[str],
    *,
    regex: bool = False,
    every: bool = False,
    new_group: bool = False,
    wait_milliseconds: int = 0,
) -> Chosen:
    """Resolve names and patterns to groups, and check whether they may be moved.

    :param every: all groups of the cluster except those that kops keeps for itself
    :param new_group: groups named in full need not exist
    :param wait_milliseconds: how long to wait for their members to leave
    :raises Refused: for a group named in full that has members, has no committed offsets, or does not exist
    """
    deadline = time.monotonic() + wait_milliseconds / 1000
    plain = frozenset(() if regex else (name for name in names if not is_glob(name)))
    while True:
        listed = {group.group_id: group for group in services.kafka.groups.listed() if may_match(group.group_id, names)}
        absent = plain - listed.keys()
        if absent and not new_group:
            _refuse_absent(services, sorted(absent))
        patterns = [name for name in names if name not in absent]
        matched = sorted(listed) if every else names_matching(patterns, listed, regex=regex, what="group") if patterns else []
        found = {name: listed[name] for name in matched if listed[name].type in WITH_OFFSETS or name in plain}
        active: dict[str, GroupActive] = {}
        for name, group in found.items():
            try:
                refuse_active(group, can_wait=True)
            except GroupActive as problem:
                active[name] = problem
        if not active or time.monotonic() >= deadline:
            break
        services.progress.step(f"waiting for {counted(len(active), 'group')} to empty")
        time.sleep(POLL_SECONDS)
    for name in sorted(plain & active.keys()):
        raise active[name]
    return Chosen({**found, **dict.fromkeys(absent)}, plain, active, len(matched) - len(found))


def plan_groups(
    services: Services,
    chosen: Chosen,
    rules: Sequence[Rule],
    *,
    summary: str,
) -> Plan:
    """Plan to move groups by rules.

    :raises Refused: when a topic or partition that is named does not exist, or every group has members
    """
    _collect_less()
    idle = {name: group for name, group in chosen.groups.items() if name not in chosen.active}
    if chosen.active and not idle:
        raise next(iter(chosen.active.values()))
    committed: dict[str, GroupOffsets] = {}
    problems: dict[str, KopsError] = {}
    services.progress.step(f"reading the offsets of {counted(len(idle), 'group')}")
    for name, answer in services.kafka.groups.read_offsets(idle, stable=True):
        if isinstance(answer, KopsError):
            problems[name] = answer
        else:
            committed[name] = answer
    for name in sorted(problems):
        if name in chosen.named or not committed:
            raise problems[name]
    existing = existing_partitions(services, rules, {topic for offsets in committed.values() for topic in offsets.offsets})
    common = [(number, rule) for number, rule in enumerate(rules) if rule.group is None]
    own: dict[str, list[tuple[int, Rule]]] = {}
    for number, rule in enumerate(rules):
        if rule.group is not None:
            own.setdefault(rule.group, []).append((number, rule))
    places = {
        name: places_of([*common, *own.get(name, ())], offsets.offsets, existing, named=name in chosen.named)
        for name, offsets in sorted(committed.items())
    }
    targets = _targets(services, [rule.strategy for rule in rules], places.values())
    for name in sorted(chosen.named & places.keys()):
        if not places[name]:
            raise Refused(f"group {name} has no committed offsets there", hint="name its topics in full with --topic", group=name)
    groups = [
        GroupMoves(
            name,
            state_of(idle[name]),
            tuple(
                topic_moves(targets, committed[name], topic, partitions, strict=name in chosen.named)
                for topic, partitions in sorted(topics.items())
            ),
        )
        for name, topics in places.items()
        if topics
    ]
    left = [GroupMoves(name, str(problem.details.get("state")), left=_members(problem)) for name, problem in chosen.active.items()]
    left += [GroupMoves(name, "UNKNOWN", left=f"could not be read: {problem.message}") for name, problem in problems.items()]
    warnings = [*_warnings(chosen, left), *_kept_behind({name: committed[name] for name in places if places[name]}, idle)]
    if chosen.groups.keys() != chosen.named and (missing := unlisted(services)):
        warnings.append(missing.message)
    return plan_moves(services, [*left, *groups], summary=summary, warnings=warnings)


def _collect_less() -> None:
    """Let Python collect garbage rarely.

    Hundreds of thousands of objects follow, none of them is part of a cycle, and each collection costs time.
    """
    gc.set_threshold(200_000, 50, 100)


def _members(problem: GroupActive) -> str:
    return f"has members ({problem.details.get('state', 'active')})"


def _refuse_absent(services: Services, absent: Sequence[str]) -> None:
    try:
        matching_groups(services, absent[:1])
    except NotFound as missing:
        meant = f"{missing.hint} " if missing.hint and missing.hint.startswith("did you mean") else ""
        raise Refused(missing.message, hint=f"{meant}--new-group makes a new one", **missing.details) from missing


def _targets(services: Services, strategies: Sequence[Strategy], groups: Iterable[Mapping[str, Places]]) -> Targets:
    """Read the bounds of every partition, and the offsets for the times in strategies."""
    known: dict[tuple[str, int], TopicPartition] = {}
    times: dict[int, set[TopicPartition]] = {}
    for topic, places in {(topic, places) for topics in groups for topic, places in topics.items()}:
        for number, rule in zip(places.partitions, places.rules, strict=True):
            partition = known.get((topic, number)) or known.setdefault((topic, number), TopicPartition(topic, number))
            if isinstance(strategy := strategies[rule], ToTime):
                times.setdefault(strategy.milliseconds, set()).add(partition)
    bounds = services.kafka.offsets.bounds_or_errors(known.values())
    for found in bounds.values():
        if isinstance(found, KopsError) and not isinstance(found, NotFound):
            raise found
    there = {partition: found for partition, found in bounds.items() if isinstance(found, Bounds)}
    at = {
        milliseconds: services.kafka.offsets.at_time([partition for partition in partitions if partition in there], milliseconds)
        for milliseconds, partitions in times.items()
    }
    return Targets(strategies, there, at)


def _kept_behind(committed: Mapping[str, GroupOffsets], groups: Mapping[str, Group | None]) -> list[str]:
    """Warn about what does not move with offsets: stores of Kafka Streams, and metadata that cannot be read."""
    streams = [
        name
        for name, found in committed.items()
        if looks_like_streams(name, groups[name], found.offsets, (text for texts in found.metadata.values() for text in texts.values()))
    ]
    unread = sum(text is None for found in committed.values() for texts in found.metadata.values() for text in texts.values())
    warnings = []
    if streams:
        warnings.append(f"stores of Kafka Streams do not move with offsets, see `kops state rebuild`: {_some(streams)}")
    if unread:
        warnings.append(f"the metadata of {unread} offsets cannot be read with these connection settings, and is not kept")
    return warnings


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:EXPLAINED]) + (f" and {len(names) - EXPLAINED} more" if len(names) > EXPLAINED else "")


def _warnings(chosen: Chosen, left: Sequence[GroupMoves]) -> list[str]:
    warnings = []
    if left:
        warnings.append(f"left alone, as they have members or cannot be read: {_some([group.group for group in left])}")
    if chosen.left_out:
        warnings.append(f"{chosen.left_out} groups of types without committed offsets are left out")
    return warnings
