"""The interface of formats, and errors that name the record."""

from __future__ import annotations

import base64
import math
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol, runtime_checkable

from kops.core.bounded_json import MOST_DEPTH, is_too_deep
from kops.core.errors import UndecodableRecord

_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")


@runtime_checkable
class Format(Protocol):
    """Converts the bytes of a record's key or value to a value and back. Pure and stateless."""

    @property
    def name(self) -> str:
        """Return the name on the command line and in state files."""

    def encode(self, value: Any) -> bytes | None:
        """Encode a value as ``decode`` returns it; ``None`` stays ``None``.

        :raises UsageProblem: when the format cannot hold the value
        """

    def parse(self, text: str) -> Any:
        """Return the value of a text as typed on a command line.

        :raises UsageProblem: when the format has no such value
        """

    def decode(self, data: bytes) -> Any:
        """Decode the bytes of a key or value.

        :raises UndecodableRecord: when the bytes are not in this format; the error does not name the record
        """

    def show(self, value: Any) -> Any:
        """Return a decoded value in a form that JSON can represent: text, a number, a list, an object."""


@dataclass(frozen=True)
class Place:
    """Where some bytes were found.

    :param part: ``key`` or ``value``
    """

    topic: str
    partition: int
    offset: int
    part: str


def decode_at(form: Format, data: bytes | None, place: Place) -> Any:
    """Decode bytes; an error names the record. ``None`` stays ``None``.

    :raises UndecodableRecord: with topic, partition, offset, part and format in its details
    """
    if data is None:
        return None
    try:
        return form.decode(data)
    except UndecodableRecord as wrong:
        raise UndecodableRecord(
            f"the {place.part} of {place.topic}:{place.partition} at offset {place.offset} is not {form.name}: {wrong.message}",
            hint=f"name another --{place.part} format, or pass over such records with --on-error skip",
            topic=place.topic,
            partition=place.partition,
            offset=place.offset,
            part=place.part,
            format=form.name,
            **as_text_or_base64(data[:64]),
        ) from wrong


def refuse_deep(value: Any) -> None:
    """Refuse a value of mappings and lists that is nested too deeply to be shown.

    :raises UndecodableRecord: when it is nested deeper than ``MOST_DEPTH``
    """
    if is_too_deep(value):
        raise UndecodableRecord(f"nested deeper than {MOST_DEPTH} levels")


def readable_text(data: bytes) -> str | None:
    """Return the bytes as text when they are UTF-8 without control characters other than tabs and line breaks, otherwise None."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return None if _CONTROLS.search(text) else text


def as_text_or_base64(data: bytes) -> dict[str, str]:
    """Return ``{"data": ..., "encoding": "text" | "base64"}``."""
    text = readable_text(data)
    if text is not None:
        return {"data": text, "encoding": "text"}
    return {"data": base64.b64encode(data).decode(), "encoding": "base64"}


def number_as_json(value: float) -> float | str:
    """Return a number, or Java's text for numbers that JSON does not have: ``NaN``, ``Infinity``, ``-Infinity``."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def float32_as_json(value: float) -> float | str:
    """Return a number of 32 bits as ``float32`` does, or Java's text for numbers that JSON does not have."""
    return float32(value) if math.isfinite(value) else number_as_json(value)


def float32(value: float) -> float:
    """Return the shortest finite number that is the same in 32 bits, as Java shows it: 0.1 and not 0.10000000149011612."""
    wanted = struct.pack(">f", value)
    return next(short for digits in range(6, 18) if _packs_to(short := float(f"{value:.{digits}g}"), wanted))


def _packs_to(value: float, wanted: bytes) -> bool:
    try:
        return struct.pack(">f", value) == wanted
    except OverflowError:
        return False


def as_float(value: float | Decimal) -> float:
    """Return the nearest floating-point number.

    :raises OverflowError: when the number is beyond their range, which Python itself says of integers only
    """
    found = float(value)
    if isinstance(value, Decimal) and math.isinf(found):
        raise OverflowError("too large for a floating-point number")
    return found


def shown(value: Any, scalar: Callable[[Any], Any] = str) -> Any:
    """Return a decoded value in a form that JSON can represent: bytes as ``as_text_or_base64``, numbers as ``number_as_json``.

    :param scalar: of values that have no such form by themselves
    """
    if isinstance(value, Mapping):
        return {str(key): shown(part, scalar) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [shown(part, scalar) for part in value]
    if isinstance(value, bytes):
        return as_text_or_base64(value)
    if isinstance(value, float):
        return number_as_json(value)
    return value if value is None or isinstance(value, (bool, int, str)) else scalar(value)
