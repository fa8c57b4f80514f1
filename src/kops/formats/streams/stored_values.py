"""Values as stores hold them on disk: unlike in changelogs, preceded by the time and, since 4.3, by the headers.

A restore combines them from the record's timestamp and headers (``RecordConverters``); writing to the changelog splits them again.

- timestamped: ``time as int64, value`` (``ValueAndTimestampSerializer``)
- with headers (``dsl.store.format=HEADERS``, KIP-1271): ``size as varint, headers, time as int64, value``
  (``ValueTimestampHeadersSerializer``); for sessions without the time (``AggregationWithHeadersSerializer``)
- headers: ``count``, then for each ``length of the key, key, length of the value (-1 for null), value``; count and lengths are varints;
  nothing when there are none (``HeadersSerializer``)
"""

from __future__ import annotations

from dataclasses import dataclass

from kops.core.errors import UndecodableRecord
from kops.formats.streams.reading import Reader, text
from kops.formats.streams.writing import Headers, pack, varint

_LEAST_HEADER = 2


@dataclass(frozen=True, slots=True)
class StoredValue:
    """What a store holds for a key.

    :param timestamp_ms: None in session stores, whose values have none
    """

    value: bytes
    timestamp_ms: int | None
    headers: Headers = ()


def encode_timestamped(stored: StoredValue) -> bytes:
    """Encode a value for a timestamped store, without its headers.

    :raises UsageProblem: when the time is out of range
    """
    return pack("q", stored.timestamp_ms or 0) + stored.value


def decode_timestamped(data: bytes) -> StoredValue:
    """Decode a value of a timestamped store.

    :raises UndecodableRecord: when it is too short
    """
    reader = Reader(data)
    timestamp_ms = reader.int64()
    return StoredValue(reader.rest(), timestamp_ms)


def encode_with_headers(stored: StoredValue) -> bytes:
    """Encode a value for a store with headers; without a time, for a session store.

    :raises UsageProblem: when the time is out of range
    """
    headers = encode_headers(stored.headers)
    time = b"" if stored.timestamp_ms is None else pack("q", stored.timestamp_ms)
    return varint(len(headers)) + headers + time + stored.value


def decode_with_headers(data: bytes, *, session: bool = False) -> StoredValue:
    """Decode a value of a store with headers.

    :param session: whether it is a session store, whose values have no time
    :raises UndecodableRecord: when it is too short
    """
    reader = Reader(data)
    headers = decode_headers(reader.raw(reader.zigzag()))
    timestamp_ms = None if session else reader.int64()
    return StoredValue(reader.rest(), timestamp_ms, headers)


def encode_headers(headers: Headers) -> bytes:
    """Encode headers; no headers take no bytes."""
    if not headers:
        return b""
    written = [varint(len(headers))]
    for name, value in headers:
        key = name.encode()
        written += [varint(len(key)), key, varint(-1) if value is None else varint(len(value)) + value]
    return b"".join(written)


def decode_headers(data: bytes) -> Headers:
    """Decode headers.

    :raises UndecodableRecord: when bytes are missing or left over
    """
    if not data:
        return ()
    reader = Reader(data)
    count = reader.zigzag()
    if not 0 <= count * _LEAST_HEADER <= reader.remaining:
        raise UndecodableRecord(f"{len(data)} bytes cannot hold {count} headers")
    headers = tuple((text(reader.raw(reader.zigzag())), _value(reader)) for _ in range(count))
    reader.end()
    return headers


def _value(reader: Reader) -> bytes | None:
    length = reader.zigzag()
    return None if length == -1 else reader.raw(length)
