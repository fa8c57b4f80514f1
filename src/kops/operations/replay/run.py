"""The mutation that replays: sends what is left, reads it back, and undoes it where that is possible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from kops.core.errors import KopsError, OperationFailed, Refused, StateMoved, TimedOut, Unreachable
from kops.core.findings import counted
from kops.core.models import TopicPartition
from kops.core.plan import Arguments, Item, ItemResult, Json, Plan, Status
from kops.core.rights import missing_right
from kops.gateways.wire.connections import patiently
from kops.operations.archive.source import refuse_lost_records, source_of
from kops.operations.offsets.items import partition_of
from kops.operations.protocol.mutation import Mutation, failed
from kops.operations.replay.arguments import Given, ReplayArguments
from kops.operations.replay.progress import begin_progress, finished_by, forget_progress, known_producers, progress_of, refuse_forgotten
from kops.operations.replay.proof import OTHERS, TargetContents, proven, read_targets
from kops.operations.replay.work import Work, ranges_left, reached
from kops.operations.services import Services
from kops.operations.topics.plan import recreated
from kops.operations.topics.truncate import TruncateTopics, Truncation, below_of_json, plan_truncate_at

if TYPE_CHECKING:
    from kops.spark.replay.jobs import Outcome
    from kops.spark.replay.sender import PartitionProgress


_NO_TRANSACTIONS = "WRITE on transactional ids that begin with kops-replay- is missing; --guarantee at-least-once does without transactions"


class Replay(Mutation[Given]):
    name: ClassVar[str] = "replay.run"
    arguments: ClassVar[type[Arguments] | None] = ReplayArguments
    resume_command: ClassVar[str] = "kops replay resume"

    def locks(self, plan: Plan[Given]) -> Iterable[str]:
        """Lock the replay: the same one is not run twice at once."""
        return [plan.arguments.replay]

    def check(self, services: Services, plan: Plan[Given]) -> None:
        """Refuse when a target was recreated or is no longer empty, or records of the range are gone."""
        given = plan.arguments
        source = source_of(services, given.source_context)
        found = services.kafka.topics.existing(given.targets)
        for name, topic_id in plan.guard["topics"].items():
            if name not in found or found[name].topic_id != topic_id or len(found[name].partitions) != given.targets[name]:
                raise StateMoved(f"{name} was deleted, recreated or extended since the plan was made", hint="run the command again")
        finished = finished_by(services, plan)
        if finished is not None:
            raise StateMoved(f"this replay was finished by {finished.id}", hint="run the command again to send everything again")
        done = progress_of(services, given.replay, given.ranges, stable=False, settled=given.resumed)
        if given.resumed:
            refuse_forgotten(services, plan, done)
        else:
            if done:
                raise StateMoved("this plan was carried out before", hint="`kops journal list` shows it; `kops replay resume ID` continues")
            _refuse_filled(services, plan.guard["empty_ends"])
        left = ranges_left(given, done)
        refuse_lost_records(
            source, given.source, {part.partition: max(part.start, reached(done, part.partition, part.start)) for part in left}
        )

    def apply(self, services: Services, plan: Plan[Given]) -> Iterator[ItemResult]:
        given = plan.arguments
        done = progress_of(services, given.replay, given.ranges, stable=False) if given.resumed else {}
        begin_progress(services, plan, [number for number in given.ranges if number not in done])
        parts = ranges_left(given, done)
        failure: KopsError | None = None
        outcomes: list[Outcome] = []
        if parts:
            work = Work(services, given)
            services.progress.step(f"sending {given.source}")
            places = [TopicPartition(topic, number) for topic, count in given.targets.items() for number in range(count)]
            ends = {place: bound.log_end_offset for place, bound in services.kafka.offsets.bounds(places).items()}
            total = sum(part.end - reached(done, part.partition, part.start) for part in parts)
            try:
                with work.sending(ends, total):
                    outcomes = work.send(parts, done)
            except KopsError as broken:
                failure = broken
        # While no broker answers, it is asked again: what was sent is there and has to be reported.
        after = patiently(
            lambda: progress_of(services, given.replay, given.ranges), again=lambda error: isinstance(error, (Unreachable, TimedOut))
        )
        by_partition = {outcome.partition: outcome for outcome in outcomes}
        after |= _reported(plan, after, outcomes)
        full = given.limit is not None and sum(sent.records for sent in after.values()) >= given.limit
        for item in plan.changes:
            number = partition_of(item.target).partition
            yield _result(item, after.get(number), by_partition.get(number), failure, plan, full=full)

    def verify(self, services: Services, plan: Plan[Given], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        found = proven(services, plan, results)
        if all(result.status is Status.DONE for result in found):
            forget_progress(services, plan.arguments.replay, plan.arguments.ranges)
        return found

    def invert(self, services: Services, plan: Plan[Given], results: Sequence[ItemResult]) -> Plan:
        """Return the plan that deletes what was sent.

        :raises Refused: when the targets had records before, or have none of the replay
        """
        given, names = plan.arguments, ", ".join(plan.arguments.targets)
        done = progress_of(services, given.replay, given.ranges, stable=False, settled=False)
        producers = {producer for result in results if isinstance(result.value, dict) for producer in result.value["producers"]}
        producers |= {producer for sent in done.values() for producer in sent.producers} | known_producers(services, plan)
        _refuse_other_topics(services, plan)
        seen = read_targets(services, plan, sorted(producers))
        ours, others = (sum(getattr(each, name) for each in seen.found.values()) for name in ("records", "others"))
        if not ours and (others or not given.own):
            raise Refused(f"nothing of the replay is in {names}: there is nothing to undo", records=0, producers=sorted(producers))
        if not given.own:
            since = given.no_undo or "it had records before"
            sent = f"the {counted(ours, 'record')} that the replay sent to {names}"
            raise Refused(
                f"{sent} cannot be taken out: {since}, and Kafka deletes from the start only",
                hint="readers have to leave them out; `kops journal show ID` says which producers wrote them",
                records=ours,
                producers=sorted(producers),
            )
        back = plan_truncate_at(services, seen.ends)  # records that arrived after the check stay
        arguments = ReplayTruncation(back.arguments.below, given.replay, tuple(given.ranges))
        summary = f"undo the replay: {back.summary}"
        return replace(back, operation=UndoReplay.name, summary=summary, arguments=arguments, losses=tuple(_losses(seen)))

    def can_be_undone(self, plan: Plan[Given]) -> bool:
        """Whether the targets were empty before, and allow records to be deleted."""
        return bool(plan.arguments.own)

    def resume(self, services: Services, plan: Plan[Given]) -> Plan:
        """Return the plan for what is left, from where the records in the target show that it stopped."""
        done = progress_of(services, plan.arguments.replay, plan.arguments.ranges, stable=False)
        refuse_forgotten(services, plan, done)
        items = tuple(_left(item, done.get(partition_of(item.target).partition)) for item in plan.items)
        sent = sum(each.records for each in done.values())
        open_ = sum(item.after - item.before for item in items if item.changes)
        so_far = f"{counted(sent, 'record')} {'was' if sent == 1 else 'were'} sent before, up to {open_:,} left"
        summary = f"continue the replay of {plan.arguments.source}: {so_far}"
        return replace(plan, items=items, summary=summary, arguments=replace(plan.arguments, resumed=True), warnings=())

    def messages(self, services: Services, plan: Plan[Given], results: Sequence[ItemResult]) -> tuple[str, ...]:  # noqa: ARG002 - the contract
        if any(result.status is not Status.DONE for result in results):
            return ("`kops replay resume ID` continues where it stopped, once the reason is fixed",)
        values = [result.value for result in results if isinstance(result.value, dict)]
        records = sum(value["records"] for value in values)
        there = "one with the same content is" if records == 1 else "as many with the same content are"
        others = sum(value.get(OTHERS, 0) for value in values)
        beside = f"; {counted(others, 'record')} of other producers came there since the plan was made" if others else ""
        known = sum(plan.arguments.of_times.values())
        all_of = f"all {known:,} that the range of time had when it was planned; " if known and known == records else ""
        return (f"proven: {counted(records, 'record')} {'was' if records == 1 else 'were'} sent, {all_of}{there} in the target{beside}",)


REPLAY: Replay[ReplayArguments] = Replay()


def _reported(plan: Plan[Given], after: Mapping[int, PartitionProgress], outcomes: Sequence[Outcome]) -> dict[int, PartitionProgress]:
    """Return what tasks committed and the coordinator does not report yet: it leaves out a group's first offset."""
    from kops.spark.replay.sender import PartitionProgress

    starts = {number: start for number, (start, _) in plan.arguments.ranges.items()}
    return {
        each.partition: PartitionProgress(each.reached, each.records, each.fingerprint, each.producers)
        for each in outcomes
        if each.reached > reached(after, each.partition, starts[each.partition])
    }


