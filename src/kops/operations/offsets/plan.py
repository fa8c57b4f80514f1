"""Plans to move offsets: of one group, each partition by its strategy, or of groups, by rules. Both end in the same plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import TypeVar

from kops.core.errors import KopsError, NotFound, Refused, UsageProblem
from kops.core.findings import counted, names_text
from kops.core.models import CommittedOffset, Group, GroupOffsets, TopicPartition
from kops.core.offsets.arithmetic import Stay, Strategy
from kops.core.offsets.moves import GroupMoves
from kops.core.plan import Plan
from kops.core.selection import Selection, partitions_selected
from kops.core.streams.topics import looks_like_streams
from kops.operations.groups.matching import why_incomplete
from kops.operations.offsets.arguments import Moves
from kops.operations.offsets.checks import state_of
from kops.operations.offsets.choose import ChosenGroups
from kops.operations.offsets.landings import time_warnings
from kops.operations.offsets.move import plan_moves
from kops.operations.offsets.rules import Places, Rule, existing_partitions, places_of
from kops.operations.offsets.skip import passed_transactions
from kops.operations.offsets.targets import read_targets, topic_moves
from kops.operations.services import Services

P = TypeVar("P")


@dataclass(frozen=True)
class RequestedMove:
    """What is to move in one group.

    :param group: None: it is to be created
    :param places: by topic
    :param strict: refuse the plan if a strategy cannot be resolved for a partition, rather than leave that partition unchanged
    """

    group: Group | None
    committed: GroupOffsets
    places: Mapping[str, Places]
    strict: bool = True


def plan_group(
    services: Services,
    group_id: str,
    group: Group | None,
    strategies: Mapping[TopicPartition, Strategy | Stay],
    current: Mapping[TopicPartition, CommittedOffset],
    *,
    summary: str,
) -> Plan[Moves]:
    """Plan to move the partitions of a group, each by its strategy."""
    rules = list(dict.fromkeys(strategies.values()))
    numbers = {strategy: number for number, strategy in enumerate(rules)}
    places: dict[str, Places] = {}
    for topic, some in groupby(sorted(strategies), attrgetter("topic")):
        partitions = tuple(some)
        places[topic] = Places(tuple(one.partition for one in partitions), tuple(numbers[strategies[one]] for one in partitions))
    wanted = {group_id: RequestedMove(group, GroupOffsets.of(current), places)}
    return _plan(services, wanted, rules, summary=summary, alone=True)


def plan_groups(services: Services, chosen: ChosenGroups, rules: Sequence[Rule], *, summary: str) -> Plan[Moves]:
    """Plan to move groups by rules.

    :raises Refused: when a topic or partition that is named does not exist, or every group has members
    """
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
    wanted: dict[str, RequestedMove] = {}
    for name, offsets in sorted(committed.items()):
        named = name in chosen.named
        places = places_of([*common, *own.get(name, ())], offsets.offsets, existing, named=named)
        if places:
            wanted[name] = RequestedMove(idle[name], offsets, places, strict=named)
        elif named:
            there = " there" if offsets.offsets else ""
            hint = "name the topics in full with --topic; brokers leave out those that you may not describe"
            raise Refused(f"group {name} shows no committed offsets{there}", hint=hint, group=name)
    left = [
        GroupMoves(name, str(problem.details.get("state")), left=f"has members ({problem.details.get('state', 'active')})")
        for name, problem in chosen.active.items()
    ]
    left += [GroupMoves(name, "UNKNOWN", left=f"could not be read: {problem.message}") for name, problem in problems.items()]
    warnings = _left_alone(chosen, left)
    if chosen.groups.keys() != chosen.named and (missing := why_incomplete(services)):
        warnings.append(missing.message)
    strategies = [rule.strategy for rule in rules]
    return _plan(services, wanted, strategies, summary=summary, alone=chosen.alone, left=left, warnings=warnings)


def _plan(
    services: Services,
    wanted: Mapping[str, RequestedMove],
    strategies: Sequence[Strategy | Stay],
    *,
    summary: str,
    alone: bool,
    left: Sequence[GroupMoves] = (),
    warnings: Sequence[str] = (),
) -> Plan[Moves]:
    """Plan to move groups to where strategies lead.

    :param strategies: by number of the rule
    :param alone: see ``GroupMoves``
    :param left: groups that are left alone
    """
    targets = read_targets(services, strategies, (place for one in wanted.values() for place in one.places.items()))
    groups = [
        GroupMoves(
            name,
            state_of(one.group),
            tuple(topic_moves(targets, one.committed, topic, places, strict=one.strict) for topic, places in sorted(one.places.items())),
            alone=alone,
        )
        for name, one in wanted.items()
    ]
    passed = passed_transactions(services, groups, targets.bounds)
    warned = [*warnings, *_kept_behind(wanted, groups), *passed, *time_warnings(services, targets.by_time())]
    return plan_moves(services, [*left, *groups], summary=summary, warnings=warned, bounds=targets.bounds)


def selected(services: Services, selections: Sequence[Selection]) -> list[tuple[TopicPartition, ...]]:
    """Return the partitions of each selection.

    :raises Refused: for a topic or partition that does not exist
    """
    try:
        existing = services.kafka.offsets.partitions_of({selection.topic for selection in selections})
        return [partitions_selected([selection], existing) for selection in selections]
    except NotFound as missing:
        raise Refused(missing.message, hint=missing.hint, **missing.details) from missing


def by_partition(services: Services, positions: Mapping[Selection, P]) -> dict[TopicPartition, P]:
    """Return the position of each partition.

    :raises Refused: as for ``selected``
    :raises UsageProblem: when a partition is named twice
    """
    chosen: dict[TopicPartition, P] = {}
    for partitions, position in zip(selected(services, list(positions)), positions.values(), strict=True):
        for partition in partitions:
            if partition in chosen:
                raise UsageProblem(f"{partition} is named twice", hint="give one position to each partition")
            chosen[partition] = position
    return chosen


def _kept_behind(wanted: Mapping[str, RequestedMove], groups: Sequence[GroupMoves]) -> list[str]:
    """Warn about what does not move with offsets: stores of Kafka Streams, and metadata that cannot be read."""
    streams, unread = [], 0
    for moves in groups:
        name, one = moves.group, wanted[moves.group]
        texts = [text for texts in one.committed.metadata.values() for text in texts.values()]
        is_streams = looks_like_streams(name, one.group, one.committed.offsets, texts)
        if (is_streams or None in texts) and moves.changed:
            streams += [name] if is_streams else []
            unread += texts.count(None)
    warnings = []
    if streams:
        whose = "is a Kafka Streams application: its stores do not move with its offsets"
        if len(streams) > 1:
            whose = "are Kafka Streams applications: their stores do not move with their offsets"
        warnings.append(f"{names_text(streams)} {whose}, see `kops state rebuild`")
    if unread:
        warnings.append(f"the metadata of {counted(unread, 'offset')} cannot be read with these connection settings, and is not kept")
    return warnings


def _left_alone(chosen: ChosenGroups, left: Sequence[GroupMoves]) -> list[str]:
    warnings = []
    if left:
        warnings.append(f"left alone, as they have members or cannot be read: {names_text([group.group for group in left])}")
    if chosen.left_out:
        warnings.append(f"left out, as groups of their types have no committed offsets: {counted(chosen.left_out, 'group')}")
    return warnings
