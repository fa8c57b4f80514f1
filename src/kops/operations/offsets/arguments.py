"""The arguments of plans that move offsets, and their JSON: one group by partition, many in columns. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kops.core.models import CommittedOffset, TopicPartition
from kops.core.offsets.moves import ABSENT, Column, GroupMoves, MoveItems, TopicMoves, group_moves
from kops.core.plan import Arguments, Json
from kops.operations.offsets.items import committed_json, committed_of_json


@dataclass(frozen=True, slots=True)
class Moves(Arguments):
    """The arguments of a plan that moves offsets, as ``offsets.move_many`` writes them.

    :param within_log: refuse to apply the plan if the log no longer has the offsets
    :param delete_groups: groups to delete once they are empty, because the undone plan had created them
    """

    groups: Sequence[GroupMoves]
    within_log: bool = True
    delete_groups: tuple[str, ...] = ()

    def as_json(self) -> Json:
        body = {"moves": moves_json(self.groups), "within_log": self.within_log}
        return {**body, "delete_groups": self.delete_groups} if self.delete_groups else body

    @classmethod
    def of_json(cls, body: Json) -> Moves:
        return cls(moves_of_json(body["moves"]), body["within_log"], tuple(body.get("delete_groups", ())))

    def items(self) -> MoveItems | None:
        return MoveItems(self.groups)


@dataclass(frozen=True, slots=True)
class OneMove(Moves):
    """The moves of one group, as ``offsets.move`` and ``offsets.delete`` write them: by partition, and only partitions that move."""

    @classmethod
    def of(cls, moves: GroupMoves) -> OneMove:
        """Return the moves of a group, without the partitions that stay where they are."""
        topics = tuple(replace(topic.some(places), whole=True) for topic in moves.topics if (places := topic.places()))
        return cls((replace(moves, topics=topics, alone=True),))

    @property
    def group(self) -> str:
        return self.groups[0].group

    @property
    def write(self) -> dict[TopicPartition, CommittedOffset | None]:
        """Return what to commit per partition; None: delete the commit."""
        return self.groups[0].writes()

    @property
    def prior(self) -> dict[TopicPartition, CommittedOffset | None]:
        """Return the previous commit per partition; None: there was none."""
        return self.groups[0].writes(inverse=True)

    def as_json(self) -> Json:
        body = {
            "group": self.group,
            "write": {str(partition): committed_json(committed) for partition, committed in self.write.items()},
            "prior": {str(partition): committed_json(committed) for partition, committed in self.prior.items()},
            "new_group": self.groups[0].state == ABSENT,
            "within_log": self.within_log,
        }
        return {**body, "delete_group": True} if self.delete_groups else body

    @classmethod
    def of_json(cls, body: Json) -> OneMove:
        """Read the arguments back. The state of an existing group is in the guard of the plan, not here."""
        group, state = body["group"], ABSENT if body["new_group"] else ""
        empty = cls((GroupMoves(group, state, alone=True),), body["within_log"], (group,) if body.get("delete_group") else ())
        return empty.with_commits(committed_of_json(body["write"]), committed_of_json(body["prior"]))

    def with_commits(
        self, write: Mapping[TopicPartition, CommittedOffset | None], prior: Mapping[TopicPartition, CommittedOffset | None]
    ) -> OneMove:
        """Return the moves of the same group with other commits; see ``write`` and ``prior``."""
        wanted = {partition: (after, "") for partition, after in write.items()}
        return replace(self, groups=(group_moves(self.group, self.groups[0].state, wanted, prior, whole=True),))

    def items(self) -> None:
        """Return None: the plan keeps its own items, including those that stay where they are."""


def moves_json(groups: Iterable[GroupMoves]) -> list[Json]:
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
