r"""Keys and values of Faust tables, as in their changelogs: JSON, in either of Faust's two spellings.

With orjson installed, Faust writes UTF-8, otherwise ``\u`` escapes (``faust.utils.json``). Strings are JSON too, so they are quoted. The
key of a windowed table is ``[key,[start,end]]``, in seconds, where the end is the window's last tenth of a second
(``WindowRange_from_start``). Records of models carry the name of their class: ``"__faust":{"ns":"module.Class"}``.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal
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
        case [key, [int() | Decimal() as start, int() | Decimal() as end]] if not isinstance(start, bool) and not isinstance(end, bool):
            return WindowKey(key, float(start), float(end))
    raise UndecodableRecord("the key of a windowed table is [key,[start,end]]")


def model_name(value: Any) -> str | None:
    """Return the name of the class of a model's decoded value; None when it does not name one."""
    model = value.get(MODEL_KEY) if isinstance(value, dict) else None
    name: str | None = model.get("ns") if isinstance(model, dict) else None
    return name


def _as_orjson(found: re.Match[str]) -> str:
    text, digits, exponent = found.groups()
    if text is not None:
        return str(text)
    if exponent != "5":
        return f"{digits}e-{exponent}"
    sign, digits = ("-", digits[1:]) if digits[0] == "-" else ("", digits)
    return f"{sign}0.0000{digits.replace('.', '')}"
