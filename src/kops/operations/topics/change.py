"""The only mutation of topics, which creates, alters, grows and deletes them: compare-and-set, one request of each kind, read back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from kops.core.errors import KopsError, NothingToUndo, Refused, StateMoved
from kops.core.findings import counted
from kops.core.models import NewTopic, Setting, Topic
from kops.core.plan import Item, ItemResult, Plan, Status, not_done
from kops.core.settings import changed_since, still_to_alter
from kops.core.topics.changes import Changes
from kops.operations.protocol.aftermath import Traces
from kops.operations.protocol.mutation import Mutation, failed
from kops.operations.protocol.settling import settled
from kops.operations.services import Services
from kops.operations.topics.plan import CHANGE, CREATE, DELETE, guard_of, plan_changes, recreated
from kops.operations.topics.read_back import created, deleted, differences_of, not_as_planned
from kops.operations.topics.requests import plan_creation

_INVERSE = {CREATE: DELETE, DELETE: CREATE}


class ChangeTopics(Mutation[Changes]):
    """Changes topics; it also carries out plans and journal entries of ``topics.create`` and ``topics.delete``."""

    name: ClassVar[str] = CHANGE
    arguments: ClassVar[type[Changes]] = Changes

    def locks(self, plan: Plan[Changes]) -> Iterable[str]:
        return [f"topic {item.target}" for item in plan.changes]

    def check(self, services: Services, plan: Plan[Changes]) -> None:
        planned = planned_of(plan)
        there = services.kafka.topics.existing(planned.absent)
        if there:
            again = " with --if-not-exists" if plan.operation == CREATE else ""
            raise StateMoved(f"created by another client since the plan was made: {', '.join(there)}", hint=f"run the command again{again}")
        found = services.kafka.topics.existing(planned.states)
        _refuse_moved("deleted or recreated", planned.others(found))
        settings = services.kafka.topics.settings(planned.changes.alter, missing_ok=True)
        here = {name: topic for name, topic in found.items() if name in settings or name not in planned.changes.alter}
        actual = guard_of(planned.changes, here, settings)["topics"]
        _refuse_moved("changed", [name for name, state in planned.states.items() if _differs(state, actual.get(name))])

    def apply(self, services: Services, plan: Plan[Changes]) -> Iterator[ItemResult]:
        """Create, add partitions, alter, delete. A topic whose partitions could not be added is not altered either: it fails as a whole."""
        changes, kafka = planned_of(plan).changes, services.kafka.topics
        items = {item.target: item for item in plan.changes}
        for name, error in kafka.create(changes.create).items():
            yield _result(items[name], error)
        grown = kafka.add_partitions(changes.grow)
        stuck = {name for name, error in grown.items() if error is not None}
        altered = kafka.alter({name: target for name, target in changes.alter.items() if name not in stuck})
        for name in changes.altered:
            yield _result(items[name], grown.get(name) or altered.get(name))
        for name, error in kafka.delete(changes.delete).items():
            yield _result(items[name], error)

    def verify(self, services: Services, plan: Plan[Changes], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        planned = planned_of(plan)

        def read() -> tuple[ItemResult, ...]:
            found = services.kafka.topics.existing(result.target for result in results)
            settings = services.kafka.topics.settings([name for name in found if name not in planned.changes.delete], missing_ok=True)
            return tuple(_read_back(one, planned, found.get(one.target), settings.get(one.target, {})) for one in results)

        return settled(read, services.kafka.heard_by_all)

    def resume(self, services: Services, plan: Plan[Changes]) -> Plan[Changes]:
        """Plan what is not yet up to date, for the topics that were not recreated since."""
        planned = planned_of(plan)
        changes = planned.changes
        found = services.kafka.topics.existing(changes.names)
        if plan.operation == CREATE:
            return plan_creation(services, changes.create, found)
        others = planned.others(found)
        left = changes.without({*others, *(name for name in changes.created if name in found)})
        left = replace(left, grow={name: total for name, total in left.grow.items() if len(found[name].partitions) < total})
        nothing = "the topics are gone already" if plan.operation == DELETE else ""
        warnings = _left_alone([name for name in changes.altered if name in others])
        known = {name: topic for name, topic in found.items() if name in planned.states}
        return plan_changes(services, left, operation=plan.operation, found=known, nothing=nothing, warnings=warnings)

    def traces(self, plan: Plan[Changes], results: Sequence[ItemResult]) -> Traces:
        """Return the topics that were created: records may be written to them."""
        done = {result.target for result in results if result.status is Status.DONE}
        return Traces(logs=tuple(name for name in planned_of(plan).changes.created if name in done))

    def can_be_undone(self, plan: Plan[Changes]) -> bool:
        """Whether anything but partitions is changed: those cannot be removed, everything else can be undone."""
        changes = planned_of(plan).changes
        return bool(changes.create or changes.alter or changes.delete)

    def invert(self, services: Services, plan: Plan[Changes], results: Sequence[ItemResult]) -> Plan[Changes]:
        """Plan to restore settings (including "not set"), delete created topics, and create deleted ones again, empty.

        :raises Refused: when only partitions were added, or there is nothing to undo
        """
        undo = self.inverse(services, plan, results)
        if undo is None:
            raise _nothing_to_undo(planned_of(plan).changes.without(not_done(results)))
        return undo

    def inverse(self, services: Services, plan: Plan[Changes], results: Sequence[ItemResult]) -> Plan[Changes] | None:
        """Return the plan of ``invert``; None if there is nothing to undo."""
        planned = planned_of(plan)
        changes = planned.changes.without(not_done(results))
        found = services.kafka.topics.existing(changes.names)
        _refuse_recreated(changes, found, results)
        items = {item.target: item for item in plan.changes}
        lost = [items[name] for name in changes.delete if name not in found]
        others = planned.others(found)
        same = [name for name in changes.alter if name not in others]
        before = {name: planned.states[name]["settings"] for name in same}
        known = {result.target for result in results if result.status is Status.DONE}
        unsure = [topic for topic in changes.create if topic.name in found and topic.name not in known]
        settings = services.kafka.topics.settings([*same, *(topic.name for topic in unsure)])
        _refuse_created_by_others(unsure, found, settings)
        back = Changes(
            create=tuple(_as_it_was(item) for item in lost),
            alter=before,
            delete=tuple(name for name in changes.created if name in found),
        )
        if not back:
            return None
        strayed = {name: changed_since(settings[name], changes.alter[name], before[name]) for name in same}
        warnings = [f"{', '.join(changes.grow)}: the partitions that were added stay"] if changes.grow else []
        warnings += [*_left_alone([name for name in changes.alter if name in others]), *_lost_records(lost)]
        undo = plan_changes(services, back, operation=_INVERSE.get(plan.operation, CHANGE), found=found, warnings=warnings)
        losses = [f"{name} was changed since: {', '.join(now)}" for name, now in strayed.items() if now]
        return replace(undo, losses=(*losses, *written_to(services, [found[topic.name] for topic in unsure])))

    def messages(self, services: Services, plan: Plan[Changes], results: Sequence[ItemResult]) -> tuple[str, ...]:  # noqa: ARG002 - the contract
        done = {result.target for result in results if result.status is Status.DONE}
        texts = []
        if done & set(planned_of(plan).changes.grow):
            texts.append("undo does not remove the added partitions: Kafka cannot")
        if any(item.before["records"] for item in plan.changes if item.action == "delete" and item.target in done):
            texts.append("undo creates deleted topics again with the same settings; their records do not come back")
        return tuple(texts)


CHANGE_TOPICS = ChangeTopics()


@dataclass(frozen=True)
class PlannedChanges:
    """The changes of a plan, and the state that they were computed from.

    :param absent: topics that did not exist
    :param states: by topic: ``topic_id``, ``partitions`` and ``settings``, or only the id if no more is known
    """

    changes: Changes
    absent: tuple[str, ...]
    states: Mapping[str, Mapping[str, Any]]

    def others(self, found: Mapping[str, Topic]) -> list[str]:
        """Return the topics that no longer exist, or were recreated."""
        return recreated(found, {name: state["topic_id"] for name, state in self.states.items()})


def planned_of(plan: Plan[Changes]) -> PlannedChanges:
    """Return the changes of a plan."""
    return PlannedChanges(plan.arguments, tuple(plan.guard["absent"]), plan.guard["topics"])


def _refuse_moved(what: str, names: Sequence[str]) -> None:
    if names:
        hint = "run the command again to plan from what is there now"
        raise StateMoved(f"{what} since the plan was made: {', '.join(names)}", hint=hint)


def _differs(state: Mapping[str, Any], actual: Mapping[str, Any] | None) -> bool:
    return actual is None or any(actual[key] != value for key, value in state.items())


def _result(item: Item, error: KopsError | None) -> ItemResult:
    return ItemResult(item.target, Status.DONE) if error is None else failed(item, error)


def _read_back(result: ItemResult, planned: PlannedChanges, found: Topic | None, settings: Mapping[str, Setting]) -> ItemResult:
    name, changes = result.target, planned.changes
    if name in changes.delete:
        return deleted(result, planned.states[name]["topic_id"], found)
    if result.status not in (Status.DONE, Status.UNKNOWN):
        return result
    new = next((topic for topic in changes.create if topic.name == name), None)
    if new is not None:
        return created(result, new, found, settings)
    if found is None:
        return not_as_planned(result, "it no longer exists")
    left = still_to_alter(settings, changes.alter.get(name, {}))
    wrong = [f"{key} is {settings[key].value if key in settings else 'not set'}" for key in left]
    if name in changes.grow and len(found.partitions) != changes.grow[name]:
        wrong.append(counted(len(found.partitions), "partition"))
    if wrong:
        return result if result.status is Status.UNKNOWN else not_as_planned(result, "; ".join(wrong))
    return ItemResult(name, Status.DONE)


def _refuse_recreated(changes: Changes, found: Mapping[str, Topic], results: Sequence[ItemResult]) -> None:
    """Refuse to delete a topic that was recreated since: it is not the one that the plan created."""
    ids = {result.target: (result.value or {}).get("topic_id") for result in results}
    other = [name for name in changes.created if name in found and ids.get(name) not in (None, found[name].topic_id)]
    if other:
        raise Refused(f"deleted and created again since: {', '.join(other)}", hint="`kops topics delete` deletes what is there now")


def _refuse_created_by_others(
    wanted: Sequence[NewTopic], found: Mapping[str, Topic], settings: Mapping[str, Mapping[str, Setting]]
) -> None:
    """Refuse to delete a topic that the plan may not have created: one with other settings than it would have."""
    other = [topic.name for topic in wanted if differences_of(topic, found[topic.name], settings[topic.name])]
    if other:
        what = f"{', '.join(other)} {'is' if len(other) == 1 else 'are'} not as planned: created or changed by somebody else"
        raise Refused(what, hint="`kops topics delete` deletes what is there now")


def written_to(services: Services, created: Sequence[Topic]) -> list[str]:
    """Describe what was written to topics since they were created."""
    ends = services.kafka.offsets.bounds(place for topic in created for place in topic.places) if created else {}
    counts = {topic.name: sum(ends[place].log_end_offset for place in topic.places) for topic in created}
    return [f"{name} has {counted(count, 'record')}" for name, count in counts.items() if count]


def _nothing_to_undo(changes: Changes) -> Refused:
    names = list(changes.names)
    if changes.grow:
        why = f"Kafka cannot remove partitions from {', '.join(changes.grow)}"
        hint = "a new topic with fewer partitions can be filled from this one"
        return Refused(f"there is nothing that can be undone: {why}", hint=hint, topics=names)
    hint = "`kops topics describe` shows what is there"
    if changes.alter or (changes.create and changes.delete):
        return NothingToUndo("there is nothing that can be undone", hint=hint, topics=names)
    state = "do not exist" if changes.create else "exist"
    return NothingToUndo(f"the topics {state}, so there is nothing to undo", hint=hint, topics=names)


def _as_it_was(item: Item) -> NewTopic:
    return NewTopic(item.target, item.before["partitions"], item.before["replication_factor"], item.before["settings"])


def _lost_records(items: Sequence[Item]) -> list[str]:
    lost = [f"{item.target} ({item.before['records']:,})" for item in items if item.before["records"]]
    return [f"the records that were deleted do not come back: {', '.join(lost)}"] if lost else []


def _left_alone(names: Sequence[str]) -> list[str]:
    return [f"{', '.join(names)}: deleted or recreated since: left alone"] if names else []