def _refuse_filled(services: Services, empty_ends: Mapping[str, int]) -> None:
    if not empty_ends:
        return
    bounds = services.kafka.offsets.bounds(partition_of(place) for place in empty_ends)
    filled = [str(place) for place, bound in bounds.items() if bound.log_end_offset != empty_ends[str(place)]]
    if filled:
        raise StateMoved(f"{filled[0]} was empty when the plan was made, and is not now", hint="run the command again")


def _left(item: Item, sent: PartitionProgress | None) -> Item:
    if sent is None or not item.changes:
        return item
    if sent.offset >= item.after:
        return Item(item.target, "prove", sent.offset, item.after, "sent before: read back")
    return replace(item, before=sent.offset)


def _result(
    item: Item, sent: PartitionProgress | None, outcome: Outcome | None, failure: KopsError | None, plan: Plan[Given], *, full: bool
) -> ItemResult:
    from kops.spark.replay.sender import PartitionProgress

    sent = sent or PartitionProgress(item.before)
    value = {
        "records": sent.records,
        "next_offset": sent.offset,
        "fingerprint": f"{sent.fingerprint:016x}",
        "producers": list(sent.producers),
    }
    if sent.offset >= item.after or full:
        return ItemResult(item.target, Status.DONE, value=value)
    if outcome is not None and outcome.at is not None:
        why = f"the target does not take {plan.arguments.source}:{outcome.partition} at offset {outcome.at}: {outcome.error}"
        hint = "what was before it is in the target; let the target take it (max.message.bytes), then `kops replay resume ID`"
        error: KopsError = Refused(why, hint=hint, partition=outcome.partition, offset=outcome.at)
    elif failure is not None:
        error = failure
    else:
        reason = outcome.error if outcome and outcome.error else "it was not begun"
        hint = _NO_TRANSACTIONS if "TransactionalIdAuthorization" in reason else "`kops replay resume ID`"
        right = missing_right(*reason.partition(": ")[::2])
        lacks = f" (lacks {right})" if right else ""
        error = OperationFailed(f"{item.target} is sent up to offset {sent.offset} only: {reason}{lacks}", hint=hint)
    return failed(item, error)._replace(value=value)


