"""Keys and values whose schemas are in a registry, as columns: their type and their decoder. Runs in Spark's tasks too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from kops.core.errors import UndecodableRecord
from kops.core.json_values import write_json
from kops.core.records.column_types import NOTHING, Disagreement, ListOf, MapOf, Struct, Type, merged
from kops.core.schemas.models import AVRO, RegisteredSchema
from kops.core.statefile.sources import Form
from kops.formats.avro import AvroSchema
from kops.formats.avro_columns import avro_column
from kops.formats.avro_types import COLUMN
from kops.formats.base import shown
from kops.formats.confluent import BY_NAME, HEADER_BYTES, RegistryFormat, schema_id
from kops.formats.protobuf import ProtobufSchema, message_indexes
from kops.formats.protobuf_columns import message_type

WRONG = object()
"""Stands for bytes that are not in the format."""
Decode = Callable[[bytes], Any]
"""Turns bytes into what a column holds, or ``WRONG``.

:raises NotHeldError: for a value that its column cannot hold
"""


def column_of(form: Form) -> tuple[Type, Decode]:
    """Return the type of a form's values, and their decoder.

    :param form: with the schemas that records have (``Form.registered``)
    :raises Disagreement: when one column cannot hold the values of all schemas
    :raises OperationFailed: when one of the schemas is not valid
    """
    return _avro(form) if form.name == "avro" else _protobuf(form)


def format_with(form: Form) -> RegistryFormat:
    """Return a format that knows only the schemas of a form."""
    known = {each.id: each for each in form.registered}

    def lookup(number: int) -> RegisteredSchema:
        if number not in known:
            raise UndecodableRecord(f"the registry has no schema {number}")
        return known[number]

    return BY_NAME[form.name](lookup)


def _avro(form: Form) -> tuple[Type, Decode]:
    read_as = AvroSchema(form.read_as.text, form.read_as.referenced, mark=COLUMN) if form.read_as else None
    schemas = {each.id: AvroSchema(each.text, each.referenced, mark=COLUMN) for each in form.registered if each.kind == AVRO}
    columns = {number: (read_as or schema).column(avro_column) for number, schema in schemas.items()}
    kind = read_as.column(avro_column)[0] if read_as else _merged([found for found, _ in columns.values()])

    def decode(data: bytes) -> Any:
        number = int.from_bytes(data[1:HEADER_BYTES], "big", signed=True)
        schema = schemas.get(number)
        if schema is None or data[0] != 0:
            return WRONG
        try:
            value = schema.decode(data[HEADER_BYTES:], read_as)
        except UndecodableRecord:
            return WRONG
        convert = columns[number][1]
        return value if convert is None or value is None else convert(value)

    return kind, decode


def _protobuf(form: Form) -> tuple[Type, Decode]:
    """Decode top-level messages.

    The type has the fields of all top-level messages of a file, or of the first alone if they cannot be merged; then the others are
    ``WRONG``.
    """
    format_ = format_with(form)
    types, first_only = [], set[int]()
    for each in form.registered:
        messages = [message_type(message) for message in ProtobufSchema(each.text, each.referenced).messages()]
        try:
            types.append(_merged(messages))
        except Disagreement:
            types.append(messages[0])
            first_only.add(each.id)
    kind = _merged(types)

    def decode(data: bytes) -> Any:
        try:
            number, (indexes, _) = schema_id(data), message_indexes(data[HEADER_BYTES:])
            if len(indexes) > 1 or (number in first_only and indexes != (0,)):
                return WRONG
            return _fitted(kind, format_.decode(data))
        except UndecodableRecord:
            return WRONG

    return kind, decode


def _merged(kinds: Sequence[Type]) -> Type:
    nothing: Type = NOTHING
    return reduce(merged, kinds, nothing)


def _fitted(kind: Type, value: Any) -> Any:
    """Convert a decoded value to a column of a type; parts that the type does not describe become JSON."""
    if value is None:
        return None
    if isinstance(kind, Struct) and isinstance(value, Mapping):
        return {name: _fitted(each, value.get(name)) for name, each in kind.fields.items()}
    if isinstance(kind, ListOf):
        return [_fitted(kind.item, each) for each in value]
    if isinstance(kind, MapOf):
        return [(str(key), _fitted(kind.value, each)) for key, each in value.items()]
    if kind in ("string", NOTHING) and not isinstance(value, str):
        return write_json(shown(value), compact=True)
    return value
