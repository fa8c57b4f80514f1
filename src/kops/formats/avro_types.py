"""Avro's logical types as Java reads them: exactly, and ignored where they are not valid. Pure.

fastavro computes decimals in the declared precision, which rounds those that exceed it, and refuses schemas and values that Java takes. So
the types of a schema get names that only kops has readers for, in fastavro's own registry of readers (``LOGICAL_READERS``); it has no
writers for them, and takes what ``avro_values`` makes of a value: that of the underlying type.
"""

from __future__ import annotations

import datetime
import decimal
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from kops.formats.avro_guard import resolved
from kops.formats.avro_times import FIRST_DAY, LAST_DAY, UNITS, date_text, instant_text, is_time, time_text
from kops.formats.base import as_text_or_base64, float32_as_json, number_as_json

SHOWN, COLUMN = "kops-shown:", "kops-column:"
"""Before the name of a type: it is read as it is shown, or as a column of Spark holds it."""
DEFAULT = "kops-default"
_PATH = "kops-path"
_UNDERLYING: Mapping[str, Sequence[str]] = {
    "decimal": ("bytes", "fixed"),
    "uuid": ("string",),
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    **{f"{local}timestamp-{unit}": ("long",) for local in ("", "local-") for unit in UNITS},
}
_PLAIN: Sequence[str] = ("bytes", "fixed", "float", "double")
"""Types without a logical one whose values are not shown as they are."""
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_EPOCH = datetime.datetime(1970, 1, 1)
_UTC = datetime.timezone.utc


class NotHeldError(ValueError):
    """A value that a column of Spark cannot hold; the message says which, and why."""


def _not_held(schema: Mapping[str, Any], reason: str) -> NotHeldError:
    return NotHeldError(f"{schema.get(_PATH) or 'it'}: {reason}")


def marked(schema: Any, mark: str, path: str = "") -> Any:
    """Return a schema in which the types that kops reads itself are marked, without invalid logical types.

    Valid are those that Java's ``LogicalTypes.fromSchemaIgnoreInvalid`` keeps. Defaults get another
    name (``DEFAULT``): fastavro refuses a schema with one of the wrong type, which no reader of records needs.

    :param mark: ``SHOWN`` or ``COLUMN``
    :param path: of the field whose type it is
    """
    if isinstance(schema, list):
        return [marked(branch, mark, path) for branch in schema]
    if isinstance(schema, str):
        return marked({"type": schema}, mark, path) if mark == SHOWN and schema in _PLAIN else schema
    kind = schema.get("type") if isinstance(schema, dict) else None
    if isinstance(kind, (dict, list)):
        return {**schema, "type": marked(kind, mark, path)}
    if kind in ("record", "error") and isinstance(schema.get("fields"), list):
        return {**schema, "fields": [_marked_field(field, mark, path) for field in schema["fields"]]}
    if kind in ("array", "map"):
        inner, step = ("items", "[]") if kind == "array" else ("values", "{}")
        return {**schema, inner: marked(schema.get(inner), mark, path + step)}
    return schema if kind is None else _marked_scalar(schema, mark, path)


def _marked_scalar(schema: Mapping[str, Any], mark: str, path: str) -> dict[str, Any]:
    kept = {name: value for name, value in schema.items() if name != "logicalType"}
    kind, logical = schema["type"], str(schema.get("logicalType"))
    if _is_valid(logical, schema):
        return {**kept, "logicalType": mark + logical, _PATH: path}
    return {**kept, "logicalType": mark + kind} if mark == SHOWN and kind in _PLAIN else kept


def _marked_field(field: Any, mark: str, path: str) -> Any:
    if not isinstance(field, dict):
        return field
    name = str(field.get("name"))
    kept = {DEFAULT if key == "default" else key: value for key, value in field.items()}
    return {**kept, "type": marked(field.get("type"), mark, f"{path}.{name}" if path else name)}


