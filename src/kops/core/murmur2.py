"""Kafka's murmur2 hash, and the partition that the Java producer and Kafka Streams choose for a key."""

from __future__ import annotations

from struct import unpack_from

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Return the 32-bit hash of ``data``, signed as Java's ``int``.

    From ``org.apache.kafka.common.utils.Utils.murmur2``.
    """
    length = len(data)
    whole = length // 4
    h = _SEED ^ (length & _MASK)
    for k in unpack_from(f"<{whole}I", data):
        k = (k * _M) & _MASK  # noqa: PLW2901 - named as in the description of the algorithm
        k = ((k ^ (k >> 24)) * _M) & _MASK  # noqa: PLW2901
        h = ((h * _M) & _MASK) ^ k
    rest = data[whole * 4 :]
    if rest:
        h = ((h ^ int.from_bytes(rest, "little")) * _M) & _MASK
    h = ((h ^ (h >> 13)) * _M) & _MASK
    h ^= h >> 15
    return h - (1 << 32) if h >> 31 else h


def positive_hash(key: bytes) -> int:
    """Return ``Utils.toPositive(murmur2(key))``, which the default partitioner takes modulo the number of partitions."""
    return murmur2(key) & 0x7FFFFFFF


def partition_for(key: bytes, partitions: int) -> int:
    """Return the partition, from 0, that Kafka's default partitioner gives a key.

    From ``BuiltInPartitioner.partitionForKey``: ``Utils.toPositive(murmur2(key)) % partitions``.

    :raises ValueError: if ``partitions`` is not positive
    """
    if partitions < 1:
        raise ValueError(f"a topic has at least one partition, not {partitions}")
    return positive_hash(key) % partitions
