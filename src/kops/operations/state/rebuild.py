"""The mutation of changelogs: append what the stage holds, read it back, take it back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, ClassVar

from kops.core.errors import KopsError, Refused, VerificationFailed
from kops.core.models import Committed, TopicPartition
from kops.core.plan import Item, ItemResult, Plan, Status
from kops.operations.offsets.items import committed_of_json, offset_of, partition_of, verified
from kops.operations.protocol.aftermath import Traces
from kops.operations.protocol.engine import Mutation, compare_guard, failed
from kops.operations.services import Services
from kops.operations.state.appending import read_back_judged, target_of, written_results
from kops.operations.state.completeness import before_starting
from kops.operations.state.cut import refuse_alive
from kops.operations.state.engine import Engine, start_engine
from kops.operations.state.guard import guard_of, log_ends, meanwhile
from kops.operations.state.tail import wait_until_stable


class Rebuild(Mutation):
    """Appends staged records to the changelogs of an application without members."""

    name: ClassVar[str] = "state.rebuild"
    leaves_parts: ClassVar[bool] = True

    def locks(self, plan: Plan) -> Iterable[str]:
        """Name the group: its offsets, its state and its topics are changed by one kops at a time."""
        return (plan.arguments["application"],)

    def covers(self, plan: Plan, earlier: Plan) -> bool:
        """Tell whether every changelog of an earlier plan of this kind was looked at again."""
        if earlier.operation != plan.operation or earlier.arguments["application"] != plan.arguments["application"]:
            return False
        wanted = {store["changelog"] for store in earlier.arguments["stores"].values()}
        seen = {item.target for item in plan.items} | {item.target.rpartition(":")[0] for item in plan.items}
        return wanted <= seen

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
        """Read everything back, and look whether the application stood still all the time."""
        return (*self.read_back(services, plan, results), *_second_look(services, plan, results))

    def read_back(self, services: Services, plan: Plan, results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
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
        from kops.spark.staging.difference import to_append
        from kops.spark.staging.stage import contents_of, read_stage

        refuse_running(services, plan)
        refuse_after_loss(plan)
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
        committed = services.kafka.groups.committed([plan.arguments["application"]], stable=True)[plan.arguments["application"]]
        items = tuple(_inverse_item(item, ends, committed) for item in plan.changes)
        summary = f"undo the rebuild of {plan.arguments['application']}: write what its changelogs held before"
        undo = replace(plan, summary=summary, items=items, arguments=arguments, warnings=(), notes=())
        return replace(undo, guard=_guard_now(services, undo))

    def can_be_undone(self, plan: Plan) -> bool:
        """Tell that what was lost on the way back does not come back."""
        return not plan.losses

    def traces(self, plan: Plan, results: Sequence[ItemResult]) -> Traces:  # noqa: ARG002 - all of it
        """Look at the changelogs, and at where the application is."""
        changelogs = (store["changelog"] for store in plan.arguments["stores"].values())
        return Traces(logs=tuple(sorted(changelogs)), group=plan.arguments["application"])

    def offsets_in_the_middle(self, plan: Plan) -> dict[str, list[int | None]]:
        """Return where the application was, and where it was to be moved."""
        between: dict[str, list[int | None]] = {target: [offset] for target, offset in plan.guard["committed"].items()}
        for target, found in plan.arguments["commit"].items():
            between.setdefault(target, [None]).append(found and found["offset"])
        return between

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


def _second_look(services: Services, plan: Plan, results: Sequence[ItemResult]) -> Iterator[ItemResult]:
    """Yield a failure of the application itself when it did something while its state was being written."""
    if not any(result.status is Status.DONE for result in results):
        return
    said = meanwhile(services, plan)
    if said:
        application = plan.arguments["application"]
        error = VerificationFailed(
            f"while the state was written {'; '.join(said)}: its local state may be half of the old and half of the new",
            hint=f"stop {application} everywhere, delete its local state, then run the same command again",
        )
        yield ItemResult(application, Status.FAILED, error=error.as_json())


def _guard_now(services: Services, plan: Plan) -> dict[str, Any]:
    changelogs = [store["changelog"] for store in plan.arguments["stores"].values()]
    return guard_of(services, plan.arguments["application"], changelogs, plan.guard["topics"])


def _append(engine: Engine, plan: Plan, name: str, items: Mapping[str, Item]) -> Iterator[ItemResult]:
    """Write one store's records and yield a result for each partition."""
    from kops.spark.staging.writer import write_stage

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
    from kops.spark.driver.failures import explained
    from kops.spark.reading.contents import Content
    from kops.spark.reading.ranges import TopicRange
    from kops.spark.staging.difference import to_append
    from kops.spark.staging.readback import unlike
    from kops.spark.staging.stage import read_stage

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


def refuse_after_loss(plan: Plan) -> None:
    """Refuse to take back what took something with it: the state of then no longer fits the offsets of now."""
    if plan.losses:
        raise Refused(
            f"this undid a change although the application had moved on: {'; '.join(plan.losses)}",
            hint="`kops state verify` compares its state with its input, and `kops state rebuild` computes it again",
        )


def _inverse_item(item: Item, ends: Mapping[TopicPartition, int], committed: Mapping[TopicPartition, Committed]) -> Item:
    if item.action != "append":
        action = "delete" if item.before is None else "move"
        return Item(item.target, action, offset_of(committed.get(partition_of(item.target))), item.before, "where it was before")
    end = ends[partition_of(item.target)]
    return Item(item.target, "append", end, end + item.after - item.before, "what it held before")


def _refuse_without_stage(engine: Engine, store: Mapping[str, Any]) -> None:
    from pathlib import Path

    if "://" not in store["stage"] and engine.is_local and not Path(store["stage"]).is_dir():
        raise Refused(f"the staged records of {store['changelog']} are gone: {store['stage']}", hint="plan the rebuild again")
