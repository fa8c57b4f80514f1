"""Records as stored in a partition, and ranges of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple, TypeAlias

from kops.core.models import TopicPartition
from kops.core.times import time_text


class Record(NamedTuple):
    """A record. A tuple rather than a dataclass: a million of them are created per second.

    :param timestamp: milliseconds since the epoch; None if the record has none
    :param key: None if there is none, which differs from the empty key
    :param value: None for a tombstone
    :param headers: in order; names may repeat
    :param log_append_time: whether the broker set the timestamp, not the producer
    """

    topic: str
    partition: int
    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    log_append_time: bool = False


@dataclass(frozen=True)
class OffsetRange:
    """Offsets ``start`` <= offset < ``end`` of a partition; not every offset has a record."""

    start: int
    end: int

    @property
    def empty(self) -> bool:
        return self.end <= self.start


Ranges: TypeAlias = Mapping[TopicPartition, OffsetRange]


def latest_by_key(batches: Iterable[Iterable[Record]]) -> dict[tuple[int, bytes], Record]:
    """Return what log compaction would leave: the last record of each key of each partition, in log order.

    Records without a key are skipped, because compaction does not apply to them. Memory: the last record of each key.
    """
    latest: dict[tuple[int, bytes], Record] = {}
    for batch in batches:
        for record in batch:
            if record.key is not None:
                latest[record.partition, record.key] = record
    return dict(sorted(latest.items(), key=lambda item: (item[1].partition, item[1].offset)))


def newest(partitions: Iterable[Sequence[Record]], count: int) -> list[Record]:
    """Return the newest records across some partitions, in the order of their timestamps.

    Each partition keeps the order of its offsets, even if its timestamps are out of order: records are taken from its end.

    :param partitions: the last records of each partition, at least ``count`` if it has as many
    """
    ends = [(-_time(records[-1]), number, len(records) - 1, records) for number, records in enumerate(partitions) if records]
    heapify(ends)
    found: list[Record] = []
    while ends and len(found) < count:
        _, number, last, records = ends[0]
        found.append(records[last])
        if last:
            heapreplace(ends, (-_time(records[last - 1]), number, last - 1, records))
        else:
            heappop(ends)
    return found[::-1]


def _time(record: Record) -> int:
    return -1 if record.timestamp is None else record.timestamp


def timestamp_text(timestamp: int | None) -> str | None:
    """Return milliseconds since the epoch as ``times.time_text`` does; None for none."""
    if timestamp is None:
        return None
    seconds, milliseconds = divmod(timestamp, 1000)
    return f"{_second_text(seconds)}.{milliseconds:03d}Z"


@lru_cache(maxsize=1024)
def _second_text(seconds: int) -> str:
    """Format seconds since the epoch; cached, as records of the same second are stored together."""
    return time_text(1000 * seconds).partition(".")[0]
