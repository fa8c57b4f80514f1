"""The buffer of a stream-table join with a grace period (KIP-923): stream records that wait for the table.

A key is ``0, time as int64, key, sequence as int32`` (``TimeFirstWindowKeySchema``); a value is a version 3 value of
``suppression``, with the record's value as the new one and 0 as the buffer time, without a header (``RocksDBTimeOrderedKeyValueBuffer``).
"""

from __future__ import annotations

from dataclasses import dataclass

from kops.core.errors import UndecodableRecord
from kops.formats.streams import suppression
from kops.formats.streams.reading import Reader
from kops.formats.streams.suppression import RecordContext

_TIME_FIRST = 0
_SEQUENCE_SIZE = 4


@dataclass(frozen=True, slots=True)
class BufferKey:
    """The key of a waiting record.

    :param timestamp_ms: its timestamp, milliseconds since the epoch
    :param sequence: counts the records of a task, from 1
    """

    key: bytes
    timestamp_ms: int
    sequence: int


@dataclass(frozen=True, slots=True)
class BufferedRecord:
    value: bytes | None
    context: RecordContext


def decode_key(data: bytes) -> BufferKey:
    """Decode a key.

    :raises UndecodableRecord: when it is too short, or does not begin with 0
    """
    reader = Reader(data)
    if reader.int8() != _TIME_FIRST:
        raise UndecodableRecord(f"a key of a join's buffer begins with {_TIME_FIRST}, not with {data[0]}")
    timestamp_ms = reader.int64()
    return BufferKey(reader.raw(reader.remaining - _SEQUENCE_SIZE), timestamp_ms, reader.int32())


def decode_value(data: bytes) -> BufferedRecord:
    context, _prior, _old, new = suppression.read_version_3(Reader(data))
    return BufferedRecord(new, context)
