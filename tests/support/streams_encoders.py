"""The bytes that Kafka Streams writes, written for the tests: kops only reads these formats.

That they are the library's own bytes is proven in tests/streams/test_formats.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kops.core.models import TopicPartition
from kops.formats.streams.foreign_keys import CombinedKey, Response, Subscription
from kops.formats.streams.join_buffers import BufferedRecord, BufferKey
from kops.formats.streams.offset_metadata import pack, sized
from kops.formats.streams.reading import Headers
from kops.formats.streams.session_keys import SessionKey
from kops.formats.streams.stream_joins import JoinSideKey, JoinSideValue
from kops.formats.streams.suppression import BufferedChange, RecordContext
from kops.formats.streams.table_changes import TableChange
from kops.formats.streams.window_keys import WindowKey


def encode_window_key(window: WindowKey) -> bytes:
    return window.key + pack("q", window.start_ms) + (b"" if window.sequence is None else pack("i", window.sequence))


def encode_session_key(session: SessionKey) -> bytes:
    return session.key + pack("qq", session.end_ms, session.start_ms)


def encode_join_side_key(key: JoinSideKey) -> bytes:
    return pack("qb", key.timestamp_ms, key.is_left) + key.key


def encode_join_side_values(values: Iterable[JoinSideValue]) -> bytes:
    elements = [sized(pack("b", value.is_left) + value.value) for value in values]
    return pack("bi", 1, len(elements)) + b"".join(elements)


def encode_buffer_key(key: BufferKey) -> bytes:
    return pack("bq", 0, key.timestamp_ms) + key.key + pack("i", key.sequence)


def encode_buffered_record(record: BufferedRecord) -> bytes:
    return encode_suppressed(BufferedChange(record.value, None, None, 0, record.context))


def _context(context: RecordContext) -> bytes:
    headers = b"".join(sized(name.encode()) + _nullable(value) for name, value in context.headers)
    where = pack("qq", context.timestamp_ms, context.offset) + sized(context.topic.encode()) + pack("i", context.partition)
    return where + pack("i", len(context.headers)) + headers


def encode_suppressed(change: BufferedChange, version: int = 3) -> bytes:
    time = pack("q", change.buffer_time_ms)
    pair = _nullable(change.old) + _nullable(change.new)
    if version == 0:
        return time + pair
    assert change.context is not None
    context = _context(change.context)
    if version == 1:
        return time + context + sized(pair)
    if version == 2:
        return context + sized(pair) + _nullable(change.prior) + time
    if version == 3:
        same = change.old is not None and change.old == change.prior
        old = pack("i", -2) if same else _nullable(change.old)
        return context + _nullable(change.prior) + old + _nullable(change.new) + time
    raise ValueError(version)


def suppressed_headers(version: int) -> Headers:
    return (("v", bytes([version])),) if version else ()


def encode_combined_key(key: CombinedKey) -> bytes:
    return sized(key.foreign_key) + key.primary_key


def encode_subscription(subscription: Subscription) -> bytes:
    start = _hashed(0 if subscription.primary_partition is None else 1, subscription.value_hash, pack("b", subscription.instruction))
    end = b"" if subscription.primary_partition is None else pack("i", subscription.primary_partition)
    return start + subscription.primary_key + end


def encode_response(response: Response) -> bytes:
    return _hashed(0, response.value_hash, b"") + (response.value or b"")


def _hashed(version: int, value_hash: bytes | None, after_version: bytes) -> bytes:
    if value_hash is None:
        return bytes([version | 0x80]) + after_version
    return bytes([version]) + after_version + value_hash


def encode_table_change(change: TableChange) -> bytes:
    if change.new is None:
        form, values = 0, change.old or b""
    elif change.old is None:
        form, values = 1, change.new
    else:
        form, values = 2, _varint(len(change.new)) + change.new + change.old
    return values + (bytes([form]) if change.is_latest is None else bytes([change.is_latest, form + 3]))


def encode_position(position: Mapping[TopicPartition, int]) -> bytes:
    by_topic: dict[str, list[bytes]] = {}
    for partition, offset in position.items():
        by_topic.setdefault(partition.topic, []).append(pack("iq", partition.partition, offset))
    written = pack("bi", 0, len(by_topic))
    size = 8 + 32
    for topic, offsets in by_topic.items():
        name = topic.encode()
        written += sized(name) + pack("i", len(offsets)) + b"".join(offsets)
        size += 32 + len(name) + 32 + (32 + 64) * len(offsets)
    return written.ljust(size, b"\x00")


def position_headers(position: Mapping[TopicPartition, int]) -> Headers:
    return (("v", b"\x00"), ("c", encode_position(position)))


def _nullable(data: bytes | None) -> bytes:
    """Return bytes, preceded by their length as int32; null is the length -1."""
    return b"\xff\xff\xff\xff" if data is None else sized(data)


def _varint(number: int) -> bytes:
    """Encode a 32-bit number as a zigzag varint of one to five bytes (``ByteUtils.writeVarint``)."""
    left = ((number << 1) ^ (number >> 31)) & 0xFFFFFFFF
    written = bytearray()
    while left > 0x7F:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    written.append(left)
    return bytes(written)
