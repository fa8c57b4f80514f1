"""Moves of many groups in columns: a plan of 300 groups of 1,000 partitions fits into memory, and is compared a column at a time.

The items of such a plan follow from its moves, and are made when somebody looks at them. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, repeat
from operator import ne
from typing import Any, overload

from kops.core.models import Committed, TopicPartition
from kops.core.plan import Arguments, DerivedItems, Item, Json

ABSENT = "ABSENT"
"""The state, in a plan, of a group that does not exist yet."""


@dataclass(frozen=True, slots=True)
class Column:
    """Committed offsets of some partitions, in their order; None where there is no commit.

    :param epochs: leader epochs, likewise; empty when no commit has one
    :param metadata: by partition, where it is not empty; None for what could not be read
    """

    offsets: tuple[int | None, ...]
    epochs: tuple[int | None, ...] = ()
    metadata: Mapping[int, str | None] = field(default_factory=dict)

    def committed(self, at: int, partition: int) -> Committed | None:
        """Return the commit at a place of the column."""
        offset = self.offsets[at]
        return None if offset is None else Committed(offset, self.metadata.get(partition, ""), self.epochs[at] if self.epochs else None)


@dataclass(frozen=True, slots=True)
class TopicMoves:
    """What becomes of a group's offsets in one topic.

    :param reasons: one for each partition, or a single one for all
    """

    topic: str
    partitions: tuple[int, ...]
    before: Column
    after: Column
    reasons: tuple[str, ...] = ("",)

    @property
    def changed(self) -> int:
        """Return how many partitions it moves."""
        return sum(map(ne, self.before.offsets, self.after.offsets))

    def pairs(self) -> Iterator[tuple[int, int | None, int | None]]:
        """Yield partition, offset before and after of those that move."""
        columns = zip(self.partitions, self.before.offsets, self.after.offsets, strict=True)
        return ((partition, before, after) for partition, before, after in columns if before != after)

    def writes(self, *, inverse: bool = False) -> dict[TopicPartition, Committed | None]:
        """Return what to commit for the partitions that move (None: delete the commit), or with ``inverse`` what was there."""
        side = self.before if inverse else self.after
        return {
            TopicPartition(self.topic, partition): side.committed(at, partition)
            for at, partition in enumerate(self.partitions)
            if self.before.offsets[at] != self.after.offsets[at]
        }


@dataclass(frozen=True, slots=True)
class GroupMoves:
    """What becomes of one group.

    :param state: of the group when the plan was made; ABSENT when it does not exist yet
    :param left: why it is left alone altogether, empty when it is not
    """

    group: str
    state: str
    topics: tuple[TopicMoves, ...] = ()
    left: str = ""

    @property
    def changed(self) -> int:
        """Return how many partitions it moves."""
        return sum(topic.changed for topic in self.topics)

    @property
    def partitions(self) -> int:
        """Return how many partitions it looks at."""
        return sum(len(topic.partitions) for topic in self.topics)

    def writes(self, *, inverse: bool = False) -> dict[TopicPartition, Committed | None]:
        """Return what to commit; see :meth:`TopicMoves.writes`."""
        return {partition: one for topic in self.topics for partition, one in topic.writes(inverse=inverse).items()}


class MoveItems(DerivedItems):
    """The items of the moves of many groups: ``billing orders:0``."""

    def __init__(self, groups: Sequence[GroupMoves]) -> None:
        self.groups = groups
        self._length = sum(len(topic.partitions) for group in groups for topic in group.topics) + sum(bool(group.left) for group in groups)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Item]:
        for group in self.groups:
            if group.left:
                yield Item(group.group, "refuse", reason=group.left)
            for topic in group.topics:
                yield from _items(f"{group.group} {topic.topic}:", topic)

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
        """Tell whether any item changes something."""
        return any(group.left or group.changed for group in self.groups)

    def overview(self) -> Iterator[dict[str, Json]]:
        """Yield a row for each topic of each group: how many partitions move, and why; what is left alone comes first."""
        yield from ({"group": group.group, "topic": None, "move": "none", "reason": group.left} for group in self.groups if group.left)
        yield from (_sum(group.group, topic) for group in self.groups for topic in group.topics)


@dataclass(frozen=True, slots=True)
class ManyMoves(Arguments):
    """The arguments of ``offsets.move_many``.

    :param within_log: refuse to apply it once the log does not have the offsets any more
    :param delete_groups: groups that are deleted once they are empty: what this takes back had made them
    """

    groups: Sequence[GroupMoves]
    within_log: bool = True
    delete_groups: tuple[str, ...] = ()

    def as_json(self) -> Json:
        """Return the moves in columns."""
        body = {"moves": moves_json(self.groups), "within_log": self.within_log}
        return {**body, "delete_groups": self.delete_groups} if self.delete_groups else body

    @classmethod
    def of_json(cls, body: Json) -> ManyMoves:
        """Read them back."""
        return cls(moves_of_json(body["moves"]), body["within_log"], tuple(body.get("delete_groups", ())))

    def items(self) -> MoveItems:
        """Return an item for each partition of each group."""
        return MoveItems(self.groups)


def moves_json(groups: Iterable[GroupMoves]) -> list[Json]:
    """Return moves as JSON values."""
    return [_group_json(group) for group in groups]


def moves_of_json(body: Iterable[Mapping[str, Any]]) -> tuple[GroupMoves, ...]:
    """Read moves back.

    :raises KeyError, TypeError, ValueError: when they are damaged
    """
    same: dict[tuple[int, ...], tuple[int, ...]] = {}
    return tuple(
        GroupMoves(group["group"], group["state"], tuple(_topic_of_json(topic, same) for topic in group["topics"]), group.get("left", ""))
        for group in body
    )


def _items(prefix: str, topic: TopicMoves) -> Iterator[Item]:
    reasons = topic.reasons if len(topic.reasons) == len(topic.partitions) else repeat(topic.reasons[0])
    for partition, before, after, reason in zip(topic.partitions, topic.before.offsets, topic.after.offsets, reasons, strict=False):
        if before == after:
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


def _group_json(group: GroupMoves) -> dict[str, Json]:
    topics = [
        {
            "topic": topic.topic,
            "partitions": topic.partitions,
            "before": _column_json(topic.before),
            "after": _column_json(topic.after),
            "reasons": topic.reasons,
        }
        for topic in group.topics
    ]
    return {"group": group.group, "state": group.state, "topics": topics, **({"left": group.left} if group.left else {})}


def _column_json(column: Column) -> dict[str, Json]:
    body: dict[str, Json] = {"offsets": column.offsets}
    if column.epochs:
        body["epochs"] = column.epochs
    if column.metadata:
        body["metadata"] = {str(partition): text for partition, text in column.metadata.items()}  # as JSON keys are
    return body


def _topic_of_json(body: Mapping[str, Any], same: dict[tuple[int, ...], tuple[int, ...]]) -> TopicMoves:
    partitions = tuple(body["partitions"])
    columns = (_column_of_json(body["before"]), _column_of_json(body["after"]))
    if any(len(column.offsets) != len(partitions) for column in columns):
        raise ValueError(f"the columns of {body['topic']} differ in length")
    return TopicMoves(body["topic"], same.setdefault(partitions, partitions), *columns, tuple(body["reasons"]))


def _column_of_json(body: Mapping[str, Any]) -> Column:
    metadata = {int(partition): text for partition, text in body.get("metadata", {}).items()}
    return Column(tuple(body["offsets"]), tuple(body.get("epochs", ())), metadata)
