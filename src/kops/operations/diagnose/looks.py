"""Looks at groups: first at lag, its age and what will expire; a little later at what has moved; then at past commits, to explain it."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kops.core.errors import AuthorizationFailed, KopsError, NotFound
from kops.core.findings import counted
from kops.core.groups.history import GroupHistory, deletions
from kops.core.groups.lag import Place, TimeLag
from kops.core.groups.look import NOT_KNOWN, GroupLook, PartitionLook, Skew, skew_of
from kops.core.models import READ_COMMITTED, READ_UNCOMMITTED, Bounds, CommittedOffset, Setting, TopicPartition
from kops.core.records.models import Record
from kops.core.times import to_milliseconds
from kops.gateways.kafka.records_ends import read_first
from kops.operations.cluster.observe import Gaps
from kops.operations.diagnose.scope import Scope
from kops.operations.groups.lag import LagReport, lag
from kops.operations.groups.matching import is_streams
from kops.operations.groups.open_transactions import OpenTransactions
from kops.operations.groups.unread import MOST_PLACES, headrooms, time_lags
from kops.operations.records.formats import FormatOfEach, format_of_each
from kops.operations.records.rows import row_or_bytes
from kops.operations.services import Services
from kops.output.records import as_line

MOST_RECORDS = 10
"""How many records are read to show where groups are stuck."""
TEXT_LENGTH = 60
COMMIT_HISTORY = "commit history"
LAG_IN_TIME = "lag in time"
MOST_COMMITS = 300_000
"""How many records of ``__consumer_offsets`` are read, the newest ones: they take two seconds."""
NEW_MS = 600_000
"""Records with a timestamp younger than this count as new."""
Settings = Mapping[str, Mapping[str, Setting]]


def look_at_groups(
    services: Services, scope: Scope, gaps: Gaps, settings: Settings, *, within: int, sample_seconds: float, since: int | None = None
) -> tuple[GroupLook, ...]:
    """Look at the groups of a scope.

    :param within: milliseconds; unread data that expires within them is reported
    :param sample_seconds: time between two looks; 0 looks once
    :param since: milliseconds since the epoch, from which on past commits are read; None reads none
    """
    if not scope.groups:
        return ()
    report = lag(services, list(scope.groups), times=False)
    for name, problem in report.problems.items():
        gaps.note(f"group {name}", problem)
    looks = [_first_look(report, name, scope, settings) for name in sorted(report.offsets)]
    looks = _with_times(services, looks, report, gaps, within=within)
    waiting = [look for look in looks if look.may_change]
    if sample_seconds > 0 and waiting:
        services.progress.step(f"looking again in {sample_seconds:g} s for what moves (--sample)")
        started = time.monotonic()
        time.sleep(sample_seconds)
        again = _second_look(services, waiting, gaps)
        seconds = round(time.monotonic() - started, 1)
        looks = [replace(again.get(look.group.group_id, look), seconds=seconds) for look in looks]
    looks = _with_skews(services, _with_history(services, looks, scope, gaps, since=since), gaps)
    looks = _with_epochs(services, looks, gaps)
    records = _records(services, looks, gaps)
    return tuple(replace(look, records={at: records[at] for one in _heads(look) if (at := one.partition) in records}) for look in looks)


def _first_look(report: LagReport, name: str, scope: Scope, settings: Settings) -> GroupLook:
    group, committed = report.groups[name], dict(report.offsets[name].commits())
    owners = {partition: member.client_id for member in group.members for partition in member.assignment}
    partitions = []
    for partition in sorted({*committed, *owners}):
        if not scope.includes(name, partition):
            continue
        ends = report.bounds.get(partition)
        look = PartitionLook(
            partition,
            committed.get(partition),
            ends if isinstance(ends, Bounds) else None,
            owners.get(partition),
            gone=isinstance(ends, NotFound),
        )
        partitions.append(look)
    return GroupLook(group, tuple(partitions), streams=is_streams(group), settings=settings)


def _with_times(services: Services, looks: Sequence[GroupLook], report: LagReport, gaps: Gaps, *, within: int) -> list[GroupLook]:
    """Add how long the first unread records have been waiting, and what will expire unread."""
    unread: dict[Place, int] = {}
    for one in (one for look in looks for one in look.partitions):
        if one.unread and one.next_offset is not None:
            unread[one.partition, one.next_offset] = one.unread
    worst = sorted(unread, key=lambda place: (-unread[place], place))[:MOST_PLACES]
    if len(worst) < len(unread):
        text = f"of {len(unread):,} places where groups have something to read, the {MOST_PLACES:,} with most were examined"
        gaps.errors[LAG_IN_TIME] = KopsError(text)
    times = ages(services, worst, gaps)
    risks = (
        gaps.ask("unread data that expires", lambda: headrooms(services, worst, report.bounds, times, within=within)) if worst else None
    ) or {}

    def complete(one: PartitionLook) -> PartitionLook:
        place = (one.partition, one.next_offset or 0)
        return replace(one, waiting=times.get(place, NOT_KNOWN), expiring=risks.get(place))

    return [replace(look, partitions=tuple(map(complete, look.partitions))) for look in looks]


def ages(services: Services, places: Collection[Place], gaps: Gaps) -> dict[Place, TimeLag]:
    """Return how long the first record at each place has been waiting; what is not known is a gap."""
    found = (gaps.ask(LAG_IN_TIME, lambda: time_lags(services, places)) if places else None) or {}
    unknown = {place: one.note for place, one in found.items() if one.milliseconds is None and one.timestamp is None}
    if unknown:
        at, why = min(unknown.items())
        among = f"{len(unknown):,} of {counted(len(found), 'place')} where groups have something to read"
        text = f"not known in {among}, such as {at[0]}: {why}"
        before = gaps.errors.get(LAG_IN_TIME)
        gaps.errors[LAG_IN_TIME] = KopsError(f"{before.message}; {text}" if before else text)
    return found


def _second_look(services: Services, looks: Sequence[GroupLook], gaps: Gaps) -> dict[str, GroupLook]:
    """Return the groups with what has moved since the first look, without those whose offsets could not be read again."""
    kafka = services.kafka
    states = {group.group_id: group.state for group in gaps.ask("groups", kafka.groups.listed) or ()}
    answers = kafka.groups.committed_or_errors(look.group.group_id for look in looks)
    ends = kafka.offsets.bounds_or_errors({one.partition for look in looks for one in look.partitions if not one.gone})
    again = {}
    for look in looks:
        name = look.group.group_id
        found = answers.get(name)
        if isinstance(found, Mapping):
            moved = tuple(_moved(one, found.get(one.partition), ends.get(one.partition)) for one in look.partitions)
            again[name] = replace(look, partitions=moved, later_state=states.get(name))
    return again


def _moved(look: PartitionLook, committed: CommittedOffset | None, ends: Bounds | KopsError | None) -> PartitionLook:
    if look.committed is None or committed is None:
        return look
    arrived = ends.log_end_offset - look.bounds.log_end_offset if isinstance(ends, Bounds) and look.bounds is not None else 0
    return replace(look, moved=committed.offset - look.committed.offset, arrived=max(0, arrived))


def with_transactions(services: Services, looks: Sequence[GroupLook], held: OpenTransactions, gaps: Gaps) -> tuple[GroupLook, ...]:
    """Add the open transactions of the partitions that groups read, and whether they leave a group nothing to read.

    Between a commit and the first open transaction there may be offsets without a record for ``read_committed`` consumers: transaction
    markers and aborted records.
    """
    asked = {
        (one.partition, one.next_offset)
        for look in looks
        for one in look.partitions
        if one.behind and one.next_offset is not None and one.next_offset < held.stable.get(one.partition, 0) and _open(one, held)
    }
    readable = gaps.ask("records", lambda: services.kafka.groups.first_records(asked, isolation=READ_COMMITTED)) if asked else {}

    def complete(one: PartitionLook) -> PartitionLook:
        stable, next_offset = held.stable.get(one.partition), one.next_offset
        blocked = False
        if _open(one, held) and stable is not None and next_offset is not None:
            nothing = readable is not None and (one.partition, next_offset) in readable and readable[one.partition, next_offset] is None
            blocked = next_offset == stable or (next_offset < stable and nothing)
        in_doubt = one.partition not in held.open and held.may_be_open(one.partition)
        return replace(one, held=held.open.get(one.partition), in_doubt=in_doubt, blocked=blocked)

    return tuple(replace(look, partitions=tuple(map(complete, look.partitions))) for look in looks)


def _open(one: PartitionLook, held: OpenTransactions) -> bool:
    return one.partition in held.open or one.partition in held.unknown


def _with_history(services: Services, looks: Sequence[GroupLook], scope: Scope, gaps: Gaps, *, since: int | None) -> list[GroupLook]:
    """Add the past commits of groups, and the partitions whose commits were deleted.

    :param since: milliseconds since the epoch, from which on commits are read; None reads none
    """
    at = to_milliseconds(services.now())
    looks = [replace(look, at=at) for look in looks]
    if since is None or not looks:
        return looks
    from kops.formats.groups.consumer_offsets import TOPIC
    from kops.operations.groups.log import read_group_log

    names = [look.group.group_id for look in looks]
    try:
        found = read_group_log(services, names, since=since, most=MOST_COMMITS)
    except (NotFound, AuthorizationFailed):
        gaps.note(COMMIT_HISTORY, AuthorizationFailed(f"lacks READ on topic {TOPIC}, or it does not exist yet"))
        return looks
    except KopsError as problem:
        gaps.note(COMMIT_HISTORY, problem)
        return looks
    if found.left_out:
        text = f"only the newest {MOST_COMMITS:,} commits were read, {found.left_out:,} were left out; a shorter --history reads all"
        gaps.errors[COMMIT_HISTORY] = KopsError(text)
    histories = {name: _narrowed(history, name, scope) for name, history in found.histories.items()}
    lost = {name: {one.partition for one in deletions(history)} for name, history in histories.items()}
    topics = sorted({partition.topic for some in lost.values() for partition in some})
    existing = (gaps.ask("topics", lambda: services.kafka.topics.existing(topics)) if topics else None) or {}
    ids = {name: topic.topic_id for name, topic in existing.items() if topic.topic_id}
    bounds = services.kafka.offsets.bounds_or_errors({one for some in lost.values() for one in some if one.topic in existing})
    known = since if not found.left_out else None
    return [replace(_with_past(look, histories[look.group.group_id], ids, bounds), known_since=known) for look in looks]


def _narrowed(history: GroupHistory, name: str, scope: Scope) -> GroupHistory:
    return replace(history, commits={partition: events for partition, events in history.commits.items() if scope.includes(name, partition)})


def _with_past(
    look: GroupLook, history: GroupHistory, ids: Mapping[str, str], bounds: Mapping[TopicPartition, Bounds | KopsError]
) -> GroupLook:
    known = {one.partition for one in look.partitions}
    added = [
        PartitionLook(one.partition, None, found)
        for one in deletions(history)
        if one.partition not in known and isinstance(found := bounds.get(one.partition), Bounds)
    ]
    return replace(look, partitions=(*look.partitions, *added), history=history, topic_ids=ids)


def _with_skews(services: Services, looks: Sequence[GroupLook], gaps: Gaps) -> list[GroupLook]:
    """Add the hot partitions of the topics on which groups are behind: one request for all topics."""
    behind = {one.partition.topic for look in looks if look.group.state != "EMPTY" for one in look.partitions if one.behind}
    ends = {one.partition: one.bounds for look in looks for one in look.partitions if one.partition.topic in behind and one.bounds}
    if not ends:
        return list(looks)
    since = to_milliseconds(services.now()) - NEW_MS
    young = gaps.ask("new records", lambda: services.kafka.offsets.at_time(ends, since))
    if young is None:
        return list(looks)
    new: dict[str, dict[TopicPartition, int]] = {}
    for partition, bounds in ends.items():
        first = young.get(partition)
        count = 0 if first is None else max(0, bounds.log_end_offset - max(first, bounds.log_start_offset))
        new.setdefault(partition.topic, {})[partition] = count
    skews: dict[str, Skew] = {topic: found for topic, counts in new.items() if (found := skew_of(counts, NEW_MS)) is not None}
    behind_in = [{one.partition.topic for one in look.partitions if one.behind} for look in looks]
    return [
        replace(look, skews=tuple(skews[topic] for topic in sorted(topics & skews.keys())))
        for look, topics in zip(looks, behind_in, strict=True)
    ]


def _with_epochs(services: Services, looks: Sequence[GroupLook], gaps: Gaps) -> list[GroupLook]:
    """Add what tells a lost log from a recreated topic, where groups have committed past the end."""
    past = [one for look in looks for one in look.partitions if one.past_end]
    epochs = {one.partition: one.committed.leader_epoch for one in past if one.committed and one.committed.leader_epoch is not None}
    if not past:
        return list(looks)
    ends = (gaps.ask("leader epochs", lambda: services.kafka.details.epoch_ends(epochs)) if epochs else None) or {}
    existing = gaps.ask("topics", lambda: services.kafka.topics.existing({one.partition.topic for one in past})) or {}
    ids = {name: topic.topic_id for name, topic in existing.items() if topic.topic_id}

    def complete(one: PartitionLook) -> PartitionLook:
        return replace(one, epoch_end=ends.get(one.partition)) if one.past_end else one

    return [replace(look, partitions=tuple(map(complete, look.partitions)), topic_ids={**ids, **look.topic_ids}) for look in looks]


def _heads(look: GroupLook) -> tuple[PartitionLook, ...]:
    """Return the partitions whose next record may explain why the group crashes or is stuck."""
    return look.crashing or look.stuck


def _records(services: Services, looks: Sequence[GroupLook], gaps: Gaps) -> dict[TopicPartition, tuple[str, dict[str, Any]]]:
    """Return the next record of each of the partitions that have waited longest, as text and as JSON."""
    stuck = [(look.group.group_id, one) for look in looks for one in _heads(look)]
    stuck.sort(key=lambda each: -(each[1].waiting.milliseconds or 0))
    bounds: dict[TopicPartition, Bounds] = {}
    for _, one in stuck[:MOST_RECORDS]:
        if one.bounds is not None and one.next_offset is not None:
            bounds.setdefault(one.partition, Bounds(one.next_offset, one.bounds.log_end_offset))
    found = gaps.ask("records", lambda: read_first(services.kafka.records, bounds, 1, READ_UNCOMMITTED)) if bounds else None
    form = format_of_each(services, None)
    return {partition: _shown(records[0], form) for partition, records in (found or {}).items() if records}


def _shown(record: Record, form: FormatOfEach) -> tuple[str, dict[str, Any]]:
    row = row_or_bytes(record, form(record.key), form(record.value), [])
    key, value = (_short(row[part], row[f"{part}_encoding"]) for part in ("key", "value"))
    what = "a tombstone" if row["tombstone"] else f"value {value}"
    return f"offset {record.offset} (key {key}, {what})", row


def _short(data: Any, encoding: str | None) -> str:
    """Return a key or value for people: one line, shortened; base64 is marked as such."""
    text = as_line(data, encoding)
    return text if len(text) <= TEXT_LENGTH else f"{text[:TEXT_LENGTH]}..."
