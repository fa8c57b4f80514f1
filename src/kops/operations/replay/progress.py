"""Progress of a replay, stored on the cluster of the target, in the transactions of the records.

It is stored twice: as the committed offsets of groups of its own, which show at once whether a transaction was committed, and in a
compacted topic of kops. Committed offsets expire (``offsets.retention.minutes``), and so do transactional ids
(``transactional.id.expiration.ms``); the newest record of a key of a compacted topic does not. A replay's records there have the name of
its group as key and are written in the transactions of the records that it sends, so both exist or neither does. What a redrive is about to
send, and what was sent back, is written outside of transactions, before and after.

Before anything is sent, both record where each partition begins; so where nothing is stored, it was forgotten, or nothing was sent. The
journal of this user may know more about a replay: several entries may have continued it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kops.core.durations import duration_text
from kops.core.errors import AlreadyExists, AuthorizationFailed, KopsError, OperationFailed, Refused
from kops.core.findings import counted, names_text
from kops.core.models import CommittedOffset, NewRecord, NewTopic, TopicPartition
from kops.core.plan import Plan, Status
from kops.core.records.models import OffsetRange
from kops.core.topics.names import PROGRESS_TOPIC
from kops.core.topics.settings import POLICY
from kops.operations.engine.stable import wait_until_stable
from kops.operations.protocol.journal import Entry, EntryStatus, Journal
from kops.operations.replay.arguments import Given
from kops.operations.services import Services

if TYPE_CHECKING:
    from kops.spark.replay.sender import PartitionProgress


_SHOWN = 5


def progress_of(
    services: Services, name: str, partitions: Iterable[int], *, stable: bool = True, settled: bool = True
) -> dict[int, PartitionProgress]:
    """Return the progress of the partitions of a source; those that were not begun, or were forgotten, are left out.

    :param name: of the replay
    :param stable: wait for a transaction that is being decided, which after a crash takes up to its timeout
    :param settled: the same where the groups are gone: ``read_notes``
    """
    from kops.spark.replay.jobs import group_of
    from kops.spark.replay.sender import parse_progress

    groups = {group_of(name, number): number for number in partitions}
    try:
        answers = services.kafka.groups.committed(groups, stable=stable)
    except AuthorizationFailed as refused:
        prefix = "-".join(name.split("-")[:2])
        rights = "READ and DELETE on groups, and WRITE on transactional ids"
        refused.hint = f"a replay stores its progress in groups of its own: it needs {rights}, that begin with {prefix}-"
        raise
    found = {
        groups[group]: parse_progress(committed.offset, committed.metadata or "")
        for group, offsets in answers.items()
        for committed in offsets.values()
        if committed is not None
    }
    if len(found) < len(groups):
        kept = read_notes(services, f"{name}-", committed=True, settled=settled)
        found |= {number: parse_progress(**kept[group]) for group, number in groups.items() if number not in found and group in kept}
    return found


def begin_progress(services: Services, plan: Plan[Given], partitions: Iterable[int]) -> None:
    """Store where partitions begin, before any of their records are sent.

    :raises KopsError: when the brokers reject it; nothing was sent
    """
    from kops.spark.replay.jobs import group_of
    from kops.spark.replay.sender import PartitionProgress

    given = plan.arguments
    starts = {group_of(given.replay, number): PartitionProgress(given.ranges[number][0]) for number in partitions}
    if given.progress_topic and starts:
        create_progress_topic(services)
        write_notes(services, {group: {"offset": sent.offset, "note": sent.position().note} for group, sent in starts.items()})
    place = TopicPartition(given.anchor, 0)
    for group, sent in starts.items():
        error = services.kafka.groups.commit(group, {place: CommittedOffset(sent.offset, sent.position().note)})[place]
        if error is not None:
            hint = error.hint or "nothing was sent; run it again"
            raise OperationFailed(f"cannot record how far the replay is: {error.message}", hint=hint)


def refuse_forgotten(services: Services, plan: Plan[Given], done: Mapping[int, PartitionProgress]) -> None:
    """Refuse to continue a replay whose progress is no longer known.

    :param done: progress of the partitions, as far as it is known
    :raises Refused: when a partition is unknown and the targets have grown since the plan was made: the new records may be its own
    """
    unknown = [number for number in plan.arguments.ranges if number not in done]
    if not unknown:
        return
    before = plan.arguments.ends
    there = services.kafka.topics.existing(plan.arguments.targets)
    bounds = services.kafka.offsets.bounds(place for place in before if place.topic in there)
    grown = sum(max(0, bound.log_end_offset - before[place]) for place, bound in bounds.items())
    known = known_positions(services, plan)
    if not grown and not known:
        return
    lost = names_text((f"{plan.arguments.source}:{number}" for number in unknown), _SHOWN)
    said = [
        f"{', '.join(plan.arguments.targets)} grew by {counted(grown, 'offset')} since the replay was planned",
        *(f"the journal knows that {place} was sent up to offset {offset:,} at least" for place, offset in sorted(known.items())),
    ]
    back = "; `kops undo ID` takes out what was sent" if plan.arguments.own else ""
    raise Refused(
        f"how far the replay came is no longer known for {lost}: sending again could send records twice ({'; '.join(said)})",
        hint="brokers expire committed offsets, or they were deleted; compare the target with the source, then plan a replay of"
        f" what is missing with --range{back}",
        partitions=unknown,
        grown=grown,
        journal=known,
    )


def forget_progress(services: Services, name: str, partitions: Iterable[int]) -> list[KopsError]:
    """Delete the stored progress; return the errors that left some of it."""
    from kops.spark.replay.jobs import group_of

    groups = [group_of(name, number) for number in partitions]
    errors = [error for error in services.kafka.groups.delete(groups).values() if error is not None]
    try:
        if services.kafka.topics.existing([PROGRESS_TOPIC]):
            write_notes(services, dict.fromkeys(groups))
    except KopsError as error:
        errors.append(error)
    return errors


def entries_of(services: Services, plan: Plan[Given]) -> Iterator[Entry]:
    name = plan.arguments.replay
    for entry in Journal(services.directories.state / "journal").entries(lambda _damaged: None, mentioning=name):
        if entry.plan.operation == plan.operation and entry.plan.arguments.get("replay") == name:
            yield entry


def finished_by(services: Services, plan: Plan[Given]) -> Entry | None:
    """Return the entry that finished a replay, whose progress is forgotten since."""
    return next((entry for entry in entries_of(services, plan) if entry.status is EntryStatus.DONE), None)


def known_producers(services: Services, plan: Plan[Given]) -> set[int]:
    """Return the producers that wrote its records, as far as closed entries report them."""
    results = (result for entry in entries_of(services, plan) for result in entry.item_results if result.status is not Status.SKIPPED)
    return {producer for result in results if isinstance(result.value, dict) for producer in result.value.get("producers", ())}


def known_positions(services: Services, plan: Plan[Given]) -> dict[str, int]:
    """Return the next offsets that closed entries report, by partition of the source: the replay got at least that far."""
    found: dict[str, int] = {}
    for entry in entries_of(services, plan):
        for result in entry.item_results:
            if isinstance(result.value, dict) and result.value.get("records"):
                found[result.target] = max(found.get(result.target, 0), result.value["next_offset"])
    return found


SETTINGS = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.1", "segment.ms": "86400000"}
_PLACE = TopicPartition(PROGRESS_TOPIC, 0)
_RETENTION = "offsets.retention.minutes"
_MINUTE = 60_000


@dataclass(frozen=True)
class ProgressTopic:
    """Whether the topic can be used.

    :param create: it must be created first
    :param problem: why it cannot be used; empty when it can
    :param hint: what a user with the permission can do about it
    """

    create: bool = False
    problem: str = ""
    hint: str = ""

    @property
    def topic(self) -> str | None:
        return None if self.problem else PROGRESS_TOPIC


def find_progress_topic(services: Services) -> ProgressTopic:
    try:
        if services.kafka.topics.existing([PROGRESS_TOPIC]):
            return _current(services)
        error = services.kafka.topics.create([_NEW], validate_only=True)[PROGRESS_TOPIC]
    except AuthorizationFailed as refused:
        return ProgressTopic(problem=refused.message, hint=_CREATION)
    if isinstance(error, AlreadyExists):
        return _current(services)
    return (
        ProgressTopic(create=True)
        if error is None
        else ProgressTopic(problem=f"{PROGRESS_TOPIC} is not there and cannot be created: {error.message}", hint=_CREATION)
    )


def create_progress_topic(services: Services) -> None:
    """Create the topic if it does not exist.

    :raises KopsError: when that fails
    """
    if services.kafka.topics.existing([PROGRESS_TOPIC]):
        return
    error = services.kafka.topics.create([_NEW])[PROGRESS_TOPIC]
    if error is not None and not isinstance(error, AlreadyExists):
        raise error


def write_notes(services: Services, known: Mapping[str, Any]) -> None:
    """Write a new record for some keys; None deletes a key.

    :raises OperationFailed: when the brokers reject it
    """
    records = [
        NewRecord(key.encode(), None if value is None else json.dumps(value).encode(), partition=0) for key, value in sorted(known.items())
    ]
    try:
        services.kafka.produce(PROGRESS_TOPIC, records)
    except AuthorizationFailed as refused:
        refused.hint = f"kops notes in {PROGRESS_TOPIC} what was sent: it needs READ and WRITE on that topic"
        raise


def read_notes(services: Services, prefix: str, *, committed: bool, settled: bool = True) -> dict[str, Any]:
    """Return the newest value of each key that begins with a prefix; nothing where the topic does not exist.

    :param committed: leave out what transactions aborted or have open; without it, what was written outside of them can be read even then
    :param settled: wait for open transactions first, so that nothing committed is missed
    :raises OperationFailed: when kops did not write a record
    """
    if not services.kafka.topics.existing([PROGRESS_TOPIC]):
        return {}
    bound = services.kafka.offsets.bounds([_PLACE])[_PLACE]
    isolation = "read_uncommitted"
    end = bound.log_end_offset
    if committed:
        isolation = "read_committed"
        if settled:
            wait_until_stable(services, {_PLACE: end})
        end = min(end, services.kafka.offsets.bounds([_PLACE], isolation=isolation)[_PLACE].log_end_offset)
    found: dict[str, bytes | None] = {}
    reader = services.kafka.records.parts({_PLACE: OffsetRange(bound.log_start_offset, end)}, ("key", "value"), isolation=isolation)
    for batch in reader:
        for key, value in batch:
            name = (key or b"").decode(errors="replace")
            if name.startswith(prefix):
                found[name] = value
    try:
        return {name: json.loads(value) for name, value in found.items() if value is not None}
    except ValueError as broken:
        raise OperationFailed(
            f"{PROGRESS_TOPIC} has records that kops did not write: {broken}", hint=f"`kops records consume {PROGRESS_TOPIC}` shows them"
        ) from broken


def progress_notes(services: Services, progress_topic: ProgressTopic) -> list[str]:
    """Return what a plan says about how long progress stays known; nothing if that is for ever and no topic has to be created."""
    if progress_topic.problem:
        kept = f"for {offsets_retention_text(services)} after the last commit"
        return [f"its progress is known {kept}, and `kops replay resume` refuses after that ({progress_topic.problem})"]
    settings = ", ".join(f"{name}={value}" for name, value in SETTINGS.items())
    return (
        [f"creates {PROGRESS_TOPIC} (1 partition, {settings}): how far replays came does not expire there"] if progress_topic.create else []
    )


def offsets_retention_text(services: Services) -> str:
    """Return for how long brokers keep committed offsets of groups without members."""
    cluster = services.kafka.cluster()
    try:
        found = services.kafka.topics.broker_settings(cluster.brokers[0].id).get(_RETENTION)
    except KopsError:
        found = None
    return f"{duration_text(int(found.value) * _MINUTE)} ({_RETENTION})" if found and found.value else f"{_RETENTION} of the brokers"


_CREATION = f"ask someone who may create it: `kops topics create {PROGRESS_TOPIC} --partitions 1 --config cleanup.policy=compact`"
_NEW = NewTopic(PROGRESS_TOPIC, 1, None, SETTINGS)


def _current(services: Services) -> ProgressTopic:
    policy = services.kafka.topics.settings([PROGRESS_TOPIC])[PROGRESS_TOPIC].get(POLICY)
    if policy is not None and policy.value == "compact":
        return ProgressTopic()
    return ProgressTopic(
        problem=f"{PROGRESS_TOPIC} has cleanup.policy={policy.value if policy else None}, so brokers would delete what it holds",
        hint=f"`kops topics alter {PROGRESS_TOPIC} --config cleanup.policy=compact`",
    )
