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
from kops.core.models import CommittedOffset, TopicPartition
from kops.core.offsets.arithmetic import Stay, Strategy, ToOffset
from kops.core.times import parse_time, time_text
from kops.formats.groups.consumer_offsets import TOPIC
from kops.operations.groups.log import read_group_log
from kops.operations.offsets.rules import Rule, included, narrowing
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
    known = f"the oldest commit still known is of {time_text(oldest)}: {TOPIC} is compacted" if oldest is not None else ""
    notes = [known] if known else [f"group {group_id} has no commits there"]
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


def history_strategies(
    services: Services, group_id: str, at: int, partitions: Iterable[TopicPartition], *, every: bool = False
) -> dict[TopicPartition, Strategy | Stay]:
    """Return the offsets that partitions had at a time; those for which it is not known stay where they are.

    :param at: milliseconds since the epoch
    :param every: include partitions that had a commit then and have none now
    :raises Refused: when none is known
    """
    stood = events_at(read_history(services, [group_id])[group_id], at)
    strategies: dict[TopicPartition, Strategy | Stay] = {}
    for partition in {*partitions, *(stood if every else ())}:
        event = stood.get(partition)
        if event is None:
            strategies[partition] = Stay(f"where it stood at {time_text(at)} is no longer known")
        elif event.committed is None:
            strategies[partition] = Stay(f"had no commit at {time_text(at)}: `kops offsets delete` removes it")
        else:
            strategies[partition] = _strategy(event.committed, event.time)
    if all(isinstance(strategy, Stay) for strategy in strategies.values()):
        hint = f"`kops offsets history {group_id}` shows what is known; {TOPIC} is compacted"
        raise Refused(f"where group {group_id} stood at {time_text(at)} is not known", hint=hint, group=group_id)
    return strategies


def history_rules(services: Services, group_ids: Sequence[str], at: int, narrow: Sequence[Rule] = ()) -> list[Rule]:
    """Return the offsets that many groups had at a time, as far as they are known.

    :param narrow: only these topics
    :raises Refused: when none is known
    """
    rules = [
        Rule(partition.topic, _strategy(event.committed, event.time), (partition.partition,), group=group)
        for group, events in read_history(services, group_ids).items()
        for partition, event in events_at(events, at).items()
        if event is not None and event.committed is not None and included(partition, narrow)
    ]
    existing, _gone = services.kafka.offsets.partitions_or_errors({str(rule.topic) for rule in rules})
    there = {(partition.topic, partition.partition) for partitions in existing.values() for partition in partitions}
    rules = [rule for rule in rules if rule.partitions and (rule.topic, rule.partitions[0]) in there]
    if not rules:
        raise Refused(f"where these groups stood at {time_text(at)} is not known", hint=f"{TOPIC} is compacted: what is older is gone")
    return rules


def _strategy(committed: CommittedOffset, time: int) -> Strategy:
    return ToOffset(committed.offset, reason=f"committed {time_text(time)}")


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
    known = {"topic": partition.topic, "partition": partition.partition, "at": time_text(at)}
    if event is None:
        return known | {"offset": None, "committed": None, "note": "no longer known"}
    note = "" if event.committed else "deleted or expired"
    return known | {"offset": event.committed.offset if event.committed else None, "committed": time_text(event.time), "note": note}
