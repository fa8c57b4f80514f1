"""The one mutation of an application's state: internal topics, then contents of changelogs, then committed offsets, all read back.

Rebuilding, recreating changelogs, building another application's state, restoring a snapshot and moving to another number of partitions
differ only in what they plan. Writing staged records again does no harm, so an interrupted change can be finished.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from kops.core.errors import KopsError, VerificationFailed
from kops.core.models import TopicPartition
from kops.core.plan import Item, ItemResult, Plan, Status
from kops.core.streams.local_state import delete_local_state
from kops.operations.engine.spark import start_engine
from kops.operations.offsets.items import offset_of, verified
from kops.operations.protocol.aftermath import Traces
from kops.operations.protocol.mutation import Mutation, failed
from kops.operations.protocol.settling import settled
from kops.operations.services import Services
from kops.operations.state.arguments import GROW, StateArguments, log_starts
from kops.operations.state.changelog_writes import append, judged, refuse_incomplete, refuse_without_stages, wrong_partitions
from kops.operations.state.completeness import before_starting
from kops.operations.state.guard import changes_meanwhile, guarded, refuse_moved, refuse_moved_on, refuse_running
from kops.operations.state.internal_topics import change_topics, left_to_do, refuse_unless_recreatable, verified_topic
from kops.operations.state.undo import plan_undo

REBUILD, REPLACE, INTO, RESTORE, REPARTITION = (
    "state.rebuild",
    "state.replace",
    "state.into",
    "state.restore",
    "state.repartition",
)
"""The operations of plans that this mutation carries out."""
_GOOD = (Status.DONE, Status.UNCHANGED)


class StateChange(Mutation[StateArguments]):
    """Creates and deletes internal topics, appends staged records, and commits offsets, for an application without members."""

    name: ClassVar[str] = REBUILD
    arguments: ClassVar[type[StateArguments]] = StateArguments
    can_leave_partial: ClassVar[bool] = True

    def locks(self, plan: Plan[StateArguments]) -> Iterable[str]:
        """Lock the group: only one kops at a time changes its offsets, its state and its topics."""
        return (plan.arguments.application,)

    def covers(self, services: Services, plan: Plan[StateArguments], earlier: Plan[StateArguments]) -> bool:  # noqa: ARG002 - the contract
        """Whether this plan checked every changelog of an earlier plan of this operation again."""
        then = earlier.arguments
        if earlier.operation != plan.operation or then.application != plan.arguments.application:
            return False
        seen = {item.target for item in plan.items} | {item.target.rpartition(":")[0] for item in plan.items}
        return then.changelogs <= seen

    def check(self, services: Services, plan: Plan[StateArguments]) -> None:
        """Refuse when the application runs, has moved on, or its topics changed; and when staged records to be written are missing."""
        arguments = plan.arguments
        refuse_running(services, plan)
        refuse_moved(services, plan)
        refuse_without_stages(arguments)
        refuse_unless_recreatable(services, arguments.topics)
        if plan.operation == REPARTITION:
            for store in arguments.stores.values():
                if store.prior_contents:
                    refuse_incomplete(start_engine(services, arguments.master), store)

    def apply(self, services: Services, plan: Plan[StateArguments]) -> Iterator[ItemResult]:
        """Change the topics, write the stores, add partitions to inputs, then commit; stop after a step that failed."""
        arguments, items = plan.arguments, {item.target: item for item in plan.changes}
        starts = log_starts(arguments, plan.guard["changelog_ends"])
        clean = True
        steps = (
            change_topics(services, arguments.topics, items),
            _stores(services, arguments, starts, items),
            _grow(services, arguments, items),
        )
        for step in steps:  # generators, which do nothing until they are iterated
            for result in step if clean else ():
                clean = clean and result.status in _GOOD
                yield result
        if clean:
            yield from _commit(services, arguments, items)
        else:
            yield from (ItemResult(str(at), Status.SKIPPED) for at in arguments.commit if str(at) in items)

    def verify(self, services: Services, plan: Plan[StateArguments], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        """Read everything back, and check whether the application stood still throughout."""
        return (*_read_back(services, plan, results), *_second_look(services, plan, results))

    def invert(self, services: Services, plan: Plan[StateArguments], results: Sequence[ItemResult]) -> Plan[StateArguments]:
        refuse_running(services, plan)
        return plan_undo(services, plan, results)

    def can_be_undone(self, plan: Plan[StateArguments]) -> bool:
        """Whether a change can be undone: if inputs got partitions, these and all the rest stay; what an undo lost cannot be restored."""
        return not plan.losses and not plan.arguments.grow

    def traces(self, plan: Plan[StateArguments], results: Sequence[ItemResult]) -> Traces:  # noqa: ARG002 - all of it
        arguments = plan.arguments
        return Traces(logs=tuple(sorted(arguments.changelogs | {change.name for change in arguments.topics})), group=arguments.application)

    def offsets_in_the_middle(self, plan: Plan[StateArguments]) -> dict[str, list[int | None]]:
        between: dict[str, list[int | None]] = {target: [offset] for target, offset in plan.guard["committed"].items()}
        for at, found in plan.arguments.commit.items():
            between.setdefault(str(at), [None]).append(offset_of(found))
        return between

    def resume(self, services: Services, plan: Plan[StateArguments]) -> Plan[StateArguments]:
        """Return the plan for what is left. Staged records are written again: the last record of a key counts, so twice is like once.

        :raises StateMoved: when the application or another tool has moved on since
        """
        refuse_running(services, plan)
        resumed = replace(plan, arguments=replace(plan.arguments, topics=tuple(left_to_do(services, plan.arguments.topics))))
        now = guarded(services, resumed)
        refuse_moved_on(plan, now)
        refuse_without_stages(resumed.arguments)
        return now

    def messages(self, services: Services, plan: Plan[StateArguments], results: Sequence[ItemResult]) -> tuple[str, ...]:  # noqa: ARG002 - the contract
        if any(result.status not in _GOOD for result in results):
            return ("run the same command again, or `kops journal finish`: what is right already is recognised",)
        arguments = plan.arguments
        if arguments.is_undo:
            return _after_undo(arguments)
        wipe = (delete_local_state(arguments.application),) if arguments.topics else ()
        if plan.operation == REPARTITION:
            done = f"kops state repartition {arguments.state_file} --confirm-done"
            return (*wipe, f"the state from before is kept; when {arguments.application} runs well: {done}")
        if plan.operation == INTO and arguments.offsets_of != arguments.application:
            return _side_by_side(arguments)
        return before_starting(arguments.application, arguments.open or wipe)


STATE_CHANGE = StateChange()


def _stores(
    services: Services, arguments: StateArguments, starts: Mapping[TopicPartition, int], items: Mapping[str, Item]
) -> Iterator[ItemResult]:
    for name, store in arguments.stores.items():
        if store.contents:
            yield from append(start_engine(services, arguments.master), arguments, name, starts, items)


def _grow(services: Services, arguments: StateArguments, items: Mapping[str, Item]) -> Iterator[ItemResult]:
    """Add partitions last: only this cannot be undone."""
    if not arguments.grow:
        return
    sizes = {name: len(topic.partitions) for name, topic in services.kafka.topics.existing(arguments.grow).items()}
    wanted = {name: total for name, total in arguments.grow.items() if sizes.get(name) != total}
    errors = services.kafka.topics.add_partitions(wanted)
    for name in arguments.grow:
        target, error = f"{GROW} {name}", errors.get(name)
        yield ItemResult(target, Status.DONE) if error is None else failed(items[target], error)


def _commit(services: Services, arguments: StateArguments, items: Mapping[str, Item]) -> Iterator[ItemResult]:
    """Move the application to the offsets that its state now reflects."""
    group, groups = arguments.application, services.kafka.groups
    outcome: dict[TopicPartition, KopsError | None] = {}
    if arguments.commit:
        outcome |= groups.commit(group, {at: found for at, found in arguments.commit.items() if found})
        outcome |= groups.delete_offsets(group, [at for at, found in arguments.commit.items() if found is None])
    for at, error in outcome.items():
        item = items[str(at)]
        yield failed(item, error) if error else ItemResult(item.target, Status.DONE, value=item.after)


def _read_back(services: Services, plan: Plan[StateArguments], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
    arguments = plan.arguments
    starts = log_starts(arguments, plan.guard["changelog_ends"])
    written = {result.target.rpartition(":")[0] for result in results if result.status is Status.DONE and ":" in result.target}
    wrong: dict[str, str] = {}
    for name, store in arguments.stores.items():
        if store.contents and store.changelog in written:
            wrong |= wrong_partitions(start_engine(services, arguments.master), arguments, name, starts)
    found = services.kafka.groups.committed([arguments.application])[arguments.application] if arguments.commit else {}
    commits = {str(at) for at in arguments.commit}
    seen = {
        result.target: verified(result, arguments.commit, found) if result.target in commits else judged(result, wrong)
        for result in results
    }
    changes = {change.name: change for change in arguments.topics}
    topics = [result for result in results if result.target in changes]
    if topics:
        looked = settled(lambda: tuple(verified_topic(services, changes[result.target], result) for result in topics))
        seen |= {result.target: result for result in looked}
    return tuple(seen[result.target] for result in results)


def _second_look(services: Services, plan: Plan[StateArguments], results: Sequence[ItemResult]) -> Iterator[ItemResult]:
    """Yield a failure of the application itself if it did something while its state was being written."""
    if not any(result.status is Status.DONE for result in results):
        return
    events = changes_meanwhile(services, plan)
    if events:
        application = plan.arguments.application
        error = VerificationFailed(
            f"while the state was written {'; '.join(events)}: its local state may be half of the old and half of the new",
            hint=f"stop {application} everywhere, run the same command again, and {delete_local_state(application)}",
        )
        yield ItemResult(application, Status.FAILED, error=error.as_json())


def _after_undo(arguments: StateArguments) -> tuple[str, ...]:
    if arguments.topics and all(change.after is None for change in arguments.topics):
        return ()
    wipe = (delete_local_state(arguments.application),) if arguments.topics else ()
    return (f"the changelogs of {arguments.application} hold what they held before", *wipe)


def _side_by_side(arguments: StateArguments) -> tuple[str, ...]:
    old, new = arguments.offsets_of, arguments.application
    return (
        f"{new} can be started alongside {old}, with a separate output topic: both process new input and send their results",
        f"to compare them: kops state diff {arguments.state_file} --against {new}",
        f"to switch: stop {old} (and {new}), run this same command again, start {new}; it continues exactly where {old} stopped",
        f"{old} keeps its topics and offsets: `kops groups delete` and `kops topics delete` once it is no longer needed",
    )
