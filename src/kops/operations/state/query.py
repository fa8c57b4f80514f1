"""A key's value, or a whole table, from the changelogs as they are or were, or computed again from the input.

No instance of the application is asked: a changelog has the state of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kops.core.errors import KopsError, NotFound, UsageProblem
from kops.core.models import Bounds, TopicPartition
from kops.core.murmur2 import partition_for
from kops.core.records import OffsetRange, Record, latest_by_key, timestamp_text
from kops.core.statefile import StateFile, Store
from kops.core.statefile.models import VERSIONED
from kops.core.times import Position, parse_position
from kops.operations.protocol import Services
from kops.operations.records_rows import unstable_notes
from kops.operations.state.cut import COMMITTED, application_group, find_cut
from kops.operations.state.expected import computed_views
from kops.operations.state.query_keys import store_type, stored_key, window_size
from kops.operations.state.shown import shown
from kops.plugins.loader import load_format

if TYPE_CHECKING:
    from kops.formats.base import Format

CHANGELOG, INPUT = "changelog", "input"
END = Position("end")


@dataclass(frozen=True)
class Answer:
    """What was found.

    :param rows: one a key and store
    :param notes: what the person should know, a sentence each
    """

    rows: list[dict[str, Any]]
    notes: list[str]


@dataclass(frozen=True)
class Question:
    """What is asked of one store.

    :param key: bytes of the key asked for; None: all keys
    """

    store: Store
    keys: Format
    values: Format
    key: bytes | None

    def accepts(self, inner: bytes) -> bool:
        """Tell whether a key is the one asked for. JSON of the same meaning may be other bytes."""
        if self.key is None or inner == self.key:
            return True
        return self.keys.name == "json" and shown(self.keys, inner) == shown(self.keys, self.key)

    def has(self, record: Record) -> bool:
        """Tell whether a record of the changelog is of a key asked for."""
        return record.key is not None and self.accepts(stored_key(store_type(self.store), record.key).inner)

    def row(self, record: Record) -> dict[str, Any]:
        """Return a record of the changelog as a row."""
        found = stored_key(store_type(self.store), record.key or b"", window_size(self.store))
        return {
            "store": self.store.name,
            "key": shown(self.keys, found.inner),
            **found.around,
            "value": shown(self.values, record.value),
            "timestamp": timestamp_text(record.timestamp),
            "partition": record.partition,
            "offset": record.offset if record.offset >= 0 else None,
        }


def parse_moment(text: str | None, origin: str, now: datetime) -> Position:
    """Return as of when a state is asked for.

    :param text: ``committed``, ``end``, a time, or an offset of a changelog; None: where the state is now
    :raises UsageProblem: when it is none of them
    """
    if text is None or text == COMMITTED.kind:
        return END if origin == CHANGELOG else COMMITTED
    position = parse_position(text, now)
    if position.kind == "start" or (position.kind == "offset" and origin == INPUT):
        hint = "committed, end, or a time such as @-1h or @2026-11-20T14:05" + (
            "; an offset, of a changelog" if origin == CHANGELOG else ""
        )
        raise UsageProblem(f"a state cannot be asked for as of {text!r}", hint=hint)
    return position


def questions(state_file: StateFile, key: str | None) -> list[Question]:
    """Return what is asked of each store; of those alone whose keys can be written so.

    :raises UsageProblem: when the key is of no store's format
    """
    asked, wrong = [], []
    for store in state_file.stores:
        keys, values = load_format(store.key_form.name), load_format(store.aggregate.form.name)
        try:
            data = None if key is None else keys.encode(keys.parse(key))
        except KopsError as error:
            wrong.append(error)
            continue
        asked.append(Question(store, keys, values, data))
    if not asked:
        raise wrong[0]
    return asked


def query(
    services: Services,
    state_file: StateFile,
    key: str | None,
    *,
    at: Position,
    origin: str = CHANGELOG,
    skip_undecodable: bool = False,
    master: str | None = None,
) -> Answer:
    """Return the live keys of the stores, or one of them; sorted by store, key and window.

    :param key: as typed, in the format of the store's keys; None: all keys
    :param at: see :func:`parse_moment`
    :param origin: ``changelog``, or ``input``: compute it again
    :raises NotFound: when a changelog does not exist
    """
    asked = questions(state_file, key)
    names = {question.store.name for question in asked}
    chosen = replace(state_file, stores=tuple(store for store in state_file.stores if store.name in names))
    if origin == INPUT:
        return _from_input(services, chosen, asked, at, skip_undecodable=skip_undecodable, master=master)
    return _from_changelogs(services, chosen, asked, at)


def _from_changelogs(services: Services, state_file: StateFile, asked: Sequence[Question], at: Position) -> Answer:
    isolation = "read_committed" if state_file.exactly_once else "read_uncommitted"
    partitions = _changelogs(services, asked)
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    for question in asked:
        records, unstable = _read(services, question, partitions[question.store.changelog], at, isolation)
        rows += _sorted(question, records)
        notes += unstable_notes(unstable)
    if at != END:
        notes.append("a changelog is compacted: values overwritten since may be missing; --from input computes them again")
    return Answer(rows, notes)


def _changelogs(services: Services, asked: Sequence[Question]) -> dict[str, tuple[TopicPartition, ...]]:
    topics = sorted({question.store.changelog for question in asked})
    partitions, problems = services.kafka.offsets.partitions_or_errors(topics)
    for topic, problem in problems.items():
        if isinstance(problem, NotFound):
            hint = "Kafka Streams makes it when the application starts; --from input computes the state without it"
            raise NotFound(f"there is no changelog {topic}", hint=hint, topic=topic)
        raise problem
    return partitions


def _read(
    services: Services, question: Question, partitions: Sequence[TopicPartition], at: Position, isolation: str
) -> tuple[list[Record], dict[TopicPartition, int]]:
    """Return the last record of each key asked for, tombstones included.

    A single key is looked for where the default partitioner puts it, and elsewhere only when it is not there: without a new key
    it is in the partition that its producer chose. After a new key there is no elsewhere.
    """
    likely, rest = list(partitions), []
    if question.key is not None and question.keys.name != "json":
        number = partition_for(question.key, len(partitions))
        likely = [partition for partition in partitions if partition.partition == number]
        rest = [] if question.store.key_by else [partition for partition in partitions if partition.partition != number]
    if at.kind == "offset" and len(partitions) > 1 and question.key is None:
        raise UsageProblem(
            f"an offset is of one partition, and {question.store.changelog} has {len(partitions)}",
            hint="name a time, such as @-1h, or a key",
        )
    found, unstable = _latest(services, question, likely, at, isolation)
    if rest and not found:
        found, unstable = _latest(services, question, rest, at, isolation)
    return found, unstable


def _latest(
    services: Services, question: Question, partitions: Sequence[TopicPartition], at: Position, isolation: str
) -> tuple[list[Record], dict[TopicPartition, int]]:
    bounds = services.kafka.offsets.bounds(partitions)
    by_offset = at.kind == "time" and store_type(question.store) != VERSIONED
    times = services.kafka.offsets.at_time(partitions, at.value) if by_offset else {}
    reader = services.kafka.records.read(
        {partition: OffsetRange(found.log_start_offset, _end(found, at, times.get(partition))) for partition, found in bounds.items()},
        isolation=isolation,
    )

    def batches() -> Iterable[Iterable[Record]]:
        for batch in reader:
            services.progress.advance(reader.done, reader.total, "offsets")
            yield batch if question.key is None else [record for record in batch if question.has(record)]

    services.progress.step(f"reading {question.store.changelog}")
    if store_type(question.store) == VERSIONED:
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


def _from_input(
    services: Services, state_file: StateFile, asked: Sequence[Question], at: Position, *, skip_undecodable: bool, master: str | None
) -> Answer:
    """Compute the stores up to the position, and take from them what is asked for."""
    by_store = {question.store.name: question for question in asked}
    application_group(services, state_file, at)
    rows: list[dict[str, Any]] = []
    with computed_views(
        services, state_file, lambda facts: find_cut(services, state_file, facts, at), skip_undecodable=skip_undecodable, master=master
    ) as views:
        notes = [*views.cut.notes, *(note for found in views.computed for note in (found.summary, *found.warnings))]
        for found in views.computed:
            question = by_store[found.facts.store.name]
            records: Iterable[Record] = (record for record in views.records(found) if question.has(record))
            rows += _sorted(question, newest_versions(records, at) if store_type(question.store) == VERSIONED else records)
    return Answer(rows, notes)


def _sorted(question: Question, records: Iterable[Record]) -> list[dict[str, Any]]:
    live = [record for record in records if record.value is not None]
    return [question.row(record) for record in sorted(live, key=lambda record: (record.key or b"", record.partition))]
