"""Counts of what a changelog holds, per partition. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from kops.core.records.models import timestamp_text

LARGEST = 5
"""How many keys and values are listed."""
NAMED = 5
"""How many undecodable records are listed."""


@dataclass(frozen=True)
class Counts:
    """Counts of one or more partitions.

    :param offsets: of the log, from its start to where it was read
    :param records: that were read; offsets without a record were compacted away or belong to transactions
    :param keys: that have a value; in a versioned store every version counts
    :param tombstones: keys whose last record is a tombstone
    :param superseded: records that a later record of the same key replaces: what compaction has yet to remove
    :param unkeyed: records without a key, which belong to no store
    :param wrong_partition: keys with a value that belong in another partition by murmur2 of the application's key
    :param undecodable: records that do not match the type or the formats
    :param oldest_ms: earliest timestamp; None without records
    """

    offsets: int = 0
    records: int = 0
    keys: int = 0
    tombstones: int = 0
    superseded: int = 0
    unkeyed: int = 0
    wrong_partition: int = 0
    undecodable: int = 0
    key_bytes: int = 0
    value_bytes: int = 0
    oldest_ms: int | None = None
    newest_ms: int | None = None

    def as_json(self) -> dict[str, Any]:
        counted = {field.name: getattr(self, field.name) for field in fields(self) if not field.name.endswith("_ms")}
        return {
            **counted,
            "missing": self.offsets - self.records,
            "superseded_ratio": round(self.superseded / self.records, 4) if self.records else None,
            "oldest": timestamp_text(self.oldest_ms),
            "oldest_ms": self.oldest_ms,
            "newest": timestamp_text(self.newest_ms),
            "newest_ms": self.newest_ms,
        }


def total(parts: Iterable[Counts]) -> Counts:
    counts = list(parts)
    sums = {field.name: sum(getattr(one, field.name) for one in counts) for field in fields(Counts) if not field.name.endswith("_ms")}
    oldest = min((one.oldest_ms for one in counts if one.oldest_ms is not None), default=None)
    newest = max((one.newest_ms for one in counts if one.newest_ms is not None), default=None)
    return Counts(**sums, oldest_ms=oldest, newest_ms=newest)


@dataclass(frozen=True, order=True)
class LargeEntry:
    """A key or value that is larger than others; sorts largest first.

    :param negative_size: its size in bytes, negated
    :param key: of the changelog
    """

    negative_size: int
    partition: int
    offset: int
    key: bytes


@dataclass(frozen=True, order=True)
class BadRecord:
    """A record that cannot be decoded.

    :param reason: which part it is, and what is wrong with it
    """

    partition: int
    offset: int
    part: str
    reason: str


@dataclass(frozen=True)
class Stats:
    """The counts of each partition, and the listed keys, values and records.

    :param unstable: offset at which an open transaction stopped reading, by partition
    """

    partitions: dict[int, Counts]
    largest_keys: tuple[LargeEntry, ...]
    largest_values: tuple[LargeEntry, ...]
    bad: tuple[BadRecord, ...]
    unstable: dict[int, int]
