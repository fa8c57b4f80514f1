"""The position up to which a store had read its input, in the headers of changelog records (KIP-796).

Only applications with the internal setting ``__iq.consistency.offset.vector.enabled__`` write them: ``v`` is 0 and ``c`` the position
(``ChangelogRecordDeserializationHelper``, ``PositionSerde``).
"""

from __future__ import annotations

from kops.core.errors import UndecodableRecord
from kops.core.models import TopicPartition
from kops.formats.streams.reading import Headers, Reader

VERSION_HEADER = "v"
POSITION_HEADER = "c"
VERSION = b"\x00"


def decode(data: bytes) -> dict[TopicPartition, int]:
    """Decode a position: the offset of the last record read, by partition.

    :raises UndecodableRecord: when it ends too early, or its version is not known
    """
    reader = Reader(data)
    version = reader.int8()
    if version != 0:
        raise UndecodableRecord(f"version {version} of a position is not known")
    position = {}
    for _ in range(_count(reader)):
        topic = reader.required_text()
        for _ in range(_count(reader)):
            partition = reader.int32()
            position[TopicPartition(topic, partition)] = reader.int64()
    return position


def position_of(headers: Headers) -> dict[TopicPartition, int] | None:
    """Return the position in a record's headers; None when they have none.

    :raises UndecodableRecord: when there is one that cannot be read
    """
    found = dict(headers)  # of repeated headers, the last one counts
    position = found.get(POSITION_HEADER)
    return decode(position) if found.get(VERSION_HEADER) == VERSION and position is not None else None


def _count(reader: Reader) -> int:
    count = reader.int32()
    if count < 0:
        raise UndecodableRecord(f"a position cannot have {count} parts")
    return count
