"""The mutation of committed offsets: compare-and-set, commit, read back, take back.

A plan carries what to write and what was there for each partition it touches, so that undo is the same mutation with the two
swapped. Nothing joins the group: the broker itself refuses the commit of a group that has members.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from kops.core.errors import GroupActive, KopsError, NotFound, Refused, StateMoved
from kops.core.models import Committed, Group, TopicPartition
from kops.core.offsets.arithmetic import is_streams_metadata
from kops.core.offsets.moves import ABSENT
from kops.core.plan import Item, ItemResult, Plan, Status
from kops.operations.groups.matching import refuse_active
from kops.operations.offsets.items import OneMove, move_item, offset_of, places, some_of, verified
from kops.operations.offsets.log import refuse_outside
from kops.operations.protocol.engine import Mutation, compare_guard, failed
from kops.operations.services import Services

NAME = "offsets.move"

Wanted = Mapping[TopicPartition, "tuple[Committed | None, str]"]
"""For each partition what to commit (None: delete the commit), and why."""


def plan_move(
    services: Services,
    group_id: str,
    group: Group | None,
    wanted: Wanted,
    current: Mapping[TopicPartition, Committed],
    *,
    summary: str,
    unchanged: Mapping[TopicPartition, str] | None = None,
    warnings: Sequence[str] = (),
    within_log: bool = True,
) -> Plan[OneMove]:
    """Return the plan that commits offsets for a group.

    :param group: None when it does not exist yet
    :param current: its committed offsets now
    :param unchanged: partitions to show that are left alone, and why
    :param within_log: refuse to apply it once the log does not have the offsets any more
    """
    items = {
        partition: Item(str(partition), "none", offset_of(current.get(partition)), offset_of(current.get(partition)), reason)
        for partition, reason in (unchanged or {}).items()
    }
    write: dict[TopicPartition, Committed | None] = {}
    for partition, (after, reason) in wanted.items():
        before = current.get(partition)
        items[partition] = move_item(partition, before, after, reason)
        if items[partition].changes:
            write[partition] = after
    return Plan(
        operation=NAME,
        summary=f"{summary}: {places(write)}" if write else summary,
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=tuple(items[partition] for partition in sorted(items)),
        guard=_guard(group, {partition: current.get(partition) for partition in write}),
        arguments=OneMove(group_id, write, {partition: current.get(partition) for partition in write}, group is None, within_log),
        warnings=tuple(warnings),
    )


class Move(Mutation[OneMove]):
    """Commits offsets for a group without members."""

    name: ClassVar[str] = NAME
    arguments = OneMove

    def locks(self, plan: Plan[OneMove]) -> Iterable[str]:
        """Name the group."""
        return (plan.arguments.group,)

    def check(self, services: Services, plan: Plan[OneMove]) -> None:
        """Refuse when the group, its commits, or the log are no longer as planned."""
        group_id, write = plan.arguments.group, plan.arguments.write
        group = group_or_none(services, group_id)
        if group is not None:
            refuse_active(group)
        current = services.kafka.groups.committed([group_id], stable=True)[group_id]
        compare_guard(plan, _guard(group, {partition: current.get(partition) for partition in write}), f"group {group_id}")
        if plan.arguments.within_log:
            offsets = {partition: committed.offset for partition, committed in write.items() if committed}
            bounds = services.kafka.offsets.bounds_or_errors(offsets)
            for partition, offset in offsets.items():
                refuse_outside(partition, offset, bounds)

    def apply(self, services: Services, plan: Plan[OneMove]) -> Iterator[ItemResult]:
        """Commit, and delete what had no commit.

        :raises GroupActive: when a member has joined meanwhile; the broker has taken nothing then
        """
        groups, group_id, write = services.kafka.groups, plan.arguments.group, plan.arguments.write
        items = {item.target: item for item in plan.changes}
        commits = {partition: committed for partition, committed in write.items() if committed}
        outcome = groups.commit(group_id, commits)
        _raise_refusal(outcome)
        yield from (_result(items[str(partition)], error) for partition, error in outcome.items())
        deletes = [partition for partition, committed in write.items() if committed is None]
        if deletes:
            outcome = groups.delete_offsets(group_id, deletes)
            if not commits:
                _raise_refusal(outcome)
            yield from (_result(items[str(partition)], error) for partition, error in outcome.items())
            if plan.arguments.delete_group and not groups.committed([group_id])[group_id]:
                groups.delete([group_id])

    def verify(self, services: Services, plan: Plan[OneMove], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        """Read the offsets and their metadata back."""
        group_id, write = plan.arguments.group, plan.arguments.write
        found = services.kafka.groups.committed([group_id])[group_id]
        return tuple(verified(result, write, found) for result in results)

    def invert(self, services: Services, plan: Plan[OneMove], results: Sequence[ItemResult]) -> Plan[OneMove]:
        """Return the plan that moves back to the prior offsets, with the metadata that they had."""
        group_id = plan.arguments.group
        not_done = {result.target for result in results if result.status in (Status.FAILED, Status.SKIPPED)}
        prior = {p: committed for p, committed in plan.arguments.prior.items() if str(p) not in not_done}
        written = plan.arguments.write
        group = group_or_none(services, group_id)
        if group is not None:
            refuse_active(group)
        current = services.kafka.groups.committed([group_id], stable=True)[group_id]
        moved_on = sorted(partition for partition in prior if offset_of(current.get(partition)) != offset_of(written[partition]))
        losses = (f"{some_of(moved_on)} of group {group_id} moved on since: what was committed there is lost",) if moved_on else ()
        undo = plan_move(
            services,
            group_id,
            group,
            {partition: (committed, "" if committed else "had no commit") for partition, committed in prior.items()},
            current,
            summary=f"move group {group_id} back",
            warnings=_out_of_log(services, prior),
            within_log=False,
        )
        return replace(undo, arguments=replace(undo.arguments, delete_group=plan.arguments.new_group), losses=losses)

    def resume(self, services: Services, plan: Plan[OneMove]) -> Plan[OneMove]:
        """Return the plan for the partitions that are still where they were.

        :raises StateMoved: when one is neither there nor where it should go
        """
        group_id, write, prior = plan.arguments.group, plan.arguments.write, plan.arguments.prior
        group = group_or_none(services, group_id)
        if group is not None:
            refuse_active(group)
        current = services.kafka.groups.committed([group_id], stable=True)[group_id]
        strayed = sorted(p for p in write if offset_of(current.get(p)) not in (offset_of(write[p]), offset_of(prior[p])))
        if strayed:
            raise StateMoved(f"{some_of(strayed)} of group {group_id} moved on since", hint="plan again from what is there now")
        reasons = {item.target: item.reason for item in plan.items}
        wanted = {partition: (committed, reasons[str(partition)]) for partition, committed in write.items()}
        again = plan_move(
            services,
            group_id,
            group,
            wanted,
            current,
            summary=f"finish moving group {group_id}",
            warnings=plan.warnings,
            within_log=plan.arguments.within_log,
        )
        return replace(again, arguments=replace(again.arguments, delete_group=plan.arguments.delete_group))

    def messages(self, services: Services, plan: Plan[OneMove], results: Sequence[ItemResult]) -> tuple[str, ...]:  # noqa: ARG002 - the contract
        """Say what Kafka Streams does not do by itself."""
        prior = plan.arguments.prior.values()
        if any(committed and is_streams_metadata(committed.metadata) for committed in prior):
            return ("the stores of this Kafka Streams application are as they were: `kops state verify` compares them",)
        return ()


def group_or_none(services: Services, group_id: str) -> Group | None:
    """Return a group, or None when it does not exist."""
    try:
        return services.kafka.groups.describe([group_id])[group_id]
    except NotFound:
        return None


def _raise_refusal(outcome: Mapping[TopicPartition, KopsError | None]) -> None:
    """Raise when the broker has refused every partition because of a member: nothing is changed then."""
    refusals = [error for error in outcome.values() if isinstance(error, GroupActive)]
    if refusals and len(refusals) == len(outcome):
        raise refusals[0]


def _result(item: Item, error: KopsError | None) -> ItemResult:
    return failed(item, error) if error else ItemResult(item.target, Status.DONE, value=item.after)


def _out_of_log(services: Services, offsets: Mapping[TopicPartition, Committed | None]) -> list[str]:
    warnings = []
    asked = {partition: committed.offset for partition, committed in offsets.items() if committed}
    for partition, bounds in services.kafka.offsets.bounds_or_errors(asked).items():
        if isinstance(bounds, KopsError):
            raise Refused(f"{partition}: {bounds.message}", hint="it cannot be committed for any more")
        if not bounds.log_start_offset <= asked[partition] <= bounds.log_end_offset:
            has = f"{bounds.log_start_offset} to {bounds.log_end_offset}"
            warnings.append(f"{partition}: the log has {has}, not {asked[partition]}: consumers will follow auto.offset.reset")
    return warnings


def _guard(group: Group | None, current: Mapping[TopicPartition, Committed | None]) -> dict[str, Any]:
    state = ABSENT if group is None else group.state
    return {"group": state, "committed": {str(partition): offset_of(current[partition]) for partition in sorted(current)}}


MOVE = Move()
