"""Converts JSON, as ``AvroSchema.decode`` returns it or as people write it, to the value that Avro's writer takes for a schema. Pure."""

from __future__ import annotations

import base64
import binascii
import decimal
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from kops.core.json_values import write_json
from kops.formats.avro_guard import resolved
from kops.formats.avro_times import parse_time
from kops.formats.avro_types import DEFAULT, default_of, logical_type, unscaled_of
from kops.formats.base import as_float

_NUMBERS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_NO_TYPE = "null"


class SchemaMismatch(ValueError):
    """A value that does not match a schema; the message names the place and what belongs there."""


def avro_value(schema: Any, value: Any, named: Mapping[str, Any], path: str = "") -> Any:
    """Return the value that the writer takes.

    :param schema: as ``fastavro.parse_schema`` returns it
    :param named: named types by their full names
    :raises SchemaMismatch: naming the field
    """
    schema = resolved(schema, named)
    if isinstance(schema, list):
        return _union_value(schema, value, named, path)
    kind = schema["type"] if isinstance(schema, dict) else schema
    reader = _READERS.get(str(kind))
    if reader is None:
        return _simple(schema if isinstance(schema, dict) else {}, str(kind), value, path)
    return reader(schema, value, named, path)


def _array(schema: Any, value: Any, named: Mapping[str, Any], path: str) -> list[Any]:
    if not isinstance(value, list):
        raise _wrong(path, value, "an array")
    return [avro_value(schema["items"], each, named, f"{path}[{at}]") for at, each in enumerate(value)]


