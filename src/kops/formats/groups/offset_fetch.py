"""Decodes OffsetFetch responses for many groups at once (version 8, KIP-709) or for one (version 7), one topic at a time. Pure.

All commits without metadata take the same number of bytes, and nearly all commits have none: a topic with only such commits is decoded
in one call instead of as hundreds of thousands of objects.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from kops.formats.kafka_types import SHORT, Reader

VERSION = 8
"""Version of the response: the first for many groups (Kafka 3.0), and the last with names of topics instead of ids."""
OF_ONE_GROUP = 7
"""The version for brokers that take one group per request (Kafka 2.5); its topics are encoded as in version 8."""

_PLACE = struct.Struct(">iqi")
_PLAIN = struct.Struct(">iqiBhB")
"""Partition, offset, leader epoch; the length of the metadata plus one, the error, and the number of tagged fields."""
_WITHOUT_METADATA = {0, 1}
_NO_EPOCH = -1


@dataclass(frozen=True, slots=True)
class TopicCommits:
    """What a group has committed in a topic.

    :param partitions: those with a commit
    :param offsets: of the partitions, in their order
    :param epochs: leader epochs by partition, where a commit has one
    :param metadata: by partition, where it is not empty
    """

    topic: str
    partitions: tuple[int, ...]
    offsets: tuple[int, ...]
    epochs: Mapping[int, int]
    metadata: Mapping[int, str]


def read_answer(data: bytes) -> dict[str, list[TopicCommits] | int]:
    """Return the commits of each group; the error code where the broker returns one for the group or a partition.

    :param data: the response after its header
    :raises UndecodableRecord: when the bytes end too early
    """
    reader = Reader(data)
    reader.raw(4)  # the throttle time
    groups = dict(reader.compact_array(lambda: (reader.compact_text(), _commits(reader))))
    reader.tags()
    return groups


def read_answer_of_one(data: bytes) -> list[TopicCommits] | int:
    """Return the commits of the one group in a response of version 7; see ``read_answer``."""
    reader = Reader(data)
    reader.raw(4)
    return _commits(reader)


def _commits(reader: Reader) -> list[TopicCommits] | int:
    topics = reader.compact_array(lambda: _topic(reader))
    error = reader.number(SHORT) or next((found for found in topics if isinstance(found, int)), 0)
    reader.tags()
    return error or [found for found in topics if not isinstance(found, int)]


def _topic(reader: Reader) -> TopicCommits | int:
    name = reader.compact_text()
    count = reader.varint() - 1
    plain = _plain(name, reader.ahead(count * _PLAIN.size), count)
    if plain is not None:
        reader.raw(count * _PLAIN.size)
    found = _any(name, reader, count) if plain is None else plain
    reader.tags()
    return found


def _plain(name: str, data: bytes, count: int) -> TopicCommits | None:
    """Return the commits when all are plain, otherwise None: the first that is not plain still is at its expected place, and noticed."""
    if count < 1 or len(data) < count * _PLAIN.size:
        return None
    partitions, offsets, epochs, lengths, errors, tags = zip(*_PLAIN.iter_unpack(data), strict=True)
    if any(errors) or any(tags) or not _WITHOUT_METADATA.issuperset(lengths) or min(offsets) < 0:
        return None
    return TopicCommits(name, partitions, offsets, _known_epochs(partitions, epochs), {})


def _any(name: str, reader: Reader, count: int) -> TopicCommits | int:
    """Decode the commits one by one; return the first error code when there is one among them."""
    places: list[tuple[int, ...]] = []
    metadata: dict[int, str] = {}
    failed = 0
    for _ in range(count):
        place = reader.numbers(_PLACE)
        text = reader.optional_text()
        error = reader.number(SHORT)
        failed = failed or error
        reader.tags()
        if place[1] >= 0:
            places.append(place)
            if text:
                metadata[place[0]] = text
    if failed:
        return failed
    partitions, offsets, epochs = zip(*places, strict=True) if places else ((), (), ())
    return TopicCommits(name, partitions, offsets, _known_epochs(partitions, epochs), metadata)


def _known_epochs(partitions: tuple[int, ...], epochs: tuple[int, ...]) -> dict[int, int]:
    if epochs.count(_NO_EPOCH) == len(epochs):
        return {}
    return {partition: epoch for partition, epoch in zip(partitions, epochs, strict=True) if epoch != _NO_EPOCH}
