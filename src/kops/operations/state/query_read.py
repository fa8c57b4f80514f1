"""What is requested from each store, how it is read from the changelogs as of now or earlier, and which records match."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kops.core.errors import KopsError, NotFound, UsageProblem
from kops.core.models import Bounds, TopicPartition
from kops.core.murmur2 import partition_for
from kops.core.records.models import OffsetRange, Record, latest_by_key, timestamp_text
from kops.core.statefile import StateFile, Store
from kops.core.statefile.models import VERSIONED
from kops.core.statefile.sources import REGISTERED
from kops.core.times import Position
from kops.core.topics.names import topics_not_found
from kops.operations.records.formats import format_for
from kops.operations.services import Services
from kops.operations.state.stored_keys import shown, stored_key, window_size

if TYPE_CHECKING:
    from kops.formats.base import Format


@dataclass(frozen=True)
class Question:
    """What is requested from one store.

    :param key: bytes of the requested key; None: all keys
    :param committed: offsets up to which the store reflects its topic, if that is its changelog; None: all of it
    """

    store: Store
    keys: Format
    values: Format
    key: bytes | None
    committed: Mapping[TopicPartition, int] | None = None

    @property
    def compares_values(self) -> bool:
        """Whether keys with the same meaning may have different bytes: JSON in another order, or the id of another schema."""
        return self.keys.name in ("json", *REGISTERED)

    def accepts(self, inner: bytes) -> bool:
        """Whether a key is the requested one."""
        if self.key is None or inner == self.key:
            return True
        return self.compares_values and shown(self.keys, inner) == shown(self.keys, self.key)

    def has(self, record: Record) -> bool:
        """Whether a record of the changelog has a requested key."""
        return record.key is not None and self.accepts(stored_key(self.store.type, record.key).inner)

    def row(self, record: Record) -> dict[str, Any]:
        found = stored_key(self.store.type, record.key or b"", window_size(self.store))
        return {
            "store": self.store.name,
            "key": shown(self.keys, found.inner),
            **found.around,
            "value": shown(self.values, record.value),
            "timestamp": timestamp_text(record.timestamp),
            "partition": record.partition,
            "offset": record.offset if record.offset >= 0 else None,
        }


def questions(services: Services, state_file: StateFile, key: str | None) -> list[Question]:
    """Return what is requested from each store, leaving out stores in whose key format the key cannot be written.

    :raises UsageProblem: when the key is in no store's format
    """
    asked, wrong = [], []
    for store in state_file.stores:
        keys = format_for(services, store.key_form.name, f"{store.source.topic}-key")
        values = format_for(services, store.aggregate.form.name)
        try:
            data = None if key is None else keys.encode(keys.parse(key))
        except KopsError as error:
            wrong.append(error)
            continue
        asked.append(Question(store, keys, values, data))
    if not asked:
        raise wrong[0]
    return asked


def up_to_committed(services: Services, state_file: StateFile, asked: Sequence[Question]) -> list[Question]:
    """Let stores that restore from their input topic itself end where the application does (``StoreChangelogReader``)."""
    if not any(question.store.reuses_source for question in asked):
        return list(asked)
    found = services.kafka.groups.committed([state_file.application])[state_file.application]
    offsets = {partition: committed.offset for partition, committed in found.items()}
    return [replace(question, committed=offsets) if question.store.reuses_source else question for question in asked]


def changelogs_of(services: Services, asked: Sequence[Question]) -> dict[str, tuple[TopicPartition, ...]]:
    """Return the partitions of the changelogs to be read.

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
    """Return the last record of each requested key, tombstones included.

    A single key is looked up where the default partitioner puts it, and elsewhere only if it is not there: without a new key
    it is in the partition that its producer chose. After a new key it is nowhere else, except with a
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
    """Return the version of each key valid at a time, or the newest: in a versioned store timestamps decide, not offsets."""
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
