"""Avro's binary encoding, given the schema it was written with. Pure; fastavro is imported when it is first needed."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, TypeVar

from kops.core.errors import OperationFailed, UndecodableRecord, UsageProblem
from kops.core.extras import SCHEMAS, needs
from kops.formats.avro_guard import check_bounds, needs_guard
from kops.formats.avro_types import DEFAULT, SHOWN, NotHeldError, default_of, marked, register

T = TypeVar("T")
_BROKEN = (
    *(EOFError, ValueError, IndexError, KeyError, TypeError, OverflowError, MemoryError, RecursionError),
    struct.error,
)
"""What fastavro raises for bytes that do not match a schema."""
_MARKS = ("__fastavro_parsed", "__named_schemas")
"""With these fastavro takes a schema for one that it has parsed, which some producers register: its types would not be looked at."""


class AvroSchema:
    """A schema, parsed once.

    :param text: JSON
    :param referenced: name and JSON of the schemas that it references, each after those that it references itself
    :param mark: ``SHOWN``: values are read in a form that JSON can represent. Times are ISO 8601 (UTC where the schema has an instant);
        decimals and UUIDs are text; bytes are ``{"data": ..., "encoding": ...}``. ``COLUMN``: they are read for columns of Spark
    :raises MissingRequirement: without the extra ``schemas``
    :raises OperationFailed: when it is not an Avro schema
    """

    def __init__(self, text: str, referenced: Sequence[tuple[str, str]] = (), *, mark: str = SHOWN) -> None:
        needs(SCHEMAS, "Avro needs", "fastavro")
        import fastavro
        from fastavro.read import LOGICAL_READERS, SchemaResolutionError
        from fastavro.schema import SchemaParseException, UnknownType

        register(LOGICAL_READERS)
        self._read, self._unresolvable = fastavro.schemaless_reader, SchemaResolutionError
        self._named: dict[str, Any] = {}
        try:
            for _, each in referenced:
                fastavro.parse_schema(marked(_unmarked(json.loads(each)), mark), named_schemas=self._named)
            self._parsed = fastavro.parse_schema(marked(_unmarked(json.loads(text)), mark), named_schemas=self._named)
            self._guarded = needs_guard(self._parsed, self._named)
        except UnknownType as wrong:
            raise OperationFailed(f"no Avro schema that can be read: unknown type {str(wrong.name)[:200]}") from wrong
        except (SchemaParseException, ValueError, KeyError, TypeError, AttributeError, RecursionError) as wrong:
            raise OperationFailed(f"no Avro schema that can be read: {str(wrong)[:200]}") from wrong

    @cached_property
    def reader(self) -> Any:
        """The schema as a reader's, with the defaults of fields that a writer's lacks."""
        for schema in [self._parsed, *self._named.values()]:
            for field in schema.get("fields", ()) if isinstance(schema, dict) else ():
                if DEFAULT in field:
                    with suppress(ValueError, TypeError, KeyError):  # one of the wrong type counts as missing
                        field["default"] = default_of(field["type"], field[DEFAULT], self._named)
        return self._parsed

    def decode(self, data: bytes, read_as: AvroSchema | None = None) -> Any:
        """Decode bytes, all of which must be consumed.

        :param read_as: the reader's schema, when it is another one (``SpecificAvroSerde``): missing fields get its defaults
        :raises UndecodableRecord: when they do not match this schema
        :raises NotHeldError: for a schema marked ``COLUMN``, when Spark has no such value
        """
        stream = io.BytesIO(data)
        try:
            if self._guarded:
                check_bounds(self._parsed, self._named, data)
            value = self._read(stream, self._parsed, None if read_as is None else read_as.reader)
        except UndecodableRecord as wrong:
            raise UndecodableRecord(f"not of its Avro schema: {wrong.message}") from wrong
        except NotHeldError:
            raise
        except _BROKEN as wrong:
            raise UndecodableRecord(f"not of its Avro schema: {wrong or type(wrong).__name__}") from wrong
        except self._unresolvable as wrong:
            raise UndecodableRecord(f"not readable with the reader's schema: {wrong}") from wrong
        if stream.tell() != len(data):
            raise UndecodableRecord(f"not of its Avro schema: {len(data) - stream.tell()} of {len(data)} bytes are left over")
        return value

    def column(self, column_of: Callable[[Any, Mapping[str, Any]], T]) -> T:
        """Apply a function to the schema and its named types (``avro_columns``)."""
        return column_of(self._parsed, self._named)

    def encode(self, value: Any) -> bytes:
        """Encode a value in the form of JSON, which includes what ``decode`` returns.

        :raises UsageProblem: naming the field that does not match this schema
        """
        import fastavro

        from kops.formats.avro_values import SchemaMismatch, avro_value

        stream = io.BytesIO()
        try:
            fastavro.schemaless_writer(stream, self._parsed, avro_value(self._parsed, value, self._named))
        except (SchemaMismatch, ValueError, TypeError, KeyError, OverflowError, RecursionError) as wrong:
            raise UsageProblem(f"not of its Avro schema: {wrong}") from wrong
        return stream.getvalue()


def _unmarked(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_unmarked(each) for each in schema]
    return {name: value for name, value in schema.items() if name not in _MARKS} if isinstance(schema, dict) else schema
