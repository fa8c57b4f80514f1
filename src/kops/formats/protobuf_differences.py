"""What two versions of a ``.proto`` file do not have in common, by field, where a registry only says that they are incompatible. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kops.formats.protobuf import ProtobufSchema

_ALIKE = (
    ("int32", "uint32", "int64", "uint64", "bool", "enum"),
    ("sint32", "sint64"),
    ("fixed32", "sfixed32"),
    ("fixed64", "sfixed64"),
    ("string", "bytes"),
)
"""Types of which one is read as another (the language guide's "Updating A Message Type")."""


def protobuf_differences(old: ProtobufSchema, new: ProtobufSchema) -> list[str]:
    """Return what a new version changes that readers or writers of the old one may not bear, a sentence each."""
    before = {message.full_name: message for message in _all(old.messages())}
    after = {message.full_name: message for message in _all(new.messages())}
    found = [f"{name}: the message is gone" for name in before if name not in after]
    for name, message in before.items():
        if name in after:
            found += _of_message(name, message, after[name])
    return found


def _of_message(name: str, before: Any, after: Any) -> Iterator[str]:
    fields = {field.number: field for field in after.fields}
    for field in before.fields:
        place, other = f"{name}.{field.name}", fields.get(field.number)
        if other is None:
            yield f"{place}: number {field.number} is gone; a number that is no longer used is to be reserved"
        elif not _goes_with(field, other):
            yield f"{place}: number {field.number} was {_type(field)}, and is {_type(other)}"
        elif field.name != other.name:
            yield f"{place}: number {field.number} is now called {other.name}"


def _all(messages: list[Any]) -> Iterator[Any]:
    for message in messages:
        if not message.GetOptions().map_entry:
            yield message
            yield from _all(list(message.nested_types))


def _goes_with(one: Any, other: Any) -> bool:
    kinds = (_kind(one), _kind(other))
    if one.message_type is not None and other.message_type is not None:
        return bool(one.message_type.full_name == other.message_type.full_name) or _is_map(one) == _is_map(other) is True
    return kinds[0] == kinds[1] or any(kinds[0] in group and kinds[1] in group for group in _ALIKE)


def _type(field: Any) -> str:
    named = field.message_type or field.enum_type
    return "map" if _is_map(field) else str(named.full_name) if named is not None else _kind(field)


def _is_map(field: Any) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def _kind(field: Any) -> str:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto

    return str(FieldDescriptorProto.Type.Name(field.type)).removeprefix("TYPE_").lower()
