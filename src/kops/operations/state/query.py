"""The value of a key, or a whole table, from the changelogs as they are or were, or computed again from the input.

No instance of the application is queried: a changelog has the state of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from kops.core.errors import UsageProblem
from kops.core.models import Setting, TopicPartition, isolation_of
from kops.core.records.models import Record
from kops.core.statefile import StateFile
from kops.core.statefile.models import VERSIONED
from kops.core.times import Position, parse_position
from kops.operations.engine.spark import Engine, drop_stage, start_engine
from kops.operations.records.rows import unstable_notes
from kops.operations.services import Services
from kops.operations.state.compute import Computed, compute_stores
from kops.operations.state.evidence_commits import Commits, read_commits
from kops.operations.state.evidence_journal import read_past
from kops.operations.state.exactness import SURE, worst
from kops.operations.state.facts import StoreFacts, read_facts
from kops.operations.state.input_offsets import COMMITTED, InputOffsets, application_group, find_cut
from kops.operations.state.input_starts import begins
from kops.operations.state.judgement import judged_by_evidence
from kops.operations.state.lost_records import losses_text
from kops.operations.state.query_read import Question, changelogs_of, newest_versions, questions, read_records, up_to_committed
from kops.operations.state.stored_keys import version_of

NO_OFFSET = -1
"""The offset of a record that is in no log."""
CHANGELOG, INPUT = "changelog", "input"


@dataclass(frozen=True)
class ComputedViews:
    """Computed stores; the stage of each has all of its keys.

    :param cut: up to where the input counted
    """

    engine: Engine
    cut: InputOffsets
    computed: list[Computed]

    def records(self, found: Computed) -> Iterator[Record]:
        """Yield the live keys of a store, in no particular order."""
        from kops.spark.staging.difference import to_append
        from kops.spark.staging.stage import read_stage

        topic = found.facts.store.changelog
        rows = to_append(read_stage(self.engine.session, found.stage)).where("value is not null").toLocalIterator(prefetchPartitions=True)
        of_store = version_of if found.facts.store.type == VERSIONED else _as_it_is
        for row in rows:
            key, value = of_store(bytes(row.key), bytes(row.value))
            yield Record(topic, row.partition, NO_OFFSET, row.timestamp, key, value)


def _as_it_is(key: bytes, value: bytes) -> tuple[bytes, bytes | None]:
    return key, value


@contextmanager
def computed_views(
    services: Services,
    state_file: StateFile,
    cut_of: Callable[[list[StoreFacts]], InputOffsets],
    *,
    skip_undecodable: bool = False,
    master: str | None = None,
) -> Iterator[ComputedViews]:
    """Compute all stores, judged by what was done to the application, and discard them at the end."""
    engine = start_engine(services, master)
    facts = read_facts(services, state_file)
    cut = cut_of(facts)
    starts = begins(facts)
    past = read_past(services, state_file.application, state_file.stores, cut.committed, starts)
    commits = Commits() if cut.is_new else read_commits(services, state_file, facts, cut.committed, starts=starts, past=past)
    facts = [replace(found, exactness=worst([found.exactness, past.judged.get(found.store.name, SURE)])) for found in facts]
    computed = compute_stores(engine, state_file, [found.without_changelog() for found in facts], cut, skip_undecodable=skip_undecodable)
    try:
        yield ComputedViews(
            engine, cut, [judged_by_evidence(engine, state_file, found, past, commits=commits, cut=cut) for found in computed]
        )
    finally:
        for found in computed:
            drop_stage(found.stage)


END = Position("end")


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
    :raises UsageProblem: when it is not one of them
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
    asked = questions(services, state_file, key)
    names = {question.store.name for question in asked}
    chosen = replace(state_file, stores=tuple(store for store in state_file.stores if store.name in names))
    if origin == INPUT:
        return _from_input(services, chosen, asked, at, skip_undecodable=skip_undecodable, master=master)
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
        notes += _losses(services, partitions[question.store.changelog], settings[question.store.changelog])
    if at != END:
        notes.append("a changelog is compacted: values overwritten since may be missing; --from input computes them again")
    return Answer(rows, notes)


def _losses(services: Services, partitions: Sequence[TopicPartition], settings: Mapping[str, Setting]) -> list[str]:
    """Return a note if a changelog has lost records: a key that is not found there may still be in the store."""
    starts = {at.partition: bound.log_start_offset for at, bound in services.kafka.offsets.bounds(partitions).items()}
    policy = settings.get("cleanup.policy")
    text = losses_text(partitions[0].topic, starts, (policy.value or "") if policy else "delete")
    return [f"{text}; --from input computes them again"] if text else []


def _from_input(
    services: Services, state_file: StateFile, asked: Sequence[Question], at: Position, *, skip_undecodable: bool, master: str | None
) -> Answer:
    """Compute the stores up to the position, and select the requested keys."""
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
            rows += _sorted(question, newest_versions(records, at) if question.store.type == VERSIONED else records)
    return Answer(rows, notes)


def _sorted(question: Question, records: Iterable[Record]) -> list[dict[str, Any]]:
    live = [record for record in records if record.value is not None]
    return [question.row(record) for record in sorted(live, key=lambda record: (record.key or b"", record.partition))]
