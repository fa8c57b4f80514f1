"""A key's value, or a whole table, from the changelogs as they are or were, or computed again from the input.

No instance of the application is asked: a changelog has the state of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from kops.core.errors import UsageProblem
from kops.core.models import Setting, TopicPartition
from kops.core.records.models import Record
from kops.core.statefile import StateFile
from kops.core.statefile.models import VERSIONED
from kops.core.times import Position, parse_position
from kops.operations.records.rows import unstable_notes
from kops.operations.services import Services
from kops.operations.state.cut import COMMITTED, application_group, find_cut
from kops.operations.state.expected import computed_views
from kops.operations.state.losses import losses_text
from kops.operations.state.query_questions import Question, questions
from kops.operations.state.query_read import changelogs_of, newest_versions, read_records, up_to_committed

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
    isolation = "read_committed" if state_file.exactly_once else "read_uncommitted"
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
    """Say that a changelog has lost records: a key that is not found there may be in the store nevertheless."""
    starts = {at.partition: bound.log_start_offset for at, bound in services.kafka.offsets.bounds(partitions).items()}
    policy = settings.get("cleanup.policy")
    text = losses_text(partitions[0].topic, starts, (policy.value or "") if policy else "delete")
    return [f"{text}; --from input computes them again"] if text else []


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
            rows += _sorted(question, newest_versions(records, at) if question.store.type == VERSIONED else records)
    return Answer(rows, notes)


def _sorted(question: Question, records: Iterable[Record]) -> list[dict[str, Any]]:
    live = [record for record in records if record.value is not None]
    return [question.row(record) for record in sorted(live, key=lambda record: (record.key or b"", record.partition))]
