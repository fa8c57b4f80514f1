"""Records whose schemas a registry keeps: a zero byte, the id of the schema in four bytes, and the data (Confluent's wire format)."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from kops.core.errors import UndecodableRecord, UsageProblem
from kops.formats.avro import AvroSchema, shown
from kops.formats.primitives import Json

HEADER_BYTES = 5
_JSON = Json()


@dataclass(frozen=True)
class RegisteredSchema:
    """A schema as the registry has it.

    :param kind: AVRO, JSON or PROTOBUF
    :param referenced: the texts of the schemas that it refers to, those that others of them need first
    """

    id: int
    kind: str
    text: str
    referenced: tuple[str, ...] = ()


Lookup = Callable[[int], RegisteredSchema]
"""Returns the schema of an id.

:raises UndecodableRecord: when the registry has none of that id
"""


class _ReadOnly:
    """Formats that kops does not write: that would be without the checks of the application's own serializer."""

    name: ClassVar[str]

    def encode(self, value: Any) -> bytes | None:  # noqa: ARG002 - the contract of formats
        """Refuse."""
        raise UsageProblem(
            f"kops reads {self.name} and does not write it",
            hint="to copy such records, leave the format out: their bytes stay as they are; to look for one, use --filter",
        )

    def parse(self, text: str) -> Any:
        """Refuse."""
        return self.encode(text)


@dataclass(frozen=True)
class Avro(_ReadOnly):
    """Avro with a schema of the registry. Read only."""

    lookup: Lookup
    name: ClassVar[str] = "avro"
    _schemas: dict[int, AvroSchema] = field(default_factory=dict, compare=False, repr=False)

    def decode(self, data: bytes) -> Any:
        """Return the value."""
        number = schema_id(data)
        if number not in self._schemas:
            found = _of_kind(self.lookup(number), "AVRO", self.name)
            self._schemas[number] = AvroSchema(found.text, found.referenced)
        try:
            return self._schemas[number].decode(data[HEADER_BYTES:])
        except UndecodableRecord as wrong:
            raise UndecodableRecord(f"schema {number}: {wrong.message}") from wrong

    def show(self, value: Any) -> Any:
        """Return a decoded value as JSON holds it."""
        return shown(value)


@dataclass(frozen=True)
class JsonSchema(_ReadOnly):
    """JSON with a schema of the registry, which has to be there and be one of JSON; the data is not checked against it. Read only."""

    lookup: Lookup
    name: ClassVar[str] = "json-schema"
    _known: set[int] = field(default_factory=set, compare=False, repr=False)

    def decode(self, data: bytes) -> Any:
        """Return the value."""
        number = schema_id(data)
        if number not in self._known:
            json.loads(_of_kind(self.lookup(number), "JSON", self.name).text)
            self._known.add(number)
        return _JSON.decode(data[HEADER_BYTES:])

    def show(self, value: Any) -> Any:
        """Return a decoded value as JSON holds it."""
        return _JSON.show(value)


def schema_id(data: bytes) -> int:
    """Return the id of the schema that some bytes begin with.

    :raises UndecodableRecord: when they are not of the wire format
    """
    if len(data) < HEADER_BYTES or data[0] != 0:
        begins = f"begins with {data[:1].hex()}" if data else "is empty"
        raise UndecodableRecord(f"no schema id of a registry in front: a zero byte and four more are expected, this {begins}")
    return int(struct.unpack_from(">i", data, 1)[0])


def _of_kind(found: RegisteredSchema, kind: str, name: str) -> RegisteredSchema:
    if found.kind == kind:
        return found
    others = {"AVRO": "avro", "JSON": "json-schema"}
    other = f": the format is {others[found.kind]}" if found.kind in others else ", which kops does not decode"
    raise UndecodableRecord(f"schema {found.id} is {found.kind}, not {name}{other}")
