"""The new offset of each partition of a topic, resolved once for all groups unless it depends on the group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kops.core.errors import UsageProblem
from kops.core.models import Bounds, Committed, GroupOffsets, TopicPartition
from kops.core.offsets.arithmetic import ShiftBy, Strategy, Target, ToCurrent, ToTime, metadata_after, resolve
from kops.core.offsets.moves import Column, TopicMoves
from kops.operations.offsets.columns import current_column
from kops.operations.offsets.rules import Places

NO_COMMIT = "no commit yet"
OF_THE_GROUP = (ShiftBy, ToCurrent)
"""Strategies whose target depends on the committed offset of the group."""


class Targets:
    """New offsets by partition and rule.

    :param strategies: by number of the rule
    :param bounds: of the partitions that exist
    :param times: by time, the first offset at or after it; None if there is none
    """

    def __init__(
        self,
        strategies: Sequence[Strategy],
        bounds: Mapping[TopicPartition, Bounds],
        times: Mapping[int, Mapping[TopicPartition, int | None]],
    ) -> None:
        self.strategies = strategies
        self._bounds = {(partition.topic, partition.partition): found for partition, found in bounds.items()}
        self._times = {at: {(p.topic, p.partition): offset for p, offset in found.items()} for at, found in times.items()}
        self._known: dict[tuple[str, int, int], Target] = {}
        self.columns: dict[tuple[str, Places], tuple[tuple[int, ...], Column, tuple[str, ...]]] = {}
        """By topic and places, the moves of groups with a commit in every partition: partitions, offsets, reasons."""

    def of(self, topic: str, partition: int, rule: int, committed: int | None) -> Target | None:
        """Return the new offset of a partition; None if the partition no longer exists.

        :param rule: its number
        :raises UsageProblem: when the strategy cannot be resolved for this partition
        """
        bounds = self._bounds.get((topic, partition))
        if bounds is None:
            return None
        strategy = self.strategies[rule]
        if isinstance(strategy, OF_THE_GROUP):
            return resolve(strategy, None if committed is None else Committed(committed), bounds)
        found = self._known.get((topic, partition, rule))
        if found is None:
            at_time = self._times[strategy.milliseconds][topic, partition] if isinstance(strategy, ToTime) else None
            found = self._known[topic, partition, rule] = resolve(strategy, None, bounds, at_time)
        return found


def topic_moves(targets: Targets, committed: GroupOffsets, topic: str, places: Places, *, strict: bool) -> TopicMoves:
    """Return the moves of a group's offsets in one topic.

    :param strict: raise if a strategy cannot be resolved for a partition, rather than leave that partition unchanged
    """
    known = targets.columns.get((topic, places))
    partitions = known[0] if known else places.partitions
    before = current_column(committed, topic, partitions)
    whole = not before.metadata and None not in before.offsets
    if known and whole:
        return TopicMoves(topic, partitions, before, *known[1:])
    after: list[int | None] = []
    reasons: list[str] = []
    for partition, rule, offset in zip(partitions, places.rules, before.offsets, strict=True):
        try:
            target = targets.of(topic, partition, rule, offset)
        except UsageProblem as problem:
            if strict:
                raise UsageProblem(f"{topic}:{partition}: {problem.message}", hint=problem.hint, topic=topic, partition=partition) from None
            after.append(offset)
            reasons.append(problem.message)
            continue
        if target is None:
            whole = False  # the partition keeps this group's offset
            after.append(offset)
            reasons.append("no longer exists")
        else:
            after.append(target.offset)
            reasons.append(target.reason if offset is not None else without_commit(target.reason))
    kept = {}
    for partition in before.metadata:
        at = partitions.index(partition)
        offset = after[at]
        if offset is not None and (text := metadata_after(before.committed(at, partition), offset)):
            kept[partition] = text
    alike = tuple(reasons[:1]) if reasons and reasons.count(reasons[0]) == len(reasons) else tuple(reasons)
    column = Column(tuple(after), (), kept)
    if whole and None not in after and not any(isinstance(targets.strategies[rule], OF_THE_GROUP) for rule in set(places.rules)):
        targets.columns[topic, places] = (partitions, column, alike)
    return TopicMoves(topic, partitions, before, column, alike)


def without_commit(reason: str) -> str:
    """Add to the reason of a new offset that the partition has no commit yet, unless it says so already."""
    return reason if NO_COMMIT in reason else f"{reason}; {NO_COMMIT}".removeprefix("; ")
