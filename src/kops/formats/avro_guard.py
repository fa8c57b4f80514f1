"""Limits what a record of a few bytes may expand to in Avro, before fastavro's C code decodes it. Pure.

Values of a recursive schema may be nested until the C stack overflows, which ends the process, and an array whose items take no bytes
(nulls, records without fields) may claim any number of items. Schemas that allow neither need no check.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kops.core.bounded_json import MOST_DEPTH
from kops.core.errors import UndecodableRecord

MOST_WEIGHTLESS = 100_000
"""Limit for items without bytes, in all arrays of one value together."""
_FIXED_WIDTH = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_RECORDS = ("record", "error")
_LONG_BITS = 70


def needs_guard(schema: Any, named: Mapping[str, Any]) -> bool:
    """Whether values of a schema can be nested without limit, or deeper than ``MOST_DEPTH``, or hold items without bytes.

    :param schema: as ``fastavro.parse_schema`` returns it
    :param named: named types by their full names
    """
    return _Schema(named).unbounded(schema, ())


class _Schema:
    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._found: dict[str, bool] = {}

    def unbounded(self, schema: Any, inside: tuple[str, ...], depth: int = 0) -> bool:
        schema = resolved(schema, self._named)
        if depth > MOST_DEPTH:
            return True
        if isinstance(schema, list):
            return any(self.unbounded(branch, inside, depth) for branch in schema)
        kind = schema["type"] if isinstance(schema, dict) else schema
        if kind in ("array", "map"):
            inner = schema["items" if kind == "array" else "values"]
            return (kind == "array" and self.weightless(inner, ())) or self.unbounded(inner, inside, depth + 1)
        return kind in _RECORDS and self._record(schema, inside, depth)

    def _record(self, schema: Any, inside: tuple[str, ...], depth: int) -> bool:
        name = str(schema["name"])
        if name in inside:
            return True
        if name not in self._found:
            self._found[name] = any(self.unbounded(field["type"], (*inside, name), depth + 1) for field in schema["fields"])
        return self._found[name]

    def weightless(self, schema: Any, inside: tuple[str, ...]) -> bool:
        """Whether a value of a schema takes no bytes."""
        schema = resolved(schema, self._named)
        if isinstance(schema, list):
            return False
        kind = schema["type"] if isinstance(schema, dict) else schema
        if kind in _RECORDS and schema["name"] not in inside:
            return all(self.weightless(field["type"], (*inside, schema["name"])) for field in schema["fields"])
        return kind == "null" or kind in _RECORDS or (kind == "fixed" and schema["size"] == 0)


def check_bounds(schema: Any, named: Mapping[str, Any], data: bytes) -> None:
    """Walk over a value without building it.

    :raises UndecodableRecord: when it is nested deeper than ``MOST_DEPTH``, has too many items, or ends too early
    """
    _Walk(named, data).over(schema, 0)


class _Walk:
    def __init__(self, named: Mapping[str, Any], data: bytes) -> None:
        self._named = named
        self._schema = _Schema(named)
        self._data = data
        self._at = 0
        self._weightless = 0

    def over(self, schema: Any, depth: int) -> None:
        schema = resolved(schema, self._named)
        if depth > MOST_DEPTH:
            raise UndecodableRecord(f"nested deeper than {MOST_DEPTH} levels")
        if isinstance(schema, list):
            branch = self._long()
            if not 0 <= branch < len(schema):
                raise UndecodableRecord(f"a union has no branch {branch}")
            self.over(schema[branch], depth)
            return
        kind = schema["type"] if isinstance(schema, dict) else schema
        if kind in _FIXED_WIDTH:
            self._pass(_FIXED_WIDTH[kind])
        elif kind in ("int", "long", "enum"):
            self._long()
        elif kind in ("bytes", "string"):
            self._pass(self._long())
        elif kind == "fixed":
            self._pass(schema["size"])
        elif kind in ("array", "map"):
            self._blocks(schema, str(kind), depth)
        else:
            for field in schema["fields"]:
                self.over(field["type"], depth + 1)

    def _blocks(self, schema: Any, kind: str, depth: int) -> None:
        inner = schema["items"] if kind == "array" else schema["values"]
        weightless = kind == "array" and self._schema.weightless(inner, ())
        while count := self._long():
            if count < 0:
                count = -count
                self._long()  # the size of the block in bytes
            if weightless:
                self._weightless += count
                if self._weightless > MOST_WEIGHTLESS:
                    raise UndecodableRecord(f"claims {count:,} items that take no bytes, more than {MOST_WEIGHTLESS:,}")
                self.over(inner, depth + 1)  # the other items are as deep
                continue
            if count > len(self._data) - self._at:
                raise UndecodableRecord(f"claims {count:,} items in {len(self._data) - self._at} bytes")
            for _ in range(count):
                if kind == "map":
                    self._pass(self._long())
                self.over(inner, depth + 1)

    def _pass(self, length: int) -> None:
        if not 0 <= length <= len(self._data) - self._at:
            raise UndecodableRecord(f"{len(self._data)} bytes end within a value of {length}")
        self._at += length

    def _long(self) -> int:
        number = shift = 0
        while shift < _LONG_BITS:
            if self._at >= len(self._data):
                raise UndecodableRecord(f"{len(self._data)} bytes end within a number")
            byte = self._data[self._at]
            self._at += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:  # noqa: PLR2004 - the continuation bit
                return (number >> 1) ^ -(number & 1)
            shift += 7
        raise UndecodableRecord("a number has too many bytes")


def resolved(schema: Any, named: Mapping[str, Any]) -> Any:
    """Return a schema itself: the one that a name stands for, or that is written inside ``{"type": ...}``."""
    if isinstance(schema, str):
        schema = named.get(schema, schema)
    if isinstance(schema, dict) and isinstance(schema["type"], (list, dict)):
        return resolved(schema["type"], named)
    return schema
