r"""Keys and values of Faust tables, as their changelogs have them: JSON, in the two spellings that Faust has.

With orjson installed Faust writes UTF-8, without it ``\u`` escapes (``faust.utils.json``). A text is JSON too, so it has quotes. The key of
a windowed table is ``[key,[start,end]]``, in seconds, where the end is the window's last tenth of a second (``WindowRange_from_start``).
Records of models carry the name of their class: ``"__faust":{"ns":"module.Class"}``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kops.core.errors import UndecodableRecord, UsageProblem
from kops.formats.primitives import Json

MODEL_KEY = "__faust"
LAST_OF_WINDOW = 0.1
"""Seconds that a window's end lies before the start of the next."""

_JSON = Json()
_SMALL = re.compile(r'("(?:[^"\\]|\\.)*")|([-.0-9]+)e-0([5-9])')
"""Texts, which stay, and numbers that orjson writes in another way than Python: 1e-05 as 0.00001, 1e-06 as 1e-6."""


@dataclass(frozen=True)
class WindowKey:
    """A key and the window that it is of.

    :param key: any JSON
    :param start: in seconds since the epoch
    :param end: the last moment of the window that Faust names, in seconds
    """

    key: Any
    start: float
    end: float


@dataclass(frozen=True)
class Model:
    """A value of a model.

    :param namespace: the name of its class; None when the value says none
    :param fields: its fields, without the name
    """

    namespace: str | None
    fields: Mapping[str, Any]


def encode(value: Any, *, ascii_only: bool = False) -> bytes:
    """Return a key or a value as JSON.

    :param ascii_only: as Faust without orjson writes it
    :raises UsageProblem: when it is not of JSON's types
    """
    if not ascii_only:
        return _SMALL.sub(_as_orjson, (_JSON.encode(value) or b"null").decode()).encode()
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    except (ValueError, TypeError, RecursionError) as wrong:
        raise UsageProblem(f"it cannot be written as JSON: {wrong}") from wrong


def decode(data: bytes) -> Any:
    """Return a key or a value.

    :raises UndecodableRecord: when it is not JSON
    """
    return _JSON.decode(data)


def encode_window_key(window: WindowKey, *, ascii_only: bool = False) -> bytes:
    """Return the bytes of the key of a windowed table."""
    return encode([window.key, [window.start, window.end]], ascii_only=ascii_only)


def decode_window_key(data: bytes) -> WindowKey:
    """Return what the key of a windowed table holds.

    :raises UndecodableRecord: when it is not such a key
    """
    match decode(data):
        case [key, [int() | float() as start, int() | float() as end]] if not isinstance(start, bool) and not isinstance(end, bool):
            return WindowKey(key, start, end)
    raise UndecodableRecord("the key of a windowed table is [key,[start,end]]")


def window_from(key: Any, start: float, size: float) -> WindowKey:
    """Return the window of a key that begins at a time, both in seconds."""
    return WindowKey(key, start, start + size - LAST_OF_WINDOW)


def as_model(value: Any) -> Model | None:
    """Return a decoded value as one of a model; None when it is not an object."""
    if not isinstance(value, dict):
        return None
    model = value.get(MODEL_KEY)
    namespace = model.get("ns") if isinstance(model, dict) else None
    return Model(namespace, {name: field for name, field in value.items() if name != MODEL_KEY})


def from_model(model: Model) -> dict[str, Any]:
    """Return the value that is encoded for one of a model, its name last as Faust puts it."""
    return {**model.fields, **({MODEL_KEY: {"ns": model.namespace}} if model.namespace is not None else {})}


def _as_orjson(found: re.Match[str]) -> str:
    text, digits, exponent = found.groups()
    if text is not None:
        return str(text)
    if exponent != "5":
        return f"{digits}e-{exponent}"
    sign, digits = ("-", digits[1:]) if digits[0] == "-" else ("", digits)
    return f"{sign}0.0000{digits.replace('.', '')}"
