"""The metadata that Kafka Streams stores with a committed offset (``TopicPartitionMetadata``): a few bytes in base64.

The bytes are ``2, partition time as int64``. If operators emit on window close, the number of their stores follows, then for each store
``length of its name, name, time of its last emission as int64`` (``ProcessorMetadata``). Version 1, of Kafka Streams up to 3.2, has the
partition time only.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from kops.core.errors import UndecodableRecord, UsageProblem
from kops.formats.streams.reading import Reader

CURRENT_VERSION = 2
UNKNOWN_TIME = -1
"""``RecordQueue.UNKNOWN``: the time of a partition without metadata."""


@dataclass(frozen=True, slots=True)
class OffsetMetadata:
    """The metadata of a committed offset.

    :param partition_time_ms: the greatest timestamp before the offset, milliseconds since the epoch
    :param last_emissions_ms: by store that emits on window close, the window close time up to which it has emitted
    """

    partition_time_ms: int
    last_emissions_ms: Mapping[str, int] = field(default_factory=dict)


def encode(metadata: OffsetMetadata) -> str:
    """Encode the metadata as text.

    :raises UsageProblem: when a time is out of range
    """
    data = pack("bq", CURRENT_VERSION, metadata.partition_time_ms)
    if metadata.last_emissions_ms:
        data += pack("i", len(metadata.last_emissions_ms))
        data += b"".join(sized(store.encode()) + pack("q", time) for store, time in metadata.last_emissions_ms.items())
    return base64.b64encode(data).decode()


def decode(metadata: str) -> OffsetMetadata:
    """Decode a text; an empty one stands for an unknown time.

    :raises UndecodableRecord: when it is anything else; Kafka Streams logs a warning and treats it as empty
    """
    if not metadata:
        return OffsetMetadata(UNKNOWN_TIME)
    try:
        data = base64.b64decode(metadata + "=" * (-len(metadata) % 4), validate=True)
    except (binascii.Error, ValueError) as wrong:
        raise UndecodableRecord(f"the metadata of an offset is not Kafka Streams': {wrong}") from wrong
    reader = Reader(data)
    version = reader.int8()
    if version not in (1, CURRENT_VERSION):
        raise UndecodableRecord(f"version {version} of an offset's metadata is not known")
    time = reader.int64()
    if version == 1 or not reader.remaining:
        return OffsetMetadata(time)
    return OffsetMetadata(time, {reader.required_text(): reader.int64() for _ in range(reader.int32())})


def pack(form: str, *numbers: int) -> bytes:
    """Encode numbers, big-endian.

    :param form: their ``struct`` format, such as ``qi``
    :raises UsageProblem: when one is out of range
    """
    try:
        return struct.pack(f">{form}", *numbers)
    except struct.error as wrong:
        raise UsageProblem(f"{', '.join(map(str, numbers))}: {wrong}") from wrong


def sized(data: bytes) -> bytes:
    """Return bytes, preceded by their length as int32."""
    return pack("i", len(data)) + data
