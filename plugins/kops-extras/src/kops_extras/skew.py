"""How uneven the partitions of a topic are, and which keys make them so. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kops.plugins.api import OffsetRange, Ranges, Record, TopicPartition


@dataclass
class Sample:
    """What was sampled from one partition.

    :param keys: number of records by key; ``None`` for records without one
    :param size: bytes of keys and values
    """

    keys: Counter[bytes | None] = field(default_factory=Counter)
    size: int = 0


@dataclass(frozen=True)
class Measured:
    """A partition compared with the others.

    :param offsets: from its log start to its log end
    :param share: of the topic's offsets, from 0 to 1
    :param sampled: records read
    :param keys: distinct keys among them
    :param hottest: the most frequent key; None if nothing was read, or if most records have no key
    :param hottest_share: its share of the records read
    :param average_bytes: of a record's key and value
    """

    partition: int
    offsets: int
    share: float
    sampled: int
    keys: int
    hottest: bytes | None
    hottest_share: float
    average_bytes: int


def tails(whole: Ranges, last: int) -> dict[TopicPartition, OffsetRange]:
    return {partition: OffsetRange(max(found.start, found.end - last), found.end) for partition, found in whole.items()}


def sample(batches: Iterable[Iterable[Record]]) -> dict[int, Sample]:
    """Count the records of each partition by key. Memory: all distinct keys that were read."""
    samples: dict[int, Sample] = {}
    for batch in batches:
        for record in batch:
            found = samples.setdefault(record.partition, Sample())
            found.keys[record.key] += 1
            found.size += len(record.key or b"") + len(record.value or b"")
    return samples


def measure(whole: Ranges, samples: Mapping[int, Sample]) -> list[Measured]:
    """Compare the partitions; the fullest comes first."""
    total = sum(found.end - found.start for found in whole.values())
    measured = [_one(partition.partition, found.end - found.start, total, samples) for partition, found in whole.items()]
    return sorted(measured, key=lambda one: (-one.offsets, one.partition))


def verdict(measured: list[Measured]) -> str:
    if not measured or not measured[0].offsets:
        return "the topic is empty"
    fullest = measured[0]
    factor = fullest.share * len(measured)
    return f"partition {fullest.partition} has {factor:.1f} times its even share of the offsets ({fullest.share:.0%} of the topic)"


def _one(partition: int, offsets: int, total: int, samples: Mapping[int, Sample]) -> Measured:
    found = samples.get(partition, Sample())
    sampled = sum(found.keys.values())
    ((hottest, times),) = found.keys.most_common(1) or [(None, 0)]
    return Measured(
        partition=partition,
        offsets=offsets,
        share=offsets / total if total else 0.0,
        sampled=sampled,
        keys=len(found.keys.keys() - {None}),
        hottest=hottest,
        hottest_share=times / sampled if sampled else 0.0,
        average_bytes=round(found.size / sampled) if sampled else 0,
    )
