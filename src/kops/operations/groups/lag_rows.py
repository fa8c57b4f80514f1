"""The rows of ``kops groups lag``, nearly all of them created a topic at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import le, sub
from typing import Any

from kops.core.blocks import Block
from kops.core.errors import KopsError, NotFound
from kops.core.models import READ_COMMITTED, Bounds, Committed, Group, GroupOffsets, TopicPartition
from kops.core.offsets.arithmetic import lag_of
from kops.core.rights import reason
from kops.operations.groups.details import Details

Row = dict[str, Any]

_FACTS = (
    *("partition", "committed", "log_start_offset", "log_end_offset", "last_stable_offset", "lag", "time_lag_ms", "first_unread", "note"),
    *("transaction", "expires"),
)
"""The keys whose values are the same for every group with the same committed offset."""


@dataclass(frozen=True, slots=True)
class _Ends:
    """The bounds of a topic's partitions.

    :param stable: the last stable offsets; None where they were not requested
    """

    starts: tuple[int, ...]
    ends: tuple[int, ...]
    stable: tuple[int | None, ...]


class LagRows:
    """Creates rows, and caches what the rows of many groups have in common.

    :param bounds: log start and high watermark, or why they are not known
    :param isolation: by which lag is counted
    """

    def __init__(self, bounds: Mapping[TopicPartition, Bounds | KopsError], details: Details, isolation: str) -> None:
        self._bounds = bounds
        self._details = details
        self._to_stable = isolation == READ_COMMITTED
        self._ends: dict[tuple[str, tuple[int, ...]], _Ends | None] = {}
        self._shown: dict[str, dict[tuple[int, int | None], tuple[Any, ...]]] = {}

    def of(self, group: Group, committed: GroupOffsets) -> Iterator[Block]:
        """Yield the rows of a group, one block per topic."""
        owners: dict[str, dict[int, str]] = {}
        for member in group.members:
            for partition in member.assignment:
                owners.setdefault(partition.topic, {})[partition.partition] = member.client_id
        for topic, partitions, offsets in committed.columns():
            while owners and (first := min(owners)) < topic:
                yield self._single(group, first, {}, owners.pop(first))
            owned = owners.pop(topic, None)
            block = None if owned else self._plain(group, topic, partitions, offsets)
            yield block or self._single(group, topic, dict(zip(partitions, offsets, strict=True)), owned or {})
        for topic in sorted(owners):
            yield self._single(group, topic, {}, owners[topic])

    def _plain(self, group: Group, topic: str, partitions: tuple[int, ...], offsets: tuple[int, ...]) -> Block | None:
        """Return the rows of a topic that consist of numbers only; None if a row may need a note or other details."""
        found = self._ends_of(topic, partitions)
        if found is None or self._to_stable:
            return None
        lags = tuple(map(sub, found.ends, offsets))
        if min(lags) < 0 or not all(map(le, found.starts, offsets)):
            return None
        if self._details.known and (any(lags) or self._details.held or self._details.headroom):
            return None
        common = _row(group, topic)
        each: dict[str, Any] = {
            "partition": partitions,
            "committed": offsets,
            "log_start_offset": found.starts,
            "log_end_offset": found.ends,
            "last_stable_offset": found.stable,
            "lag": lags,
            "time_lag_ms": tuple([None if lag else 0 for lag in lags]),
        }
        return Block(len(partitions), common, each)

    def _ends_of(self, topic: str, partitions: tuple[int, ...]) -> _Ends | None:
        """Return the bounds of partitions; None unless all are known."""
        if (topic, partitions) not in self._ends:
            places = [TopicPartition(topic, partition) for partition in partitions]
            bounds = [found for place in places if isinstance(found := self._bounds[place], Bounds)]
            known = _Ends(
                tuple(found.log_start_offset for found in bounds),
                tuple(found.log_end_offset for found in bounds),
                tuple(map(self._details.stable.get, places)),
            )
            self._ends[topic, partitions] = known if len(bounds) == len(places) else None
        return self._ends[topic, partitions]

    def _single(self, group: Group, topic: str, committed: Mapping[int, int], owners: Mapping[int, str]) -> Block:
        """Return the rows of a topic partition by partition; groups with the same committed offset share the result."""
        partitions = sorted({*committed, *owners})
        shown = self._shown.setdefault(topic, {})
        facts = []
        for place in zip(partitions, map(committed.get, partitions), strict=True):
            if place not in shown:
                shown[place] = tuple(map(self._fact_row(topic, *place).__getitem__, _FACTS))
            facts.append(shown[place])
        each: dict[str, Any] = dict(zip(_FACTS, zip(*facts, strict=True), strict=True))
        if owners:
            each["client_id"] = list(map(owners.get, partitions))
        return Block(len(partitions), _row(group, topic), each)

    def _fact_row(self, topic: str, number: int, offset: int | None) -> Row:
        """Return what does not depend on the group: everything about a partition and an offset committed there."""
        partition = TopicPartition(topic, number)
        ends, details = self._bounds[partition], self._details
        stable = details.stable.get(partition)
        row: Row = {**dict.fromkeys(_FACTS), "partition": number, "committed": offset, "last_stable_offset": stable, "note": ""}
        if not isinstance(ends, Bounds):
            row["note"] = "no longer exists" if isinstance(ends, NotFound) else reason(ends)
            return row
        row |= {"log_start_offset": ends.log_start_offset, "log_end_offset": ends.log_end_offset}
        limits = _until_stable(ends, stable, offset) if self._to_stable and stable is not None else ends
        row["lag"], row["note"] = lag_of(None if offset is None else Committed(offset), limits)
        if row["lag"] == 0:
            row["time_lag_ms"] = 0
        if details.known and offset is not None:
            details.complete(row, partition, max(offset, ends.log_start_offset))
        return row


def _row(group: Group, topic: str) -> Row:
    return {
        "group": group.group_id,
        "topic": topic,
        "partition": None,
        "committed": None,
        "log_start_offset": None,
        "log_end_offset": None,
        "last_stable_offset": None,
        "lag": None,
        "time_lag_ms": None,
        "first_unread": None,
        "note": "",
        "client_id": None,
        "state": group.state,
        "transaction": None,
        "expires": None,
    }


def _until_stable(ends: Bounds, stable: int, committed: int | None) -> Bounds:
    """Return bounds that end at the last stable offset, or at the committed offset if a ``read_uncommitted`` group is beyond it."""
    beyond = min(committed, ends.log_end_offset) if committed else 0
    return Bounds(ends.log_start_offset, max(stable, beyond))