@dataclass(frozen=True)
class ReplayTruncation(Truncation):
    """The records of a replay, and the replay and partitions whose progress is deleted with them."""

    replay: str
    partitions: tuple[int, ...]

    def as_json(self) -> Json:
        return {**super().as_json(), "replay": self.replay, "partitions": list(self.partitions)}

    @classmethod
    def of_json(cls, body: Json) -> ReplayTruncation:
        return cls(below_of_json(body["below"]), body["replay"], tuple(body["partitions"]))


class UndoReplay(TruncateTopics[ReplayTruncation]):
    """Deletes what a replay sent into topics of its own, and its progress."""

    name: ClassVar[str] = "replay.undo"
    arguments: ClassVar[type[Arguments]] = ReplayTruncation

    def apply(self, services: Services, plan: Plan[ReplayTruncation]) -> Iterator[ItemResult]:
        yield from super().apply(services, plan)
        forget_progress(services, plan.arguments.replay, plan.arguments.partitions)

    def resume(self, services: Services, plan: Plan[ReplayTruncation]) -> Plan[ReplayTruncation]:
        """Plan to delete what is left of the records; the progress goes with them."""
        back = super().resume(services, plan)
        items = tuple(replace(item, action="truncate") for item in back.items)  # also where nothing is left: the progress may be
        arguments = replace(plan.arguments, below=plan.arguments.below)
        return replace(
            back,
            operation=self.name,
            summary=plan.summary,
            items=items,
            guard=plan.guard | {"needs": back.guard["needs"]},
            arguments=arguments,
        )


UNDO = UndoReplay()


def _losses(seen: TargetContents) -> Iterator[str]:
    """Yield what is lost with the records of the replay: records of others among them, which Kafka cannot keep."""
    others: dict[str, int] = {}
    for place, found in seen.found.items():
        if found.others:
            others[place.topic] = others.get(place.topic, 0) + found.others
    for topic, count in sorted(others.items()):
        yield f"{counted(count, 'record')} of others in {topic}, among those of the replay, and Kafka deletes from the start only"


def _refuse_other_topics(services: Services, plan: Plan[Given]) -> None:
    """Refuse when a target was deleted and created again: its records now are not those of the replay.

    :raises StateMoved: naming it
    """
    there = services.kafka.topics.existing(plan.guard["topics"])
    other = recreated(there, plan.guard["topics"])
    if other:
        raise StateMoved(
            f"{', '.join(other)} was deleted, or created again, since the replay: what it sent is gone",
            hint="there is nothing to undo",
        )
