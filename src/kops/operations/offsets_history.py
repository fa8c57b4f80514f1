"""Where groups stood, and when: their commits as ``__consumer_offsets`` still has them.

That topic is compacted: of the commits of a partition the last stays, and those before it only until the cleaner comes. It cleans from
the log start on, so when an older commit is still there, every later one is too: what is known is exact, and only the depth is limited.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kops.core.errors import NotFound, Refused
from kops.core.models import Committed, TopicPartition
from kops.core.offsets import Strategy, ToOffset
from kops.core.records import OffsetRange
from kops.core.times import parse_time, time_text
from kops.formats.consumer_offsets import TOPIC, OffsetKey, decode_key, decode_value, key_prefixes, partition_of_group
from kops.gateways.kafka.offsets import READ_COMMITTED
from kops.operations.offsets_wishes import Wish, included, narrowing
from kops.operations.services import Services


@dataclass(frozen=True, slots=True)
class Event:
    """A commit of one partition, or its end.

    :param time: milliseconds since the epoch: of the commit, and for a deletion of its record
    :param committed: None when the commit was deleted, or expired
    :param log_offset: of the record in its partition of ``__consumer_offsets``
    """

    group: str
    partition: TopicPartition
    time: int
    committed: Committed | None
    log_offset: int


def read_history(services: Services, group_ids: Sequence[str]) -> dict[str, list[Event]]:
    """Return every commit of some groups that is still in the log, in its order.

    :raises NotFound: when the cluster has no ``__consumer_offsets`` that this user can see
    """
    places = services.kafka.offsets.partitions_of([TOPIC])[TOPIC]
    homes = {group: TopicPartition(TOPIC, partition_of_group(group, len(places))) for group in group_ids}
    bounds = services.kafka.offsets.bounds(set(homes.values()), isolation=READ_COMMITTED)
    ranges = {place: OffsetRange(found.log_start_offset, found.log_end_offset) for place, found in bounds.items()}
    prefixes = tuple(prefix for group in group_ids for prefix in key_prefixes(group))
    history: dict[str, list[Event]] = {group: [] for group in group_ids}
    reader = services.kafka.records.read(ranges, isolation=READ_COMMITTED)
    services.progress.step(f"Reading {TOPIC}")
    for batch in reader:
        for record in batch:
            if record.key is None or not record.key.startswith(prefixes):
                continue
            key = decode_key(record.key)
            if isinstance(key, OffsetKey) and key.group in history:
                history[key.group].append(_event(key, record.value, record.timestamp, record.offset))
        services.progress.advance(reader.done, reader.total, "offsets")
    return history


def history_rows(
    services: Services, group_id: str, topics: Sequence[str] = (), at: int | None = None
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the commits of a group as rows, oldest first, and what to know about them.

    :param topics: of these partitions only: ``orders``, ``orders:0,3-5``, ``orders-*``
    :param at: where each partition stood at this time, in milliseconds since the epoch
    :raises NotFound: when neither the log nor the coordinator knows the group
    """
    narrow = narrowing(topics)
    events = read_history(services, [group_id])[group_id]
    if not events:
        raise NotFound(f"{TOPIC} has no commits of a group {group_id}", hint="`kops groups list` shows the groups", group=group_id)
    kept = [event for event in events if included(event.partition, narrow)]
    oldest = min((event.time for event in kept), default=None)
    known = f"the oldest commit still known is of {time_text(oldest)}: {TOPIC} is compacted" if oldest is not None else ""
    notes = [known] if known else [f"group {group_id} has no commits there"]
    if at is None:
        return [_row(event) for event in kept], notes
    stood = standing(kept, at)
    rows = [_standing_row(partition, event, at) for partition, event in sorted(stood.items())]
    return rows, notes


def standing(events: Iterable[Event], at: int) -> dict[TopicPartition, Event | None]:
    """Return for each partition its last event at or before a time, in the order of the log; None where the log begins later."""
    stood: dict[TopicPartition, Event | None] = {}
    for event in events:
        if event.time <= at:
            stood[event.partition] = event
        else:
            stood.setdefault(event.partition, None)
    return stood


