"""Which records of a versioned store's changelog count: all versions are in it, those too that the store never accepted."""

from __future__ import annotations

from collections.abc import Iterable

from kops.core.records.models import Record
from kops.core.times import Position


def accepted(batch: Iterable[Record], history_ms: int, newest: dict[int, int]) -> list[Record]:
    """Leave out what the store never accepted since it came too late (``RocksDBVersionedStore.put``).

    :param batch: in the order of each partition
    :param newest: partition -> the newest timestamp of the records before; that of these is noted there
    """
    found = []
    for record in batch:
        time = record.timestamp or 0
        newest[record.partition] = max(time, newest.get(record.partition, time))
        if time >= newest[record.partition] - history_ms:
            found.append(record)
    return found


def newest_versions(records: Iterable[Record], at: Position) -> list[Record]:
    """Return the version of each key valid at a time, or the newest: in a versioned store timestamps decide, not offsets."""
    newest: dict[tuple[int, bytes], Record] = {}
    for record in records:
        if record.key is None or (at.kind == "time" and (record.timestamp or 0) > at.value):
            continue
        place = (record.partition, record.key)
        known = newest.get(place)
        if known is None or (record.timestamp or 0, record.offset) >= (known.timestamp or 0, known.offset):
            newest[place] = record
    return list(newest.values())
