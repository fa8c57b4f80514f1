"""The record that a buffered value came from, as encoded within the value (``ProcessorRecordContext``)."""

from __future__ import annotations

from dataclasses import dataclass

from kops.core.errors import UndecodableRecord
from kops.formats.streams.reading import Headers, Reader, text

_LEAST_HEADER = 8


@dataclass(frozen=True, slots=True)
class RecordContext:
    """Where a value came from.

    :param timestamp_ms: timestamp of the record, milliseconds since the epoch
    :param topic: the topic that the record was read from: the repartition topic if there is one
    """

    timestamp_ms: int
    offset: int
    topic: str
    partition: int
    headers: Headers = ()


def read(reader: Reader) -> RecordContext:
    timestamp_ms, offset, topic, partition, count = reader.int64(), reader.int64(), text(reader.required()), reader.int32(), reader.int32()
    if count == -1:  # Kafka Streams 2.2 and 2.3, for a record without headers
        count = 0
    if not 0 <= count * _LEAST_HEADER <= reader.remaining:
        raise UndecodableRecord(f"{reader.remaining} bytes cannot hold {count} headers")
    headers = tuple((text(reader.required()), reader.nullable()) for _ in range(count))
    return RecordContext(timestamp_ms, offset, topic, partition, headers)
