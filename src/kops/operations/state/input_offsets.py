"""Up to where the input counts: the committed offsets, or a position that the application is moved to; and how much that is to read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from kops.core.cluster.models import sizes_by_replica
from kops.core.errors import GroupActive, KopsError, NotFound, Refused, UsageProblem
from kops.core.models import Bounds, CommittedOffset, Group, TopicPartition
from kops.core.sizes import size_text
from kops.core.statefile import StateFile
from kops.core.times import Position, parse_position
from kops.operations.groups.matching import find_group, refuse_active
from kops.operations.services import Services
from kops.operations.state.facts import StoreFacts

if TYPE_CHECKING:
    from kops.spark.reading.ranges import TopicRange

COMMITTED = Position("committed")


@dataclass(frozen=True)
class ArchiveShare:
    """What of a topic comes from an archive, and what from Kafka.

    :param path: of the archive
    :param records: number of records read from the archive, ``bytes`` of its files: estimated if not all of it is read
    :param topic_records: offsets of the topic after it, ``topic_bytes`` on the brokers' disks; None where they do not report sizes
    """

    topic: str
    path: str
    records: int
    bytes: int
    topic_records: int
    topic_bytes: int | None

    @property
    def text(self) -> str:
        size = "" if self.topic_bytes is None else f" (about {size_text(self.topic_bytes)})"
        return (
            f"{self.topic}: {self.records:,} records (about {size_text(self.bytes)}) come from {self.path}, and after them up to"
            f" {self.topic_records:,}{size} from Kafka"
        )


@dataclass(frozen=True)
class InputOffsets:
    """Up to where each partition of the input counts.

    :param offsets: the next offset that the application will process
    :param committed: what is committed now, for all topics of the application
    :param notes: what the operator should know, one sentence each
    :param is_new: the application is moved there
    :param archived: what comes from archives
    :param base: what comes from a snapshot, in words
    :param taken: when the snapshot was taken that the result is compared with, ISO-8601 UTC; empty: it is compared with the changelogs
    """

    offsets: Mapping[TopicPartition, int]
    committed: Mapping[TopicPartition, CommittedOffset]
    notes: tuple[str, ...] = ()
    is_new: bool = False
    archived: tuple[ArchiveShare, ...] = ()
    base: str = ""
    taken: str = ""

    @property
    def origins(self) -> tuple[str, ...]:
        return (*((self.base,) if self.base else ()), *(share.text for share in self.archived))

    @property
    def moves(self) -> dict[TopicPartition, int]:
        """The partitions that the application is moved in, and where to."""
        if not self.is_new:
            return {}
        return {
            partition: offset
            for partition, offset in self.offsets.items()
            if partition not in self.committed or self.committed[partition].offset != offset
        }

    def ranges(self, facts: StoreFacts, topic: str) -> dict[int, tuple[int, int]]:
        """Return the range of offsets that count, by partition, for one of a store's topics."""
        starts = {
            partition: max(bounds.log_start_offset, facts.starts.get(partition, 0))
            for partition, bounds in facts.input_bounds.items()
            if partition.topic == topic
        }
        return {partition.partition: (start, max(start, self.offsets[partition])) for partition, start in starts.items()}


def application_group(services: Services, state_file: StateFile, at: Position) -> Group | None:
    """Return the application's group; None when it does not exist yet and is about to be moved somewhere.

    :raises Refused: when there is none: the application never ran, its offsets expired, or the name is wrong
    """
    try:
        return find_group(services, state_file.application)
    except NotFound as missing:
        if at != COMMITTED:
            return None
        hint = f"{missing.hint}; " if missing.hint else ""
        raise Refused(
            f"the application {state_file.application} has committed nothing: there is no such group",
            hint=f"{hint}see `application` in {state_file.path}; an application that never ran has no state",
        ) from missing


def refuse_alive(group: Group | None) -> None:
    """Refuse while the application has members."""
    if group is None:
        return
    try:
        refuse_active(group)
    except GroupActive as alive:
        hint = "stop every instance of the application, then run it again, or --wait-empty 60s"
        raise GroupActive(alive.message, hint=hint, **alive.details) from alive


def begins(stores: Iterable[StoreFacts]) -> dict[TopicPartition, int]:
    """Return the first offset of each partition that may count: where the log starts, or where the application began."""
    return {
        partition: max(bound.log_start_offset, found.starts.get(partition, 0))
        for found in stores
        for partition, bound in found.input_bounds.items()
    }


def first_offsets(stores: Iterable[StoreFacts]) -> dict[TopicPartition, int]:
    """Return the first offset that any of some stores counts, by partition; 0 where one of them does not state it."""
    found: dict[TopicPartition, int] = {}
    for store in stores:
        for place in store.input_bounds:
            found[place] = min(found.get(place, store.starts.get(place, 0)), store.starts.get(place, 0))
    return found


def refuse_running_group(services: Services, application: str) -> None:
    """Refuse while an application that may not exist yet has members."""
    found = services.kafka.groups.describe_or_errors([application])[application]
    refuse_alive(None if isinstance(found, Exception) else found)


def find_cut(services: Services, state_file: StateFile, facts: list[StoreFacts], at: Position) -> InputOffsets:
    """Return where the input is cut.

    :raises Refused: when the application has committed nothing at all
    """
    committed = services.kafka.groups.committed([state_file.application], stable=True)[state_file.application]
    bounds = _input_bounds(facts)
    if at.kind == "end":
        return InputOffsets({partition: bound.log_end_offset for partition, bound in bounds.items()}, committed, is_new=True)
    if at.kind == "time":
        times = services.kafka.offsets.at_time(bounds, at.value)
        offsets = {
            partition: bound.log_end_offset if (offset := times[partition]) is None else offset for partition, bound in bounds.items()
        }
        return InputOffsets(offsets, committed, is_new=True)
    return cut_at_committed(state_file, facts, committed)


