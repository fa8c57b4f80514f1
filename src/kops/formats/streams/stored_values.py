"""Values as stores hold them on disk, which changelogs do not: with the time, and since 4.3 with the headers, in front.

A restore puts them together from the record's timestamp and headers (``RecordConverters``), and the changelog takes them apart again.

- timestamped: ``time as int64, value`` (``ValueAndTimestampSerializer``)
- with headers (``dsl.store.format=HEADERS``, KIP-1271): ``size as varint, headers, time as int64, value``
  (``ValueTimestampHeadersSerializer``); of sessions without the time (``AggregationWithHeadersSerializer``)
- headers: ``count, then of each the key behind its length, the value behind its length, -1 for null``, all varints; nothing when there
  are none (``HeadersSerializer``)
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

    :param timestamp_ms: None in stores of sessions, which have none
    """

    value: bytes
    timestamp_ms: int | None
    headers: Headers = ()


def encode_timestamped(stored: StoredValue) -> bytes:
    """Return the bytes in a timestamped store; headers are left out.

    :raises UsageProblem: when the time is out of its range
    """
    return pack("q", stored.timestamp_ms or 0) + stored.value


def decode_timestamped(data: bytes) -> StoredValue:
    """Return what a timestamped store holds.

    :raises UndecodableRecord: when it is too short
    """
    reader = Reader(data)
    timestamp_ms = reader.int64()
    return StoredValue(reader.rest(), timestamp_ms)


def encode_with_headers(stored: StoredValue) -> bytes:
    """Return the bytes in a store with headers; without a time those of a store of sessions.

    :raises UsageProblem: when the time is out of its range
    """
    headers = encode_headers(stored.headers)
    time = b"" if stored.timestamp_ms is None else pack("q", stored.timestamp_ms)
    return varint(len(headers)) + headers + time + stored.value


def decode_with_headers(data: bytes, *, session: bool = False) -> StoredValue:
    """Return what a store with headers holds.

    :param session: it is one of sessions, which has no time
    :raises UndecodableRecord: when it is too short
    """
    reader = Reader(data)
    headers = decode_headers(reader.raw(reader.zigzag()))
    timestamp_ms = None if session else reader.int64()
    return StoredValue(reader.rest(), timestamp_ms, headers)


def encode_headers(headers: Headers) -> bytes:
    """Return the bytes of headers, none for none."""
    if not headers:
        return b""
    written = [varint(len(headers))]
    for name, value in headers:
        key = name.encode()
        written += [varint(len(key)), key, varint(-1) if value is None else varint(len(value)) + value]
    return b"".join(written)


def decode_headers(data: bytes) -> Headers:
    """Return headers.

    :raises UndecodableRecord: when they end too early, or too late
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
