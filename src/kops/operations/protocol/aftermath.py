"""What a mutation left behind, and what has happened to it since: undo restores only what has not been changed again.

Read once when a mutation ends, stored in its journal entry, and compared when the entry is to be undone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kops.core.errors import KopsError, Refused, StateMoved
from kops.core.findings import counted, names_text
from kops.core.models import Bounds, TopicPartition
from kops.operations.services import Services

_MOST_READ = 1_000
"""How many records per partition are read to count their keys."""


@dataclass(frozen=True)
class Traces:
    """The topics and the group that undoing a mutation would change again.

    :param logs: topics whose records count: a new topic id, and every record added since, is a loss
    :param group: whose committed offsets count, all of them; empty: none
    """

    logs: tuple[str, ...] = ()
    group: str = ""


def look(services: Services, traces: Traces) -> dict[str, Any]:
    """Return the current state of the traces, as the journal stores it.

    :returns: ``topics`` (ids by name, None: does not exist), ``ends`` (log end offsets), ``committed`` (offsets of the group)
    """
    found: dict[str, Any] = {}
    if traces.logs:
        there = services.kafka.topics.existing(traces.logs)
        found["topics"] = {name: there[name].topic_id if name in there else None for name in traces.logs}
        partitions = [TopicPartition(topic.name, partition.partition) for topic in there.values() for partition in topic.partitions]
        found["ends"] = {str(at): bound.log_end_offset for at, bound in sorted(services.kafka.offsets.bounds(partitions).items())}
    if traces.group:
        committed = services.kafka.groups.committed([traces.group], stable=True)[traces.group]
        found["committed"] = {str(partition): one.offset for partition, one in sorted(committed.items())}
    return found


def losses_since(services: Services, traces: Traces, left: Any, between: Mapping[str, list[int | None]]) -> tuple[str, ...]:
    """Describe what has happened since an entry and would be lost by undoing it, a sentence each.

    :param left: what ``look`` returned when the entry ended; None if it was stopped in the middle
    :param between: for an entry that was stopped in the middle: the offsets that it may have left its group with, by partition
    :raises Refused: when a topic was recreated: nothing of the entry is in it
    """
    if traces == Traces():
        return ()
    now = look(services, traces)
    if left is None:
        here = {target: offset for target, offset in now.get("committed", {}).items() if target in between}
        return tuple(_committed_since(traces.group, between, here))
    return tuple(_since(services, traces, left, now))


def refuse_losses(losses: Iterable[str], entry_id: str) -> None:
    """Refuse an undo that would lose something.

    :raises StateMoved: naming what would be lost
    """
    found = list(losses)
    if found:
        raise StateMoved(
            f"undoing {entry_id} would lose what happened since: {'; '.join(found)}",
            hint=f"`kops undo {entry_id} --accept-loss` proceeds anyway; its plan shows what is lost",
            losses=found,
        )


def _since(services: Services, traces: Traces, left: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    ids, old_ids = now.get("topics", {}), left.get("topics", {})
    for name, topic_id in ids.items():
        if topic_id is not None and topic_id != old_ids.get(name, topic_id):
            what = "created" if old_ids[name] is None else "deleted and created again"
            raise Refused(
                f"{name} was {what} since: it is another topic", hint="`kops topics describe` shows it; `kops journal list`, by whom"
            )
    grown: dict[str, dict[TopicPartition, Bounds]] = {}
    for target, end in now.get("ends", {}).items():
        topic, _, number = target.rpartition(":")
        before = left.get("ends", {}).get(target, 0)
        if end != before:
            grown.setdefault(topic, {})[TopicPartition(topic, int(number))] = Bounds(min(before, end), end)
    for topic, ranges in grown.items():
        yield _grown(services, topic, ranges)
    if traces.group and "committed" in left:
        yield from _committed_since(traces.group, {target: [offset] for target, offset in left["committed"].items()}, now["committed"])


def _grown(services: Services, topic: str, ranges: Mapping[TopicPartition, Bounds]) -> str:
    total = sum(bound.log_end_offset - bound.log_start_offset for bound in ranges.values())
    where = [f"{at} from {bound.log_start_offset} to {bound.log_end_offset}" for at, bound in sorted(ranges.items())]
    keys = _keys(services, ranges)
    return f"{topic} has {counted(total, 'more record')}{keys} ({names_text(where)})"


def _keys(services: Services, ranges: Mapping[TopicPartition, Bounds]) -> str:
    """Format the number of distinct keys of the first records; empty if they cannot be read."""
    from kops.gateways.kafka.records_ends import read_first

    try:
        found = read_first(services.kafka.records, dict(ranges), _MOST_READ, "read_uncommitted")
    except KopsError:
        return ""
    records = [record for many in found.values() for record in many]
    keys = {record.key for record in records if record.key is not None}
    if not keys:
        return ""
    least = "at least " if any(len(many) >= _MOST_READ for many in found.values()) else ""
    return f" of {least}{counted(len(keys), 'key')}"


def _committed_since(group: str, allowed: Mapping[str, list[int | None]], now: Mapping[str, int]) -> Iterator[str]:
    """Yield a sentence if a group has offsets that an entry cannot have left it with.

    :param allowed: by partition, the offsets that it may have; partitions that are not listed had no commit
    """
    moved = []
    for target in sorted({*allowed, *now}):
        here, known = now.get(target), allowed.get(target, [None])
        if here not in known:
            moved.append(f"{target} from {'no commit' if known[-1] is None else known[-1]} to {'no commit' if here is None else here}")
    if moved:
        yield f"group {group} moved on: {names_text(moved)}"
