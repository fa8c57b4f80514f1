"""Reads the bytes of one key or value from the front, as Java's ``ByteBuffer`` would."""

from __future__ import annotations

import struct

from kops.core.errors import UndecodableRecord

_BYTE = struct.Struct(">b")
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_NULL = -1
_VARINT_BITS = 35


class Reader:
    """A position in some bytes; every reading method raises :class:`UndecodableRecord` when they end too early."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def remaining(self) -> int:
        """Return how many bytes are left."""
        return len(self._data) - self._at

    def int8(self) -> int:
        """Read a byte, with its sign."""
        return self._number(_BYTE)

    def int32(self) -> int:
        """Read four bytes, with their sign."""
        return self._number(_INT)

    def int64(self) -> int:
        """Read eight bytes, with their sign."""
        return self._number(_LONG)

    def varint(self) -> int:
        """Read a number of 32 bits in one to five bytes, zigzag for its sign (``ByteUtils.readVarint``)."""
        value, shift = 0, 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                value &= 0xFFFFFFFF
                return (value >> 1) ^ -(value & 1)
            if shift >= _VARINT_BITS:
                raise UndecodableRecord("a number goes on beyond five bytes")

    def take(self, length: int) -> bytes:
        """Read so many bytes."""
        if not 0 <= length <= self.remaining:
            raise UndecodableRecord(f"{len(self._data)} bytes have no {length} at {self._at}")
        self._at += length
        return self._data[self._at - length : self._at]

    def nullable(self) -> bytes | None:
        """Read a length of four bytes, -1 for null, and so many bytes (``Utils.getNullableSizePrefixedArray``)."""
        length = self.int32()
        return None if length == _NULL else self.take(length)

    def sized(self) -> bytes:
        """Read a length of four bytes, and so many bytes."""
        return self.take(self.int32())

    def rest(self) -> bytes:
        """Read all that is left."""
        return self.take(self.remaining)

    def end(self) -> None:
        """Check that nothing is left."""
        if self.remaining:
            raise UndecodableRecord(f"{self.remaining} of {len(self._data)} bytes are left over")

    def _number(self, form: struct.Struct) -> int:
        return int(form.unpack(self.take(form.size))[0])


def text(data: bytes) -> str:
    """Return UTF-8 as text; what is none is replaced, as Java does."""
    return data.decode("utf-8", "replace")