def logical_type(schema: Any) -> str:
    """Return the name of the valid logical type of a marked schema; empty if it has none."""
    name = str(schema.get("logicalType", "")) if isinstance(schema, Mapping) else ""
    name = name.rpartition(":")[2]
    return "" if name in _PLAIN else name


def _is_valid(logical: str, schema: Mapping[str, Any]) -> bool:
    if schema.get("type") not in _UNDERLYING.get(logical, ()):
        return False
    if logical != "decimal":
        return True
    precision: Any = schema.get("precision")
    scale: Any = schema.get("scale", 0)
    if any(isinstance(each, bool) or not isinstance(each, int) for each in (precision, scale)):
        return False
    size = schema.get("size")
    fits = schema["type"] == "bytes" or (isinstance(size, int) and precision <= most_digits(size))
    return bool(precision > 0 and 0 <= scale <= precision and fits)


def most_digits(size: int) -> int:
    """Return how many decimal digits a two's complement number of some bytes can always have."""
    return max(0, math.floor(math.log10(2) * (8 * size - 1)))


def _decimal(data: bytes, schema: Mapping[str, Any]) -> decimal.Decimal:
    return _scaled(int.from_bytes(data, "big", signed=True), schema.get("scale", 0))


def _scaled(unscaled: int, scale: int) -> decimal.Decimal:
    """Return an exact decimal: arithmetic on decimals would round to the precision of their context."""
    return decimal.Decimal((int(unscaled < 0), decimal.Decimal(abs(unscaled)).as_tuple().digits, -scale))


def unscaled_of(number: decimal.Decimal, precision: int, scale: int) -> int | None:
    """Return the integer that a decimal is stored as; None if it has more digits than the type, in front of the point or after it."""
    sign, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int) or (any(digits) and number.adjusted() + scale >= precision):
        return None
    found, shift = int(decimal.Decimal((0, digits, 0))), exponent + scale
    if found and shift < 0:
        found, rest = divmod(found, 10**-shift) if -shift <= len(digits) else (0, 1)
        if rest:
            return None
    elif found:
        found *= 10**shift
    return -found if sign else found


def _shown_decimal(data: bytes, schema: Mapping[str, Any]) -> str | dict[str, str]:
    return f"{_decimal(data, schema):f}" if data else as_text_or_base64(data)


def _column_decimal(data: bytes, schema: Mapping[str, Any]) -> decimal.Decimal:
    if not data:
        raise _not_held(schema, "a decimal has no bytes")
    found, (precision, scale) = _decimal(data, schema), column_decimal(schema)
    unscaled = unscaled_of(found, precision, scale)
    if unscaled is None:
        raise _not_held(schema, f"{found:f} does not fit into decimal({precision},{scale})")
    return _scaled(unscaled, scale)


def column_decimal(schema: Mapping[str, Any]) -> tuple[int, int]:
    """Return the precision and the scale of the column of a decimal: Spark has 38 digits at most."""
    return min(schema["precision"], 38), min(schema.get("scale", 0), 38)


def _column_date(days: int, schema: Any) -> datetime.date:
    if not FIRST_DAY <= days <= LAST_DAY:
        raise _not_held(schema, f"{date_text(days)} is beyond the years 1 to 9999 of a date")
    return datetime.date.fromordinal(days - FIRST_DAY + 1)


def _column_instant(unit: str, zone: datetime.timezone | None, count: int, schema: Any) -> datetime.datetime:
    try:
        return (_EPOCH + datetime.timedelta(microseconds=count * 1_000 if unit == "millis" else count)).replace(tzinfo=zone)
    except OverflowError:
        shown = instant_text(count, unit, zone="Z" if zone else "")
        raise _not_held(schema, f"{shown} is beyond the years 1 to 9999 of a timestamp") from None


Reader = Callable[[Any, Any], Any]


