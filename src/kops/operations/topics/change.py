"""The mutation that creates, alters, grows and deletes topics together: compare-and-set, one request of each kind, read back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from kops.core.errors import KopsError, Refused, StateMoved
from kops.core.models import Setting, Topic
from kops.core.plan import Item, ItemResult, Plan, Status
from kops.core.topics.change import Changes, changes_of_json, still_to_alter
from kops.operations.protocol.aftermath import Traces
from kops.operations.protocol.engine import Mutation, failed
from kops.operations.services import Services
from kops.operations.topics.change_plan import NAME, guard_of, plan_changes
from kops.operations.topics.created import not_as_planned, verified_creation
from kops.operations.topics.delete import topic_again, verified_deletion, what_stays_lost
from kops.operations.topics.settle import settled


class ChangeTopics(Mutation):
    """Changes topics as its plan's arguments say (``Changes``)."""

    name: ClassVar[str] = NAME

    def locks(self, plan: Plan) -> Iterable[str]:
        """Name the topics."""
        return [f"topic {item.target}" for item in plan.changes]

    def check(self, services: Services, plan: Plan) -> None:
        """Refuse when a topic, or a setting that is to be changed, is no longer as planned."""
        changes = changes_of_json(plan.arguments)
        there = services.kafka.topics.existing(plan.guard["absent"])
        if there:
            raise StateMoved(f"created by somebody else since the plan was made: {', '.join(there)}", hint="run the command again")
        found = services.kafka.topics.existing((*changes.altered, *changes.delete))
        actual = guard_of(changes, found, services.kafka.topics.settings(found, missing_ok=True))["topics"]
        moved = [name for name, state in plan.guard["topics"].items() if actual.get(name) != state]
        if moved:
            raise StateMoved(
                f"changed, or deleted, since the plan was made: {', '.join(moved)}",
                hint="run the command again to plan from what is there now",
            )

    def apply(self, services: Services, plan: Plan) -> Iterator[ItemResult]:
        """Create, add partitions, alter, delete. A topic that did not grow is not altered either: it fails whole."""
        changes, kafka = changes_of_json(plan.arguments), services.kafka.topics
        items = {item.target: item for item in plan.changes}
        for name, error in kafka.create(changes.create).items():
            yield _result(items[name], error)
        grown = kafka.add_partitions(changes.grow)
        stuck = {name for name, error in grown.items() if error is not None}
        altered = kafka.alter({name: wanted for name, wanted in changes.alter.items() if name not in stuck})
        for name in changes.altered:
            yield _result(items[name], grown.get(name) or altered.get(name))
        for name, error in kafka.delete(changes.delete).items():
            yield _result(items[name], error)

    def verify(self, services: Services, plan: Plan, results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        """Compare partitions and settings with what was asked for, and see that what was deleted is gone."""
        changes, guard = changes_of_json(plan.arguments), plan.guard["topics"]

        def look() -> tuple[ItemResult, ...]:
            found = services.kafka.topics.existing(result.target for result in results)
            settings = services.kafka.topics.settings(found, missing_ok=True)
            return tuple(_verified(one, changes, guard, found.get(one.target), settings.get(one.target, {})) for one in results)

        return settled(look)

    def resume(self, services: Services, plan: Plan) -> Plan:
        """Return the plan for what is not yet up to date, on those of the topics that are still the same."""
        changes = changes_of_json(plan.arguments)
        names = [*(topic.name for topic in changes.create), *changes.altered, *changes.delete]
        found = services.kafka.topics.existing(names)
        same = {name for name, state in plan.guard["topics"].items() if name in found and found[name].topic_id == state["topic_id"]}
        left = Changes(
            create=tuple(topic for topic in changes.create if topic.name not in found),
            alter={name: wanted for name, wanted in changes.alter.items() if name in same},
            grow={name: n for name, n in changes.grow.items() if name in same and len(found[name].partitions) < n},
            delete=tuple(name for name in changes.delete if name in same),
        )
        return plan_changes(services, left, warnings=_gone([name for name in changes.altered if name not in same]))

    def traces(self, plan: Plan, results: Sequence[ItemResult]) -> Traces:
        """Look at what was created: records may come."""
        done = {result.target for result in results if result.status is Status.DONE}
        return Traces(logs=tuple(topic.name for topic in changes_of_json(plan.arguments).create if topic.name in done))

    def can_be_undone(self, plan: Plan) -> bool:
        """Partitions cannot be taken away again; everything else can be."""
        changes = changes_of_json(plan.arguments)
        return bool(changes.create or changes.alter or changes.delete)

    def invert(self, services: Services, plan: Plan, results: Sequence[ItemResult]) -> Plan:
        """Return the plan that restores settings ("not set" too), deletes what was created, and creates what was deleted, empty.

        :raises Refused: when only partitions were added, or nothing is there to take back
        """
        changes, done = _done(plan, results), {item.target: item for item in plan.changes}
        names = [*(topic.name for topic in changes.create), *changes.altered, *changes.delete]
        found = services.kafka.topics.existing(names)
        _refuse_created_anew(changes, found, results)
        lost = [item for name in changes.delete if name not in found for item in (done[name],)]
        guard = plan.guard["topics"]
        same = [name for name in changes.alter if name in found and found[name].topic_id == guard[name]["topic_id"]]
        settings = services.kafka.topics.settings(same)
        back = Changes(
            create=tuple(topic_again(item) for item in lost),
            alter={name: guard[name]["settings"] for name in same},
            delete=tuple(topic.name for topic in changes.create if topic.name in found),
        )
        if not (back.create or back.alter or back.delete):
            grown = f": Kafka cannot take partitions away from {', '.join(changes.grow)}" if changes.grow else ""
            raise Refused(f"there is nothing that can be undone{grown}", hint=_instead(changes), topics=names)
        strayed = {name: _set_since(settings[name], changes.alter[name], guard[name]["settings"]) for name in same}
        losses = tuple(f"{name} was changed since: {', '.join(found)}" for name, found in strayed.items() if found)
        warnings = [f"{', '.join(changes.grow)}: the partitions that were added stay"] if changes.grow else []
        warnings += _gone([name for name in changes.alter if name not in same])
        return replace(plan_changes(services, back, warnings=(*warnings, *what_stays_lost(lost))), losses=losses)

    def messages(self, services: Services, plan: Plan, results: Sequence[ItemResult]) -> tuple[str, ...]:  # noqa: ARG002 - the contract
        """Say what undo cannot do."""
        done = {result.target for result in results if result.status is Status.DONE}
        changes = changes_of_json(plan.arguments)
        texts = []
        if done & set(changes.grow):
            texts.append("undo does not take the added partitions away: Kafka cannot")
        if any(item.before["records"] for item in plan.changes if item.action == "delete" and item.target in done):
            texts.append("undo makes deleted topics again with the same settings; their records do not come back")
        return tuple(texts)


CHANGE = ChangeTopics()


def _result(item: Item, error: KopsError | None) -> ItemResult:
    return ItemResult(item.target, Status.DONE) if error is None else failed(item, error)


def _verified(
    result: ItemResult, changes: Changes, guard: Mapping[str, Any], found: Topic | None, settings: Mapping[str, Setting]
) -> ItemResult:
    name = result.target
    if name in changes.delete:
        return verified_deletion(result, guard[name]["topic_id"], found)
    if result.status not in (Status.DONE, Status.UNKNOWN):
        return result
    new = next((topic for topic in changes.create if topic.name == name), None)
    if new is not None:
        return verified_creation(result, new, found, settings)
    if found is None:
        return not_as_planned(result, "it no longer exists")
    left = still_to_alter(settings, changes.alter.get(name, {}))
    wrong = [f"{key} is {settings[key].value if key in settings else 'not set'}" for key in left]
    if name in changes.grow and len(found.partitions) != changes.grow[name]:
        wrong.append(f"{len(found.partitions)} partitions")
    if wrong:
        return result if result.status is Status.UNKNOWN else not_as_planned(result, "; ".join(wrong))
    return ItemResult(name, Status.DONE)


def _done(plan: Plan, results: Sequence[ItemResult]) -> Changes:
    """Return the changes that were made, or may have been."""
    not_done = {result.target for result in results if result.status in (Status.FAILED, Status.SKIPPED)}
    changes = changes_of_json(plan.arguments)
    return replace(
        changes,
        create=tuple(topic for topic in changes.create if topic.name not in not_done),
        alter={name: wanted for name, wanted in changes.alter.items() if name not in not_done},
        grow={name: n for name, n in changes.grow.items() if name not in not_done},
        delete=tuple(name for name in changes.delete if name not in not_done),
    )


def _refuse_created_anew(changes: Changes, found: Mapping[str, Topic], results: Sequence[ItemResult]) -> None:
    ids = {result.target: (result.value or {}).get("topic_id") for result in results}
    other = [new.name for new in changes.create if new.name in found and ids.get(new.name) not in (None, found[new.name].topic_id)]
    if other:
        raise Refused(f"deleted and created again since: {', '.join(other)}", hint="`kops topics delete` deletes what is there now")


def _set_since(now: Mapping[str, Setting], wanted: Mapping[str, str | None], before: Mapping[str, str | None]) -> list[str]:
    """Return the settings that are neither as they were set nor as before: somebody else's."""
    strayed = set(still_to_alter(now, wanted)) & set(still_to_alter(now, before))
    return [f"{name}={now[name].value if name in now else 'not set'}" for name in sorted(strayed)]


def _gone(names: Sequence[str]) -> list[str]:
    return [f"{', '.join(names)}: deleted or recreated since: left alone"] if names else []


def _instead(changes: Changes) -> str:
    return "a new topic with fewer partitions can be filled from this one" if changes.grow else "`kops topics describe` shows what is there"
