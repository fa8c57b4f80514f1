"""What a format is, and how its errors name the record."""

from __future__ import annotations

import base64
import math
import re
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from kops.core.errors import UndecodableRecord

MOST_DEPTH = 200
"""Levels that a value may be nested: what shows and writes it calls itself a few times for each, and Python ends that at 1,000."""
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]")


@runtime_checkable
class Format(Protocol):
    """Bytes of a record's key or value, to a value and back. Pure and without state."""

    @property
    def name(self) -> str:
        """Return the name on the command line and in state files."""

    def encode(self, value: Any) -> bytes | None:
        """Return the bytes of a value as ``decode`` gives it; ``None`` stays ``None``.

        :raises UsageProblem: when the value is not one of this format
        """

    def parse(self, text: str) -> Any:
        """Return the value that a text means, as typed on a command line.

        :raises UsageProblem: when it means none
        """

    def decode(self, data: bytes) -> Any:
        """Return the value of some bytes.

        :raises UndecodableRecord: when the bytes are not of this format, without saying which record
        """

    def show(self, value: Any) -> Any:
        """Return a decoded value as JSON holds it: text, a number, a list, an object."""


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
    """Decode, naming the record when that fails; ``None`` stays ``None``.

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
    """Refuse a value of mappings and lists that is nested too deep to be shown.

    :raises UndecodableRecord: deeper than ``MOST_DEPTH``
    """
    level, depth = [value], 0
    while level:
        if depth >= MOST_DEPTH:
            raise UndecodableRecord(f"nested deeper than {MOST_DEPTH} levels")
        level = [
            part
            for each in level
            if isinstance(each, (dict, list))
            for part in (each.values() if isinstance(each, dict) else each)
            if isinstance(part, (dict, list))
        ]
        depth += 1


def readable_text(data: bytes) -> str | None:
    """Return the bytes as text when they are UTF-8 without control characters other than tabs and line ends."""
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
    """Return a number, or the text Java gives what JSON has no number for: ``NaN``, ``Infinity``, ``-Infinity``."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
