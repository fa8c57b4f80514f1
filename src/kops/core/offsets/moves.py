"""Moves of groups in columns: a plan of 300 groups of 1,000 partitions fits into memory, and is compared column by column.

The items of a plan are derived from its moves when they are read. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice, repeat
from operator import attrgetter, ne
from typing import overload

from kops.core.models import CommittedOffset, TopicPartition
from kops.core.plan import DerivedItems, Item, Json

ABSENT = "ABSENT"
"""The state, in a plan, of a group that does not exist yet."""


@dataclass(frozen=True, slots=True)
class Column:
    """Committed offsets of some partitions, in partition order; None where there is no commit.

    :param epochs: leader epochs, in the same order; empty if no commit has one
    :param metadata: by partition, if it is not empty; None if it could not be read
    """

    offsets: tuple[int | None, ...]
    epochs: tuple[int | None, ...] = ()
    metadata: Mapping[int, str | None] = field(default_factory=dict)

    def some(self, places: Sequence[int], partitions: Collection[int]) -> Column:
        """Return the commits at some places of the column; ``partitions`` are those of these places."""
        epochs = tuple(self.epochs[at] for at in places) if self.epochs else ()
        metadata = {partition: self.metadata[partition] for partition in partitions if partition in self.metadata} if self.metadata else {}
        return Column(tuple(self.offsets[at] for at in places), epochs, metadata)

    def committed(self, at: int, partition: int) -> CommittedOffset | None:
        offset = self.offsets[at]
        return (
            None if offset is None else CommittedOffset(offset, self.metadata.get(partition, ""), self.epochs[at] if self.epochs else None)
        )


@dataclass(frozen=True, slots=True)
class TopicMoves:
    """The change of a group's offsets in one topic.

    :param reasons: one per partition, or a single one for all
    :param rewritten: partitions to be written even if their offset stays the same, because their metadata changes
    """

    topic: str
    partitions: tuple[int, ...]
    before: Column
    after: Column
    reasons: tuple[str, ...] = ("",)
    rewritten: frozenset[int] = frozenset()

    @property
    def changed(self) -> int:
        """How many partitions move."""
        return len(self.places()) if self.rewritten else sum(map(ne, self.before.offsets, self.after.offsets))

    def pairs(self) -> Iterator[tuple[int, int | None, int | None]]:
        """Yield partition, offset before and offset after for those that move."""
        rewritten, columns = self.rewritten, zip(self.partitions, self.before.offsets, self.after.offsets, strict=True)
        return ((at, before, after) for at, before, after in columns if before != after or at in rewritten)

    def places(self) -> list[int]:
        """Places in the columns of the partitions that move."""
        columns = enumerate(zip(self.partitions, self.before.offsets, self.after.offsets, strict=True))
        return [at for at, (partition, before, after) in columns if before != after or partition in self.rewritten]

    def reason(self, at: int) -> str:
        return self.reasons[at] if len(self.reasons) == len(self.partitions) else self.reasons[0]

    def writes(self, *, inverse: bool = False) -> dict[TopicPartition, CommittedOffset | None]:
        """Return what to commit for the partitions that move (None: delete the commit), or with ``inverse`` what was committed before."""
        side = self.before if inverse else self.after
        return {TopicPartition(self.topic, self.partitions[at]): side.committed(at, self.partitions[at]) for at in self.places()}

    def some(self, places: Sequence[int]) -> TopicMoves:
        partitions = tuple(self.partitions[at] for at in places)
        alike = len(self.reasons) != len(self.partitions)
        reasons = self.reasons if alike else tuple(self.reasons[at] for at in places)
        before, after = self.before.some(places, partitions), self.after.some(places, partitions)
        return TopicMoves(self.topic, partitions, before, after, reasons, self.rewritten.intersection(partitions))


@dataclass(frozen=True, slots=True)
class GroupMoves:
    """The changes of one group.

    :param state: of the group when the plan was made; ABSENT if it does not exist yet
    :param left: why the whole group is left alone; empty if it is not
    :param alone: the plan is about this group only, so its items are named by partition alone
    """

    group: str
    state: str
    topics: tuple[TopicMoves, ...] = ()
    left: str = ""
    alone: bool = False

    @property
    def changed(self) -> int:
        """How many partitions move."""
        return sum(topic.changed for topic in self.topics)

    @property
    def partitions(self) -> int:
        """How many partitions the plan covers, moved or not."""
        return sum(len(topic.partitions) for topic in self.topics)

    def prefix(self, topic: str) -> str:
        """Return the part of a topic's targets before the partition number."""
        return f"{topic}:" if self.alone else f"{self.group} {topic}:"

    def writes(self, *, inverse: bool = False) -> dict[TopicPartition, CommittedOffset | None]:
        """Return what to commit; see :meth:`TopicMoves.writes`."""
        return {partition: one for topic in self.topics for partition, one in topic.writes(inverse=inverse).items()}


