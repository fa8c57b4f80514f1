"""The records around a group's committed offsets, read without joining it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kops.core.errors import NotFound
from kops.core.models import Bounds, TopicPartition
from kops.core.records.models import Record
from kops.core.selection import parse_selection
from kops.gateways.kafka.records_ends import read_first, read_last
from kops.operations.groups.matching import find_group
from kops.operations.records.formats import FormatOfEach
from kops.operations.records.rows import row_or_bytes
from kops.operations.services import Services


@dataclass(frozen=True)
class PeekResult:
    """The surroundings of a group's committed offset in one partition.

    :param committed: the offset that it reads next
    :param before: records before it, in log order
    :param after: records from it on; the first is the one that the group reads next
    :param note: what is unusual; empty if there are records to read
    """

    committed: int
    before: tuple[Record, ...]
    after: tuple[Record, ...]
    note: str


def peek(services: Services, group_id: str, topics: Sequence[str], *, before: int, after: int, isolation: str) -> list[PeekResult]:
    """Return the records around the committed offsets of a group.

    :param topics: only these: ``orders``, ``orders:0,1``
    :raises NotFound: when the group does not exist, or has no committed offset there
    """
    find_group(services, group_id)
    wanted = [parse_selection(topic) for topic in topics]
    committed = {
        partition: found
        for partition, found in services.kafka.groups.committed([group_id])[group_id].items()
        if not wanted or any(one.includes(partition) for one in wanted)
    }
    if not committed:
        raise NotFound(
            f"group {group_id} shows no committed offsets{' there' if topics else ''}",
            hint=f"`kops offsets show {group_id}` shows what it has",
        )
    bounds = services.kafka.offsets.bounds(committed)
    stable = services.kafka.offsets.bounds(committed, isolation=isolation)
    nexts = {p: min(max(found.offset, bounds[p].log_start_offset), bounds[p].log_end_offset) for p, found in committed.items()}
    ends = {p: max(nexts[p], stable[p].log_end_offset) for p in committed}
    earlier = {p: Bounds(bounds[p].log_start_offset, min(nexts[p], stable[p].log_end_offset)) for p in committed}
    records_before = read_last(services.kafka.records, earlier, before, isolation)
    unread = {p: Bounds(nexts[p], ends[p]) for p in committed}
    records_after = read_first(services.kafka.records, unread, after, isolation)
    return [
        PeekResult(
            found.offset,
            tuple(records_before[partition]),
            tuple(records_after[partition]),
            _note(partition, found.offset, bounds[partition], stable[partition], bool(after and not records_after[partition])),
        )
        for partition, found in sorted(committed.items())
    ]


def rows(group_id: str, peeked: PeekResult, key: FormatOfEach, value: FormatOfEach, problems: list[str]) -> list[dict[str, Any]]:
    """Return the rows of one partition; what cannot be decoded is shown as bytes.

    :param problems: receives a sentence per such record
    """
    found = []
    for records, positions in ((peeked.before, ["before"]), (peeked.after, ["next", "after"])):
        for number, record in enumerate(records):
            position = positions[min(number, len(positions) - 1)]
            row = row_or_bytes(record, key(record.key), value(record.value), problems)
            found.append({"group": group_id, "committed": peeked.committed, "position": position, **row})
    return found


def _note(partition: TopicPartition, committed: int, bounds: Bounds, stable: Bounds, nothing: bool) -> str:
    if committed > bounds.log_end_offset:
        past = committed - bounds.log_end_offset
        return f"{partition}: committed {past} past the end: data was lost, or the topic recreated; `kops diagnose` says which"
    if committed < bounds.log_start_offset:
        return f"{partition}: committed {committed}, and the log begins at {bounds.log_start_offset}: the records between were deleted"
    if committed == bounds.log_end_offset:
        return f"{partition}: at the end, offset {committed}: nothing to read"
    if nothing:
        open_transaction = stable.log_end_offset < bounds.log_end_offset
        return f"{partition}: no record from offset {committed} on" + (", an open transaction holds them back" if open_transaction else "")
    return ""
