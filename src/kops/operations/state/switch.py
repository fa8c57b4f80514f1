"""Puts a whole state in place: internal topics, what is in the changelogs, committed offsets. In this order, and read back.

Restoring a snapshot, rebuilding into another application, and moving to another partition count are this one mutation; they
differ in what they plan. What is staged is written again without harm, so an interrupted one can be finished.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from kops.core.errors import NotFound, Refused, StateMoved
from kops.core.plan import Item, ItemResult, Plan, Severity, Status
from kops.operations.offsets.items import offset_of, partition_of
from kops.operations.protocol.aftermath import Traces
from kops.operations.protocol.engine import compare_guard, failed
from kops.operations.services import Services
from kops.operations.state.engine import start_engine
from kops.operations.state.guard import guard_of, log_ends, records_of
from kops.operations.state.rebuild import Rebuild, refuse_after_loss, refuse_running
from kops.operations.state.recreation import refuse_unless_recreatable
from kops.operations.state.switch_back import ends_after, store_back, undone
from kops.operations.state.switch_headers import append_with_headers, verified_with_headers
from kops.operations.state.switch_topics import (
    TopicChange,
    change_topics,
    changes_json,
    changes_of_json,
    left_to_do,
    topic_ids,
    verified_topic,
)
from kops.operations.topics.read_back import settled

GROW = "grow"


class Switch(Rebuild):
    """Makes topics, appends staged records, and commits offsets, for an application without members."""

    name: ClassVar[str] = "state.switch"

    def check(self, services: Services, plan: Plan) -> None:
        """Refuse when the application runs, went on, or its topics changed; and when what is to be written is not there."""
        refuse_running(services, plan)
        compare_guard(plan, guard_now(services, plan), f"the application {plan.arguments['application']} or one of its topics")
        _refuse_without_stages(plan)
        refuse_unless_recreatable(services, changes_of_json(plan.arguments["topics"]))

    def apply(self, services: Services, plan: Plan) -> Iterator[ItemResult]:
        """Change the topics, write the stores, let inputs grow, then commit."""
        items = {item.target: item for item in plan.changes}
        clean = True
        steps = (self._topics, self._stores, self._grow)
        for step in steps:
            if not clean:
                break
            for result in step(services, plan, items):
                clean = clean and result.status in (Status.DONE, Status.UNCHANGED)
                yield result
        if plan.arguments["commit"]:
            if clean:
                yield from super().apply(services, _part(plan, stores={}))
            else:
                yield from (ItemResult(target, Status.SKIPPED) for target in plan.arguments["commit"] if target in items)

    def read_back(self, services: Services, plan: Plan, results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        """Look at the topics, read back what was appended, and the committed offsets."""
        changes = {change.name: change for change in changes_of_json(plan.arguments["topics"])}
        grown = {f"{GROW} {name}" for name in plan.arguments[GROW]}
        topics = [result for result in results if result.target in changes]
        rest = [result for result in results if result.target not in changes and result.target not in grown]
        for name, store in plan.arguments["stores"].items():
            if store["contents"] and any(result.target.startswith(f"{store['changelog']}:") for result in rest):
                part = _part(plan, stores={name: store}, commit={})
                if store.get("with_headers"):
                    rest = verified_with_headers(start_engine(services, plan.arguments["master"]), part, name, rest)
                else:
                    rest = list(super().read_back(services, part, rest))
        rest = list(super().read_back(services, _part(plan, stores={}), rest))
        judged = {result.target: result for result in rest}
        if topics:
            seen = settled(lambda: tuple(verified_topic(services, changes[result.target], result) for result in topics))
            judged |= {result.target: result for result in seen}
        return tuple(judged.get(result.target, result) for result in results)

    def invert(self, services: Services, plan: Plan, results: Sequence[ItemResult]) -> Plan:
        """Return the plan that brings back the topics, the records and the offsets from before.

        :raises Refused: when a topic was recreated since, or inputs have grown, which Kafka cannot take back
        """
        refuse_running(services, plan)
        refuse_after_loss(plan)
        if plan.arguments[GROW]:
            self._refuse_grown(services, plan)
        now = topic_ids(services, changes_of_json(plan.arguments["topics"]))
        made = {result.target: (result.value or {}).get("topic_id") for result in results if result.target in now}
        back = []
        for change in changes_of_json(plan.arguments["topics"]):
            if now[change.name] is not None and now[change.name] not in (made.get(change.name) or now[change.name], change.topic_id):
                raise Refused(f"{change.name} was deleted and made again since", hint="see `kops journal`; there may be a later entry")
            back.append(undone(change, now[change.name]))
        topics = [change for change in back if change is not None]
        arguments = {
            **plan.arguments,
            "topics": changes_json(topics),
            "stores": {name: store_back(services, plan, store, topics) for name, store in plan.arguments["stores"].items()},
            "commit": self.offsets_back(services, plan, topics),
            "prior": plan.arguments["commit"],
            GROW: {},
        }
        return self._inverse(services, plan, arguments)

    def can_be_undone(self, plan: Plan) -> bool:
        """Tell that inputs that grew stay so, and with them all the rest."""
        return not plan.arguments[GROW] and super().can_be_undone(plan)

    def traces(self, plan: Plan, results: Sequence[ItemResult]) -> Traces:
        """Look at the topics too that are made or deleted."""
        found = super().traces(plan, results)
        return replace(found, logs=tuple(sorted({*found.logs, *(change.name for change in changes_of_json(plan.arguments["topics"]))})))

    def offsets_back(self, services: Services, plan: Plan, topics: Sequence[TopicChange]) -> dict[str, Any]:  # noqa: ARG002 - the contract
        """Return the commits that take a plan back; those of a topic that goes, go with it.

        :param topics: the changes that are taken back
        """
        gone = {change.name for change in topics if change.after is None}
        return {target: found for target, found in plan.arguments["prior"].items() if partition_of(target).topic not in gone}

    def resume(self, services: Services, plan: Plan) -> Plan:
        """Return the plan for what is left; what is staged is written again: the last record of a key counts, so twice is once.

        :raises StateMoved: when the application or somebody else has gone on since
        """
        refuse_running(services, plan)
        changes = left_to_do(services, changes_of_json(plan.arguments["topics"]))
        resumed = replace(plan, arguments={**plan.arguments, "topics": changes_json(changes)})
        now = guard_now(services, resumed)
        wanted = {target: found and found["offset"] for target, found in plan.arguments["commit"].items()}
        for target, here in now["committed"].items():
            if here not in (plan.guard["committed"].get(target), wanted.get(target)):
                raise StateMoved(
                    f"{plan.arguments['application']} has moved on in {target} since", hint="plan again from what is there now"
                )
        _refuse_without_stages(resumed)
        return replace(resumed, guard=now)

    def messages(self, services: Services, plan: Plan, results: Sequence[ItemResult]) -> tuple[str, ...]:
        """Say what to do next."""
        if all(change.after is None for change in changes_of_json(plan.arguments["topics"])) and plan.arguments["topics"]:
            return ()
        return super().messages(services, plan, results)

    def _topics(self, services: Services, plan: Plan, items: Mapping[str, Item]) -> Iterator[ItemResult]:
        yield from change_topics(services, changes_of_json(plan.arguments["topics"]), items)

    def _stores(self, services: Services, plan: Plan, items: Mapping[str, Item]) -> Iterator[ItemResult]:
        for name, store in plan.arguments["stores"].items():
            if not store["contents"]:
                continue
            part = _part(plan, stores={name: store}, commit={})
            if store.get("with_headers"):
                yield from append_with_headers(start_engine(services, plan.arguments["master"]), part, name, items)
            else:
                yield from super().apply(services, part)

    def _grow(self, services: Services, plan: Plan, items: Mapping[str, Item]) -> Iterator[ItemResult]:
        """Add partitions last: this alone cannot be undone."""
        wanted = plan.arguments[GROW]
        sizes = {name: len(topic.partitions) for name, topic in services.kafka.topics.existing(wanted).items()}
        errors = services.kafka.topics.add_partitions({name: total for name, total in wanted.items() if sizes.get(name) != total})
        for name in wanted:
            target, error = f"{GROW} {name}", errors.get(name)
            yield ItemResult(target, Status.DONE) if error is None else failed(items[target], error)

    def _refuse_grown(self, services: Services, plan: Plan) -> None:
        sizes = {name: len(topic.partitions) for name, topic in services.kafka.topics.existing(plan.arguments[GROW]).items()}
        grown = [name for name, total in plan.arguments[GROW].items() if sizes.get(name) == total]
        if grown:
            raise Refused(
                f"{', '.join(grown)} has grown, and Kafka takes no partitions away: the application cannot go back to fewer",
                hint="its state from before is kept: see `kops journal show`",
            )

    def _inverse(self, services: Services, plan: Plan, arguments: dict[str, Any]) -> Plan:
        """Return the plan of these arguments, its items from what is there now."""
        changes = changes_of_json(arguments["topics"])
        refuse_unless_recreatable(services, changes)
        held = records_of(services, [change.name for change in changes])
        items = [change.item(f"as it was before; {held[change.name]}" if change.name in held else "as it was before") for change in changes]
        ends = ends_after(services, arguments)
        committed = services.kafka.groups.committed([plan.arguments["application"]], stable=True)[plan.arguments["application"]]
        for store in arguments["stores"].values():
            for number, content in sorted(store["contents"].items(), key=lambda pair: int(pair[0])):
                target = f"{store['changelog']}:{number}"
                items.append(Item(target, "append", ends[target], ends[target] + content["records"], "what it held before"))
        for target, found in arguments["commit"].items():
            before = offset_of(committed.get(partition_of(target)))
            items.append(Item(target, "delete" if found is None else "move", before, found and found["offset"], "where it was before"))
        replaces = any(change.before for change in changes)
        application = plan.arguments["application"]
        undo = replace(
            plan,
            summary=f"undo: {plan.summary}",
            items=tuple(items),
            arguments=arguments,
            severity=Severity.SEVERE if replaces else plan.severity,
            confirm=application if replaces else plan.confirm,
            warnings=local_state_warning(application) if changes else (),
            notes=(),
        )
        return replace(undo, guard=guard_now(services, undo))


def local_state_warning(application: str) -> tuple[str, ...]:
    """Return what the operator has to do when changelogs were recreated: nothing tells a local store to forget."""
    return (f"delete the local state (state.dir) of {application} on every instance before it starts: it belongs to other changelogs",)


def guard_now(services: Services, plan: Plan) -> dict[str, Any]:
    """Return what must not move between the plan and the change, as it is now."""
    changes = changes_of_json(plan.arguments["topics"])
    ids = topic_ids(services, changes)
    changelogs = {store["changelog"] for store in plan.arguments["stores"].values()}
    fresh = {change.name for change in changes if not change.done}
    try:
        known = guard_of(services, plan.arguments["application"], changelogs - fresh, plan.arguments["watched"])
    except NotFound as missing:
        raise StateMoved(missing.message, hint="a changelog was deleted since the plan was made; plan again") from missing
    replaced = [change.name for change in changes if not change.done and ids[change.name] is not None]
    return {
        **known,
        "topic_ids": ids,
        "replaced_ends": {str(partition): end for partition, end in log_ends(services, replaced).items()} if replaced else {},
    }


def _part(plan: Plan, *, stores: Mapping[str, Any], commit: Mapping[str, Any] | None = None) -> Plan:
    """Return the plan as ``Rebuild`` takes it: some stores of one direction, and where each of their partitions began."""
    backwards = any(store.get("backwards") for store in stores.values())
    ends = dict(plan.guard["changelog_ends"])
    for change in changes_of_json(plan.arguments["topics"]):
        if change.after is not None and not change.done:
            ends |= {f"{change.name}:{number}": 0 for number in range(change.after.partitions or 0)}
    arguments = {**plan.arguments, "stores": dict(stores), "backwards": backwards}
    if commit is not None:
        arguments["commit"] = dict(commit)
    return replace(plan, arguments=arguments, guard={**plan.guard, "changelog_ends": ends})


def _refuse_without_stages(plan: Plan) -> None:
    """Refuse when something staged is gone: what is to be written, and what a replaced changelog held before."""
    for store in plan.arguments["stores"].values():
        stages = [store["stage"]] if store["contents"] else []
        stages += [store["prior_stage"]] if store.get("prior_contents") else []
        for stage in stages:
            if stage and "://" not in stage and not Path(stage).is_dir():
                raise Refused(f"the staged records of {store['changelog']} are gone: {stage}", hint="plan it again")