def history_time(text: str, now: datetime) -> int:
    """Return the time of ``--to-history`` and ``--at``, in milliseconds since the epoch; the ``@`` of the grammar may be left out."""
    return parse_time(text if text.startswith("@") else f"@{text}", now)


def history_strategies(
    services: Services, group_id: str, at: int, partitions: Iterable[TopicPartition], *, every: bool = False
) -> tuple[dict[TopicPartition, Strategy], dict[TopicPartition, str]]:
    """Return where partitions stood at a time, and why that is not known of the others.

    :param at: milliseconds since the epoch
    :param every: also the partitions that had a commit then, and have none now
    :raises Refused: when it is known of none
    """
    stood = standing(read_history(services, [group_id])[group_id], at)
    strategies: dict[TopicPartition, Strategy] = {}
    unknown: dict[TopicPartition, str] = {}
    for partition in {*partitions, *(stood if every else ())}:
        event = stood.get(partition)
        if event is None:
            unknown[partition] = f"where it stood at {time_text(at)} is not known any more"
        elif event.committed is None:
            unknown[partition] = f"had no commit at {time_text(at)}: `kops offsets delete` takes it away"
        else:
            strategies[partition] = _strategy(event.committed, event.time)
    if not strategies:
        hint = f"`kops offsets history {group_id}` shows what is known; {TOPIC} is compacted"
        raise Refused(f"where group {group_id} stood at {time_text(at)} is not known", hint=hint, group=group_id)
    return strategies, unknown


def history_wishes(services: Services, group_ids: Sequence[str], at: int, narrow: Sequence[Wish] = ()) -> list[Wish]:
    """Return where many groups stood at a time, as far as it is known.

    :param narrow: of these topics only
    :raises Refused: when it is known of none
    """
    wishes = [
        Wish(partition.topic, _strategy(event.committed, event.time), (partition.partition,), group=group)
        for group, events in read_history(services, group_ids).items()
        for partition, event in standing(events, at).items()
        if event is not None and event.committed is not None and included(partition, narrow)
    ]
    existing, _gone = services.kafka.offsets.partitions_or_errors({str(wish.topic) for wish in wishes})
    there = {(partition.topic, partition.partition) for partitions in existing.values() for partition in partitions}
    wishes = [wish for wish in wishes if wish.partitions and (wish.topic, wish.partitions[0]) in there]
    if not wishes:
        raise Refused(f"where these groups stood at {time_text(at)} is not known", hint=f"{TOPIC} is compacted: what is older is gone")
    return wishes


def _strategy(committed: Committed, time: int) -> Strategy:
    return ToOffset(committed.offset, reason=f"committed {time_text(time)}")


def _event(key: OffsetKey, value: bytes | None, timestamp: int | None, offset: int) -> Event:
    if value is None:
        return Event(key.group, key.partition, timestamp or 0, None, offset)
    found = decode_value(value)
    return Event(key.group, key.partition, found.time, found.committed, offset)


def _row(event: Event) -> dict[str, Any]:
    committed = event.committed
    return {
        "time": time_text(event.time),
        "topic": event.partition.topic,
        "partition": event.partition.partition,
        "event": "deleted" if committed is None else "commit",
        "offset": committed.offset if committed else None,
        "leader_epoch": committed.leader_epoch if committed else None,
        "metadata": committed.metadata if committed else None,
        "log_offset": event.log_offset,
    }


def _standing_row(partition: TopicPartition, event: Event | None, at: int) -> dict[str, Any]:
    known = {"topic": partition.topic, "partition": partition.partition, "at": time_text(at)}
    if event is None:
        return known | {"offset": None, "committed": None, "note": "not known any more"}
    note = "" if event.committed else "deleted or expired"
    return known | {"offset": event.committed.offset if event.committed else None, "committed": time_text(event.time), "note": note}
