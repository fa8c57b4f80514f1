"""The formats of Kafka's own serializers (``org.apache.kafka.common.serialization``), and JSON."""

from __future__ import annotations

import base64
import binascii
import json
import re
import struct
from dataclasses import dataclass
from typing import Any, ClassVar

from kops.core.errors import UndecodableRecord, UsageProblem
from kops.formats.base import as_text_or_base64, number_as_json

_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")


@dataclass(frozen=True)
class String:
    """UTF-8 (``StringSerializer`` with its default encoding), strict: other bytes are an error."""

    name: ClassVar[str] = "string"

    def encode(self, value: Any) -> bytes | None:
        """Return the text as UTF-8."""
        return None if value is None else _utf8(self.name, value)

    def decode(self, data: bytes) -> str:
        """Return the text."""
        try:
            return data.decode()
        except UnicodeDecodeError as wrong:
            raise UndecodableRecord(f"byte {wrong.start} of {len(data)} is not UTF-8") from wrong

    def show(self, value: Any) -> Any:
        """Return the text."""
        return value


@dataclass(frozen=True)
class Bytes:
    """Bytes as they are (``ByteArraySerializer``)."""

    name: ClassVar[str] = "bytes"

    def encode(self, value: Any) -> bytes | None:
        """Return bytes as they are, ``base64:...`` decoded, other text as UTF-8."""
        if value is None or isinstance(value, bytes):
            return value
        data = _utf8(self.name, value)
        if not data.startswith(b"base64:"):
            return data
        try:
            return base64.b64decode(data[7:], validate=True)
        except binascii.Error as wrong:
            raise UsageProblem(f"{value!r} is not base64: {wrong}") from wrong

    def decode(self, data: bytes) -> bytes:
        """Return the bytes."""
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
        """Return the bytes of an integer or of its digits."""
        if value is None:
            return None
        try:
            return struct.pack(self.code, int(_digits(value, int)))
        except (ValueError, struct.error) as wrong:
            bits = 8 * struct.calcsize(self.code)
            raise UsageProblem(f"{value!r} is not {self.name}: an integer from -2^{bits - 1} to 2^{bits - 1}-1") from wrong

    def decode(self, data: bytes) -> int:
        """Return the integer."""
        return int(_unpack(self.name, self.code, data))

    def show(self, value: Any) -> Any:
        """Return the integer."""
        return value


@dataclass(frozen=True)
class Float:
    """A big-endian IEEE 754 number (``DoubleSerializer``, ``FloatSerializer``)."""

    name: str
    code: str

    def encode(self, value: Any) -> bytes | None:
        """Return the bytes of a number or of its text, ``NaN`` and ``-Infinity`` included."""
        if value is None:
            return None
        try:
            return struct.pack(self.code, float(_digits(value, int, float)))
        except (ValueError, OverflowError) as wrong:
            raise UsageProblem(f"{value!r} is not {self.name}: a number in its range, NaN, Infinity or -Infinity") from wrong

    def decode(self, data: bytes) -> float:
        """Return the number, exactly."""
        return float(_unpack(self.name, self.code, data))

    def show(self, value: Any) -> Any:
        """Return the shortest number that has the same bytes, or ``NaN``, ``Infinity``, ``-Infinity`` as text."""
        shown = number_as_json(value)
        if self.code != ">f" or isinstance(shown, str):
            return shown
        wanted = struct.pack(self.code, value)
        return next(short for digits in range(6, 18) if _packs_to(self.code, short := float(f"{value:.{digits}g}"), wanted))


@dataclass(frozen=True)
class Json:
    """JSON in UTF-8. Written compact, as Jackson and orjson do."""

    name: ClassVar[str] = "json"

    def encode(self, value: Any) -> bytes | None:
        """Return the JSON of a value; a text is taken as JSON already, and checked."""
        if value is None:
            return None
        try:
            if isinstance(value, (str, bytes)):
                value = json.loads(value, parse_constant=_no_constant)
            return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        except (ValueError, TypeError, RecursionError) as wrong:
            raise UsageProblem(f"{_short(value)} is not JSON: {wrong}", hint="write a text with its quotes: '\"text\"'") from wrong

    def decode(self, data: bytes) -> Any:
        """Return the value."""
        try:
            return json.loads(data.decode(), parse_constant=_no_constant)
        except (ValueError, RecursionError) as wrong:
            raise UndecodableRecord(f"{wrong}") from wrong

    def show(self, value: Any) -> Any:
        """Return the value; a number too big for a double as text."""
        if isinstance(value, float):
            return number_as_json(value)
        if isinstance(value, list):
            return [self.show(element) for element in value]
        if isinstance(value, dict):
            return {key: self.show(element) for key, element in value.items()}
        return value


@dataclass(frozen=True)
class Uuid:
    """A UUID as its text (``UUIDSerializer``)."""

    name: ClassVar[str] = "uuid"

    def encode(self, value: Any) -> bytes | None:
        """Return the text of a UUID, in lower case as Java writes it."""
        if value is None:
            return None
        text = str(value)
        if not _UUID.fullmatch(text):
            raise UsageProblem(f"{value!r} is not a UUID", hint="write it as 123e4567-e89b-12d3-a456-426614174000")
        return text.lower().encode()

    def decode(self, data: bytes) -> str:
        """Return the text of the UUID."""
        text = data.decode("ascii", "replace")
        if not _UUID.fullmatch(text):
            hint = ", which may be one in binary" if len(data) == 16 else ""  # noqa: PLR2004 - the bytes of a UUID
            raise UndecodableRecord(f"{len(data)} bytes are not the text of a UUID{hint}")
        return text.lower()

    def show(self, value: Any) -> Any:
        """Return the text."""
        return value


def _utf8(name: str, value: Any) -> bytes:
    if not isinstance(value, str):
        raise UsageProblem(f"{value!r} is not {name} but {type(value).__name__}")
    try:
        return value.encode()
    except UnicodeEncodeError as wrong:
        raise UsageProblem(f"{value!r} is not {name}: it cannot be written as UTF-8") from wrong


def _digits(value: Any, *kinds: type) -> Any:
    """Return a number, or the text of one as other languages write it too."""
    if isinstance(value, str) and "_" not in value and value.isascii():
        return value
    if isinstance(value, kinds) and not isinstance(value, bool):
        return value
    raise ValueError(value)


def _unpack(name: str, code: str, data: bytes) -> Any:
    width = struct.calcsize(code)
    if len(data) != width:
        raise UndecodableRecord(f"a {name} has {width} bytes, this has {len(data)}")
    return struct.unpack(code, data)[0]


def _packs_to(code: str, value: float, wanted: bytes) -> bool:
    try:
        return struct.pack(code, value) == wanted
    except OverflowError:
        return False


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004 - fits a line
