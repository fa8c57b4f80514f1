"""The first or last records of partitions, across gaps left by compaction and transactions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kops.core.models import Bounds, TopicPartition
from kops.core.records.models import OffsetRange, Record

if TYPE_CHECKING:
    from kops.gateways.kafka.records import Records

OnRead = Callable[[int], None]
"""Receives the number of records of each batch from Kafka."""
WIDEN = 4


def read_last(
    records: Records, bounds: Mapping[TopicPartition, Bounds], count: int, isolation: str, on_read: OnRead = lambda _: None
) -> dict[TopicPartition, list[Record]]:
    """Return the last records of each partition, at most ``count`` each; see :func:`read_first`."""
    found = _widening(records, bounds, count, isolation, on_read, backwards=True)
    return {partition: some[-count:] if count else [] for partition, some in found.items()}


def read_first(
    records: Records, bounds: Mapping[TopicPartition, Bounds], count: int, isolation: str, on_read: OnRead = lambda _: None
) -> dict[TopicPartition, list[Record]]:
    """Return the first records of each partition, at most ``count`` each, skipping the gaps that compaction and transactions leave.

    If there are too few, four times as many offsets are read, and so on, until there are enough or the log ends.

    :param bounds: where the log begins and ends for this purpose; with ``read_committed`` it ends at the last stable offset
    """
    found = _widening(records, bounds, count, isolation, on_read, backwards=False)
    return {partition: some[:count] for partition, some in found.items()}


def _widening(
    records: Records, bounds: Mapping[TopicPartition, Bounds], count: int, isolation: str, on_read: OnRead, *, backwards: bool
) -> dict[TopicPartition, list[Record]]:
    found: dict[TopicPartition, list[Record]] = {partition: [] for partition in bounds}
    left = {partition: OffsetRange(bound.log_start_offset, bound.log_end_offset) for partition, bound in bounds.items()}
    width = count
    while ranges := {p: _end_of(left[p], width, backwards) for p in left if len(found[p]) < count and not left[p].empty}:
        read: dict[TopicPartition, list[Record]] = {partition: [] for partition in ranges}
        for batch in records.read(ranges, isolation=isolation):
            on_read(len(batch))
            for record in batch:
                kept = read[TopicPartition(record.topic, record.partition)]
                kept.append(record)
                if len(kept) > 2 * count:  # memory: keep no more than requested, however wide the search has become
                    del kept[slice(None, -count) if backwards else slice(count, None)]
        for partition, wanted in ranges.items():
            found[partition] = read[partition] + found[partition] if backwards else found[partition] + read[partition]
            before, after = OffsetRange(left[partition].start, wanted.start), OffsetRange(wanted.end, left[partition].end)
            left[partition] = before if backwards else after
        width *= WIDEN
    return found


def _end_of(left: OffsetRange, width: int, backwards: bool) -> OffsetRange:
    if backwards:
        return OffsetRange(max(left.start, left.end - width), left.end)
    return OffsetRange(left.start, min(left.end, left.start + width))
