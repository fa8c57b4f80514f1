"""Plans to move a group: its current commits, and per partition the new offset and the reason for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kops.core.errors import KopsError, NotFound, Refused, UsageProblem
from kops.core.models import Bounds, Committed, Group, TopicPartition
from kops.core.offsets.arithmetic import Strategy, Target, ToTime, metadata_after, resolve
from kops.core.offsets.moves import group_moves
from kops.core.plan import Plan
from kops.core.selection import Selection, partitions_selected
from kops.core.streams.topics import looks_like_streams
from kops.operations.groups.matching import find_group, refuse_active, similar
from kops.operations.offsets.arguments import OneMove
from kops.operations.offsets.checks import state_of
from kops.operations.offsets.move import plan_move
from kops.operations.offsets.skip import passed_transactions
from kops.operations.offsets.targets import without_commit
from kops.operations.services import Services


def plan_strategies(
    services: Services,
    group_id: str,
    group: Group | None,
    strategies: Mapping[TopicPartition, Strategy],
    current: Mapping[TopicPartition, Committed],
    *,
    summary: str,
    skip_gone: bool = False,
    unchanged: Mapping[TopicPartition, str] | None = None,
) -> Plan[OneMove]:
    """Plan to move the partitions of a group, each by its strategy.

    :param skip_gone: skip partitions that no longer exist
    :param unchanged: partitions to show as unchanged, with the reason
    """
    bounds: dict[TopicPartition, Bounds] = {}
    gone = dict(unchanged or {})
    for partition, found in services.kafka.offsets.bounds_or_errors(strategies).items():
        if isinstance(found, NotFound) and skip_gone:
            gone[partition] = "no longer exists"
        elif isinstance(found, KopsError):
            raise found
        else:
            bounds[partition] = found
    times = at_times(services, {partition: strategies[partition] for partition in bounds})
    wanted: dict[TopicPartition, tuple[Committed, str]] = {}
    for partition, ends in bounds.items():
        target = _target(partition, strategies[partition], current.get(partition), ends, times.get(partition))
        after = Committed(target.offset, metadata_after(current.get(partition), target.offset))
        wanted[partition] = (after, target.reason)
    moves = any(current.get(partition) is None or current[partition].offset != after.offset for partition, (after, _) in wanted.items())
    warnings = _warnings(group_id, group, current) if moves else []
    warnings += passed_transactions(services, {partition: after.offset for partition, (after, _) in wanted.items()}, current, bounds)
    kept = {partition: (current.get(partition), reason) for partition, reason in gone.items()}
    planned = group_moves(group_id, state_of(group), {**kept, **wanted}, current)
    return plan_move(services, planned, summary=summary, warnings=warnings)


def group_to_move(services: Services, group_id: str, *, new_group: bool) -> Group | None:
    """Return a group whose offsets may be moved; None if it is to be created.

    :raises Refused: when it has members, or does not exist although it must
    """
    if not group_id:
        raise UsageProblem("the name of the group is empty", hint="`kops groups list` shows the groups")
    try:
        group = find_group(services, group_id)
    except NotFound as missing:
        if new_group:
            return None
        near = similar(group_id, services.kafka.groups.ids())
        meant = f"did you mean {' or '.join(near)}? " if near else ""
        raise Refused(missing.message, hint=f"{meant}--new-group makes a new one", group=group_id) from missing
    refuse_active(group, can_wait=True)
    return group


def _target(partition: TopicPartition, strategy: Strategy, current: Committed | None, bounds: Bounds, at_time: int | None) -> Target:
    try:
        target = resolve(strategy, current, bounds, at_time)
    except UsageProblem as problem:
        raise UsageProblem(
            f"{partition}: {problem.message}", hint=problem.hint, topic=partition.topic, partition=partition.partition
        ) from None
    return Target(target.offset, without_commit(target.reason)) if current is None else target


def at_times(services: Services, strategies: Mapping[TopicPartition, Strategy]) -> dict[TopicPartition, int | None]:
    """Return the first offset at or after the time of each strategy that is a time; None if the partition has none."""
    asked: dict[int, list[TopicPartition]] = {}
    for partition, strategy in strategies.items():
        if isinstance(strategy, ToTime):
            asked.setdefault(strategy.milliseconds, []).append(partition)
    found: dict[TopicPartition, int | None] = {}
    for milliseconds, partitions in asked.items():
        found |= services.kafka.offsets.at_time(partitions, milliseconds)
    return found


def selected(services: Services, selections: Sequence[Selection]) -> list[tuple[TopicPartition, ...]]:
    """Return the partitions of each selection.

    :raises Refused: for a topic or partition that does not exist
    """
    try:
        existing = services.kafka.offsets.partitions_of({selection.topic for selection in selections})
        return [partitions_selected([selection], existing) for selection in selections]
    except NotFound as missing:
        raise Refused(missing.message, hint=missing.hint, **missing.details) from missing


def _warnings(group_id: str, group: Group | None, current: Mapping[TopicPartition, Committed]) -> list[str]:
    warnings = []
    if looks_like_streams(group_id, group, {p.topic for p in current}, (found.metadata for found in current.values())):
        warnings.append(f"{group_id} is a Kafka Streams application: its stores do not move with its offsets, see `kops state rebuild`")
    unread = sum(found.metadata is None for found in current.values())
    if unread:
        warnings.append(f"the metadata of {unread} offsets cannot be read with these connection settings, and is not kept")
    return warnings
