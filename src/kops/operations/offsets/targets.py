"""The new offset of each partition of a topic, resolved once for all groups unless it depends on the group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kops.core.errors import NotFound, UsageProblem
from kops.core.models import Bounds, CommittedOffset, GroupOffsets, TopicPartition
from kops.core.offsets.arithmetic import Landing, NewOffset, ShiftBy, Stay, Strategy, ToCurrent, ToTime, metadata_after, resolve
from kops.core.offsets.moves import Column, TopicMoves
from kops.operations.offsets.checks import current_column
from kops.operations.offsets.landings import landings
from kops.operations.offsets.rules import Places
from kops.operations.services import Services

NO_COMMIT = "no commit yet"
OF_THE_GROUP = (ShiftBy, ToCurrent, Stay)
"""Strategies whose target depends on the committed offset of the group."""


class Targets:
    """New offsets by partition and rule.

    :param strategies: by number of the rule
    :param bounds: of the partitions that exist
    :param times: by time, where it leads; None if no record is as late
    """

    def __init__(
        self,
        strategies: Sequence[Strategy | Stay],
        bounds: Mapping[TopicPartition, Bounds],
        times: Mapping[int, Mapping[TopicPartition, Landing | None]],
    ) -> None:
        self.strategies = strategies
        self.bounds = bounds
        self._bounds = {(partition.topic, partition.partition): found for partition, found in bounds.items()}
        self._landings = times
        self._times = {at: {(p.topic, p.partition): landing for p, landing in found.items()} for at, found in times.items()}
        self._known: dict[tuple[str, int, int], NewOffset] = {}
        self.columns: dict[tuple[str, Places], tuple[tuple[int, ...], Column, tuple[str, ...]]] = {}
        """By topic and places, the moves of groups with a commit in every partition: partitions, offsets, reasons."""

    def by_time(self) -> Iterator[tuple[ToTime, TopicPartition, Landing | None]]:
        """Yield where each time leads, in the partitions that are not empty."""
        for time in dict.fromkeys(strategy for strategy in self.strategies if isinstance(strategy, ToTime)):
            for place, landing in self._landings[time.milliseconds].items():
                if not self.bounds[place].empty:
                    yield time, place, landing

    def of(self, topic: str, partition: int, rule: int, committed: int | None) -> NewOffset | None:
        """Return the new offset of a partition; None if it stays, or no longer exists.

        :param rule: its number
        :raises UsageProblem: when the strategy cannot be resolved for this partition
        """
        strategy = self.strategies[rule]
        bounds = self._bounds.get((topic, partition))
        if bounds is None or isinstance(strategy, Stay):
            return None
        if isinstance(strategy, OF_THE_GROUP):
            return resolve(strategy, None if committed is None else CommittedOffset(committed), bounds)
        target = self._known.get((topic, partition, rule))
        if target is None:
            landing = self._times[strategy.milliseconds][topic, partition] if isinstance(strategy, ToTime) else None
            target = self._known[topic, partition, rule] = resolve(strategy, None, bounds, landing)
        return target


def topic_moves(targets: Targets, committed: GroupOffsets, topic: str, places: Places, *, strict: bool) -> TopicMoves:
    """Return the moves of a group's offsets in one topic.

    :param strict: raise if a strategy cannot be resolved for a partition, rather than leave that partition unchanged
    """
    shared = targets.columns.get((topic, places))
    partitions = shared[0] if shared else places.partitions
    before = current_column(committed, topic, partitions)
    whole = not before.metadata and None not in before.offsets
    if shared and whole:
        return TopicMoves(topic, partitions, before, *shared[1:])
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
            strategy = targets.strategies[rule]
            reasons.append(strategy.reason if isinstance(strategy, Stay) else "no longer exists")
        else:
            after.append(target.offset)
            known_commit = offset is not None or NO_COMMIT in target.reason
            reasons.append(target.reason if known_commit else f"{target.reason}; {NO_COMMIT}".removeprefix("; "))
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


def read_targets(services: Services, strategies: Sequence[Strategy | Stay], places: Iterable[tuple[str, Places]]) -> Targets:
    """Read the bounds of every partition, and the offsets for the times in strategies.

    :param strategies: by number of the rule
    :param places: topics and their partitions
    """
    seen: dict[tuple[str, int], TopicPartition] = {}
    times: dict[int, set[TopicPartition]] = {}
    for topic, some in set(places):
        for number, rule in zip(some.partitions, some.rules, strict=True):
            strategy = strategies[rule]
            if isinstance(strategy, Stay):
                continue
            partition = seen.get((topic, number)) or seen.setdefault((topic, number), TopicPartition(topic, number))
            if isinstance(strategy, ToTime):
                times.setdefault(strategy.milliseconds, set()).add(partition)
    bounds: dict[TopicPartition, Bounds] = {}
    for partition, found in services.kafka.offsets.bounds_or_errors(seen.values()).items():
        if isinstance(found, Bounds):
            bounds[partition] = found
        elif not isinstance(found, NotFound):
            raise found
    at = {milliseconds: landings(services, dict.fromkeys(partitions, milliseconds), bounds) for milliseconds, partitions in times.items()}
    return Targets(strategies, bounds, at)
