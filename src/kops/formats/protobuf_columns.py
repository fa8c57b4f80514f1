"""Maps Protobuf messages to column types. Pure."""

from __future__ import annotations

from typing import Any

from kops.core.records.column_types import ListOf, MapOf, Struct, Type
from kops.formats.protobuf import kind_of

_KINDS = {
    "double": "double",
    "float": "float",
    **dict.fromkeys(("int64", "sint64", "sfixed64", "uint32", "fixed32"), "bigint"),
    **dict.fromkeys(("uint64", "fixed64"), "decimal(20,0)"),
    **dict.fromkeys(("int32", "sint32", "sfixed32"), "int"),
    "bool": "boolean",
    "string": "string",
    "bytes": "binary",
    "enum": "string",
}
_WRAPPED = "Value"
_GOOGLE = "google.protobuf."


def message_type(message: Any, inside: tuple[str, ...] = ()) -> Type:
    """Return the type of a message's values as ``ProtobufSchema.decode`` returns them.

    Google's own messages, such as ``Timestamp``, are strings as in Protobuf's JSON, and so is a message nested in itself.

    :param message: its descriptor
    :param inside: the enclosing messages
    """
    name = str(message.full_name)
    if name.startswith(_GOOGLE):
        wrapped = name.endswith(_WRAPPED) and name not in (f"{_GOOGLE}{_WRAPPED}", f"{_GOOGLE}ListValue")
        return _single(message.fields_by_name["value"], inside) if wrapped else "string"
    if name in inside:
        return "string"
    return Struct({field.name: _field(field, (*inside, name)) for field in message.fields})


def _field(field: Any, inside: tuple[str, ...]) -> Type:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return MapOf(_single(field.message_type.fields_by_name["value"], inside))
    repeated = field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED
    return ListOf(_single(field, inside)) if repeated else _single(field, inside)


def _single(field: Any, inside: tuple[str, ...]) -> Type:
    return _KINDS[kind_of(field)] if field.message_type is None else message_type(field.message_type, inside)
