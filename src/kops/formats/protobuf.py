"""Protobuf's binary encoding, given the ``.proto`` text from a registry. ``protobuf`` is imported when it is first needed."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any

from kops.core.errors import OperationFailed, UndecodableRecord
from kops.core.extras import SCHEMAS, needs
from kops.formats.base import float32, refuse_deep

_MAIN = "schema.proto"
_GOOGLE = "google/protobuf/"
_WRAPPERS = ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
_MOST_INDEXES = 100
_VARINT_BITS = 70


class ProtobufSchema:
    """A schema, parsed once.

    :param text: of a ``.proto`` file
    :param referenced: name and text of the files that it imports, each after those that it imports itself
    :raises MissingRequirement: without the extra ``schemas``
    :raises OperationFailed: when it is not a valid .proto file
    """

    def __init__(self, text: str, referenced: Sequence[tuple[str, str]] = ()) -> None:
        needs(SCHEMAS, "Protobuf needs", "google.protobuf")
        from google.protobuf import descriptor_pool

        from kops.formats.protobuf_text import BadProto, parse_proto

        self._pool: Any = descriptor_pool.DescriptorPool()
        self._known: set[str] = set()
        try:
            for name, each in referenced:
                self._add(parse_proto(name, each))
            main = parse_proto(_MAIN, text)
            self._add(main)
            self._file = self._pool.FindFileByName(_MAIN)
        except (BadProto, TypeError, KeyError, ValueError) as wrong:
            raise OperationFailed(f"no Protobuf schema that can be read: {_reason(wrong)}") from wrong
        prefix = f"{main.package}." if main.package else ""
        self._messages = [_Node(prefix + message.name, message) for message in main.message_type]
        self._classes: dict[tuple[int, ...], Any] = {}

    def _add(self, file: Any) -> None:
        """Add a file after Google's files that it imports. Other imports that were not given are dropped: their types are unknown."""
        if file.name in self._known:
            return
        self._known.add(file.name)
        for name in file.dependency:
            if name.startswith(_GOOGLE) and name not in self._known:
                self._add_google(name)
        kept = [name for name in file.dependency if name in self._known]
        del file.dependency[:], file.public_dependency[:], file.weak_dependency[:]
        file.dependency.extend(kept)
        file.public_dependency.extend(range(len(kept)))
        self._pool.Add(file) if hasattr(self._pool, "Add") else self._pool.AddSerializedFile(file.SerializeToString())

    def _add_google(self, name: str) -> None:
        from google.protobuf.descriptor_pb2 import FileDescriptorProto

        try:
            module = importlib.import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
        except ImportError:
            return
        self._add(FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb))

    def decode(self, data: bytes) -> Any:
        """Decode bytes, which begin with the message's place in the file, to a mapping without the fields that are not set.

        :raises UndecodableRecord: when they do not match this schema
        """
        indexes, start = message_indexes(data)
        made = self._class(indexes)()
        from google.protobuf.message import DecodeError

        try:
            made.ParseFromString(data[start:])
            return _value_of(made)
        except (DecodeError, ValueError, OverflowError, MemoryError, RecursionError) as wrong:
            raise UndecodableRecord(f"not of its Protobuf schema: {made.DESCRIPTOR.full_name}: {wrong}") from wrong

    def messages(self) -> list[Any]:
        return [self._class((index,)).DESCRIPTOR for index in range(len(self._messages))]

    def _class(self, indexes: tuple[int, ...]) -> Any:
        if indexes not in self._classes:
            from google.protobuf.message_factory import GetMessageClass

            nodes, found = self._messages, None
            for index in indexes:
                if not 0 <= index < len(nodes):
                    raise UndecodableRecord(f"its Protobuf schema has no message at {list(indexes)}")
                found = nodes[index]
                nodes = found.inside
            if found is None:
                raise UndecodableRecord("no message of its Protobuf schema is named in front")
            self._classes[indexes] = GetMessageClass(self._pool.FindMessageTypeByName(found.name))
        return self._classes[indexes]


class _Node:
    """A message that is declared in a file, with those declared inside it."""

    def __init__(self, name: str, message: Any) -> None:
        self.name = name
        self.inside = [_Node(f"{name}.{each.name}", each) for each in message.nested_type if not each.options.map_entry]


def message_indexes(data: bytes) -> tuple[tuple[int, ...], int]:
    """Return the place of the message in its file as indexes, and where the message begins (Confluent's wire format: zigzag varints).

    A single zero byte stands for the first message.

    :raises UndecodableRecord: when the bytes do not begin with such indexes
    """
    count, at = _varint(data, 0)
    if count == 0:
        return (0,), at
    if not 0 < count <= _MOST_INDEXES:
        raise UndecodableRecord(f"no place of a Protobuf message in front: {count} indexes")
    indexes = []
    for _ in range(count):
        index, at = _varint(data, at)
        indexes.append(index)
    return tuple(indexes), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while at < len(data) and shift < _VARINT_BITS:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:  # noqa: PLR2004 - the continuation bit
            return (number >> 1) ^ -(number & 1), at
    raise UndecodableRecord("no place of a Protobuf message in front: the bytes end too soon")


def _value_of(message: Any) -> Any:
    special = _SPECIAL.get(message.DESCRIPTOR.full_name)
    return _fields_of(message) if special is None else special(message)


def _fields_of(message: Any) -> dict[str, Any]:
    found = {}
    for field in message.DESCRIPTOR.fields:
        if field.has_presence and not message.HasField(field.name):
            continue
        found[field.name] = _field_value(field, getattr(message, field.name))
    return found


def kind_of(field: Any) -> str:
    """Return the name of a field's type as in a ``.proto`` file; ``message`` and ``enum`` for types that have names of their own."""
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto

    return str(FieldDescriptorProto.Type.Name(field.type)).removeprefix("TYPE_").lower()


def _field_value(field: Any, value: Any) -> Any:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        of_value = field.message_type.fields_by_name["value"]
        return {_map_key(key): _single(of_value, each) for key, each in sorted(value.items())}
    repeated = field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED
    return [_single(field, each) for each in value] if repeated else _single(field, value)


def _map_key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _single(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return _value_of(value)
    if field.enum_type is not None:
        named = field.enum_type.values_by_number.get(value)
        return named.name if named is not None else value
    return float32(value) if field.type == field.TYPE_FLOAT and math.isfinite(value) else value


def _as_json(message: Any) -> Any:
    """Return a message in Protobuf's own JSON form: ``Struct``, ``Any`` and others that have a special one.

    Its fields, where that form has no such value: a ``Timestamp`` after the year 9999, an ``Any`` of an unknown type.
    """
    from google.protobuf import json_format

    try:
        found = json_format.MessageToDict(message)
        refuse_deep(found)
        return found
    except (TypeError, ValueError, json_format.Error):
        return _fields_of(message)


def _wrapped(message: Any) -> Any:
    return _single(message.DESCRIPTOR.fields_by_name["value"], message.value)


_SPECIAL: dict[str, Callable[[Any], Any]] = {
    **{f"google.protobuf.{name}": _as_json for name in ("Timestamp", "Duration", "FieldMask", "Struct", "Value", "ListValue", "Any")},
    **{f"google.protobuf.{name}Value": _wrapped for name in _WRAPPERS},
}


def _reason(wrong: Exception) -> str:
    return " ".join(str(wrong).split())[:300]
