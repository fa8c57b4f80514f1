"""The value of a key, or a whole table, from the changelogs as they are or were, or computed again from the input.

No instance of the application is queried: a changelog has the state of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kops.core.errors import KopsError, NotFound, UsageProblem
from kops.core.models import Bounds, Setting, TopicPartition, isolation_of, value_of
from kops.core.murmur2 import partition_for
from kops.core.records.models import OffsetRange, Record, latest_by_key, timestamp_text
from kops.core.statefile import StateFile, Store
from kops.core.statefile.models import VERSIONED
from kops.core.statefile.sources import REGISTERED
from kops.core.streams.lost_topics import NOT_STARTED
from kops.core.times import Position, parse_position
from kops.core.topics.names import topics_not_found
from kops.operations.engine.spark import Engine, drop_stage
from kops.operations.records.formats import format_for
from kops.operations.records.rows import unstable_notes
from kops.operations.services import Services
from kops.operations.state.computation import with_history
from kops.operations.state.compute import ComputedStore
from kops.operations.state.facts import read_facts
from kops.operations.state.input_offsets import COMMITTED, application_group, find_cut
from kops.operations.state.judge.judge import judge
from kops.operations.state.lost_records import losses_text
from kops.operations.state.recipe import Recipe
from kops.operations.state.stored_keys import shown, stored_key, version_of, window_size

if TYPE_CHECKING:
    from kops.formats.base import Format

CHANGELOG, INPUT = "changelog", "input"
END = Position("end")
NO_OFFSET = -1
"""The offset of a record that is in no log."""


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
        if self.key is None or inner == self.key:
            return True
        return self.compares_values and shown(self.keys, inner) == shown(self.keys, self.key)

    def has(self, record: Record) -> bool:
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
    topics = sorted({question.store.changelog for question in asked})
    partitions, problems = services.kafka.offsets.partitions_or_errors(topics)
    for topic, problem in problems.items():
        if isinstance(problem, NotFound):
            hint = f"--from input computes the state without it; {NOT_STARTED}"
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

    history_ms, newest = question.store.history_ms, dict[int, int]()

    def batches() -> Iterable[Iterable[Record]]:
        for batch in reader:
            services.progress.advance(reader.done, reader.total, "offsets")
            found = batch if history_ms is None else accepted(batch, history_ms, newest)
            yield found if question.key is None else [record for record in found if question.has(record)]

    services.progress.step(f"reading {which}{question.store.changelog}")
    if question.store.type == VERSIONED:
        return newest_versions((record for batch in batches() for record in batch), at), reader.stable_until
    return list(latest_by_key(batches()).values()), reader.stable_until


def accepted(batch: Iterable[Record], history_ms: int, newest: dict[int, int]) -> list[Record]:
    """Leave out what the store never accepted since it came too late (``RocksDBVersionedStore.put``).

    :param batch: in the order of each partition
    :param newest: partition -> the newest timestamp of the records before; that of these is noted there
    """
    found = []
    for record in batch:
        time = record.timestamp or 0
        newest[record.partition] = max(time, newest.get(record.partition, time))
        if time >= newest[record.partition] - history_ms:
            found.append(record)
    return found


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


@dataclass(frozen=True)
class Answer:
    """The rows found.

    :param rows: one per key and store
    :param notes: what the operator should know, one sentence each
    """

    rows: list[dict[str, Any]]
    notes: list[str]


def parse_moment(text: str | None, origin: str, now: datetime) -> Position:
    """Return the position at which a state is requested.

    :param text: ``committed``, ``end``, a time, or an offset of a changelog; None: where the state is now
    """
    if text is None or text == COMMITTED.kind:
        return END if origin == CHANGELOG else COMMITTED
    position = parse_position(text, now)
    if position.kind == "start" or (position.kind == "offset" and origin == INPUT):
        hint = "committed, end, or a time such as @-1h or @2026-11-20T14:05" + (
            "; an offset, of a changelog" if origin == CHANGELOG else ""
        )
        raise UsageProblem(f"a store cannot be queried at {text!r}", hint=hint)
    return position


def query(
    services: Services,
    state_file: StateFile,
    key: str | None,
    *,
    at: Position,
    origin: str = CHANGELOG,
    recipe: Recipe,
    master: str | None = None,
) -> Answer:
    """Return the live keys of the stores, or one of them; sorted by store, key and window.

    :param key: as typed, in the format of the store's keys; None: all keys
    :param at: see :func:`parse_moment`
    :param origin: ``changelog``, or ``input``: compute it again
    :param recipe: how it is computed
    :raises NotFound: when a changelog does not exist
    """
    asked = questions(services, state_file, key)
    names = {question.store.name for question in asked}
    chosen = replace(state_file, stores=tuple(store for store in state_file.stores if store.name in names))
    if origin == INPUT:
        return _from_input(services, chosen, asked, at, master=master, recipe=recipe)
    return _from_changelogs(services, chosen, asked, at)


def _from_changelogs(services: Services, state_file: StateFile, asked: Sequence[Question], at: Position) -> Answer:
    isolation = isolation_of(committed=state_file.exactly_once)
    partitions = changelogs_of(services, asked)
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    settings = services.kafka.topics.settings(partitions)
    for question in up_to_committed(services, state_file, asked):
        records, unstable = read_records(services, question, partitions[question.store.changelog], at, isolation)
        rows += _sorted(question, records)
        notes += unstable_notes(unstable)
        notes += _losses(services, question.store, partitions[question.store.changelog], settings[question.store.changelog])
    if at != END:
        notes.append("a changelog is compacted: values overwritten since may be missing; --from input computes them again")
    return Answer(rows, notes)


def _losses(services: Services, store: Store, partitions: Sequence[TopicPartition], settings: Mapping[str, Setting]) -> list[str]:
    """Return a note if a changelog has lost records: a key that is not found there may still be in the store."""
    starts = {at.partition: bound.log_start_offset for at, bound in services.kafka.offsets.bounds(partitions).items()}
    text = losses_text(store.changelog, starts, value_of(settings, "cleanup.policy", "delete"), windowed=store.window is not None)
    return [f"{text}; --from input computes them again"] if text else []


def _from_input(
    services: Services,
    state_file: StateFile,
    asked: Sequence[Question],
    at: Position,
    *,
    master: str | None,
    recipe: Recipe,
) -> Answer:
    by_store = {question.store.name: question for question in asked}
    application_group(services, state_file, at)
    engine = recipe.engine(services, master)
    recipe.refuse_lost(services, list(by_store))
    facts = read_facts(services, state_file, replacing=True)  # what the changelogs hold does not count, so they may be gone
    cut = find_cut(services, state_file, facts, at)
    past, commits, facts = with_history(services, state_file, recipe, facts, cut)
    computed = recipe.whole(engine, state_file, facts, cut)
    rows: list[dict[str, Any]] = []
    notes = list(cut.notes)
    try:
        for found in [judge(engine, state_file, each, past, commits=commits, cut=cut) for each in computed]:
            question = by_store[found.facts.store.name]
            records: Iterable[Record] = (record for record in _computed_records(engine, found) if question.has(record))
            rows += _sorted(question, newest_versions(records, at) if question.store.type == VERSIONED else records)
            notes += found.explained
    finally:
        drop_stage(*(found.stage for found in computed))
    return Answer(rows, notes)


def _computed_records(engine: Engine, found: ComputedStore) -> Iterator[Record]:
    """Yield the records of a computed store, whose stage has all of its keys."""
    from kops.spark.staging.difference import to_append
    from kops.spark.staging.stage import read_stage

    store = found.facts.store
    rows = to_append(read_stage(engine.session, found.stage)).where("value is not null").toLocalIterator(prefetchPartitions=True)
    for row in rows:
        stored = bytes(row.key), bytes(row.value)
        key, value = version_of(*stored) if store.type == VERSIONED else stored
        yield Record(store.changelog, row.partition, NO_OFFSET, row.timestamp, key, value)


def _sorted(question: Question, records: Iterable[Record]) -> list[dict[str, Any]]:
    live = [record for record in records if record.value is not None]
    return [question.row(record) for record in sorted(live, key=lambda record: (record.key or b"", record.partition))]