def _input_bounds(facts: Iterable[StoreFacts]) -> dict[TopicPartition, Bounds]:
    return {partition: bound for found in facts for partition, bound in found.input_bounds.items()}


def _refuse_before_start(facts: list[StoreFacts], committed: Mapping[TopicPartition, CommittedOffset]) -> None:
    for found in facts:
        for partition, start in sorted(found.starts.items() if found.base is None else ()):
            if partition in committed and committed[partition].offset < start:
                raise Refused(
                    f"{partition}: the committed offset is {committed[partition].offset}, but by the state file store {found.store.name}"
                    f" began at {start}: the application has not got that far",
                    hint="`start` is where it began to read, before what counts; `kops offsets history` shows where the group was moved",
                )


def cut_at_committed(state_file: StateFile, facts: list[StoreFacts], committed: Mapping[TopicPartition, CommittedOffset]) -> InputOffsets:
    """Return where committed offsets cut the input.

    :param committed: now, or when a snapshot was taken
    :raises Refused: when there is none of the input, or one that the topic does not have
    """
    _refuse_before_start(facts, committed)
    bounds = _input_bounds(facts)
    if not any(partition in committed for partition in bounds):
        topics = ", ".join(sorted({partition.topic for partition in bounds}))
        raise Refused(
            f"the application {state_file.application} has committed no offset of {topics}",
            hint="its offsets may have expired; --at end or --at @TIME rebuild up to there and move the application to it",
        )
    offsets, notes = {}, []
    for partition, bound in bounds.items():
        start, end = bound.log_start_offset, bound.log_end_offset
        found = committed.get(partition)
        offsets[partition] = start if found is None else found.offset
        if found is None:
            if end > start:
                notes.append(f"{partition} has no committed offset: nothing of it counts, as if nothing had been processed")
        elif found.offset < start:
            notes.append(f"{partition}: the committed offset {found.offset} lies before the log start {start}: what was between is gone")
        elif found.offset > end:
            raise Refused(
                f"{partition}: the committed offset is {found.offset}, and the log ends at {end}: the topic was recreated",
                hint="rebuild from what there is with --at end, which moves the application there",
            )
    return InputOffsets(offsets, committed, tuple(notes))


def parse_cut(text: str, now: datetime) -> Position:
    """Return where to cut: ``committed``, ``end`` or a time."""
    if text == COMMITTED.kind:
        return COMMITTED
    position = parse_position(text, now)
    if position.kind not in ("end", "time"):
        raise UsageProblem(f"a state cannot be cut at {text!r}", hint="committed, end, or a time such as @-1h or @2026-11-20T14:05")
    return position


def amount_text(services: Services, inputs: Sequence[TopicRange], changelogs: Sequence[TopicRange]) -> str:
    """Return it in words: ``9,000 records (about 172.3 KiB), and 120 (3.2 KiB) of changelogs``.

    Bytes are those on the brokers' disks, compressed as they are there, without replicas; for a part of a log, its share by offsets. They
    are left out where the brokers do not report them.
    """
    sizes = sizes_of(services, [*inputs, *changelogs])
    read = f"{_records(inputs):,} records{_about(inputs, sizes)}"
    written = _records(changelogs)
    return f"{read}, and {written:,}{_about(changelogs, sizes)} of changelogs" if written else read


def bytes_of(services: Services, ranges: Sequence[TopicRange]) -> int | None:
    """Return the approximate size of ranges in bytes; None where the brokers do not report it."""
    return _bytes(ranges, sizes_of(services, ranges))


def _records(ranges: Sequence[TopicRange]) -> int:
    return sum(wanted.records for wanted in ranges)


def _about(ranges: Sequence[TopicRange], sizes: dict[TopicPartition, float] | None) -> str:
    """Return the bytes of some ranges in brackets, empty when they are not known.

    :param sizes: bytes per offset, by partition
    """
    total = _bytes(ranges, sizes)
    return "" if total is None else f" (about {size_text(total)})"


def _bytes(ranges: Sequence[TopicRange], sizes: dict[TopicPartition, float] | None) -> int | None:
    if sizes is None:
        return None
    places = ((TopicPartition(wanted.topic, number), end - start) for wanted in ranges for number, (start, end) in wanted.ranges.items())
    return round(sum(count * sizes.get(place, 0.0) for place, count in places))


def sizes_of(services: Services, ranges: Sequence[TopicRange]) -> dict[TopicPartition, float] | None:
    """Return the bytes per offset on the brokers' disks, by partition; None where the brokers do not report them."""
    places = {TopicPartition(wanted.topic, number) for wanted in ranges for number, (start, end) in wanted.ranges.items() if start < end}
    try:
        brokers = [broker.id for broker in services.kafka.cluster().brokers]
        answers = services.kafka.log_dirs.describe_or_errors(brokers, places).values() if places else []
        bounds = services.kafka.offsets.bounds(places)
    except KopsError:  # useful, but not a reason to give up
        return None
    replicas = sizes_by_replica(folder for answer in answers if not isinstance(answer, KopsError) for folder in answer)
    if not places <= replicas.keys():
        return None
    lengths = {place: ends.offsets for place, ends in bounds.items()}
    return {place: max(replicas[place].values()) / max(1, lengths[place]) for place in places}
