"""Reads the bytes of one key or value from the front, as Java's ``ByteBuffer`` would."""

from __future__ import annotations

from kops.core.errors import UndecodableRecord
from kops.formats import kafka_types
from kops.formats.kafka_types import BYTE, INT, LONG

Headers = tuple[tuple[str, bytes | None], ...]
"""Headers of a record in their order; names may repeat."""

_NULL = -1
_LONGEST = 5


class Reader(kafka_types.Reader):
    """A reader with the primitives of Kafka Streams' formats."""

    @property
    def remaining(self) -> int:
        return len(self._data) - self._at

    def int8(self) -> int:
        return self.number(BYTE)

    def int32(self) -> int:
        return self.number(INT)

    def int64(self) -> int:
        return self.number(LONG)

    def zigzag(self) -> int:
        """Read a 32-bit zigzag varint of one to five bytes (``ByteUtils.readVarint``)."""
        value = 0
        for shift in range(0, 7 * _LONGEST, 7):
            byte = self.raw(1)[0]
            value |= (byte & 0x7F) << shift
            if not byte & 0x80:
                value &= 0xFFFFFFFF
                return (value >> 1) ^ -(value & 1)
        raise UndecodableRecord(f"a number is longer than {_LONGEST} bytes")

    def nullable(self) -> bytes | None:
        """Read a length as int32, -1 for null, and that many bytes (``Utils.getNullableSizePrefixedArray``)."""
        length = self.int32()
        return None if length == _NULL else self.raw(length)

    def required(self) -> bytes:
        """Read a length as int32, which must not be -1, and that many bytes."""
        return self.raw(self.int32())

    def required_text(self) -> str:
        """Read a text preceded by its length as int32; invalid UTF-8 is replaced, as Java does."""
        return self._text(self.int32())

    def rest(self) -> bytes:
        return self.raw(self.remaining)

    def end(self) -> None:
        """Check that no bytes are left over."""
        if self.remaining:
            raise UndecodableRecord(f"{self.remaining} of {len(self._data)} bytes are left over")
