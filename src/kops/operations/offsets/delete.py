"""``kops offsets delete``: takes committed offsets of a group away, as if it had never read the topic; undo puts them back."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import ClassVar

from kops.core.errors import GroupActive, NotFound, Refused, StateMoved, UsageProblem
from kops.core.models import Committed, Group, TopicPartition
from kops.core.plan import Plan, Severity
from kops.operations.groups.matching import WITH_OFFSETS, find_group
from kops.operations.offsets.items import OneMove, offset_of
from kops.operations.offsets.move import Move, group_or_none, plan_move
from kops.operations.offsets.wishes import narrowing
from kops.operations.protocol.engine import compare_guard
from kops.operations.services import Services

NAME = "offsets.delete"


def plan_delete(services: Services, group_id: str, topics: Sequence[str], *, regex: bool = False) -> Plan[OneMove]:
    """Return the plan that deletes committed offsets.

    The group may have members, as long as none has subscribed to these topics.

    :param topics: ``orders``, ``orders:0,3-5`` or patterns of the topics that the group has committed
    :raises Refused: when the group does not exist, has no such commits, or a member has one of the topics
    """
    if not topics:
        raise UsageProblem("say whose offsets to delete", hint="--topic NAME or --topic NAME:0,3-5; `kops groups delete` deletes them all")
    try:
        group = find_group(services, group_id)
    except NotFound as missing:
        raise Refused(missing.message, hint=missing.hint, group=group_id) from missing
    if group.type not in WITH_OFFSETS:
        raise Refused(f"{group_id} is a {group.type} group: it has no committed offsets", group=group_id)
    current = services.kafka.groups.committed([group_id], stable=True)[group_id]
    chosen: set[TopicPartition] = set()
    for text, wish in zip(topics, narrowing(topics, regex=regex), strict=True):
        found = {partition for partition in current if wish.includes(partition)}
        if not found:
            hint = f"`kops offsets show {group_id}` shows what it has"
            raise Refused(f"group {group_id} has no committed offsets of {text}", hint=hint, group=group_id)
        chosen |= found
    _refuse_read(group, {partition.topic for partition in chosen})
    wanted: dict[TopicPartition, tuple[Committed | None, str]] = dict.fromkeys(sorted(chosen), (None, ""))
    plan = plan_move(services, group_id, group, wanted, current, summary=f"delete offsets of group {group_id}", within_log=False)
    warning = "a consumer that reads these partitions for the group again starts where its auto.offset.reset says"
    return replace(plan, operation=NAME, severity=Severity.SEVERE, confirm=group_id, guard=_guard(current, chosen), warnings=(warning,))


class Delete(Move):
    """Deletes committed offsets, also of a group whose members read other topics."""

    name: ClassVar[str] = NAME

    def check(self, services: Services, plan: Plan[OneMove]) -> None:
        """Refuse when the commits are no longer as planned, or a member reads the topics now."""
        group_id, write = plan.arguments.group, plan.arguments.write
        group = group_or_none(services, group_id)
        if group is None:
            raise StateMoved(f"group {group_id} no longer exists", hint="its offsets went with it")
        _refuse_read(group, {partition.topic for partition in write})
        current = services.kafka.groups.committed([group_id], stable=True)[group_id]
        compare_guard(plan, _guard(current, write), f"group {group_id}")


def _refuse_read(group: Group, topics: Collection[str]) -> None:
    """Refuse topics that a member is known to read; of those that cannot be seen, the broker decides."""
    read = sorted({one.topic for member in group.members for one in member.assignment} & set(topics))
    if read:
        raise GroupActive(
            f"a member of group {group.group_id} reads {', '.join(read)}",
            hint="stop the consumers of the topic first; the group may keep others",
            group=group.group_id,
            topics=read,
        )


def _guard(current: dict[TopicPartition, Committed], partitions: Collection[TopicPartition]) -> dict[str, dict[str, int | None]]:
    return {"committed": {str(partition): offset_of(current.get(partition)) for partition in sorted(partitions)}}


DELETE = Delete()
