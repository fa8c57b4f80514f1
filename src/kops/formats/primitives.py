"""The formats of Kafka's own serializers (``org.apache.kafka.common.serialization``), and JSON."""

from __future__ import annotations

import base64
import binascii
import re
import struct
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

from kops.core.bounded_json import MOST_DEPTH
from kops.core.errors import UndecodableRecord, UsageProblem
from kops.core.json_values import read_json, write_json
from kops.formats.base import as_float, as_text_or_base64, float32_as_json, number_as_json, refuse_deep

_DIGITS = re.compile(r"[+-]?[0-9]{1,20}")
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")


@dataclass(frozen=True)
class String:
    """UTF-8 (``StringSerializer`` with its default encoding), strict: other bytes are an error."""

    name: ClassVar[str] = "string"

    def encode(self, value: Any) -> bytes | None:
        return None if value is None else _utf8(self.name, value)

    def parse(self, text: str) -> str:
        return text

    def decode(self, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as wrong:
            raise UndecodableRecord(f"byte {wrong.start} of {len(data)} is not UTF-8") from wrong

    def show(self, value: Any) -> Any:
        return value


@dataclass(frozen=True)
class Bytes:
    """Bytes as they are (``ByteArraySerializer``)."""

    name: ClassVar[str] = "bytes"

    def encode(self, value: Any) -> bytes | None:
        if value is None or isinstance(value, bytes):
            return value
        raise _wrong_type(self.name, value)

    def parse(self, text: str) -> bytes:
        """Return ``base64:...`` decoded, other text as UTF-8."""
        data = _utf8(self.name, text)
        if not data.startswith(b"base64:"):
            return data
        try:
            return base64.b64decode(data[7:], validate=True)
        except binascii.Error as wrong:
            raise UsageProblem(f"{text!r} is not base64: {wrong}") from wrong

    def decode(self, data: bytes) -> bytes:
        return data

    def show(self, value: Any) -> Any:
        """Return ``{"data": ..., "encoding": "text" | "base64"}``."""
        return as_text_or_base64(value)


@dataclass(frozen=True)
class Integer:
    """A signed big-endian integer of a fixed width (``LongSerializer``, ``IntegerSerializer``, ``ShortSerializer``)."""

    name: str
    code: str

    def encode(self, value: Any) -> bytes | None:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise _wrong_type(self.name, value)
        try:
            return struct.pack(self.code, value)
        except struct.error as wrong:
            raise self._out_of_range(value) from wrong

    def parse(self, text: str) -> int:
        if not _DIGITS.fullmatch(text):
            raise self._out_of_range(text)
        return int(text)

    def _out_of_range(self, value: Any) -> UsageProblem:
        bits = 8 * struct.calcsize(self.code) - 1
        return UsageProblem(f"{_short(value)} is not {self.name}: an integer from -2^{bits} to 2^{bits}-1")

    def decode(self, data: bytes) -> int:
        return int(_unpack(self.name, self.code, data))

    def show(self, value: Any) -> Any:
        return value


@dataclass(frozen=True)
class Float:
    """A big-endian IEEE 754 number (``DoubleSerializer``, ``FloatSerializer``)."""

    name: str
    code: str

    def encode(self, value: Any) -> bytes | None:
        """Encode a number, rounded to the width."""
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
            raise _wrong_type(self.name, value)
        try:
            return struct.pack(self.code, as_float(value))
        except OverflowError as wrong:
            raise UsageProblem(f"{_short(value)} is beyond the range of {self.name}") from wrong

    def parse(self, text: str) -> float:
        """Parse a number, including ``NaN`` and ``-Infinity``."""
        try:
            return float("" if "_" in text or not text.isascii() else text)
        except ValueError as wrong:
            raise UsageProblem(f"{_short(text)} is not {self.name}: a number, NaN, Infinity or -Infinity") from wrong

    def decode(self, data: bytes) -> float:
        return float(_unpack(self.name, self.code, data))

    def show(self, value: Any) -> Any:
        """Return the shortest number that has the same bytes, or ``NaN``, ``Infinity``, ``-Infinity`` as text."""
        return float32_as_json(value) if self.code == ">f" else number_as_json(value)


@dataclass(frozen=True)
class Json:
    """JSON in UTF-8, which may begin with a byte order mark, as Jackson reads it.

    Written in compact form, as by Jackson and orjson, with numbers as they were read (``kops.core.json_values``).
    """

    name: ClassVar[str] = "json"

    def encode(self, value: Any) -> bytes | None:
        """Encode a value as JSON; ``None`` stands for no value, not for JSON's null."""
        if value is None:
            return None
        try:
            return write_json(value, compact=True).encode()
        except (ValueError, TypeError, RecursionError) as wrong:
            raise UsageProblem(f"{_short(value)} cannot be written as JSON: {wrong}") from wrong

    def parse(self, text: str) -> Any:
        try:
            return read_json(text)
        except (ValueError, RecursionError) as wrong:
            raise UsageProblem(f"{_short(text)} is not JSON: {wrong}", hint="write a text with its quotes: '\"text\"'") from wrong

    def decode(self, data: bytes) -> Any:
        try:
            value = read_json(data.decode("utf-8-sig"))
        except (ValueError, RecursionError) as wrong:
            raise UndecodableRecord(f"{wrong}") from wrong
        if data.count(b"{") + data.count(b"[") > MOST_DEPTH:
            refuse_deep(value)
        return value

    def show(self, value: Any) -> Any:
        return value


@dataclass(frozen=True)
class Uuid:
    """A UUID as its text (``UUIDSerializer``)."""

    name: ClassVar[str] = "uuid"

    def encode(self, value: Any) -> bytes | None:
        """Encode a UUID as text, in lower case as Java writes it."""
        return None if value is None else self.parse(str(value)).encode()

    def parse(self, text: str) -> str:
        """Return the text in lower case."""
        if not _UUID.fullmatch(text):
            raise UsageProblem(f"{_short(text)} is not a UUID", hint="write it as 123e4567-e89b-12d3-a456-426614174000")
        return text.lower()

    def decode(self, data: bytes) -> str:
        text = data.decode("ascii", "replace")
        if not _UUID.fullmatch(text):
            hint = ", which may be one in binary" if len(data) == 16 else ""  # noqa: PLR2004 - the bytes of a UUID
            raise UndecodableRecord(f"{len(data)} bytes are not the text of a UUID{hint}")
        return text.lower()

    def show(self, value: Any) -> Any:
        return value


def _utf8(name: str, value: Any) -> bytes:
    if not isinstance(value, str):
        raise _wrong_type(name, value)
    try:
        return value.encode()
    except UnicodeEncodeError as wrong:
        raise UsageProblem(f"{value!r} is not {name}: it cannot be written as UTF-8") from wrong


def _wrong_type(name: str, value: Any) -> UsageProblem:
    return UsageProblem(f"{_short(value)} is not {name} but {'float' if isinstance(value, Decimal) else type(value).__name__}")


def _unpack(name: str, code: str, data: bytes) -> Any:
    width = struct.calcsize(code)
    if len(data) != width:
        raise UndecodableRecord(f"a {name} has {width} bytes, this has {len(data)}")
    return struct.unpack(code, data)[0]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004 - fits a line
