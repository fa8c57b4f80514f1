"""Records whose schemas are in a registry: a zero byte, the schema id in four bytes, and the data (Confluent's wire format)."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar

from kops.core.errors import OperationFailed, UndecodableRecord, UsageProblem
from kops.core.json_values import read_json, write_json
from kops.core.schemas.models import AVRO, FORMAT_OF, JSON, PROTOBUF, RegisteredSchema
from kops.formats.avro import AvroSchema
from kops.formats.base import shown
from kops.formats.json_schema import JsonChecker
from kops.formats.primitives import Json
from kops.formats.protobuf import ProtobufSchema

HEADER_BYTES = 5
_JSON = Json()

Lookup = Callable[[int], RegisteredSchema]
"""Returns the schema with an id.

:raises UndecodableRecord: when the registry answers that it has no schema with that id
:raises KopsError: when the registry is at fault, which is not about the record
"""


@dataclass(frozen=True)
class RegistryFormat(ABC):
    """A format whose schemas are in a registry.

    :param lookup: called once per id
    :param written: returns the schema that values are written with, or None where nothing is written
    """

    lookup: Lookup
    written: Callable[[], RegisteredSchema] | None = field(default=None, compare=False)
    _schemas: dict[int, Any] = field(default_factory=dict, compare=False, repr=False)
    name: ClassVar[str]
    kind: ClassVar[str]

    @abstractmethod
    def parsed(self, found: RegisteredSchema) -> Any:
        """Return a schema ready for use.

        :raises OperationFailed: when it is not valid
        """

    @abstractmethod
    def read(self, schema: Any, data: bytes) -> Any:
        """Decode the bytes that follow the id."""

    @abstractmethod
    def write(self, schema: Any, value: Any) -> bytes:
        """Encode a value as the bytes that follow the id."""

    def decode(self, data: bytes) -> Any:
        number = schema_id(data)
        if number not in self._schemas:
            found = _required_kind(self.lookup(number), self)
            try:
                self._schemas[number] = self.parsed(found)
            except OperationFailed as wrong:
                raise UndecodableRecord(f"schema {number}: {wrong.message}") from wrong
        try:
            return self.read(self._schemas[number], data[HEADER_BYTES:])
        except UndecodableRecord as wrong:
            raise UndecodableRecord(f"schema {number}: {wrong.message}") from wrong

    def show(self, value: Any) -> Any:
        return value

    def encode(self, value: Any) -> bytes | None:
        """Encode a value in the form of JSON, after the id of the schema that values are written with.

        :raises UsageProblem: when it does not match that schema
        """
        if value is None:
            return None
        if self.written is None:
            hint = "to copy such records, leave the format out; to find some: kops records consume TOPIC --filter key.id=7"
            raise UsageProblem(f"{self.name} is not written here", hint=hint)
        found = self.written()
        if found.kind != self.kind:
            raise UsageProblem(f"schema {found.id} is {found.kind}, not {self.name}", hint=f"name the format {FORMAT_OF.get(found.kind)}")
        if found.id not in self._schemas:
            self._schemas[found.id] = self.parsed(found)
        try:
            return b"\0" + struct.pack(">i", found.id) + self.write(self._schemas[found.id], value)
        except UsageProblem as wrong:
            raise UsageProblem(f"schema {found.id}: {wrong.message}", hint=wrong.hint) from wrong

    def parse(self, text: str) -> Any:
        """Parse JSON, the form of values on the command line."""
        try:
            return read_json(text)
        except (ValueError, RecursionError) as error:
            raise UsageProblem(f"{text[:60]!r} is not JSON: {error}", hint=f"{self.name} is written as JSON on the command line") from error


@dataclass(frozen=True)
class Avro(RegistryFormat):
    name: ClassVar[str] = "avro"
    kind: ClassVar[str] = AVRO

    def parsed(self, found: RegisteredSchema) -> AvroSchema:
        return AvroSchema(found.text, found.referenced)

    def read(self, schema: AvroSchema, data: bytes) -> Any:
        return schema.decode(data)

    def write(self, schema: AvroSchema, value: Any) -> bytes:
        return schema.encode(value)


@dataclass(frozen=True)
class JsonSchema(RegistryFormat):
    """JSON with a schema from the registry, which must exist and be a JSON Schema; values that are written are checked against it."""

    name: ClassVar[str] = "json-schema"
    kind: ClassVar[str] = JSON

    def parsed(self, found: RegisteredSchema) -> JsonChecker:
        return JsonChecker(found.text, found.referenced)

    def read(self, schema: JsonChecker, data: bytes) -> Any:  # noqa: ARG002 - the producer has checked it
        return _JSON.decode(data)

    def write(self, schema: JsonChecker, value: Any) -> bytes:
        """Check a value against the schema, and return it as JSON."""
        problems = schema.problems(value)
        if problems:
            more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
            raise UsageProblem(f"not of its JSON Schema: {problems[0]}{more}")
        return write_json(value, compact=True).encode()


@dataclass(frozen=True)
class Protobuf(RegistryFormat):
    """Protobuf with a schema from the registry. Read-only."""

    name: ClassVar[str] = "protobuf"
    kind: ClassVar[str] = PROTOBUF

    def parsed(self, found: RegisteredSchema) -> ProtobufSchema:
        return ProtobufSchema(found.text, found.referenced)

    def read(self, schema: ProtobufSchema, data: bytes) -> Any:
        return schema.decode(data)

    def show(self, value: Any) -> Any:
        return shown(value)

    def write(self, schema: ProtobufSchema, value: Any) -> bytes:  # noqa: ARG002 - the contract
        raise UsageProblem("kops reads protobuf and does not write it", hint="to copy such records, leave the format out")


BY_NAME: Mapping[str, type[RegistryFormat]] = MappingProxyType({each.name: each for each in (Avro, JsonSchema, Protobuf)})
"""The formats whose schemas are in a registry."""


def checked(found: RegisteredSchema) -> Any:
    """Return a schema, parsed to be sure that it is valid.

    :raises OperationFailed: when it is not valid
    :raises MissingRequirement: without the extra ``schemas``
    """
    schema = BY_NAME[FORMAT_OF[found.kind]](lambda _: found).parsed(found)
    if isinstance(schema, JsonChecker):
        _ = schema.validator
    return schema


def schema_id(data: bytes) -> int:
    """Return the schema id at the start of some bytes.

    :raises UndecodableRecord: when they are not in the wire format
    """
    if len(data) < HEADER_BYTES or data[0] != 0:
        begins = f"begins with {data[:1].hex()}" if data else "is empty"
        raise UndecodableRecord(f"no schema id of a registry in front: a zero byte and four more are expected, this {begins}")
    return int(struct.unpack_from(">i", data, 1)[0])


def _required_kind(found: RegisteredSchema, form: RegistryFormat) -> RegisteredSchema:
    if found.kind == form.kind:
        return found
    other = f": the format is {FORMAT_OF[found.kind]}" if found.kind in FORMAT_OF else ", which kops does not decode"
    raise UndecodableRecord(f"schema {found.id} is {found.kind}, not {form.name}{other}")
