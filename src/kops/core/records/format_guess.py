"""The format of keys or values, guessed from samples. Pure: it is a guess, to be corrected by those who know the application."""

from __future__ import annotations

import math
import struct
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from kops.core.json_values import WrittenNumber, read_json

_LEAST_MAGNITUDE, _MOST_MAGNITUDE = 1e-9, 1e15
"""Plausible magnitudes of numbers that people count and measure; a small integer read as a double is far below."""
_REGISTRY_MAGIC, _REGISTRY_BYTES = 0, 5


@dataclass(frozen=True)
class FormatGuess:
    """A format of a state file.

    :param name: None if nothing fits
    :param schema: for JSON objects whose fields have plain types, as a Spark DDL schema
    :param reason: half a sentence: why, or why not
    :param sure: it is a fact, and no guess
    """

    name: str | None
    reason: str
    schema: str | None = None
    sure: bool = False

    @property
    def value(self) -> Any:
        """The guess as it is written in a state file."""
        return {"format": self.name, "schema": self.schema} if self.schema else self.name


Registered = Callable[[bytes], "str | None"]
"""Returns the format of the registered schema whose id some bytes begin with; None if the registry has none."""


def guess_format(samples: Iterable[bytes | None], registered: Registered | None = None) -> FormatGuess:
    """Return a format that fits all samples."""
    data = [sample for sample in samples if sample is not None]
    if not data:
        return FormatGuess(None, "no record to look at")
    texts, widths = _texts(data), {len(one) for one in data}
    if texts is not None:
        return _of_texts(texts)
    if widths in ({8}, {4}, {2}):
        return _of_numbers(data, widths.pop())
    if all(len(one) > _REGISTRY_BYTES and one[0] == _REGISTRY_MAGIC for one in data):
        name = registered(data[0]) if registered is not None else None
        if name is not None:
            return FormatGuess(name, "the registry has the schema")
        return FormatGuess(None, "they begin as avro, json-schema and protobuf of a schema registry do")
    return FormatGuess("bytes", "neither text nor numbers of one width")


def _texts(data: Iterable[bytes]) -> list[str] | None:
    try:
        texts = [one.decode("utf-8") for one in data]
    except UnicodeDecodeError:
        return None
    return texts if all(text.isprintable() or text.strip().replace("\n", "").replace("\t", "").isprintable() for text in texts) else None


def _of_texts(texts: list[str]) -> FormatGuess:
    objects = [_json(text) for text in texts]
    if all(isinstance(one, dict) for one in objects):
        schema = _schema([one for one in objects if isinstance(one, dict)])
        return FormatGuess("json", "JSON objects", schema)
    if all(_is_uuid(text) for text in texts):
        return FormatGuess("uuid", "all are UUIDs; a String of one has the same bytes")
    return FormatGuess("string", "readable text")


def _json(text: str) -> Any:
    try:
        return read_json(text)
    except (ValueError, RecursionError):
        return None


def _schema(objects: Iterable[dict[str, Any]]) -> str | None:
    """Return the fields of objects as a DDL schema; None if one has fields that are not plain values."""
    types: dict[str, str] = {}
    for one in objects:
        for name, value in one.items():
            kind = {bool: "boolean", int: "bigint", WrittenNumber: "double", str: "string"}.get(type(value))
            if value is None:
                continue
            if kind is None:
                return None
            known = types.setdefault(name, kind)
            if known != kind:
                types[name] = "double" if {known, kind} == {"bigint", "double"} else "string"
    return ", ".join(f"`{name}` {kind}" if not name.isidentifier() else f"{name} {kind}" for name, kind in types.items()) or None


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


def _of_numbers(data: Iterable[bytes], width: int) -> FormatGuess:
    layout, floating, integral = {8: (">d", "double", "long"), 4: (">f", "float", "int"), 2: (">e", "", "short")}[width]
    numbers = [struct.unpack(layout, one)[0] for one in data]
    if floating and all(_plausible(one) for one in numbers) and any(numbers):
        return FormatGuess(floating, f"{width} bytes each, plausible as {floating}")
    return FormatGuess(integral, f"{width} bytes each, so {integral}{f' (or {floating})' if floating else ''}")


def _plausible(number: float) -> bool:
    return number == 0 or (math.isfinite(number) and _LEAST_MAGNITUDE < abs(number) < _MOST_MAGNITUDE)
