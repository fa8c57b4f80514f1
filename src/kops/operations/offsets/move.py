"""The mutation of committed offsets: compare-and-set, commit, read back, undo. Each group is moved on its own.

A plan has the offsets to write and the previous ones, so undo is the same mutation with the two swapped. kops does not join the groups: the
broker itself refuses commits for a group that has members. A plan of many groups skips and reports those that have changed or have got
members since the plan, and moves the others; a plan of one group is refused before a journal entry is written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from kops.core.errors import GroupActive, KopsError, Refused, StateMoved
from kops.core.findings import counted, names_text
from kops.core.models import Bounds, Group, TopicPartition
from kops.core.offsets.moves import ABSENT, GroupMoves, MoveItems
from kops.core.plan import ItemResult, Plan, Status, not_done
from kops.operations.groups.matching import refuse_active
from kops.operations.offsets.arguments import Moves
from kops.operations.offsets.checks import (
    Outcome,
    as_written,
    has_streams_metadata,
    is_plain,
    moved_back,
    moved_since,
    moved_since_planned,
    outside_log,
    passed_over,
    refusal_of,
    refuse_outside_log,
    remaining_moves,
    results_of,
    state_moved,
    state_of,
    states_now,
    strayed_partitions,
    wrong_results,
)
from kops.operations.offsets.items import places
from kops.operations.offsets.tiers import fetched_from_remote
from kops.operations.protocol.mutation import Mutation
from kops.operations.services import Services

if TYPE_CHECKING:
    from kops.core.models import GroupOffsets
    from kops.gateways.kafka.groups.committed import PendingCommit

AT_ONCE = 48
"""How many commits are in flight at once: enough to keep a broker busy while earlier responses are processed."""


def plan_moves(
    services: Services,
    groups: Sequence[GroupMoves],
    *,
    summary: str,
    warnings: Sequence[str] = (),
    within_log: bool = True,
    delete_groups: tuple[str, ...] = (),
    bounds: Mapping[TopicPartition, Bounds | KopsError] | None = None,
) -> Plan[Moves]:
    """Plan to commit offsets for groups.

    :param bounds: of the partitions; None: they are read
    :param within_log: see ``Moves``
    :param delete_groups: see ``Moves``
    """
    moving = [group for group in groups if group.changed]
    bounds = services.kafka.offsets.bounds_or_errors({place for place, _ in _positions(moving)}) if bounds is None else bounds
    if len(groups) == 1:
        what = places(groups[0].writes())
    else:
        partitions = sum(group.changed for group in moving)
        what = f"{counted(partitions, 'partition')} of {counted(len(moving), 'group')}" if moving else "no partition"
    return Plan(
        operation=Move.name,
        summary=f"{summary}: {what}" if what else summary,
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=MoveItems(groups),
        guard={"groups": {group.group: group.state for group in groups}},
        arguments=Moves(groups, within_log, delete_groups),
        warnings=tuple(warnings),
        notes=(*passed_over(moving, bounds), *fetched_from_remote(services, lambda: _positions(moving), bounds)),
    )


def _positions(groups: Iterable[GroupMoves]) -> Iterator[tuple[TopicPartition, int]]:
    for group in groups:
        for topic in group.topics:
            yield from ((TopicPartition(topic.topic, at), after) for at, _, after in topic.pairs() if after is not None)


class Move(Mutation[Moves]):
    """Commits offsets for groups without members."""

    name: ClassVar[str] = "offsets.move"
    arguments = Moves

    def locks(self, plan: Plan[Moves]) -> Iterable[str]:
        return (group.group for group in _moving(plan))

    def check(self, services: Services, plan: Plan[Moves]) -> None:
        """Refuse if every group has changed since the plan, or the log no longer has an offset."""
        groups = _moving(plan)
        problems = self._problems(services, groups)
        if len(groups) == 1 and not problems:
            problems = moved_since_planned(services, groups)
        if groups and len(problems) == len(groups):
            raise next(iter(problems.values()))
        if plan.arguments.within_log:
            refuse_outside_log(services, groups)

    def apply(self, services: Services, plan: Plan[Moves]) -> Iterator[ItemResult]:
        """Compare each group with the plan, and commit.

        :raises Refused: when every group has changed since the plan or was joined, so that nothing was changed
        """
        groups = {group.group: group for group in _moving(plan) if group.changed}
        problems = (
            self._problems(services, list(groups.values())) if len(groups) > 1 else {}
        )  # a single group was compared just now, by `check`
        refused: list[tuple[GroupMoves, KopsError]] = [(groups[name], problem) for name, problem in problems.items()]
        refused += [(group, refusal_of(group)) for group in plan.arguments.groups if group.left]
        ready = {name: group for name, group in groups.items() if name not in problems}
        if len(groups) > 1:
            services.progress.step(f"moving {counted(len(ready), 'group')}")
        tried = 0
        for done, (group, outcome) in enumerate(_outcomes(services, ready), start=1):
            if len(groups) > 1:
                services.progress.advance(done, len(ready), "groups")
            if isinstance(outcome, Refused):
                refused.append((group, outcome))
                continue
            if len(plan.arguments.groups) == 1 and isinstance(outcome, KopsError):
                raise outcome
            tried += 1
            yield from results_of(group, outcome)
        if not tried and refused:
            raise refused[0][1]
        for group, problem in refused:
            yield from results_of(group, problem)
        if made := [name for name in plan.arguments.delete_groups if name in ready]:
            _delete_empty(services, made)

    def verify(self, services: Services, plan: Plan[Moves], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        """Read the offsets back, with their metadata."""
        groups = {group.group: group for group in _moving(plan) if group.changed}
        wrong: dict[str, ItemResult] = {}
        if len(groups) > 1:
            services.progress.step(f"reading {counted(len(groups), 'group')} back")
        for name, found in services.kafka.groups.read_offsets(groups):
            group = groups[name]
            if len(plan.arguments.groups) == 1 and isinstance(found, KopsError):
                raise found
            if not as_written(group, found):
                wrong |= {result.target: result for result in wrong_results(group, found)}
        if not wrong:
            return tuple(results)
        return tuple(wrong.get(result.target, result) if result.status is Status.DONE else result for result in results)

    def invert(self, services: Services, plan: Plan[Moves], results: Sequence[ItemResult]) -> Plan[Any]:
        untouched = not_done(results)
        back: list[GroupMoves] = []
        strayed: dict[str, list[TopicPartition]] = {}
        for group, now, found in _now(services, plan):
            topics, away = moved_back(group, found, untouched)
            if now is not None and any(topic.changed for topic in topics):
                refuse_active(now, can_wait=True)
            if away:
                strayed[group.group] = away
            if topics or len(plan.arguments.groups) == 1:
                back.append(replace(group, state=state_of(now), topics=topics))
        made = tuple(group.group for group in plan.arguments.groups if group.changed and group.state == ABSENT)
        summary = f"move {_whom(back)} back"
        undo = plan_moves(services, back, summary=summary, warnings=outside_log(services, back), within_log=False, delete_groups=made)
        return replace(undo, losses=_losses(strayed))

    def resume(self, services: Services, plan: Plan[Moves]) -> Plan[Any]:
        """Plan to move the partitions that have not been moved yet.

        :raises StateMoved: when the offset of a partition is neither the previous nor the planned one
        """
        groups = []
        for group, now, found in _now(services, plan):
            if away := strayed_partitions(group, found):
                raise StateMoved(f"{names_text(away)} of group {group.group} moved on since", hint="plan again from what is there now")
            left = tuple(remaining_moves(topic, found) for topic in group.topics)
            if len(plan.arguments.groups) == 1 and now is not None and any(topic.changed for topic in left):
                refuse_active(now)
            groups.append(replace(group, state=state_of(now), topics=left))
        within_log, delete_groups = plan.arguments.within_log, plan.arguments.delete_groups
        summary = f"finish moving {_whom(groups)}"
        return plan_moves(services, groups, summary=summary, warnings=plan.warnings, within_log=within_log, delete_groups=delete_groups)

    def messages(self, services: Services, plan: Plan[Moves], results: Sequence[ItemResult]) -> tuple[str, ...]:  # noqa: ARG002 - the contract
        count = sum(map(has_streams_metadata, _moving(plan)))
        if not count:
            return ()
        which = "this Kafka Streams application" if len(plan.arguments.groups) == 1 else counted(count, "Kafka Streams application")
        return (f"the stores of {which} are as they were: `kops state verify` compares them",)

    def _problems(self, services: Services, groups: Collection[GroupMoves]) -> dict[str, KopsError]:
        """Return the groups that must not be moved now, and why: they were joined, deleted or created since the plan."""
        now = states_now(services, [group.group for group in groups])
        problems: dict[str, KopsError] = {}
        for group in groups:
            try:
                self._refuse(group, now.get(group.group))
            except Refused as refused:
                problems[group.group] = refused
        return problems

    def _refuse(self, planned: GroupMoves, now: Group | None) -> None:
        """Refuse a group with members, or one that was deleted or created since the plan; commits are compared later."""
        if now is not None:
            refuse_active(now)
        if planned.state != state_of(now):
            raise state_moved(planned.group)


def _moving(plan: Plan[Moves]) -> list[GroupMoves]:
    """Return the groups that a plan moves; for a plan of one group, that group even if none of its offsets changes."""
    groups = plan.arguments.groups
    return [group for group in groups if group.changed or len(groups) == 1]


def _now(services: Services, plan: Plan[Moves]) -> Iterator[tuple[GroupMoves, Group | None, GroupOffsets]]:
    """Yield each group that a plan moves, what it is now, and its current commits."""
    moving = {group.group: group for group in _moving(plan)}
    states = states_now(services, list(moving))
    for name, found in services.kafka.groups.read_offsets(moving, stable=True):
        if isinstance(found, KopsError):
            raise found
        yield moving[name], states.get(name), found


def _outcomes(services: Services, groups: Mapping[str, GroupMoves]) -> Iterator[tuple[GroupMoves, Outcome]]:
    """Yield each group with the partitions that failed, or the error if all have; up to ``AT_ONCE`` commits are in flight."""
    under_way: deque[tuple[GroupMoves, PendingCommit]] = deque()
    for name, found in services.kafka.groups.read_offsets(groups, stable=True):
        group = groups[name]
        problem = found if isinstance(found, KopsError) else moved_since(group, found)
        if problem is not None:
            yield group, problem
        elif is_plain(group):
            offsets = {topic.topic: [(p, after) for p, _, after in topic.pairs() if after is not None] for topic in group.topics}
            under_way.append((group, services.kafka.groups.begin_commit(name, offsets)))
        else:
            yield group, _refusal(_write(services, group), group)
        if len(under_way) >= AT_ONCE:
            first, pending = under_way.popleft()
            yield first, _refusal(pending.errors(), first)
    while under_way:
        first, pending = under_way.popleft()
        yield first, _refusal(pending.errors(), first)


def _write(services: Services, group: GroupMoves) -> Outcome:
    """Commit what ``begin_commit`` cannot: metadata, leader epochs, deletions."""
    writes = group.writes()
    commits = {partition: committed for partition, committed in writes.items() if committed is not None}
    deletions = [partition for partition, committed in writes.items() if committed is None]
    try:
        outcome = services.kafka.groups.commit(group.group, commits)
    except KopsError as error:
        return error
    try:
        outcome |= services.kafka.groups.delete_offsets(group.group, deletions)
    except KopsError as error:
        if not commits:
            return error
        outcome |= dict.fromkeys(deletions, error)
    return {partition: error for partition, error in outcome.items() if error is not None}


def _refusal(errors: Outcome, group: GroupMoves) -> Outcome:
    """Return a single error if the broker refused the whole group because of its members."""
    if isinstance(errors, KopsError) or len(errors) < group.changed:
        return errors
    first = next(iter(errors.values()))
    return first if isinstance(first, GroupActive) else errors


def _delete_empty(services: Services, names: Sequence[str]) -> None:
    """Delete groups that a plan had created, if its undo has left them without commits."""
    left = services.kafka.groups.committed(names)
    services.kafka.groups.delete([name for name in names if not left[name]])


def _losses(strayed: Mapping[str, Sequence[TopicPartition]]) -> tuple[str, ...]:
    if not strayed:
        return ()
    (name, first), *others = strayed.items()
    where = counted(sum(map(len, strayed.values())), "partition") if others else f"{names_text(first)} of group {name}"
    return (f"{where} moved on since: what was committed there is lost",)


def _whom(groups: Sequence[GroupMoves]) -> str:
    return f"group {groups[0].group}" if len(groups) == 1 else "groups"


MOVE = Move()
