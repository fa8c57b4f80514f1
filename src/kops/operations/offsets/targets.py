"""The partitions of a topic of a group, and where each is to go: resolved once for all groups where the group does not matter."""

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
"""Strategies whose target depends on where the group is."""


class Targets:
    """Targets by partition and rule.

    :param strategies: of each rule
    :param bounds: of the partitions that exist
    :param times: by time, the first offset at or after it; None where there is none
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
        """By topic and places, what becomes of groups that have a commit everywhere: partitions, offsets, reasons."""

    def of(self, topic: str, partition: int, rule: int, committed: int | None) -> Target | None:
        """Return where a partition goes; None when it no longer exists.

        :param rule: its number
        :raises UsageProblem: when the strategy has no answer here
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
    """Return what becomes of a group's offsets in one topic.

    :param strict: refuse a strategy that has no answer for a partition, in place of leaving that partition alone
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
            whole = False  # it keeps what this group has
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
    """Return the reason for where a partition goes that has no commit yet, which it says."""
    return reason if NO_COMMIT in reason else f"{reason}; {NO_COMMIT}".removeprefix("; ")
