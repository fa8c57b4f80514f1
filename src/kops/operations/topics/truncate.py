"""Deletes the oldest records of partitions (DeleteRecords): the log then starts at a later offset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from kops.config.files import parse_json, read_text
from kops.core.errors import KopsError, Refused, StateMoved, UsageProblem, VerificationFailed
from kops.core.findings import counted
from kops.core.models import Bounds, Setting, Topic, TopicPartition
from kops.core.offsets.arithmetic import NewOffset, Strategy, ToLatest, ToOffset, ToTime, resolve
from kops.core.plan import Arguments, Item, ItemResult, Json, Plan, Severity, Status
from kops.core.selection import Selection, parse_selection, partitions_selected
from kops.core.streams.topics import owner_of
from kops.core.times import Position, parse_position
from kops.core.topics.names import refuse_kafkas_own
from kops.core.topics.settings import POLICY
from kops.operations.offsets.landings import by_strategy
from kops.operations.protocol.mutation import FinalMutation, failed
from kops.operations.services import Services
from kops.operations.topics.impact import Needs, Readers, group_names, need_warnings, needs_below, readers_of
from kops.operations.topics.listing import select_partitions
from kops.operations.topics.plan import recreated

_HINT = 'it is like {"partitions": [{"topic": "orders", "partition": 0, "offset": 120}], "version": 1}; offset -1 is the end'


def read_offsets_file(text: str, name: str) -> dict[TopicPartition, Position]:
    """Return per partition where its log is to start.

    :param name: of the file, for messages
    :raises UsageProblem: if it is not such a file, or names a partition twice
    """
    body = parse_json(text, name, hint=_HINT)
    try:
        rows = [_row(row) for row in body["partitions"]]
    except (ValueError, KeyError, TypeError) as error:
        raise UsageProblem(f"{name} is not a file of offsets: {error!r}", hint=_HINT) from error
    found: dict[TopicPartition, Position] = {}
    for place, offset in rows:
        if place in found:
            raise UsageProblem(f"{name} names {place} twice", hint="give one offset to each partition")
        if offset < -1:
            raise UsageProblem(f"{name}: {offset} is not an offset of {place}", hint="offsets count from 0; -1 is the end")
        found[place] = Position("end") if offset == -1 else Position("offset", offset)
    if not found:
        raise UsageProblem(f"{name} names no partitions", hint=_HINT)
    return found


def _row(row: Any) -> tuple[TopicPartition, int]:
    topic, partition, offset = row["topic"], row["partition"], row["offset"]
    if not isinstance(topic, str) or any(isinstance(number, bool) or not isinstance(number, int) for number in (partition, offset)):
        raise TypeError(f"{row} has a value of another type where a string or an integer is expected")
    return TopicPartition(topic, partition), offset


@dataclass(frozen=True)
class Truncation(Arguments):
    """The arguments of ``topics.truncate``.

    :param below: by partition: records below this offset are deleted
    """

    below: Mapping[TopicPartition, int]

    def as_json(self) -> Json:
        return {"below": {str(place): offset for place, offset in self.below.items()}}

    @classmethod
    def of_json(cls, body: Json) -> Truncation:
        return cls(below_of_json(body["below"]))


def below_of_json(body: Mapping[str, int]) -> dict[TopicPartition, int]:
    places = {text: parse_selection(text) for text in body}
    return {TopicPartition(one.topic, (one.partitions or (0,))[0]): body[text] for text, one in places.items()}


TruncationArgs = TypeVar("TruncationArgs", bound=Truncation)


def plan_truncate(services: Services, texts: Sequence[str], to: str, *, regex: bool = False) -> Plan[Truncation]:
    """Plan which records to delete.

    :param texts: topics or globs, with or without partitions
    :param to: the new log start: an offset, a time (``@-1d`` deletes what is older), or ``end``, which deletes all records
    :raises NotFound: for a topic or partition that does not exist
    :raises Refused: for Kafka's internal topics, and for topics that are only compacted, which brokers do not truncate
    """
    position = parse_position(to, services.now())
    if position.kind == "start":
        raise UsageProblem(
            "--to start keeps every record", hint="--to end deletes all; an offset or a time such as @-1d keeps what follows"
        )
    topics, places = select_partitions(services, texts, regex=regex)
    return _plan(services, topics, dict.fromkeys(places, position), ", ".join(texts))


def plan_truncate_at(services: Services, below: Mapping[TopicPartition, int]) -> Plan[Truncation]:
    """Plan to delete the records below an offset per partition, and no others, even if more are written meanwhile."""
    topics = services.kafka.topics.describe({place.topic for place in below})
    return _plan(services, topics, {place: Position("offset", offset) for place, offset in below.items()}, ", ".join(sorted(topics)))


def plan_truncate_by_file(services: Services, path: Path) -> Plan[Truncation]:
    """Plan which records to delete from a file of offsets, in the format of Apache's ``kafka-delete-records``.

    :raises UsageProblem: when it cannot be read, or has another format
    """
    positions = read_offsets_file(read_text(path, hint="name a file of offsets, as Apache's --offset-json-file"), str(path))
    topics = services.kafka.topics.describe(place.topic for place in positions)
    existing = {name: topic.places for name, topic in topics.items()}
    partitions_selected([Selection(place.topic, (place.partition,)) for place in positions], existing)
    return _plan(services, topics, positions, str(path))


def _plan(
    services: Services, topics_by_name: Mapping[str, Topic], positions: Mapping[TopicPartition, Position], named: str
) -> Plan[Truncation]:
    refuse_kafkas_own(topics_by_name, "would lose what they know", "truncates")
    settings = services.kafka.topics.settings(topics_by_name)
    _refuse_compacted(settings)
    bounds = services.kafka.offsets.bounds(positions)
    strategies = {place: _strategy(position) for place, position in positions.items()}
    times, dated = by_strategy(services, strategies, bounds)
    targets = {place: resolve(strategies[place], None, ends, times.get(place)) for place, ends in bounds.items()}
    cuts = {place: (bounds[place], target.offset) for place, target in targets.items()}
    needs, readers = needs_below(services, cuts), readers_of(services, topics_by_name) if topics_by_name else Readers({}, {})
    deleted = {place: max(0, target.offset - bounds[place].log_start_offset) for place, target in targets.items()}
    topics = sorted({place.topic for place, count in deleted.items() if count})
    return Plan(
        operation=TRUNCATE.name,
        summary=_summary(named, topics, deleted),
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=tuple(_item(place, bounds[place], targets[place]) for place in sorted(positions)),
        severity=Severity.SEVERE,
        confirm=topics[0] if len(topics) == 1 else f"{len(topics)} topics",
        guard={"topics": {name: topics_by_name[name].topic_id for name in topics}, "needs": _needs_json(needs)},
        arguments=Truncation({place: targets[place].offset for place in positions if deleted[place]}),
        warnings=(*_warnings(topics, needs, readers), *dated),
    )


class TruncateTopics(FinalMutation[TruncationArgs]):
    """Moves the log start of partitions to later offsets: records cannot be put back at the start of a log."""

    name: ClassVar[str] = "topics.truncate"
    arguments: ClassVar[type[Arguments]] = Truncation
    no_undo: ClassVar[str] = "records that were deleted are gone: a truncation cannot be undone"
    instead: ClassVar[str | None] = "a copy of them, such as a mirror or an archive, can be produced again"

    def locks(self, plan: Plan[TruncationArgs]) -> Iterable[str]:
        return [f"topic {name}" for name in plan.guard["topics"]]

    def check(self, services: Services, plan: Plan[TruncationArgs]) -> None:
        """Refuse if a topic was recreated, a log became shorter, or a group needs more of the records to be deleted than shown."""
        found = services.kafka.topics.existing(plan.guard["topics"])
        moved = recreated(found, plan.guard["topics"])
        if moved:
            raise StateMoved(f"deleted or recreated since the plan was made: {', '.join(moved)}", hint="run the command again")
        below = plan.arguments.below
        bounds = services.kafka.offsets.bounds(below)
        short = [str(place) for place, offset in below.items() if bounds[place].log_end_offset < offset]
        if short:
            raise StateMoved(f"the log became shorter since the plan was made: {', '.join(short)}", hint="run the command again")
        now = _needs_json(needs_below(services, {place: (bounds[place], offset) for place, offset in below.items()}))
        for topic, groups in now.items():
            more = [group for group, count in groups.items() if count > plan.guard["needs"].get(topic, {}).get(group, 0)]
            if more:
                raise StateMoved(
                    f"{group_names(sorted(more))} moved back since the plan was made, and {'needs' if len(more) == 1 else 'need'} more of "
                    f"the records to be deleted from {topic}",
                    hint="run the command again to see what they need",
                )

    def apply(self, services: Services, plan: Plan[TruncationArgs]) -> Iterator[ItemResult]:
        answers = services.kafka.topics.delete_records(plan.arguments.below)
        outcomes = {str(place): answer for place, answer in answers.items()}
        for item in plan.changes:
            outcome = outcomes[item.target]
            yield failed(item, outcome) if isinstance(outcome, KopsError) else ItemResult(item.target, Status.DONE, value=outcome)

    def verify(self, services: Services, plan: Plan[TruncationArgs], results: Sequence[ItemResult]) -> tuple[ItemResult, ...]:
        """Read the log start offsets back: they may be later than planned, since retention deletes more, never earlier."""
        below = {str(place): (place, offset) for place, offset in plan.arguments.below.items()}
        bounds = services.kafka.offsets.bounds_or_errors(place for place, _ in below.values())
        return tuple(_verified(result, below[result.target][1], bounds[below[result.target][0]]) for result in results)

    def resume(self, services: Services, plan: Plan[TruncationArgs]) -> Plan[Any]:
        """Plan to delete what is left of the records.

        :raises StateMoved: when a topic was recreated: its records are others
        """
        moved = recreated(services.kafka.topics.existing(plan.guard["topics"]), plan.guard["topics"])
        if moved:
            raise StateMoved(f"deleted or recreated since: {', '.join(moved)}", hint="`kops topics describe` shows what is there")
        return plan_truncate_at(services, plan.arguments.below)


TRUNCATE: TruncateTopics[Truncation] = TruncateTopics()


def _strategy(position: Position) -> Strategy:
    if position.kind == "end":
        return ToLatest()
    return ToOffset(position.value) if position.kind == "offset" else ToTime(position.value, position.relative)


def _item(place: TopicPartition, bounds: Bounds, target: NewOffset) -> Item:
    held, deleted = bounds.offsets, target.offset - bounds.log_start_offset
    reason = f"; {target.reason}" if target.reason else ""
    if deleted <= 0:
        return Item(str(place), "none", bounds.log_start_offset, bounds.log_start_offset, f"nothing goes{reason}")
    return Item(str(place), "truncate", bounds.log_start_offset, target.offset, f"{deleted:,} of {held:,} go{reason}")


def _refuse_compacted(settings: Mapping[str, Mapping[str, Setting]]) -> None:
    """Refuse before the brokers do: they truncate a topic unless it is compacted only (``Partition.deleteRecordsOnLeader``)."""
    compacted = [name for name, found in settings.items() if POLICY in found and found[POLICY].value == "compact"]
    if compacted:
        raise Refused(
            f"{', '.join(compacted)}: cleanup.policy=compact, and brokers delete records by offset only where the policy has delete",
            hint="produce tombstones for keys that are to go, or first alter it to --config cleanup.policy=compact,delete",
            topics=compacted,
        )


def _warnings(topics: Sequence[str], needs: Needs, readers: Readers) -> Iterator[str]:
    yield from need_warnings(needs)
    for topic in topics:
        application = owner_of(topic, readers.group_ids)
        if application:
            yield f"{topic} is an internal topic of the Kafka Streams application {application}, which truncates it by itself"
        if readers.active.get(topic):
            yield f"{topic} is being read by {group_names(readers.active[topic])}: below the new log start they follow auto.offset.reset"


def _summary(named: str, topics: Sequence[str], deleted: Mapping[TopicPartition, int]) -> str:
    if not topics:
        return f"no records go from {named}"
    touched = sum(1 for count in deleted.values() if count)
    what = topics[0] if len(topics) == 1 else f"{len(topics)} topics"
    return f"delete {counted(sum(deleted.values()), 'record')} of {what} ({counted(touched, 'partition')})"


def _needs_json(needs: Needs) -> dict[str, Any]:
    return {topic: dict(groups) for topic, groups in needs.records.items()}


def _verified(result: ItemResult, offset: int, bounds: Bounds | KopsError) -> ItemResult:
    if isinstance(bounds, KopsError):
        return result if result.status is not Status.DONE else ItemResult(result.target, Status.UNKNOWN, error=bounds.as_json())
    if bounds.log_start_offset >= offset and result.status in (Status.DONE, Status.UNKNOWN):
        return ItemResult(result.target, Status.DONE, value=bounds.log_start_offset)
    if result.status is not Status.DONE:
        return result
    error = VerificationFailed(
        f"{result.target} still starts at {bounds.log_start_offset}, not {offset}", hint="`kops topics offsets` shows it"
    )
    return ItemResult(result.target, Status.FAILED, error=error.as_json())