def _map(schema: Any, value: Any, named: Mapping[str, Any], path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(path, value, "an object")
    return {key: avro_value(schema["values"], each, named, _joined(path, key)) for key, each in value.items()}


def _enum(schema: Any, value: Any, _named: Mapping[str, Any], path: str) -> Any:
    if value not in schema["symbols"]:
        raise _wrong(path, value, f"one of {', '.join(schema['symbols'])}")
    return value


def _record(schema: Any, value: Any, named: Mapping[str, Any], path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(path, value, f"an object ({schema['name']})")
    fields = {field["name"]: field for field in schema["fields"]}
    for name in value:
        if name not in fields:
            raise SchemaMismatch(f"{_joined(path, name)} is not in the schema ({', '.join(fields)})")
    found = {}
    for name, field in fields.items():
        if name in value:
            found[name] = avro_value(field["type"], value[name], named, _joined(path, name))
        elif DEFAULT in field:
            found[name] = avro_value(field["type"], _default(field, named, _joined(path, name)), named, _joined(path, name))
        else:
            raise SchemaMismatch(f"{_joined(path, name)} is missing")
    return found


def _union_value(branches: list[Any], value: Any, named: Mapping[str, Any], path: str) -> Any:
    problems = []
    if value is None and _NO_TYPE in branches:
        return None
    for branch in sorted(branches, key=_preference):
        try:
            found = avro_value(branch, value, named, path)
        except SchemaMismatch as wrong:
            problems.append(wrong)
            continue
        return _branch_value(branch, found)
    if isinstance(value, dict) and len(value) == 1:  # Avro's own JSON names the branch: {"string": "a"}
        ((name, inner),) = value.items()
        for branch in branches:
            if name in (_name(branch), _name(branch).rpartition(".")[2]):
                return _branch_value(branch, avro_value(branch, inner, named, path))
    if len(problems) == 1 or (len(branches) == 2 and _NO_TYPE in branches):  # noqa: PLR2004 - an optional value
        raise problems[-1] if problems else _wrong(path, value, "null")
    raise _wrong(path, value, f"one of {', '.join(map(_name, branches))}")


def _branch_value(branch: Any, value: Any) -> tuple[str, Any]:
    """Return a value with the name of its branch: fastavro by itself would choose the first branch that takes it."""
    return _name(branch), value


def _default(field: Mapping[str, Any], named: Mapping[str, Any], path: str) -> Any:
    try:
        return default_of(field["type"], field[DEFAULT], named)
    except (ValueError, TypeError, KeyError) as wrong:
        raise SchemaMismatch(f"{path} is missing, and {wrong}") from wrong


def _preference(branch: Any) -> int:
    """Return a branch's rank in the order of trying them: those that accept fewer values first."""
    order = (_NO_TYPE, "boolean", "int", "long", "float", "double", "enum", "array", "record", "map", "fixed", "string", "bytes")
    kind = branch["type"] if isinstance(branch, dict) else branch
    logical = logical_type(branch) != ""
    return (order.index(kind) if kind in order else order.index("record")) - (len(order) if logical and kind != "bytes" else 0)


def _simple(schema: Mapping[str, Any], kind: str, value: Any, path: str) -> Any:
    logical = logical_type(schema)
    if logical == "decimal":
        return _decimal(schema, value, path)
    if isinstance(value, str) and kind in ("int", "long") and logical:
        try:
            value = parse_time(value, logical)
        except ValueError as wrong:
            raise _wrong(path, value, f"a {logical}, {wrong}") from None
    if kind in ("bytes", "fixed"):
        return _bytes(schema, value, path)
    if kind in ("float", "double") and isinstance(value, str) and value in _NUMBERS:
        return _NUMBERS[value]
    if kind not in _TAKES or not _TAKES[kind](value):
        raise _wrong(path, value, f"a {logical or kind}" if kind != _NO_TYPE else "null")
    try:
        return as_float(value) if kind in ("float", "double") else value
    except OverflowError:
        raise _wrong(path, value, f"a {kind}, which is smaller") from None


def _bytes(schema: Mapping[str, Any], value: Any, path: str) -> bytes:
    data: bytes | None = None
    if isinstance(value, str):
        data = value.encode()
    elif isinstance(value, dict) and isinstance(value.get("data"), str) and set(value) == {"data", "encoding"}:
        try:
            data = base64.b64decode(value["data"], validate=True) if value["encoding"] == "base64" else value["data"].encode()
        except (binascii.Error, UnicodeEncodeError) as wrong:
            raise _wrong(path, value, f"bytes: {wrong}") from wrong
    size = schema.get("size")
    if data is None or (size is not None and len(data) != size):
        raise _wrong(path, value, f"{size} bytes" if size is not None else 'bytes: a text, or {"data": ..., "encoding": "base64"}')
    return data


def _decimal(schema: Mapping[str, Any], value: Any, path: str) -> bytes:
    """Return the unscaled number as two's complement; what Java's ``DecimalConversion`` refuses to round is refused here too."""
    precision, scale = schema["precision"], schema.get("scale", 0)
    unscaled = None
    if isinstance(value, (str, int, float, decimal.Decimal)) and not isinstance(value, bool):
        with suppress(decimal.InvalidOperation):
            unscaled = unscaled_of(decimal.Decimal(str(value)), precision, scale)
    if unscaled is None:
        raise _wrong(path, value, f'a decimal of {precision} digits, {scale} of them after the point, such as "12.30"')
    return unscaled.to_bytes(schema.get("size") or unscaled.bit_length() // 8 + 1, "big", signed=True)


def _whole(value: Any, limit: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit


_TAKES: Mapping[str, Callable[[Any], bool]] = {
    _NO_TYPE: lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "int": lambda value: _whole(value, 2**31),
    "long": lambda value: _whole(value, 2**63),
    **dict.fromkeys(("float", "double"), lambda value: isinstance(value, (int, float, decimal.Decimal)) and not isinstance(value, bool)),
    "string": lambda value: isinstance(value, str),
}
_READERS: Mapping[str, Callable[[Any, Any, Mapping[str, Any], str], Any]] = {
    "record": _record,
    "error": _record,
    "array": _array,
    "map": _map,
    "enum": _enum,
}


def _name(schema: Any) -> str:
    return str(schema if isinstance(schema, str) else schema.get("name") or schema["type"])


def _wrong(path: str, value: Any, wanted: str) -> SchemaMismatch:
    text = write_json(value)
    return SchemaMismatch(f"{path or 'the value'} is {text if len(text) <= 60 else text[:60] + '...'}, not {wanted}")  # noqa: PLR2004


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else str(name)
