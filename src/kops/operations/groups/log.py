"""Reads what ``__consumer_offsets`` still holds of groups: their commits, and the members that joined and left."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kops.core.errors import UndecodableRecord
from kops.core.groups.history import CommitEvent, GroupHistory, MembersEvent
from kops.core.models import READ_COMMITTED, TopicPartition
from kops.core.records.models import OffsetRange, Record
from kops.formats.groups.consumer_offsets import (
    TOPIC,
    MembersKey,
    OffsetKey,
    decode_classic_members,
    decode_key,
    decode_members_key,
    decode_value,
    key_prefixes,
    partition_of_group,
)
from kops.operations.services import Services

_FEW_GROUPS = 50


@dataclass(frozen=True)
class GroupLog:
    """The part of ``__consumer_offsets`` that was read.

    :param histories: by group
    :param left_out: how many offsets were not read because there were too many
    """

    histories: Mapping[str, GroupHistory]
    left_out: int


@dataclass
class _Builder:
    commits: dict[TopicPartition, list[CommitEvent]] = field(default_factory=lambda: defaultdict(list))
    members: list[MembersEvent] = field(default_factory=list)
    present: set[str] = field(default_factory=set)

    def members_are(self, time: int, now: Mapping[str, int]) -> None:
        """Record the membership of a classic group, whose records list all members with their session timeouts."""
        joined, left = frozenset(now) - self.present, frozenset(self.present) - now.keys()
        self.present = set(now)
        self.members.append(MembersEvent(time, joined, left, len(now), max(now.values(), default=None)))

    def member_is(self, time: int, name: str, *, there: bool) -> None:
        """Record one member of a group of the newer protocols, which have a record per member."""
        changed = frozenset({name}) if there != (name in self.present) else frozenset()
        (self.present.add if there else self.present.discard)(name)
        self.members.append(MembersEvent(time, changed if there else frozenset(), frozenset() if there else changed, len(self.present)))


def read_group_log(services: Services, group_ids: Sequence[str], *, since: int | None = None, most: int | None = None) -> GroupLog:
    """Return what is known about some groups, in the order of the log.

    :param since: milliseconds since the epoch: read from there on; None reads all
    :param most: how many offsets to read in total, the newest of each partition; None reads all
    :raises NotFound: when the cluster has no ``__consumer_offsets`` that this user can see
    """
    offsets = services.kafka.offsets
    places = offsets.partitions_of([TOPIC])[TOPIC]
    homes = {group: TopicPartition(TOPIC, partition_of_group(group, len(places))) for group in group_ids}
    # Exactly-once applications commit in transactions: what is aborted, or not decided yet, is not a commit.
    bounds = offsets.bounds(set(homes.values()), isolation=READ_COMMITTED)
    starts = {place: found.log_start_offset for place, found in bounds.items()}
    if since is not None:
        filled = [place for place, found in bounds.items() if found.log_end_offset > found.log_start_offset]
        for place, offset in offsets.at_time(filled, since).items():
            starts[place] = bounds[place].log_end_offset if offset is None else max(starts[place], offset)
    lengths = {place: max(0, bounds[place].log_end_offset - start) for place, start in starts.items()}
    longest = _cut(list(lengths.values()), most) if most is not None else None
    kept = {place: length if longest is None else min(length, longest) for place, length in lengths.items()}
    ranges = {place: OffsetRange(found.log_end_offset - kept[place], found.log_end_offset) for place, found in bounds.items()}
    builders = _read(services, group_ids, ranges)
    histories = {
        group: GroupHistory({partition: tuple(events) for partition, events in builder.commits.items()}, tuple(builder.members))
        for group, builder in builders.items()
    }
    return GroupLog(histories, sum(lengths.values()) - sum(kept.values()))


def _read(services: Services, group_ids: Sequence[str], ranges: Mapping[TopicPartition, OffsetRange]) -> dict[str, _Builder]:
    builders = {group: _Builder() for group in group_ids}
    prefixes = tuple(prefix for group in group_ids for prefix in key_prefixes(group))
    # With thousands of groups, decoding is faster than comparing with thousands of prefixes.
    few = prefixes if len(group_ids) <= _FEW_GROUPS else ()
    reader = services.kafka.records.read(ranges, isolation=READ_COMMITTED)
    services.progress.step(f"reading {TOPIC}")
    for batch in reader:
        for record in batch:
            if record.key is not None and (not few or record.key.startswith(few)):
                _take(builders, record)
        services.progress.advance(reader.done, reader.total, "offsets")
    return builders


def _take(builders: Mapping[str, _Builder], record: Record) -> None:
    assert record.key is not None  # noqa: S101 - the caller has looked
    key: OffsetKey | MembersKey | None = decode_key(record.key) or decode_members_key(record.key)
    builder = builders.get(key.group) if key is not None else None
    if key is None or builder is None:
        return
    time = record.timestamp or 0
    if isinstance(key, OffsetKey):
        if record.value is None:  # deleted or expired; the time is that of the tombstone
            event = CommitEvent(key.partition, time, None, record.offset)
        else:
            found = decode_value(record.value)
            event = CommitEvent(key.partition, found.time, found.committed, record.offset, found.topic_id)
        builder.commits[key.partition].append(event)
    elif key.member is None:  # of a classic group, which writes all of its members in one record
        with contextlib.suppress(UndecodableRecord):  # a future version: the members are then unknown
            builder.members_are(time, {} if record.value is None else decode_classic_members(record.value))
    else:
        builder.member_is(time, key.member, there=record.value is not None)


def _cut(lengths: Sequence[int], most: int) -> int | None:
    """Return how many offsets per partition may be read so that the total is at most ``most``; None if all may be read."""
    left, waiting = most, sorted(lengths)
    if sum(waiting) <= most:
        return None
    for at, length in enumerate(waiting):
        share = left // (len(waiting) - at)
        if length > share:
            return share
        left -= length
    return None
