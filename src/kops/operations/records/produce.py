"""Producing records: a mutation of data, so it is journalled and runs through the safety protocol; it cannot be undone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from kops.core.errors import AuthorizationFailed, KopsError, Refused, StateMoved, TimedOut, UsageProblem, VerificationFailed
from kops.core.findings import counted
from kops.core.models import NewRecord, Topic, TopicPartition
from kops.core.murmur2 import partition_for
from kops.core.plan import Arguments, Item, ItemResult, Json, Plan, Status
from kops.core.progress import NoProgress, Progress
from kops.core.rights import Right
from kops.core.stops import STOPS, kept_stops
from kops.core.topics.names import is_kafkas_own, require_names
from kops.operations.protocol.mutation import FinalMutation
from kops.operations.records.input import Entry
from kops.operations.services import Services

if TYPE_CHECKING:
    from kops.gateways.kafka.producing_stream import Sender

SHOWN_REASONS = 10
LARGEST = 1_048_588
TIMESTAMP_TYPE = "message.timestamp.type"


@dataclass
class ProduceRequest:
    """Records to produce, and how to send them.

    :param entries: read once
    :param source: where they come from, as shown to people: ``stdin``
    :param stopped: set when the input was broken or interrupted
    """

    entries: Iterable[Entry]
    source: str
    partitioner: str = "murmur2"
    acks: str = "all"
    progress: Progress = field(default_factory=NoProgress)
    stopped: BaseException | None = None


@dataclass(frozen=True, slots=True)
class ProduceArguments(Arguments):
    """The arguments of ``records.produce``: how the records were sent; the records themselves are not part of a plan."""

    source: str
    partitioner: str
    acks: str

    def as_json(self) -> Json:
        return {"source": self.source, "partitioner": self.partitioner, "acks": self.acks}

    @classmethod
    def of_json(cls, body: Json) -> ProduceArguments:
        return cls(body["source"], body["partitioner"], body["acks"])


def plan_produce(services: Services, topic: str, outgoing: ProduceRequest) -> Plan[ProduceArguments]:
    """Plan to produce the records of an input.

    :raises NotFound: when the topic does not exist
    :raises Refused: for Kafka's internal topics
    """
    if is_kafkas_own(topic):
        raise Refused(f"{topic} belongs to the brokers", hint="kops never produces to it")
    require_names([topic])
    found = _described(services, topic)
    _refuse_without_right(services, topic)
    return Plan(
        operation=ProduceRecords.name,
        summary=f"produce to {topic} what comes from {outgoing.source}",
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=(Item(topic, "produce", None, None, f"from {outgoing.source}"),),
        guard={topic: found.topic_id},
        arguments=ProduceArguments(outgoing.source, outgoing.partitioner, outgoing.acks),
    )


def count(services: Services, topic: str, outgoing: ProduceRequest) -> list[dict[str, Any]]:
    """Read the whole input and return how many records would go to which partition, without producing anything.

    :raises UsageProblem: when the input is broken
    """
    partitions = len(_described(services, topic).partitions)
    counts: Counter[int | None] = Counter()
    tombstones: Counter[int | None] = Counter()
    target = _target(services, topic)
    for where, record in outgoing.entries:
        target.refuse_time(where, topic, record)
        partition = record.partition
        _refuse_partition(where, topic, partition, partitions)
        if partition is None and record.key is not None and outgoing.partitioner == "murmur2":
            partition = partition_for(record.key, partitions)
        counts[partition] += 1
        tombstones[partition] += record.value is None
    order = sorted(counts, key=lambda partition: (partition is None, partition or 0))
    return [{"topic": topic, "partition": p, "records": counts[p], "tombstones": tombstones[p]} for p in order]


class ProduceRecords(FinalMutation[ProduceArguments]):
    """Produces the records of an input, once.

    :param outgoing: None in the registry of mutations: a saved plan has no records
    """

    name: ClassVar[str] = "records.produce"
    arguments = ProduceArguments
    no_undo: ClassVar[str] = "records that were produced cannot be undone: a log only grows"
    instead: ClassVar[str | None] = (
        "a key can be deleted by a tombstone where the topic is compacted: kops records produce TOPIC --key KEY --tombstone"
    )

    def __init__(self, outgoing: ProduceRequest | None = None) -> None:
        self._outgoing = outgoing

    def check(self, services: Services, plan: Plan[ProduceArguments]) -> None:
        if self._outgoing is None:
            raise Refused("a plan has no records to produce", hint="`kops records produce` reads them and sends them")
        for topic, topic_id in plan.guard.items():
            if _described(services, topic).topic_id != topic_id:
                raise StateMoved(f"{topic} was recreated since the plan was made", hint="run the command again")

    def apply(self, services: Services, plan: Plan[ProduceArguments]) -> Iterator[ItemResult]:
        """Send the whole input, wait for the acknowledgements, and yield a result per partition."""
        outgoing, topic = self._outgoing, plan.items[0].target
        assert outgoing is not None  # noqa: S101 - check() has refused
        target = _target(services, topic)
        sender = services.kafka.records.sender(topic, partitioner=outgoing.partitioner, acks=outgoing.acks, largest=target.largest)
        partitions = len(_described(services, topic).partitions)
        try:
            with kept_stops():
                for where, record in outgoing.entries:
                    _refuse_partition(where, topic, record.partition, partitions)
                    target.refuse_time(where, topic, record)
                    sender.send(record, where)
                    if sender.sent % 1000 == 0:
                        outgoing.progress.advance(sender.sent, None, "records")
        except BaseException as stopped:
            if not sender.sent or (isinstance(stopped, KopsError) and not isinstance(stopped, (UsageProblem, TimeNotKept))):
                raise
            outgoing.stopped = stopped
        yield from _results(topic, sender, sender.finish())
        if outgoing.stopped is not None:
            yield ItemResult(topic, Status.FAILED, error=_reason(outgoing.stopped, sender.sent))

    def resume(self, services: Services, plan: Plan[ProduceArguments]) -> Plan[ProduceArguments]:  # noqa: ARG002 - the contract
        """Refuse: the records are not in the journal, and how many of them were sent is not known.

        :raises Refused: always
        """
        topic = plan.items[0].target
        raise Refused(
            f"the journal has no records, and does not know how many of {plan.arguments.source} arrived in {topic}",
            hint=f"`kops records consume {topic}` shows what arrived: send what is missing, and not all of it again",
        )

    def can_be_finished(self, plan: Plan[ProduceArguments]) -> bool:  # noqa: ARG002 - the contract
        return False

    def verify(self, services: Services, plan: Plan[ProduceArguments], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        """Check that each log reaches the last acknowledged offset."""
        topic = plan.items[0].target
        ends = {
            result.target: TopicPartition(topic, int(result.target.rpartition(":")[2]))
            for result in results
            if result.status is Status.DONE and result.value["last_offset"] is not None
        }
        bounds = services.kafka.offsets.bounds_or_errors(ends.values())
        return tuple(_verified(result, bounds.get(ends[result.target])) if result.target in ends else result for result in results)


PRODUCE = ProduceRecords()


def _described(services: Services, topic: str) -> Topic:
    return services.kafka.topics.describe([topic])[topic]


def _refuse_without_right(services: Services, topic: str) -> None:
    """Name the right to write before anything is sent: without it on any topic, the brokers deny a producer its id, which names none.

    :raises AuthorizationFailed: when brokers that report rights do not report it
    """
    rights = services.kafka.topics.rights([topic]).get(topic)
    if rights is not None and "WRITE" not in rights:
        raise Right("WRITE", f"topic {topic}").lacking(f"cannot produce to {topic}")


class TimeNotKept(Refused):
    """A record with a time of its own, which the topic would replace by that of its appending."""


@dataclass(frozen=True)
class _Target:
    """What the topic makes of records; Kafka's defaults if its settings may not be read.

    :param largest: bytes of the largest record that it accepts
    :param appends_time: ``message.timestamp.type`` is LogAppendTime
    """

    largest: int = LARGEST
    appends_time: bool = False

    def refuse_time(self, where: str, topic: str, record: NewRecord) -> None:
        if self.appends_time and record.timestamp is not None:
            raise TimeNotKept(
                f"{where}: {topic} has {TIMESTAMP_TYPE}=LogAppendTime: the record would get the time of its appending and not its own",
                hint="leave timestamp, timestamp_ms and --timestamp out, or set the topic to CreateTime",
            )


def _target(services: Services, topic: str) -> _Target:
    try:
        found = services.kafka.topics.settings([topic])[topic]
    except AuthorizationFailed:
        return _Target()
    largest, kind = (found.get(name) for name in ("max.message.bytes", TIMESTAMP_TYPE))
    return _Target(int(largest.value) if largest and largest.value else LARGEST, kind is not None and kind.value == "LogAppendTime")


def _refuse_partition(where: str, topic: str, partition: int | None, partitions: int) -> None:
    if partition is not None and partition >= partitions:
        raise UsageProblem(
            f"{where}: {topic} has no partition {partition}",
            hint=f"it has {partitions}: 0 to {partitions - 1}; --repartition leaves the choice to the partitioner",
        )


def _results(topic: str, sender: Sender, left: int) -> Iterator[ItemResult]:
    for partition, each in sorted(sender.delivered.items()):
        offsets = {"first_offset": each.first, "last_offset": each.last} if each.last >= 0 else {"first_offset": None, "last_offset": None}
        yield ItemResult(f"{topic}:{partition}", Status.DONE, value={"records": each.records, **offsets})
    if sender.refused:
        first, reason = sender.reasons[0]
        more = f" (and {sender.refused - 1} more)" if sender.refused > 1 else ""
        reasons = [{"record": where, "message": error.message} for where, error in sender.reasons[:SHOWN_REASONS]]
        body = {**reason.as_json(), "message": f"{first}: {reason.message}{more}", "refused": sender.refused, "records": reasons}
        yield ItemResult(topic, Status.UNKNOWN if isinstance(reason, TimedOut) else Status.FAILED, error=body)
    if left:
        error = TimedOut(f"not acknowledged: {counted(left, 'record')}", hint="they may have arrived: look before sending them again")
        yield ItemResult(topic, Status.UNKNOWN, error=error.as_json())
    if not (sender.delivered or sender.refused or left):
        yield ItemResult(topic, Status.UNCHANGED)


def _reason(stopped: BaseException, sent: int) -> dict[str, Any]:
    records = "record" if sent == 1 else f"{sent:,} records"
    so_far = f"the {records} before {'it' if isinstance(stopped, KopsError) else 'that'} {'was' if sent == 1 else 'were'} sent"
    if isinstance(stopped, KopsError):
        return {**stopped.as_json(), "message": f"{stopped.message}; {so_far}"}
    if isinstance(stopped, STOPS):
        return {"code": "interrupted", "message": f"interrupted; {so_far}"}
    return {"code": "bug", "message": f"{stopped!r}; {so_far}"}


def _verified(result: ItemResult, bounds: Any) -> ItemResult:
    if isinstance(bounds, KopsError) or bounds is None or bounds.log_end_offset > result.value["last_offset"]:
        return result
    error = VerificationFailed(
        f"{result.target} ends at offset {bounds.log_end_offset}, and acknowledged {result.value['last_offset']}",
        hint="was the topic recreated, or a leader elected that lacks them?",
    )
    return ItemResult(result.target, Status.FAILED, error=error.as_json(), value=result.value)