class MoveItems(DerivedItems):
    """The items of the moves of groups: ``billing orders:0``, or ``orders:0`` in a plan about one group."""

    def __init__(self, groups: Sequence[GroupMoves]) -> None:
        self.groups = groups
        self._length = sum(group.partitions + bool(group.left) for group in groups)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Item]:
        for group in self.groups:
            if group.left:
                yield Item(group.group, "refuse", reason=group.left)
            for topic in group.topics:
                yield from _items(group.prefix(topic.topic), topic)

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Item]: ...

    def __getitem__(self, index: int | slice) -> Item | Sequence[Item]:
        if isinstance(index, slice):
            return tuple(islice(self, *index.indices(len(self))))
        return next(islice(self, index % len(self), None))

    @property
    def changes(self) -> bool:
        return any(group.left or group.changed for group in self.groups)

    def overview(self) -> Iterator[dict[str, Json]]:
        """Yield one row per topic of each group: how many partitions move, and why; groups that are left alone come first."""
        yield from ({"group": group.group, "topic": None, "move": "none", "reason": group.left} for group in self.groups if group.left)
        yield from (_sum(group.group, topic) for group in self.groups for topic in group.topics)


def group_moves(
    group: str,
    state: str,
    wanted: Mapping[TopicPartition, tuple[CommittedOffset | None, str]],
    current: Mapping[TopicPartition, CommittedOffset | None],
) -> GroupMoves:
    """Return the moves for a plan about a single group.

    :param wanted: for each partition what to commit (None: delete the commit), and why
    :param current: the current commits
    """
    topics = []
    for topic, some in groupby(sorted(wanted), attrgetter("topic")):
        places = list(some)
        before = _column({place.partition: current.get(place) for place in places})
        after = _column({place.partition: wanted[place][0] for place in places})
        reasons = tuple(wanted[place][1] for place in places)
        topics.append(TopicMoves(topic, tuple(place.partition for place in places), before, after, reasons))
    return GroupMoves(group, state, tuple(topics), alone=True)


def _column(commits: Mapping[int, CommittedOffset | None]) -> Column:
    offsets = tuple(None if one is None else one.offset for one in commits.values())
    epochs = tuple(None if one is None else one.leader_epoch for one in commits.values())
    metadata = {partition: one.metadata for partition, one in commits.items() if one is not None and one.metadata != ""}
    return Column(offsets, () if epochs.count(None) == len(epochs) else epochs, metadata)


def _items(prefix: str, topic: TopicMoves) -> Iterator[Item]:
    reasons = topic.reasons if len(topic.reasons) == len(topic.partitions) else repeat(topic.reasons[0])
    for partition, before, after, reason in zip(topic.partitions, topic.before.offsets, topic.after.offsets, reasons, strict=False):
        if before == after and partition not in topic.rewritten:
            yield Item(f"{prefix}{partition}", "none", before, after, reason or "already there")
        else:
            action = "delete" if after is None else "commit" if before is None else "move"
            yield Item(f"{prefix}{partition}", action, before, after, reason)


def _sum(group: str, topic: TopicMoves) -> dict[str, Json]:
    alike = len(topic.reasons) != len(topic.partitions)
    counts = Counter(reason for reason in topic.reasons if reason)
    (reason, most), others = counts.most_common(1)[0] if counts else ("", 0), len(counts) - 1
    why = reason if alike or most == len(topic.partitions) or not reason else f"{reason} ({most})"
    why += f" and {others} other reason{'' if others == 1 else 's'}" if others > 0 else ""
    return {"group": group, "topic": topic.topic, "move": f"{topic.changed} of {len(topic.partitions)}", "reason": why}
