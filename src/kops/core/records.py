"""Records as they lie in a partition, and ranges of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import NamedTuple, TypeAlias

from kops.core.errors import UsageProblem
from kops.core.models import TopicPartition

MOST_PARTITIONS = 1_000_000
"""No topic has as many; a typed range ends here."""
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Record(NamedTuple):
    """A record. A tuple rather than a dataclass: a million of them are made in a second.

    :param timestamp: milliseconds since the epoch; None when the record has none
    :param key: None when there is none, which is not the empty key
    :param value: None for a tombstone
    :param headers: in their order, names may repeat
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
        """Tell whether there is nothing to read."""
        return self.end <= self.start


Ranges: TypeAlias = Mapping[TopicPartition, OffsetRange]


def parse_partitions(text: str) -> tuple[str, tuple[int, ...]]:
    """Read ``orders`` or ``orders:0,3-5``: the topic, and the partitions in order, none meaning all.

    :raises UsageProblem: when the part after the colon is not a list of partitions
    """
    topic, colon, listed = text.partition(":")
    numbers: set[int] = set()
    for part in listed.split(",") if colon else ():
        first, dash, last = part.partition("-")
        if not (topic and first.isdecimal() and (last.isdecimal() or not dash)) or int(last or first) < int(first):
            raise UsageProblem(f"{text!r} does not name partitions of a topic", hint="write orders, orders:0 or orders:0,3-5")
        numbers.update(range(int(first), min(int(last or first), MOST_PARTITIONS) + 1))
    return topic, tuple(sorted(numbers))


def latest_by_key(batches: Iterable[Iterable[Record]]) -> dict[tuple[int, bytes], Record]:
    """Return what log compaction would leave: the last record of each key of each partition, in log order.

    Records without a key are passed over, as compaction does not know them. Memory: the last record of each key.
    """
    latest: dict[tuple[int, bytes], Record] = {}
    for batch in batches:
        for record in batch:
            if record.key is not None:
                latest[record.partition, record.key] = record
    return dict(sorted(latest.items(), key=lambda item: (item[1].partition, item[1].offset)))


def timestamp_text(timestamp: int | None) -> str | None:
    """Return milliseconds since the epoch as ISO 8601 in UTC; None when out of the calendar's range."""
    if timestamp is None:
        return None
    try:
        moment = _EPOCH + timedelta(milliseconds=timestamp)
    except OverflowError:
        return None
    return f"{moment.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
