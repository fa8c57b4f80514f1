"""``kops offsets delete``: deletes committed offsets of a group, as if it had never read the topic; undo restores them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import ClassVar

from kops.core.errors import GroupActive, NotFound, Refused, StateMoved, UsageProblem
from kops.core.models import Group, TopicPartition
from kops.core.offsets.moves import GroupMoves, group_moves
from kops.core.plan import Plan, Severity
from kops.operations.groups.matching import WITH_OFFSETS, find_group
from kops.operations.offsets.arguments import Moves
from kops.operations.offsets.choose import committed_now
from kops.operations.offsets.move import Move, plan_moves
from kops.operations.offsets.rules import narrowing
from kops.operations.services import Services

NAME = "offsets.delete"


def plan_delete(services: Services, group_id: str, topics: Sequence[str], *, regex: bool = False) -> Plan[Moves]:
    """Plan to delete committed offsets.

    The group may have members, as long as none is subscribed to these topics.

    :param topics: ``orders``, ``orders:0,3-5`` or patterns of the topics that the group has committed
    :raises Refused: when the group does not exist or has no such commits
    :raises GroupActive: when a member reads one of the topics
    """
    if not topics:
        raise UsageProblem("say whose offsets to delete", hint="--topic NAME or --topic NAME:0,3-5; `kops groups delete` deletes them all")
    rules = dict(zip(topics, narrowing(topics, regex=regex), strict=True))
    try:
        group = find_group(services, group_id)
    except NotFound as missing:
        raise Refused(missing.message, hint=missing.hint, group=group_id) from missing
    if group.type not in WITH_OFFSETS:
        raise Refused(f"{group_id} is a {group.type} group: it has no committed offsets", group=group_id)
    current = committed_now(services, group_id)
    chosen: set[TopicPartition] = set()
    for text, rule in rules.items():
        found = {partition for partition in current if rule.includes(partition)}
        if not found:
            hint = f"`kops offsets show {group_id}` shows what it has"
            raise Refused(f"group {group_id} shows no committed offsets of {text}", hint=hint, group=group_id)
        chosen |= found
    _refuse_read(group, {partition.topic for partition in chosen})
    moves = group_moves(group_id, group.state, dict.fromkeys(chosen, (None, "")), current)
    plan = plan_moves(services, [moves], summary=f"delete offsets of group {group_id}", within_log=False)
    warning = "a consumer that reads these partitions for the group again starts where its auto.offset.reset says"
    return replace(plan, operation=NAME, severity=Severity.SEVERE, confirm=group_id, warnings=(warning,))


class Delete(Move):
    """Deletes committed offsets, even if the group has members, as long as they read other topics."""

    name: ClassVar[str] = NAME

    def _refuse(self, planned: GroupMoves, now: Group | None) -> None:
        """Refuse if the group no longer exists, or a member reads one of the topics."""
        if now is None:
            raise StateMoved(f"group {planned.group} no longer exists", hint="its offsets went with it")
        _refuse_read(now, {topic.topic for topic in planned.topics})


def _refuse_read(group: Group, topics: Collection[str]) -> None:
    """Refuse topics that a member is known to read; for members whose assignment is not known, the broker decides."""
    read = sorted({partition.topic for partition in group.assigned} & set(topics))
    if read:
        raise GroupActive(
            f"a member of group {group.group_id} reads {', '.join(read)}",
            hint="stop the consumers of the topic first; the group may keep others",
            group=group.group_id,
            topics=read,
        )


DELETE = Delete()
