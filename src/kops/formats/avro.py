"""Avro's binary encoding, given the schema it was written with. Pure; fastavro is imported when it is first needed."""

from __future__ import annotations

import datetime
import decimal
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from kops.core.errors import OperationFailed, UndecodableRecord
from kops.formats.base import as_text_or_base64, number_as_json


class AvroSchema:
    """A schema, parsed once.

    :param text: JSON
    :param referenced: JSON of the schemas that it names, those that others of them name first
    :raises OperationFailed: when it is no Avro schema
    """

    def __init__(self, text: str, referenced: Sequence[str] = ()) -> None:
        import fastavro
        from fastavro.schema import SchemaParseException

        named: dict[str, Any] = {}
        try:
            for each in referenced:
                fastavro.parse_schema(json.loads(each), named_schemas=named)
            self._parsed = fastavro.parse_schema(json.loads(text), named_schemas=named)
        except (SchemaParseException, ValueError, KeyError, TypeError) as wrong:
            raise OperationFailed(f"no Avro schema that can be read: {wrong}") from wrong

    def decode(self, data: bytes) -> Any:
        """Return the value of some bytes, all of which it takes.

        :raises UndecodableRecord: when they are not of this schema
        """
        import fastavro

        stream = io.BytesIO(data)
        try:
            value = fastavro.schemaless_reader(stream, self._parsed, None)
        except (EOFError, ValueError, IndexError, KeyError, TypeError, OverflowError, MemoryError, decimal.InvalidOperation) as wrong:
            raise UndecodableRecord(f"not of its Avro schema: {wrong or type(wrong).__name__}") from wrong
        if stream.tell() != len(data):
            raise UndecodableRecord(f"not of its Avro schema: {len(data) - stream.tell()} of {len(data)} bytes are left over")
        return value


def shown(value: Any) -> Any:
    """Return a decoded value as JSON holds it.

    Times are ISO 8601 (UTC where the schema has an instant), decimals, UUIDs and durations text, bytes ``{"data": ..., "encoding": ...}``.
    """
    if isinstance(value, Mapping):
        return {str(key): shown(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [shown(part) for part in value]
    if isinstance(value, bytes):
        return as_text_or_base64(value)
    return _scalar(value)


def _scalar(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return number_as_json(value)
    if isinstance(value, datetime.datetime):
        text = value.isoformat(timespec="microseconds" if value.microsecond % 1000 else "milliseconds")
        return text.replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, (datetime.date, datetime.time)) else str(value)
