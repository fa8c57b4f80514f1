"""The store that both sides of a left or outer stream-stream join share: records that have found no match yet.

A key is ``time as int64, side, key`` (``TimestampedKeyAndJoinSideSerializer``). A value is the list of all values of this side at this time
(``ListValueStore``), each ``side, value`` (``LeftOrRightValueSerializer``). The side is 1 for left and 0 for right. This is the format
since Kafka Streams 3.1, with and without a headers-aware store format; in 3.0 the store exists, but nothing is ever put into it.
The stores of the two sides themselves are windowed stores with sequences, see ``window_keys``.
"""

from __future__ import annotations

from dataclasses import dataclass

from kops.core.errors import UndecodableRecord
from kops.formats.streams.reading import Reader

_VARIABLE_SIZE = 1
"""The strategy of ``ListSerializer``: 1 for elements of variable size, each preceded by its length."""


@dataclass(frozen=True, slots=True)
class JoinSideKey:
    """A key of the shared store.

    :param timestamp_ms: timestamp of the records, milliseconds since the epoch
    :param is_left: whether they came from the left side
    """

    key: bytes
    timestamp_ms: int
    is_left: bool


@dataclass(frozen=True, slots=True)
class JoinSideValue:
    """A value, and the side it came from."""

    value: bytes
    is_left: bool


def decode_key(data: bytes) -> JoinSideKey:
    """Decode a key.

    :raises UndecodableRecord: when it is too short, or its side is neither left nor right
    """
    reader = Reader(data)
    timestamp_ms, is_left = reader.int64(), _side(reader.int8())
    return JoinSideKey(reader.rest(), timestamp_ms, is_left)


def decode_values(data: bytes) -> tuple[JoinSideValue, ...]:
    reader = Reader(data)
    strategy = reader.int8()
    if strategy != _VARIABLE_SIZE:
        raise UndecodableRecord(f"a list of values begins with {_VARIABLE_SIZE}, this with {strategy}")
    count = reader.int32()
    if count * 4 > reader.remaining:  # each has at least its length; a damaged count is not tried a billion times
        raise UndecodableRecord(f"{len(data)} bytes cannot hold a list of {count}")
    values = tuple(decode_value(reader.required()) for _ in range(count))
    reader.end()
    return values


def decode_value(data: bytes) -> JoinSideValue:
    """Decode one value.

    :raises UndecodableRecord: when it is empty, or its side is neither left nor right
    """
    reader = Reader(data)
    is_left = _side(reader.int8())
    return JoinSideValue(reader.rest(), is_left)


def _side(byte: int) -> bool:
    if byte not in (0, 1):
        raise UndecodableRecord(f"the side of a join is 1 (left) or 0 (right), not {byte}")
    return byte == 1