def _readers() -> dict[str, Reader]:
    """Return the readers of logical types, by logical type and type: each takes an underlying value and its schema."""
    found: dict[str, Reader] = {
        SHOWN + "decimal": _shown_decimal,
        COLUMN + "decimal": _column_decimal,
        SHOWN + "date": lambda days, _: date_text(days),
        COLUMN + "date": _column_date,
        SHOWN + "bytes": lambda data, _: as_text_or_base64(data),
        SHOWN + "fixed": lambda data, _: as_text_or_base64(data),
        SHOWN + "float": lambda number, _: float32_as_json(number),
        SHOWN + "double": lambda number, _: number_as_json(number),
    }
    for mark in (SHOWN, COLUMN):
        found[mark + "uuid"] = lambda text, _: text.lower() if _UUID.fullmatch(text) else text
        found |= {f"{mark}time-{unit}": partial(_time, unit) for unit in ("millis", "micros")}
    for local, zone in (("", _UTC), ("local-", None)):
        found |= {f"{SHOWN}{local}timestamp-{unit}": partial(_shown_instant, unit, "Z" if zone else "") for unit in UNITS}
        found |= {f"{COLUMN}{local}timestamp-{unit}": partial(_column_instant, unit, zone) for unit in ("millis", "micros")}
    return found


def _time(unit: str, count: int, _schema: Any) -> str | int:
    return time_text(count, unit) if is_time(count, unit) else count


def _shown_instant(unit: str, zone: str, count: int, _schema: Any) -> str:
    return instant_text(count, unit, zone=zone)


_READERS = _readers()


def register(registry: dict[str, Any]) -> None:
    """Add the readers to fastavro's, by the underlying types that they belong to."""
    for name, read in _READERS.items():
        logical = name.rpartition(":")[2]
        for kind in _UNDERLYING.get(logical, (logical,)):
            registry[f"{kind}-{name}"] = _reading(read)


def _reading(read: Reader) -> Callable[[Any, Any, Any], Any]:
    """Return a reader for fastavro; where there is a reader's schema, it is that one's logical type, as in Java."""

    def reading(data: Any, written: Any, wanted: Any) -> Any:
        if wanted is not None:
            name = wanted.get("logicalType") if isinstance(wanted, dict) else None
            return _READERS[name](data, wanted) if name in _READERS else data
        return read(data, written)

    return reading


def default_of(schema: Any, value: Any, named: Mapping[str, Any]) -> Any:
    """Return the value that a default in a schema's JSON stands for, as it is read.

    :param schema: as ``fastavro.parse_schema`` returns it, marked
    :raises ValueError: when the schema has no such value
    """
    schema = resolved(schema, named)
    if isinstance(schema, list):
        return default_of(schema[0], value, named)
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind == "array" and isinstance(value, list):
        return [default_of(schema["items"], each, named) for each in value]
    if kind == "map" and isinstance(value, dict):
        return {key: default_of(schema["values"], each, named) for key, each in value.items()}
    if kind in ("record", "error") and isinstance(value, dict):
        fields = {field["name"]: field for field in schema["fields"]}
        return {name: default_of(each["type"], value.get(name, each.get(DEFAULT)), named) for name, each in fields.items()}
    if not _DEFAULTS.get(kind, lambda _: False)(value):
        raise ValueError(f"the default {value!r} is not of the type {kind}")
    found = value.encode("latin-1") if kind in ("bytes", "fixed") else float(value) if kind in ("float", "double") else value
    name = schema.get("logicalType") if isinstance(schema, dict) else None
    return _READERS[name](found, schema) if name in _READERS else found


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_DEFAULTS: Mapping[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    **dict.fromkeys(("int", "long"), _is_whole),
    **dict.fromkeys(("float", "double"), lambda value: _is_whole(value) or isinstance(value, float)),
    **dict.fromkeys(("string", "enum", "bytes", "fixed"), lambda value: isinstance(value, str)),
}
