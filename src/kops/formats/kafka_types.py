"""Reads Kafka's primitive types one after the other: those of its protocol, of its records, and of Java's ``DataOutput``. Pure."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeVar

from kops.core.errors import UndecodableRecord

BYTE, SHORT, UNSIGNED_SHORT = struct.Struct(">b"), struct.Struct(">h"), struct.Struct(">H")
INT, LONG = struct.Struct(">i"), struct.Struct(">q")

T = TypeVar("T")


class Reader:
    """Reads bytes from the front; bytes after the known fields are ignored.

    Every method raises ``UndecodableRecord`` when the bytes end too early.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, form: struct.Struct) -> int:
        return self.numbers(form)[0]

    def numbers(self, form: struct.Struct) -> tuple[int, ...]:
        try:
            values = form.unpack_from(self._data, self._at)
        except struct.error as short:
            raise UndecodableRecord(f"{len(self._data)} bytes end within a field") from short
        self._at += form.size
        return values

    def ahead(self, length: int) -> bytes:
        """Return the next bytes without consuming them; fewer if the bytes end before."""
        return self._data[self._at : self._at + max(0, length)]

    def text(self) -> str:
        """Read a text preceded by its length as int16 (``STRING``; ``DataOutput.writeUTF`` without NUL and surrogates)."""
        return self._text(self.number(SHORT))

    def raw(self, length: int) -> bytes:
        end = self._at + length
        if length < 0 or end > len(self._data):
            raise UndecodableRecord(f"{len(self._data)} bytes end within a text of {length}")
        part = self._data[self._at : end]
        self._at = end
        return part

    def sized(self) -> bytes:
        """Read bytes preceded by their length as int32; empty for null (-1)."""
        length = self.number(INT)
        return b"" if length < 0 else self.raw(length)

    def varint(self) -> int:
        """Read an unsigned varint: seven bits per byte, the lowest first."""
        value, shift = 0, 0
        while True:
            byte = self.raw(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value

    def compact_text(self) -> str:
        """Read a text preceded by its length plus one (``COMPACT_STRING``)."""
        return self._text(self.varint() - 1)

    def optional_text(self) -> str | None:
        """Read ``COMPACT_NULLABLE_STRING``."""
        length = self.varint() - 1
        return None if length < 0 else self._text(length)

    def array(self, item: Callable[[], T]) -> tuple[T, ...]:
        """Read an array preceded by its length as int32."""
        return tuple(item() for _ in range(max(0, self.number(INT))))

    def compact_array(self, item: Callable[[], T]) -> tuple[T, ...]:
        """Read an array preceded by its length plus one, as a varint."""
        return tuple(item() for _ in range(self.varint() - 1))

    def tags(self) -> None:
        """Skip tagged fields."""
        for _ in range(self.varint()):
            self.varint()
            self.raw(self.varint())

    def _text(self, length: int) -> str:
        return self.raw(length).decode("utf-8", "replace")
