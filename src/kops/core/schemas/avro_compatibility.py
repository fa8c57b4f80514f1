"""Whether records written with one Avro schema can be read with another, and if not, because of which field. Pure.

The rules are those of the specification ("Schema Resolution"), with the names of records, enums and fixed compared as Avro's own
``SchemaCompatibility`` does: the full name, or an alias that the reader has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kops.core.json_values import read_json

PROMOTED: Mapping[str, tuple[str, ...]] = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}
"""Other types that a written type may be read as."""
_INSIDE = {"array": ("items", "[]"), "map": ("values", "{}")}
_NAMED = ("record", "error", "enum", "fixed")
_PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


@dataclass(frozen=True)
class Problem:
    """Why a schema cannot read what was written with another.

    :param path: of the field, such as ``to.city``, ``lines[].price``; empty for the whole record
    :param message: what is wrong with it
    """

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class Names:
    """A schema and its named types, including those of the schemas that it references.

    :param text: JSON
    :param referenced: JSON of the schemas that it references
    :raises ValueError: if one of them is not JSON
    """

    def __init__(self, text: str, referenced: Sequence[str] = ()) -> None:
        self._types: dict[str, Any] = {}
        for each in referenced:
            self._gather(read_json(each), "")
        self.root = self._gather(read_json(text), "")

    def type_of(self, schema: Any) -> Any:
        """Resolve a type that is given by name."""
        return self._types.get(schema, schema) if isinstance(schema, str) else schema

    def _gather(self, schema: Any, space: str) -> Any:
        """Collect the named types of a schema, and return the schema with full names only."""
        if isinstance(schema, str):
            full = schema if "." in schema or schema in _PRIMITIVES or not space else f"{space}.{schema}"
            return full if full in self._types or schema in _PRIMITIVES else schema
        if isinstance(schema, list):
            return [self._gather(each, space) for each in schema]
        kind = schema["type"]
        if isinstance(kind, (dict, list)):
            return self._gather(kind, space)
        if kind in _NAMED:
            full = _full_name(schema["name"], schema.get("namespace"), space)
            own = full.rpartition(".")[0]
            aliases = [_full_name(each, None, own) for each in schema.get("aliases", ())]
            made = self._types[full] = {**schema, "name": full, "aliases": aliases}
            if "fields" in schema:
                made["fields"] = [{**field, "type": self._gather(field["type"], own)} for field in schema["fields"]]
            return made
        if kind not in _INSIDE:
            return self._gather(kind, space)
        inner, _ = _INSIDE[kind]
        return {**schema, inner: self._gather(schema[inner], space)}


def incompatibilities(reader: Names, writer: Names) -> list[Problem]:
    """Return why a reader's schema cannot read what was written with a writer's; empty if it can."""
    return list(_Comparison(reader, writer).compared(reader.root, writer.root, ""))


class _Comparison:
    """Compares a reader's types with a writer's. A pair of records under comparison is not compared again within itself (recursion)."""

    def __init__(self, reader: Names, writer: Names, seen: frozenset[tuple[str, str]] = frozenset()) -> None:
        self._reader, self._writer, self._seen = reader, writer, seen

    def compared(self, read: Any, written: Any, path: str) -> Iterator[Problem]:
        read, written = self._reader.type_of(read), self._writer.type_of(written)
        if isinstance(written, list):
            yield from self._compared_written_union(read, written, path)
        elif isinstance(read, list):
            yield from self._compared_read_union(read, written, path)
        elif _kind(read) != _kind(written):
            if _kind(read) not in PROMOTED.get(_kind(written), ()):
                yield Problem(path, f"{_name(written)} is written, and {_name(read)} is read")
        elif _kind(read) in _INSIDE:
            inner, mark = _INSIDE[_kind(read)]
            yield from self.compared(read[inner], written[inner], path + mark)
        elif _kind(read) in _NAMED:
            pair = (read["name"], written["name"])
            if read["name"] != written["name"] and written["name"] not in read["aliases"]:
                yield Problem(path, f"{_name(written)} is written, and {_name(read)} is read, which is another name")
            elif pair not in self._seen:
                yield from _Comparison(self._reader, self._writer, self._seen | {pair})._compared_named(read, written, path)

    def _compared_written_union(self, read: Any, written: Sequence[Any], path: str) -> Iterator[Problem]:
        for branch in written:
            found = list(self.compared(read, branch, path))
            if found and isinstance(read, list):
                yield Problem(path, f"{_name(branch)} is written, and none of {_name(read)} takes it")
            elif found and found[0].path == path:
                yield Problem(path, f"{_name(written)} is written, and {_name(read)} is read")
                return
            else:
                yield from found

    def _compared_read_union(self, read: Sequence[Any], written: Any, path: str) -> Iterator[Problem]:
        tried = [list(self.compared(branch, written, path)) for branch in read]
        if all(tried):
            same = [found for branch, found in zip(read, tried, strict=True) if _kind(self._reader.type_of(branch)) == _kind(written)]
            yield from same[0] if len(same) == 1 else [Problem(path, f"{_name(written)} is written, and none of {_name(read)} takes it")]

    def _compared_named(self, read: Any, written: Any, path: str) -> Iterator[Problem]:
        if _kind(read) == "fixed" and read["size"] != written["size"]:
            yield Problem(path, f"{written['size']} bytes are written, and {read['size']} are read")
        lost = [symbol for symbol in written.get("symbols", ()) if symbol not in read["symbols"]]
        if lost and "default" not in read:
            yield Problem(path, f"the reader does not have the symbol{'s' * (len(lost) > 1)} {', '.join(lost)}, and no default")
        fields = {field["name"]: field for field in written.get("fields", ())}
        for field in read.get("fields", ()):
            place = f"{path}.{field['name']}" if path else field["name"]
            names = [field["name"], *field.get("aliases", ())]
            found = next((fields[name] for name in names if name in fields), None)
            if found is not None:
                yield from self.compared(field["type"], found["type"], place)
            elif "default" not in field:
                yield Problem(place, "is read, was not written, and has no default")


def _kind(schema: Any) -> str:
    return str(schema["type"] if isinstance(schema, dict) else schema)


def _name(schema: Any) -> str:
    if isinstance(schema, list):
        return " | ".join(map(_name, schema))
    return str(schema.get("name") or schema["type"]) if isinstance(schema, dict) else str(schema)


def _full_name(name: str, namespace: str | None, space: str) -> str:
    if "." in name:
        return name
    inside = namespace if namespace is not None else space
    return f"{inside}.{name}" if inside else name
