"""What Kafka Streams stores as the metadata of a committed offset (``TopicPartitionMetadata``): base64 of few bytes.

``2, partition time as int64``, and where an operator emits on window close its store and the time of its last emission, behind a count:
``name behind its length, time as int64`` (``ProcessorMetadata``). Version 1, of Kafka Streams up to 3.2, has the time only.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field

from kops.core.errors import UndecodableRecord, UsageProblem
from kops.formats.streams.reading import Reader, text
from kops.formats.streams.writing import pack, sized

CURRENT_VERSION = 2
UNKNOWN_TIME = -1
"""``RecordQueue.UNKNOWN``: of a partition without metadata."""


@dataclass(frozen=True, slots=True)
class OffsetMetadata:
    """What goes with an offset.

    :param partition_time_ms: the greatest timestamp before the offset, milliseconds since the epoch
    :param last_emissions_ms: of each store that emits on window close, the window close time it got to
    """

    partition_time_ms: int
    last_emissions_ms: Mapping[str, int] = field(default_factory=dict)


def encode(metadata: OffsetMetadata, version: int = CURRENT_VERSION) -> str:
    """Return the metadata's text.

    :raises UsageProblem: when a time is out of its range, or the version has no place for the stores or is unknown
    """
    if version not in (1, CURRENT_VERSION) or (version == 1 and metadata.last_emissions_ms):
        raise UsageProblem(f"version {version} of an offset's metadata cannot hold it")
    data = pack("bq", version, metadata.partition_time_ms)
    if metadata.last_emissions_ms:
        data += pack("i", len(metadata.last_emissions_ms))
        data += b"".join(sized(store.encode()) + pack("q", time) for store, time in metadata.last_emissions_ms.items())
    return base64.b64encode(data).decode()


def decode(metadata: str) -> OffsetMetadata:
    """Return what a text holds; an empty one holds an unknown time.

    :raises UndecodableRecord: when it is something else; Kafka Streams warns of it and takes it for empty
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
    return OffsetMetadata(time, {text(reader.required()): reader.int64() for _ in range(reader.int32())})
