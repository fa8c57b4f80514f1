"""The mutation of a reset: offsets as ``offsets.move`` moves them, then topics as ``topics.change`` deletes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, cast

from kops.core.errors import Refused, VerificationFailed
from kops.core.plan import ItemResult, Plan, Status
from kops.core.streams.local_state import delete_local_state
from kops.core.topics.changes import Changes
from kops.operations.offsets.arguments import Moves
from kops.operations.offsets.move import MOVE
from kops.operations.protocol.mutation import Mutation
from kops.operations.protocol.settling import settled
from kops.operations.services import Services
from kops.operations.streams.reset import NAME, ResetArguments, compose
from kops.operations.topics.change import CHANGE_TOPICS, planned_of
from kops.operations.topics.plan import recreated


class Reset(Mutation[ResetArguments]):
    name: ClassVar[str] = NAME
    arguments: ClassVar[type[ResetArguments]] = ResetArguments

    def locks(self, plan: Plan[ResetArguments]) -> Iterable[str]:
        return (plan.arguments.application,)

    def check(self, services: Services, plan: Plan[ResetArguments]) -> None:
        """Refuse when the group, its commits, the log, or a topic are no longer as planned."""
        MOVE.check(services, _offsets(plan))
        CHANGE_TOPICS.check(services, _topics(plan))

    def apply(self, services: Services, plan: Plan[ResetArguments]) -> Iterator[ItemResult]:
        """Commit, then delete; if an offset could not be committed, nothing is deleted."""
        failed = False
        for result in MOVE.apply(services, _offsets(plan)):
            failed = failed or result.status is not Status.DONE
            yield result
        topics = _topics(plan)
        if failed:
            error = {"code": "skipped", "message": "left alone, as not every offset could be moved"}
            yield from (ItemResult(item.target, Status.SKIPPED, error=error) for item in topics.changes)
        elif topics.changes:
            yield from CHANGE_TOPICS.apply(services, topics)

    def verify(self, services: Services, plan: Plan[ResetArguments], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        topics = set(plan.arguments.topics)
        moved = MOVE.verify(services, _offsets(plan), [result for result in results if result.target not in topics])
        deleted = [result for result in results if result.target in topics]
        if not deleted:
            return moved
        gone = CHANGE_TOPICS.verify(services, _topics(plan), deleted)
        return (*moved, *settled(lambda: _forgotten(services, plan.arguments.application, gone)))

    def can_be_undone(self, plan: Plan[ResetArguments]) -> bool:
        """Whether it moved offsets: those can be moved back, and deleted topics cannot be restored."""
        return _offsets(plan).has_changes

    def invert(self, services: Services, plan: Plan[ResetArguments], results: Sequence[ItemResult]) -> Plan[Moves]:
        """Return the plan that moves the input back; the deleted state is not restored."""
        topics = plan.arguments.topics
        there = services.kafka.topics.existing(topics)
        gone = recreated(there, {name: state["topic_id"] for name, state in planned_of(_topics(plan)).states.items()})
        if not _offsets(plan).has_changes:
            raise Refused("the internal topics were deleted, and their records are gone", hint="`kops state rebuild` computes state again")
        back = MOVE.invert(services, _offsets(plan), [result for result in results if result.target not in topics])
        if not gone:
            return back
        what = f"{', '.join(gone)} and what they held are not restored: run `kops state rebuild` before the application starts"
        return replace(back, warnings=(what, *back.warnings))

    def resume(self, services: Services, plan: Plan[ResetArguments]) -> Plan[ResetArguments]:
        """Return the plan for the offsets that have not moved, and the topics that still exist."""
        name, offsets = plan.arguments.application, _offsets(plan)
        if offsets.has_changes:
            offsets = MOVE.resume(services, offsets)
        rest = compose(name, offsets, CHANGE_TOPICS.resume(services, _topics(plan)), verb="finish resetting")
        return replace(rest, notes=plan.notes, warnings=plan.warnings)

    def messages(self, services: Services, plan: Plan[ResetArguments], results: Sequence[ItemResult]) -> tuple[str, ...]:  # noqa: ARG002 - the contract
        topics = set(plan.arguments.topics)
        if not any(result.target in topics and result.status is Status.DONE for result in results):
            return ()
        undo = ("undo moves the offsets back; it does not bring the state back",) if self.can_be_undone(plan) else ()
        wipe = delete_local_state(plan.arguments.application)
        local_state = next((note for note in plan.notes if note.startswith(wipe.partition(" on every")[0])), wipe)  # naming the machines
        return (local_state, *undo)


def _forgotten(services: Services, name: str, results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
    """Return the results of deleted topics; failed where the group still has commits on one.

    The coordinator deletes them soon after the topic. Before that, an application that recreates its repartition topic would read
    it from there, and skip what lies before.
    """
    left = {partition.topic for partition in services.kafka.groups.committed([name])[name]}
    checked = []
    for result in results:
        if result.status is Status.DONE and result.target in left:
            hint = f"`kops offsets delete {name} --topic {result.target}` before the application starts"
            error = VerificationFailed(f"{result.target} is gone, and {name} still has commits on it", hint=hint)
            checked.append(ItemResult(result.target, Status.FAILED, error=error.as_json()))
        else:
            checked.append(result)
    return tuple(checked)


def _offsets(plan: Plan[ResetArguments]) -> Plan[Moves]:
    moves, guard = plan.arguments.offsets, plan.guard["offsets"]
    return replace(cast("Plan[Moves]", plan), operation=MOVE.name, items=moves.items(), guard=guard, arguments=moves)


def _topics(plan: Plan[ResetArguments]) -> Plan[Changes]:
    deleted = set(plan.arguments.topics)
    items = tuple(item for item in plan.items if item.target in deleted)
    guard = {"absent": [], "topics": {name: {"topic_id": topic_id} for name, topic_id in plan.guard["topics"].items()}}
    changes = Changes(delete=tuple(plan.guard["topics"]))
    return replace(cast("Plan[Changes]", plan), operation=CHANGE_TOPICS.name, items=items, guard=guard, arguments=changes)


RESET = Reset()
