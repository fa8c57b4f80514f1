r"""Keys and values of Faust tables, as in their changelogs: JSON, in either of Faust's two spellings.

With orjson installed, Faust writes UTF-8, otherwise ``\u`` escapes (``faust.utils.json``). Strings are JSON too, so they are quoted. The
key of a windowed table is ``[key,[start,end]]``, in seconds, where the end is the window's last tenth of a second
(``WindowRange_from_start``). Records of models carry the name of their class: ``"__faust":{"ns":"module.Class"}``.
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

_JSON = Json()
_SMALL = re.compile(r'("(?:[^"\\]|\\.)*")|([-.0-9]+)e-0([5-9])')
"""Strings, which stay unchanged, and numbers that orjson writes differently from Python: 1e-05 as 0.00001, 1e-06 as 1e-6."""


@dataclass(frozen=True)
class WindowKey:
    """A key and its window.

    :param key: any JSON
    :param start: in seconds since the epoch
    :param end: the last moment of the window, as Faust writes it, in seconds since the epoch
    """

    key: Any
    start: float
    end: float


@dataclass(frozen=True)
class Model:
    """A value of a Faust model.

    :param namespace: the name of its class; None when the value does not name it
    :param fields: its fields, without the name of the class
    """

    namespace: str | None
    fields: Mapping[str, Any]


def encode(value: Any, *, ascii_only: bool = False) -> bytes:
    """Encode a key or a value as JSON.

    :param ascii_only: as Faust without orjson writes it
    :raises UsageProblem: when JSON cannot represent it
    """
    if not ascii_only:
        return _SMALL.sub(_as_orjson, (_JSON.encode(value) or b"null").decode()).encode()
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    except (ValueError, TypeError, RecursionError) as wrong:
        raise UsageProblem(f"it cannot be written as JSON: {wrong}") from wrong


def decode(data: bytes) -> Any:
    return _JSON.decode(data)


def decode_window_key(data: bytes) -> WindowKey:
    match decode(data):
        case [key, [int() | float() as start, int() | float() as end]] if not isinstance(start, bool) and not isinstance(end, bool):
            return WindowKey(key, start, end)
    raise UndecodableRecord("the key of a windowed table is [key,[start,end]]")


def as_model(value: Any) -> Model | None:
    """Return a decoded value as a model's; None when it is not a JSON object."""
    if not isinstance(value, dict):
        return None
    model = value.get(MODEL_KEY)
    namespace = model.get("ns") if isinstance(model, dict) else None
    return Model(namespace, {name: field for name, field in value.items() if name != MODEL_KEY})


def _as_orjson(found: re.Match[str]) -> str:
    text, digits, exponent = found.groups()
    if text is not None:
        return str(text)
    if exponent != "5":
        return f"{digits}e-{exponent}"
    sign, digits = ("-", digits[1:]) if digits[0] == "-" else ("", digits)
    return f"{sign}0.0000{digits.replace('.', '')}"
