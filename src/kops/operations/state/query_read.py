"""Reads from changelogs what is asked, as of now or earlier."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kops.core.errors import NotFound, UsageProblem
from kops.core.models import Bounds, TopicPartition
from kops.core.murmur2 import partition_for
from kops.core.records.models import OffsetRange, Record, latest_by_key
from kops.core.statefile import StateFile
from kops.core.statefile.models import VERSIONED
from kops.core.times import Position
from kops.core.topics.names import topics_not_found
from kops.operations.services import Services
from kops.operations.state.query_questions import Question


def up_to_committed(services: Services, state_file: StateFile, asked: Sequence[Question]) -> list[Question]:
    """Let those that restore from their topic itself end where the application does (``StoreChangelogReader``)."""
    if not any(question.store.reuses_source for question in asked):
        return list(asked)
    found = services.kafka.groups.committed([state_file.application])[state_file.application]
    offsets = {partition: committed.offset for partition, committed in found.items()}
    return [replace(question, committed=offsets) if question.store.reuses_source else question for question in asked]


def changelogs_of(services: Services, asked: Sequence[Question]) -> dict[str, tuple[TopicPartition, ...]]:
    """Return the partitions of the changelogs that are asked.

    :raises NotFound: when one does not exist
    """
    topics = sorted({question.store.changelog for question in asked})
    partitions, problems = services.kafka.offsets.partitions_or_errors(topics)
    for topic, problem in problems.items():
        if isinstance(problem, NotFound):
            hint = "Kafka Streams makes it when the application starts; --from input computes the state without it"
            raise topics_not_found([topic], hint=hint)
        raise problem
    return partitions


def read_records(
    services: Services, question: Question, partitions: Sequence[TopicPartition], at: Position, isolation: str
) -> tuple[list[Record], dict[TopicPartition, int]]:
    """Return the last record of each key asked for, tombstones included.

    A single key is looked for where the default partitioner puts it, and elsewhere only when it is not there: without a new key
    it is in the partition that its producer chose. After a new key there is no elsewhere, but with a
    partitioner of the application's own.
    """
    likely, rest = list(partitions), []
    if question.key is not None and not question.compares_values:
        number = partition_for(question.key, len(partitions))
        likely = [partition for partition in partitions if partition.partition == number]
        elsewhere = not question.store.moves or question.store.custom_partitioner
        rest = [] if not elsewhere else [partition for partition in partitions if partition.partition != number]
    if at.kind == "offset" and len(partitions) > 1 and question.key is None:
        raise UsageProblem(
            f"an offset is of one partition, and {question.store.changelog} has {len(partitions)}",
            hint="name a time, such as @-1h, or a key",
        )
    found, unstable = _latest(services, question, likely, at, isolation)
    if rest and not found:
        found, unstable = _latest(services, question, rest, at, isolation, which="the other partitions of ")
    return found, unstable


def _latest(
    services: Services, question: Question, partitions: Sequence[TopicPartition], at: Position, isolation: str, *, which: str = ""
) -> tuple[list[Record], dict[TopicPartition, int]]:
    bounds = services.kafka.offsets.bounds(partitions)
    by_offset = at.kind == "time" and question.store.type != VERSIONED
    times = services.kafka.offsets.at_time(partitions, at.value) if by_offset else {}
    ends = {partition: _end(found, at, times.get(partition)) for partition, found in bounds.items()}
    if question.committed is not None:
        ends = {partition: min(end, question.committed.get(partition, 0)) for partition, end in ends.items()}
    ranges = {partition: OffsetRange(found.log_start_offset, ends[partition]) for partition, found in bounds.items()}
    reader = services.kafka.records.read(ranges, isolation=isolation)

    def batches() -> Iterable[Iterable[Record]]:
        for batch in reader:
            services.progress.advance(reader.done, reader.total, "offsets")
            yield batch if question.key is None else [record for record in batch if question.has(record)]

    services.progress.step(f"reading {which}{question.store.changelog}")
    if question.store.type == VERSIONED:
        return newest_versions((record for batch in batches() for record in batch), at), reader.stable_until
    return list(latest_by_key(batches()).values()), reader.stable_until


def newest_versions(records: Iterable[Record], at: Position) -> list[Record]:
    """Return the version of each key that was valid at a time, or is the newest: of a versioned store the time decides, not the offset."""
    newest: dict[tuple[int, bytes], Record] = {}
    for record in records:
        if record.key is None or (at.kind == "time" and (record.timestamp or 0) > at.value):
            continue
        place = (record.partition, record.key)
        known = newest.get(place)
        if known is None or (record.timestamp or 0, record.offset) >= (known.timestamp or 0, known.offset):
            newest[place] = record
    return list(newest.values())


def _end(bounds: Bounds, at: Position, offset_at_time: int | None) -> int:
    if at.kind == "time":
        return bounds.log_end_offset if offset_at_time is None else offset_at_time
    if at.kind == "offset":
        return min(bounds.log_end_offset, at.value)
    return bounds.log_end_offset
