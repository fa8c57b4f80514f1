"""The mutation of changelogs: append what the stage holds, read it back, take it back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, ClassVar

from kops.core.errors import KopsError, Refused
from kops.core.models import TopicPartition
from kops.core.plan import Item, ItemResult, Plan, Status
from kops.operations.offsets_items import committed_of_json, partition_of, verified
from kops.operations.protocol import Mutation, compare_guard, failed
from kops.operations.services import Services
from kops.operations.state.appending import read_back_judged, target_of, written_results
from kops.operations.state.completeness import before_starting
from kops.operations.state.cut import refuse_alive
from kops.operations.state.engine import Engine, start_engine
from kops.operations.state.guard import guard_of, log_ends
from kops.operations.state.tail import wait_until_stable


class Rebuild(Mutation):
    """Appends staged records to the changelogs of an application without members."""

    name: ClassVar[str] = "state.rebuild"

    def check(self, services: Services, plan: Plan) -> None:
        """Refuse when the application runs, went on, or its changelogs grew."""
        refuse_running(services, plan)
        compare_guard(plan, _guard_now(services, plan), f"the application {plan.arguments['application']} or one of its changelogs")

    def apply(self, services: Services, plan: Plan) -> Iterator[ItemResult]:
        """Write every store's records, then move the committed offsets when the plan does."""
        engine = start_engine(services, plan.arguments["master"])
        items = {item.target: item for item in plan.changes}
        clean = True
        for name, store in plan.arguments["stores"].items():
            if store["contents"]:
                for result in _append(engine, plan, name, items):
                    clean = clean and result.status is Status.DONE
                    yield result
        if plan.arguments["commit"]:
            yield from _commit(services, plan, items) if clean else _not_moved(plan, items)

    def verify(self, services: Services, plan: Plan, results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        """Read back what was appended, and the committed offsets."""
        engine = start_engine(services, plan.arguments["master"])
        wrong: dict[str, str] = {}
        for name, store in plan.arguments["stores"].items():
            if store["contents"]:
                services.progress.step(f"reading {store['changelog']} back")
                wrong |= _unlike(engine, plan, name)
        committed = committed_of_json(plan.arguments["commit"])
        found = services.kafka.groups.committed([plan.arguments["application"]])[plan.arguments["application"]]
        return tuple(
            verified(result, committed, found) if partition_of(result.target) in committed else read_back_judged(result, wrong)
            for result in results
        )

    def invert(self, services: Services, plan: Plan, results: Sequence[ItemResult]) -> Plan:  # noqa: ARG002 - all of it goes back
        """Return the plan that writes what was there before: the same stage, the other way round."""
        from kops.spark.difference import to_append
        from kops.spark.stage import contents_of, read_stage

        refuse_running(services, plan)
        engine = start_engine(services, plan.arguments["master"])
        backwards = not plan.arguments["backwards"]
        stores = {}
        for name, store in plan.arguments["stores"].items():
            _refuse_without_stage(engine, store)
            contents = contents_of(to_append(read_stage(engine.session, store["stage"]), backwards=backwards)) if store["contents"] else {}
            stores[name] = {**store, "contents": {str(number): asdict(content) for number, content in contents.items()}}
        arguments = {
            **plan.arguments,
            "backwards": backwards,
            "stores": stores,
            "commit": plan.arguments["prior"],
            "prior": plan.arguments["commit"],
        }
        ends = log_ends(services, [store["changelog"] for store in stores.values()])
        items = tuple(_inverse_item(item, ends) for item in plan.changes)
        summary = f"take back the rebuild of {plan.arguments['application']}: write what its changelogs held before"
        undo = replace(plan, summary=summary, items=items, arguments=arguments, warnings=(), notes=())
        return replace(undo, guard=_guard_now(services, undo))

    def resume(self, services: Services, plan: Plan) -> Plan:
        """Return the plan to write all of the stage again: the last record of a key counts, so twice is once.

        :raises StateMoved: when the application has gone on since
        """
        refuse_running(services, plan)
        now = _guard_now(services, plan)
        ends = {"changelog_ends": plan.guard["changelog_ends"]}
        compare_guard(plan, {**now, **ends}, f"the application {plan.arguments['application']}")
        for store in plan.arguments["stores"].values():
            _refuse_without_stage(start_engine(services, plan.arguments["master"]), store)
        return replace(plan, guard=now)

    def messages(self, services: Services, plan: Plan, results: Sequence[ItemResult]) -> tuple[str, ...]:  # noqa: ARG002 - the contract
        """Say what to do next."""
        if any(result.status is not Status.DONE for result in results):
            return ("run the same command again: what is right already is recognised",)
        application = plan.arguments["application"]
        if plan.arguments.get("backwards"):
            return (f"the changelogs of {application} hold what they held before the rebuild",)
        return before_starting(application, plan.arguments.get("open", ()))


REBUILD = Rebuild()


def refuse_running(services: Services, plan: Plan) -> None:
    """Refuse while the application has members."""
    if plan.guard["state"] != "ABSENT":
        application = plan.arguments["application"]
        refuse_alive(services.kafka.groups.describe([application])[application])


def _guard_now(services: Services, plan: Plan) -> dict[str, Any]:
    changelogs = [store["changelog"] for store in plan.arguments["stores"].values()]
    return guard_of(services, plan.arguments["application"], changelogs, plan.guard["topics"])


def _append(engine: Engine, plan: Plan, name: str, items: Mapping[str, Item]) -> Iterator[ItemResult]:
    """Write one store's records and yield a result for each partition."""
    from kops.spark.writer import write_stage

    store, arguments = plan.arguments["stores"][name], plan.arguments
    _refuse_without_stage(engine, store)
    ends = _ends_of(plan, store["changelog"])
    target = target_of(engine, plan, name, len(ends))
    total = sum(content["records"] for content in store["contents"].values())
    with engine.writing(ends, total):
        written = write_stage(engine.session, store["stage"], target, backwards=arguments["backwards"])
    yield from written_results(store, written, items, "run it again: what was written is recognised")


def _unlike(engine: Engine, plan: Plan, name: str) -> dict[str, str]:
    """Return the changelog partitions of a store whose new records are not those of the stage, and how."""
    from kops.spark.difference import to_append
    from kops.spark.failures import explained
    from kops.spark.readback import unlike
    from kops.spark.source import TopicRange
    from kops.spark.stage import Content, read_stage

    store, exactly_once = plan.arguments["stores"][name], plan.arguments["exactly_once"]
    topic, before = store["changelog"], _ends_of(plan, store["changelog"])
    after = log_ends(engine.services, [topic])
    if exactly_once:
        wait_until_stable(engine.services, after)
    tail = TopicRange(topic, {partition.partition: (before[partition], end) for partition, end in after.items()}, exactly_once)
    wanted = to_append(read_stage(engine.session, store["stage"]), backwards=plan.arguments["backwards"])
    fingerprints = {int(number): Content(**content).fingerprint for number, content in store["contents"].items()}
    with explained(f"read {topic} back"), engine.reading(tail):
        found = unlike(engine.kafka(), tail, wanted, fingerprints)
    return {f"{topic}:{number}": how for number, how in found.items()}


def _commit(services: Services, plan: Plan, items: Mapping[str, Item]) -> Iterator[ItemResult]:
    """Move the application to where its state is now."""
    group, groups = plan.arguments["application"], services.kafka.groups
    wanted = committed_of_json(plan.arguments["commit"])
    outcome: dict[TopicPartition, KopsError | None] = groups.commit(group, {p: found for p, found in wanted.items() if found})
    outcome |= groups.delete_offsets(group, [partition for partition, found in wanted.items() if found is None])
    for partition, error in outcome.items():
        item = items[str(partition)]
        yield failed(item, error) if error else ItemResult(item.target, Status.DONE, value=item.after)


def _not_moved(plan: Plan, items: Mapping[str, Item]) -> Iterator[ItemResult]:
    for target in plan.arguments["commit"]:
        yield ItemResult(items[target].target, Status.SKIPPED)


def _ends_of(plan: Plan, topic: str) -> dict[TopicPartition, int]:
    ends = {partition_of(target): end for target, end in plan.guard["changelog_ends"].items()}
    return {partition: end for partition, end in ends.items() if partition.topic == topic}


def _inverse_item(item: Item, ends: Mapping[TopicPartition, int]) -> Item:
    if item.action != "append":
        action = "delete" if item.before is None else "move"
        return Item(item.target, action, item.after, item.before, "where it was before")
    end = ends[partition_of(item.target)]
    return Item(item.target, "append", end, end + item.after - item.before, "what it held before")


def _refuse_without_stage(engine: Engine, store: Mapping[str, Any]) -> None:
    from pathlib import Path

    if "://" not in store["stage"] and engine.is_local and not Path(store["stage"]).is_dir():
        raise Refused(f"the staged records of {store['changelog']} are gone: {store['stage']}", hint="plan the rebuild again")
