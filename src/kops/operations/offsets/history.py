"""The history of groups: their commits, as far as ``__consumer_offsets`` still has them.

The topic is compacted: the last commit of a partition stays, the ones before it only until the cleaner runs. It cleans from the log start
onwards: if an older commit is still in the log, so is every later one. What is known is therefore exact; only its depth is limited.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from kops.core.errors import NotFound, Refused
from kops.core.groups.history import CommitEvent, GroupHistory, moves_of_tools
from kops.core.models import TopicPartition
from kops.core.offsets.arithmetic import Stay, Strategy, ToOffset
from kops.core.times import parse_time, time_text
from kops.formats.groups.consumer_offsets import TOPIC
from kops.operations.groups.log import read_group_log
from kops.operations.offsets.rules import Rule, existing_partitions, included, narrowing
from kops.operations.services import Services


def read_history(services: Services, group_ids: Sequence[str]) -> dict[str, list[CommitEvent]]:
    """Return every commit of some groups that is still in the log, in log order.

    :raises NotFound: when the cluster has no ``__consumer_offsets`` that this user can see
    """
    found = read_group_log(services, group_ids).histories
    return {group: _in_order(history) for group, history in found.items()}


def _in_order(history: GroupHistory) -> list[CommitEvent]:
    return sorted((event for events in history.commits.values() for event in events), key=lambda event: event.log_offset)


def _moved(events: Iterable[CommitEvent]) -> list[int | None]:
    """Return by how many offsets each commit moved its partition; None for the first commit and for deletions."""
    stood: dict[TopicPartition, int] = {}
    moved: list[int | None] = []
    for event in events:
        before = stood.pop(event.partition, None)
        if event.committed is not None:
            stood[event.partition] = event.committed.offset
        moved.append(None if event.committed is None or before is None else event.committed.offset - before)
    return moved


def history_rows(
    services: Services,
    group_id: str,
    topics: Sequence[str] = (),
    at: int | None = None,
    *,
    since: int | None = None,
    only_jumps: bool = False,
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the commits of a group as rows, oldest first, and notes about them.

    :param topics: only these partitions: ``orders``, ``orders:0,3-5``, ``orders-*``
    :param at: instead, one row per partition with its offset at this time, in milliseconds since the epoch
    :param since: only commits from this time on, in milliseconds since the epoch
    :param only_jumps: only commits that tools made, and deletions
    :raises NotFound: when the log has no commits of the group
    """
    narrow = narrowing(topics)
    history = read_group_log(services, [group_id]).histories[group_id]
    events = _in_order(history)
    if not events:
        raise NotFound(f"{TOPIC} has no commits of a group {group_id}", hint="`kops groups list` shows the groups", group=group_id)
    kept = [event for event in events if included(event.partition, narrow)]
    oldest = min((event.time for event in kept), default=None)
    depth = f"the oldest commit still known is of {time_text(oldest)}: {TOPIC} is compacted" if oldest is not None else ""
    notes = [depth] if depth else [f"group {group_id} has no commits there"]
    if at is None:
        jumped = {(jump.partition, jump.time) for jump in moves_of_tools(history)} if only_jumps else None
        moved = _moved(kept)
        shown = [
            (event, by)
            for event, by in zip(kept, moved, strict=True)
            if (since is None or event.time >= since)
            and (jumped is None or event.committed is None or (event.partition, event.time) in jumped)
        ]
        if only_jumps and not shown:
            notes.append("no commit there was made by a tool or deleted, as far as leader epochs and members tell")
        return [_row(event, by) for event, by in shown], notes
    stood = events_at(kept, at)
    rows = [_standing_row(partition, event, at) for partition, event in sorted(stood.items())]
    return rows, notes


def events_at(events: Iterable[CommitEvent], at: int) -> dict[TopicPartition, CommitEvent | None]:
    """Return the last event of each partition at or before a time, by log order; None if its first event is later."""
    stood: dict[TopicPartition, CommitEvent | None] = {}
    for event in events:
        if event.time <= at:
            stood[event.partition] = event
        else:
            stood.setdefault(event.partition, None)
    return stood


def history_time(text: str, now: datetime) -> int:
    """Parse the time of ``--to-history`` and ``--at`` to milliseconds since the epoch; the ``@`` of the grammar is optional."""
    return parse_time(text if text.startswith("@") else f"@{text}", now)


def history_rules(services: Services, group_ids: Sequence[str], at: int, narrow: Sequence[Rule] = ()) -> list[Rule]:
    """Return the offsets that groups had at a time; partitions for which that is not known stay where they are.

    :param at: milliseconds since the epoch
    :param narrow: only these topics
    :raises Refused: when none is known, or a topic or partition that is named does not exist
    """
    named = [rule for rule in narrow if not rule.pattern]
    existing = existing_partitions(services, named, ())
    asked = {(str(rule.topic), number) for rule in named for number in rule.partitions or existing[str(rule.topic)]}
    stood = {
        group: {(place.topic, place.partition): event for place, event in events_at(events, at).items() if included(place, narrow)}
        for group, events in read_history(services, group_ids).items()
    }
    existing_now, _gone = services.kafka.offsets.partitions_or_errors({topic for places in stood.values() for topic, _ in places})
    there = {(place.topic, place.partition) for places in existing_now.values() for place in places}
    nameable = there | asked
    rules = [
        # what no longer exists is not asked for, as a name in full would be: it is shown where a group still has a commit of it
        Rule(topic, _where(places.get((topic, number)), at), (number,), pattern=(topic, number) not in nameable, group=group)
        for group, places in stood.items()
        for topic, number in dict.fromkeys([*places, *sorted(asked)])
    ]
    if all(isinstance(rule.strategy, Stay) for rule in rules):
        hint = f"`kops offsets history {group_ids[0]}` shows what is known; {TOPIC} is compacted" if group_ids else None
        whom = f"group {group_ids[0]}" if len(group_ids) == 1 else "these groups"
        raise Refused(f"where {whom} stood at {time_text(at)} is not known", hint=hint)
    return rules


def _where(event: CommitEvent | None, at: int) -> Strategy | Stay:
    if event is None:
        return Stay(f"where it stood at {time_text(at)} is no longer known")
    if event.committed is None:
        return Stay(f"had no commit at {time_text(at)}: `kops offsets delete` removes it")
    return ToOffset(event.committed.offset, reason=f"committed {time_text(event.time)}")


def _row(event: CommitEvent, moved: int | None) -> dict[str, Any]:
    committed = event.committed
    return {
        "time": time_text(event.time),
        "topic": event.partition.topic,
        "partition": event.partition.partition,
        "event": "deleted" if committed is None else "commit",
        "offset": committed.offset if committed else None,
        "moved": moved,
        "leader_epoch": committed.leader_epoch if committed else None,
        "metadata": committed.metadata if committed else None,
        "log_offset": event.log_offset,
    }


def _standing_row(partition: TopicPartition, event: CommitEvent | None, at: int) -> dict[str, Any]:
    row = {"topic": partition.topic, "partition": partition.partition, "at": time_text(at)}
    if event is None:
        return row | {"offset": None, "committed": None, "note": "no longer known"}
    note = "" if event.committed else "deleted or expired"
    return row | {"offset": event.committed.offset if event.committed else None, "committed": time_text(event.time), "note": note}
