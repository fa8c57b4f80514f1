"""The mutation of the committed offsets of many groups: each group is compared, committed and read back by itself.

A group that has moved or was joined since the plan is left alone and reported; the others go on. Like ``offsets_move`` it joins nothing:
the broker itself refuses the commit of a group that has members. The two stay apart because a plan of one group is refused as a whole,
names partitions alone and may name any action, whereas this one is columns, without which 300,000 partitions do not fit into memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from kops.core.errors import GroupActive, KopsError, Refused
from kops.core.findings import counted
from kops.core.models import Group
from kops.core.offsets.moves import ABSENT, GroupMoves, ManyMoves
from kops.core.plan import ItemResult, Plan, Status
from kops.gateways.kafka.groups.offsets_many import AT_ONCE, PendingCommit
from kops.operations.groups.matching import refuse_active
from kops.operations.offsets.columns import (
    Outcome,
    as_written,
    has_streams_metadata,
    is_plain,
    left_over,
    moved_back,
    moved_since,
    refusal_of,
    results_of,
    state_moved,
    wrong_results,
)
from kops.operations.offsets.log import refuse_columns_outside
from kops.operations.protocol.engine import Mutation
from kops.operations.services import Services

NAME = "offsets.move_many"


def plan_many(
    services: Services, groups: Sequence[GroupMoves], *, summary: str, warnings: Sequence[str] = (), within_log: bool = True
) -> Plan[ManyMoves]:
    """Return the plan that commits offsets for many groups.

    :param within_log: refuse to apply it once the log does not have the offsets any more
    """
    moving = [group for group in groups if group.changed]
    partitions = sum(group.changed for group in moving)
    what = f"{counted(partitions, 'partition')} of {counted(len(moving), 'group')}" if moving else "no partition"
    moves = ManyMoves(groups, within_log)
    return Plan(
        operation=NAME,
        summary=f"{summary}: {what}",
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=moves.items(),
        guard={"groups": {group.group: group.state for group in groups}},
        arguments=moves,
        warnings=tuple(warnings),
    )


class MoveMany(Mutation[ManyMoves]):
    """Commits offsets for groups without members."""

    name: ClassVar[str] = NAME
    arguments = ManyMoves

    def locks(self, plan: Plan[ManyMoves]) -> Iterable[str]:
        """Name the groups, so that one kops at a time moves each."""
        return (group.group for group in _moving(plan))

    def check(self, services: Services, plan: Plan[ManyMoves]) -> None:
        """Refuse when no group is as planned any more, or the log has lost an offset."""
        groups = _moving(plan)
        problems = _problems(services, groups)
        if groups and len(problems) == len(groups):
            raise next(iter(problems.values()))
        if plan.arguments.within_log:
            refuse_columns_outside(services, groups)

    def apply(self, services: Services, plan: Plan[ManyMoves]) -> Iterator[ItemResult]:
        """Compare each group with the plan, and commit.

        :raises Refused: when not one group is as planned any more, or all were joined: nothing is changed then
        """
        groups = {group.group: group for group in _moving(plan)}
        problems = _problems(services, groups.values())
        refused: list[tuple[GroupMoves, KopsError]] = [(groups[name], problem) for name, problem in problems.items()]
        refused += [(group, refusal_of(group)) for group in plan.arguments.groups if group.left]
        going = {name: group for name, group in groups.items() if name not in problems}
        services.progress.step(f"moving {counted(len(going), 'group')}")
        tried = 0
        for done, (group, outcome) in enumerate(self._outcomes(services, going), start=1):
            services.progress.advance(done, len(going), "groups")
            if isinstance(outcome, Refused):
                refused.append((group, outcome))
            else:
                tried += 1
                yield from results_of(group, outcome)
        if not tried and refused:
            raise refused[0][1]
        for group, problem in refused:
            yield from results_of(group, problem)
        _delete_empty(services, [name for name in plan.arguments.delete_groups if name in going])

    def _outcomes(self, services: Services, groups: Mapping[str, GroupMoves]) -> Iterator[tuple[GroupMoves, Outcome]]:
        """Yield each group with the partitions that failed, or why all have; many are under way at once."""
        under_way: deque[tuple[GroupMoves, PendingCommit]] = deque()
        for name, found in services.kafka.group_offsets.read(groups, stable=True):
            group = groups[name]
            problem = found if isinstance(found, KopsError) else moved_since(group, found)
            if problem is not None:
                yield group, problem
            elif is_plain(group):
                offsets = {topic.topic: [(p, after) for p, _, after in topic.pairs() if after is not None] for topic in group.topics}
                under_way.append((group, services.kafka.group_offsets.commit(name, offsets)))
            else:
                yield group, _write(services, group)
            if len(under_way) >= AT_ONCE:
                first, pending = under_way.popleft()
                yield first, _refusal(pending.errors(), first)
        while under_way:
            first, pending = under_way.popleft()
            yield first, _refusal(pending.errors(), first)

    def messages(self, services: Services, plan: Plan[ManyMoves], results: Sequence[ItemResult]) -> tuple[str, ...]:  # noqa: ARG002 - the contract
        """Say what Kafka Streams does not do by itself."""
        count = sum(map(has_streams_metadata, _moving(plan)))
        if not count:
            return ()
        return (f"the stores of {counted(count, 'Kafka Streams application')} are as they were: `kops state verify` compares them",)

    def verify(self, services: Services, plan: Plan[ManyMoves], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        """Read the offsets back, and their metadata where some was written."""
        groups = {group.group: group for group in _moving(plan)}
        wrong: dict[str, ItemResult] = {}
        services.progress.step(f"reading {counted(len(groups), 'group')} back")
        for name, found in services.kafka.group_offsets.read(groups):
            metadata = not is_plain(groups[name])
            if metadata or not as_written(groups[name], found):
                wrong |= {result.target: result for result in wrong_results(groups[name], found, metadata=metadata)}
        if not wrong:
            return tuple(results)
        return tuple(wrong.get(result.target, result) if result.status is Status.DONE else result for result in results)

    def invert(self, services: Services, plan: Plan[ManyMoves], results: Sequence[ItemResult]) -> Plan[ManyMoves]:
        """Return the plan that moves back to the prior offsets, with the metadata that they had."""
        not_done = {result.target for result in results if result.status in (Status.FAILED, Status.SKIPPED)}
        states = {group.group_id: group for group in services.kafka.groups.listed()}
        groups: list[GroupMoves] = []
        moved_on = 0
        moving = {group.group: group for group in _moving(plan)}
        for name, found in services.kafka.group_offsets.read(moving, stable=True):
            if isinstance(found, KopsError):
                raise found
            group = states.get(name)
            if group is not None:
                refuse_active(group)
            topics, strayed = moved_back(moving[name], found, not_done)
            moved_on += strayed
            if topics:
                groups.append(GroupMoves(name, group.state if group else ABSENT, topics))
        losses = (f"{counted(moved_on, 'partition')} moved on since: what was committed there is lost",) if moved_on else ()
        made = tuple(group.group for group in _moving(plan) if group.state == ABSENT)
        undo = plan_many(services, groups, summary="move groups back", within_log=False)
        return replace(undo, arguments=replace(undo.arguments, delete_groups=made), losses=losses)

    def resume(self, services: Services, plan: Plan[ManyMoves]) -> Plan[ManyMoves]:
        """Return the plan for the partitions that are still where they were.

        :raises StateMoved: when one is neither there nor where it should go
        """
        moving = {group.group: group for group in _moving(plan)}
        groups = []
        for name, found in services.kafka.group_offsets.read(moving, stable=True):
            if isinstance(found, KopsError):
                raise found
            left = tuple(left_over(name, topic, found) for topic in moving[name].topics)
            groups.append(replace(moving[name], topics=left))
        again = plan_many(services, groups, summary="finish moving groups", warnings=plan.warnings, within_log=plan.arguments.within_log)
        return replace(again, arguments=replace(again.arguments, delete_groups=plan.arguments.delete_groups))


def _moving(plan: Plan[ManyMoves]) -> list[GroupMoves]:
    return [group for group in plan.arguments.groups if group.changed]


def _delete_empty(services: Services, names: Sequence[str]) -> None:
    """Delete groups that a plan had made and its undo has emptied."""
    left = services.kafka.groups.committed(names)
    services.kafka.groups.delete([name for name in names if not left[name]])


def _problems(services: Services, groups: Iterable[GroupMoves]) -> dict[str, KopsError]:
    """Return the groups that must not be moved now: joined, gone, or come since the plan."""
    listed = {group.group_id: group for group in services.kafka.groups.listed()}
    problems: dict[str, KopsError] = {}
    for group in groups:
        try:
            _same_state(group, listed.get(group.group))
        except Refused as refused:
            problems[group.group] = refused
    return problems


def _same_state(planned: GroupMoves, now: Group | None) -> None:
    if now is not None:
        refuse_active(now)
    if planned.state != (ABSENT if now is None else now.state):
        raise state_moved(planned.group)


def _write(services: Services, group: GroupMoves) -> Outcome:
    """Commit what the fast way cannot: metadata, leader epochs, deletions."""
    writes = group.writes()
    try:
        outcome = services.kafka.groups.commit(group.group, {p: committed for p, committed in writes.items() if committed is not None})
        outcome |= services.kafka.groups.delete_offsets(group.group, [p for p, committed in writes.items() if committed is None])
    except KopsError as error:
        return error
    return _refusal({partition: error for partition, error in outcome.items() if error is not None}, group)


def _refusal(errors: Outcome, group: GroupMoves) -> Outcome:
    """Return the one error of a group that the broker has refused as a whole because of a member."""
    if isinstance(errors, KopsError) or len(errors) < group.changed:
        return errors
    first = next(iter(errors.values()))
    return first if isinstance(first, GroupActive) else errors


MOVE_MANY = MoveMany()
