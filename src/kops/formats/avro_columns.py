"""Maps Avro types to column types: Spark's own mapping (``SchemaConverters``), but times of day and mixed unions are strings. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from kops.core.json_values import write_json
from kops.core.records.column_types import NOTHING, ListOf, MapOf, Struct, Type, merged
from kops.formats.avro_guard import resolved
from kops.formats.avro_types import column_decimal, logical_type
from kops.formats.base import shown

Convert = Callable[[Any], Any]
"""Turns a decoded value into what a column holds; not called for null."""

_SCALARS = {
    "null": NOTHING,
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "bytes": "binary",
    "enum": "string",
    "fixed": "binary",
}
_TIMES = {
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "date": "date",
    "local-timestamp-millis": "timestamp_ntz",
    "local-timestamp-micros": "timestamp_ntz",
}
_NUMBERS = ("int", "bigint", "float", "double")


def avro_column(schema: Any, named: Mapping[str, Any], inside: tuple[str, ...] = ()) -> tuple[Type, Convert | None]:
    """Return the column type of a schema's values, and their conversion; None when they need none.

    :param schema: as ``fastavro.parse_schema`` returns it, marked ``COLUMN``
    :param named: named types by their full names
    :param inside: the enclosing records: a record nested in itself is a string
    """
    schema = resolved(schema, named)
    if isinstance(schema, list):
        return _union([branch for branch in schema if branch != "null"], named, inside)
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind in ("record", "error"):
        return _record(schema, named, inside)
    if kind == "array":
        item, convert = avro_column(schema["items"], named, inside)
        return ListOf(item), None if convert is None else lambda value: [_applied(convert, each) for each in value]
    if kind == "map":
        inner, convert = avro_column(schema["values"], named, inside)
        return MapOf(inner), lambda value: [(key, _applied(convert, each)) for key, each in value.items()]
    return _scalar(schema if isinstance(schema, dict) else {}, str(kind))


def _record(schema: Any, named: Mapping[str, Any], inside: tuple[str, ...]) -> tuple[Type, Convert | None]:
    name = str(schema["name"])
    if name in inside:
        return "string", _as_text
    columns = {field["name"]: avro_column(field["type"], named, (*inside, name)) for field in schema["fields"]}
    converts = {field: convert for field, (_, convert) in columns.items() if convert is not None}

    def convert_all(value: Any) -> Any:
        for field, convert in converts.items():
            if value[field] is not None:
                value[field] = convert(value[field])
        return value

    return Struct({field: kind for field, (kind, _) in columns.items()}), convert_all if converts else None


def _union(branches: list[Any], named: Mapping[str, Any], inside: tuple[str, ...]) -> tuple[Type, Convert | None]:
    if not branches:
        return NOTHING, None
    if len(branches) == 1:
        return avro_column(branches[0], named, inside)
    kinds = [avro_column(branch, named, inside)[0] for branch in branches]
    if all(kind in _NUMBERS for kind in kinds):
        return reduce(merged, kinds), None
    return "string", _as_text


def _scalar(schema: Mapping[str, Any], kind: str) -> tuple[Type, Convert | None]:
    logical = logical_type(schema)
    if logical == "decimal":
        precision, scale = column_decimal(schema)
        return f"decimal({precision},{scale})", None
    if logical in _TIMES:
        return _TIMES[logical], None
    if logical == "uuid" or logical.startswith("time-"):
        return "string", str
    return _SCALARS[kind], None


def _applied(convert: Convert | None, value: Any) -> Any:
    return value if convert is None or value is None else convert(value)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else write_json(shown(value, _scalar_text), compact=True)


def _scalar_text(value: Any) -> str:
    if isinstance(value, datetime.datetime):
        text = value.isoformat(timespec="microseconds" if value.microsecond % 1000 else "milliseconds")
        return text.replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, datetime.date) else f"{value:f}"
