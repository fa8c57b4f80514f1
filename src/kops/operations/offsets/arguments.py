"""The arguments of plans that move offsets, and their JSON, in columns. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kops.core.errors import UsageProblem
from kops.core.offsets.moves import Column, GroupMoves, MoveItems, TopicMoves
from kops.core.plan import Arguments, Json


@dataclass(frozen=True, slots=True)
class Moves(Arguments):
    """The arguments of a plan that moves or deletes committed offsets.

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
        """Read the arguments back.

        :raises UsageProblem: when they have the format in which a plan of one group was written once
        """
        if "write" in body:
            raise UsageProblem("this kops cannot carry out offsets in the format of this plan", hint="make the plan again")
        return cls(moves_of_json(body["moves"]), body["within_log"], tuple(body.get("delete_groups", ())))

    def items(self) -> MoveItems:
        return MoveItems(self.groups)


def moves_json(groups: Iterable[GroupMoves]) -> list[Json]:
    return [_group_json(group) for group in groups]


def moves_of_json(body: Iterable[Mapping[str, Any]]) -> tuple[GroupMoves, ...]:
    """Read moves back.

    :raises KeyError, TypeError, ValueError: when they are damaged
    """
    same: dict[tuple[int, ...], tuple[int, ...]] = {}
    return tuple(
        GroupMoves(
            group["group"],
            group["state"],
            tuple(_topic_of_json(topic, same) for topic in group["topics"]),
            group.get("left", ""),
            alone=group.get("alone", False),
        )
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
            **({"rewritten": sorted(topic.rewritten)} if topic.rewritten else {}),
        }
        for topic in group.topics
    ]
    body: dict[str, Json] = {"group": group.group, "state": group.state, "topics": topics}
    return body | ({"left": group.left} if group.left else {}) | ({"alone": True} if group.alone else {})


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
    reasons, rewritten = tuple(body["reasons"]), frozenset(body.get("rewritten", ()))
    return TopicMoves(body["topic"], same.setdefault(partitions, partitions), *columns, reasons, rewritten)


def _column_of_json(body: Mapping[str, Any]) -> Column:
    metadata = {int(partition): text for partition, text in body.get("metadata", {}).items()}
    return Column(tuple(body["offsets"]), tuple(body.get("epochs", ())), metadata)
