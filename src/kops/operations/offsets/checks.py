"""Compares plans with the cluster before offsets are committed: the groups, their commits, and whether the log has the offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kops.core.errors import KopsError, NotFound, Refused, StateMoved
from kops.core.models import Bounds, Group, TopicPartition
from kops.core.offsets.moves import ABSENT, GroupMoves, TopicMoves
from kops.operations.offsets.columns import moved_since
from kops.operations.services import Services


def group_or_none(services: Services, group_id: str) -> Group | None:
    try:
        return services.kafka.groups.describe([group_id])[group_id]
    except NotFound:
        return None


def state_of(group: Group | None) -> str:
    """Return the state of a group for a plan; ABSENT if it does not exist."""
    return ABSENT if group is None else group.state


def states_now(services: Services, names: Sequence[str]) -> dict[str, Group | None]:
    """Return the current groups: a single one with its members, many as listed, without members."""
    if len(names) == 1:
        return {names[0]: group_or_none(services, names[0])}
    return {group.group_id: group for group in services.kafka.groups.listed()}


def moved_since_planned(services: Services, groups: Iterable[GroupMoves]) -> dict[str, KopsError]:
    """Return an error per group whose commits differ from those that the plan was computed from, or cannot be read."""
    planned = {group.group: group for group in groups}
    found = services.kafka.groups.read_offsets(planned, stable=True)
    problems = {name: one if isinstance(one, KopsError) else moved_since(planned[name], one) for name, one in found}
    return {name: problem for name, problem in problems.items() if problem is not None}


def refuse_outside_log(services: Services, groups: Sequence[GroupMoves]) -> None:
    """Refuse a plan with an offset that the log no longer has.

    :raises StateMoved: naming the first
    """
    columns = {(topic.topic, topic.partitions, topic.after.offsets): topic for group in groups for topic in group.topics}
    places = {TopicPartition(topic.topic, partition) for topic in columns.values() for partition in topic.partitions}
    bounds = services.kafka.offsets.bounds_or_errors(places)
    suspect = {key for key, topic in columns.items() if not _fits(topic, bounds)}
    for group in groups:
        for topic in group.topics:
            if suspect and (topic.topic, topic.partitions, topic.after.offsets) in suspect:
                for partition, _, after in topic.pairs():
                    _refuse_outside(TopicPartition(topic.topic, partition), after, bounds)


def _fits(topic: TopicMoves, bounds: Mapping[TopicPartition, Bounds | KopsError]) -> bool:
    """Whether the log has every offset, including those that are not written."""
    for partition, offset in zip(topic.partitions, topic.after.offsets, strict=True):
        found = bounds[TopicPartition(topic.topic, partition)]
        if isinstance(found, KopsError) or offset is None or not found.log_start_offset <= offset <= found.log_end_offset:
            return False
    return True


def _refuse_outside(partition: TopicPartition, offset: int | None, bounds: Mapping[TopicPartition, Bounds | KopsError]) -> None:
    """Refuse one offset that the log no longer has.

    :raises StateMoved: when it is outside of the log, or the partition no longer exists
    """
    found = bounds[partition]
    if offset is None:
        return
    if isinstance(found, NotFound):
        raise StateMoved(f"{partition}: {found.message}", hint="run the command again to plan from what is there now")
    if isinstance(found, KopsError):
        raise found
    if not found.log_start_offset <= offset <= found.log_end_offset:
        has = f"{found.log_start_offset} to {found.log_end_offset}"
        raise StateMoved(f"{partition} no longer has offset {offset}, it has {has}", hint="run the command again")


def outside_log(services: Services, group: GroupMoves) -> list[str]:
    """Return a warning per partition whose log no longer has the offset to be committed.

    :raises Refused: when the bounds of a partition cannot be read, for example because it no longer exists
    """
    offsets = {partition: committed.offset for partition, committed in group.writes().items() if committed}
    warnings = []
    for partition, bounds in services.kafka.offsets.bounds_or_errors(offsets).items():
        if isinstance(bounds, KopsError):
            raise Refused(f"{partition}: {bounds.message}", hint="offsets can no longer be committed for it")
        if not bounds.log_start_offset <= offsets[partition] <= bounds.log_end_offset:
            has = f"{bounds.log_start_offset} to {bounds.log_end_offset}"
            warnings.append(f"{partition}: the log has {has}, not {offsets[partition]}: consumers will follow auto.offset.reset")
    return warnings
