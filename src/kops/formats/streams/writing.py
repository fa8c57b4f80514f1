"""Assembles the bytes of one key or value, as Java's ``ByteBuffer`` would."""

from __future__ import annotations

import struct

from kops.core.errors import UsageProblem

Headers = tuple[tuple[str, bytes | None], ...]
"""Headers of a record in their order; names may repeat."""

_NULL = b"\xff\xff\xff\xff"


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


def nullable(data: bytes | None) -> bytes:
    """Return bytes, preceded by their length as int32; null is the length -1."""
    return _NULL if data is None else sized(data)


def varint(number: int) -> bytes:
    """Encode a 32-bit number as a zigzag varint of one to five bytes (``ByteUtils.writeVarint``)."""
    left = ((number << 1) ^ (number >> 31)) & 0xFFFFFFFF
    written = bytearray()
    while left > 0x7F:  # noqa: PLR2004 - seven bits a byte
        written.append(left & 0x7F | 0x80)
        left >>= 7
    written.append(left)
    return bytes(written)
