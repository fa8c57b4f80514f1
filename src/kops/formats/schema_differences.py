"""Finds how two versions of a Protobuf or JSON Schema differ, where a registry only reports that they are incompatible."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kops.core.json_values import write_json
from kops.formats.protobuf import ProtobufSchema, kind_of

_LIMITS = ("enum", "const", "minimum", "maximum", "minLength", "maxLength", "pattern", "additionalProperties")
_ALIKE = (
    ("int32", "uint32", "int64", "uint64", "bool", "enum"),
    ("sint32", "sint64"),
    ("fixed32", "sfixed32"),
    ("fixed64", "sfixed64"),
    ("string", "bytes"),
)
"""Groups of types that can be read as one another (the language guide's "Updating A Message Type")."""


def protobuf_differences(old: ProtobufSchema, new: ProtobufSchema) -> list[str]:
    """Return the changes of a new version that may break readers or writers of the old one, one sentence per change."""
    before = {message.full_name: message for message in _all(old.messages())}
    after = {message.full_name: message for message in _all(new.messages())}
    found = [f"{name}: the message was removed" for name in before if name not in after]
    for name, message in before.items():
        if name in after:
            found += _message_differences(name, message, after[name])
    return found


def _message_differences(name: str, before: Any, after: Any) -> Iterator[str]:
    fields = {field.number: field for field in after.fields}
    for field in before.fields:
        place, other = f"{name}.{field.name}", fields.get(field.number)
        if other is None:
            yield f"{place}: number {field.number} was removed; reserve numbers that are no longer used"
        elif not _are_compatible(field, other):
            yield f"{place}: number {field.number} was {_type(field)}, and is {_type(other)}"
        elif field.name != other.name:
            yield f"{place}: number {field.number} is now called {other.name}"


def _all(messages: list[Any]) -> Iterator[Any]:
    for message in messages:
        if not message.GetOptions().map_entry:
            yield message
            yield from _all(list(message.nested_types))


def _are_compatible(one: Any, other: Any) -> bool:
    if one.message_type is not None and other.message_type is not None:
        return bool(one.message_type.full_name == other.message_type.full_name) or (_is_map(one) and _is_map(other))
    kinds = (kind_of(one), kind_of(other))
    return kinds[0] == kinds[1] or any(kinds[0] in group and kinds[1] in group for group in _ALIKE)


def _type(field: Any) -> str:
    named = field.message_type or field.enum_type
    return "map" if _is_map(field) else str(named.full_name) if named is not None else kind_of(field)


def _is_map(field: Any) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def json_schema_differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Yield the changes of a new version that may break readers or writers of the old one, one sentence per change.

    :param old: a schema, parsed; ``$ref`` is not followed
    """
    where = path or "the value"
    if not isinstance(old, dict) or not isinstance(new, dict):
        if old != new:
            yield f"{where}: was {write_json(old)[:60]}, and is {write_json(new)[:60]}"
        return
    before, after = old.get("type"), new.get("type")
    if before != after:
        yield f"{where}: the type was {_words(before)}, and is {_words(after)}"
        return
    yield from _property_differences(old, new, path)
    if isinstance(old.get("items"), dict) and isinstance(new.get("items"), dict):
        yield from json_schema_differences(old["items"], new["items"], f"{path}[]")
    for word in _LIMITS:
        if old.get(word) != new.get(word):
            yield f"{where}: {word} was {_words(old.get(word))}, and is {_words(new.get(word))}"


def _property_differences(old: Any, new: Any, path: str) -> Iterator[str]:
    known, now = _properties(old), _properties(new)
    needed, needed_now = set(old.get("required") or ()), set(new.get("required") or ())
    yield from (f"{_joined(path, name)}: is required now" for name in sorted(needed_now - needed))
    yield from (f"{_joined(path, name)}: is no longer required" for name in sorted(needed - needed_now))
    for name in known:
        if name in now:
            yield from json_schema_differences(known[name], now[name], _joined(path, name))
        else:
            yield f"{_joined(path, name)}: the property was removed" + _closed(new)
    yield from (f"{_joined(path, name)}: the property is new" + _closed(old) for name in now if name not in known)


def _properties(schema: Any) -> dict[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def _closed(schema: Any) -> str:
    return ", and further properties are not allowed" if schema.get("additionalProperties") is False else ""


def _words(value: Any) -> str:
    return "not said" if value is None else write_json(value)[:60]


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
