"""Records as JSON lines: byte for byte what ``json.dumps(stream_row(record))`` returns, several times as fast."""

from __future__ import annotations

import base64
from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any, TypeAlias

from kops.core.errors import UndecodableRecord
from kops.core.records.models import Record, timestamp_text
from kops.formats.base import Format, Place, decode_at, readable_text
from kops.output.json_text import json_text

Written: TypeAlias = "tuple[str, str]"
"""The JSON of some bytes, and the JSON of their encoding."""

_NOTHING: Written = ("null", "null")


def line_maker(key: Format, value: Format) -> Callable[[Record], str]:
    """Return a function that formats a record as a line, including the line end.

    It raises UndecodableRecord, naming topic, partition and offset.
    """
    key_of, value_of = _writer(key, "key"), _writer(value, "value")
    topics: dict[str, str] = {}

    def line(record: Record) -> str:
        topic, partition, offset, timestamp, key_bytes, value_bytes, headers, _ = record
        named = topics.get(topic) or topics.setdefault(topic, encode_basestring(topic))
        moment = timestamp_text(timestamp)
        time, milliseconds = "null" if moment is None else f'"{moment}"', "null" if timestamp is None else timestamp
        shown_key, key_encoding = key_of(record, key_bytes)
        shown_value, value_encoding = value_of(record, value_bytes)
        held, tombstone = _headers(headers) if headers else "[]", "true" if value_bytes is None else "false"
        return (
            f'{{"topic": {named}, "partition": {partition}, "offset": {offset}, "timestamp": {time}, "timestamp_ms": {milliseconds}, '
            f'"key": {shown_key}, "key_encoding": {key_encoding}, "value": {shown_value}, "value_encoding": {value_encoding}, '
            f'"headers": {held}, "tombstone": {tombstone}}}\n'
        )

    return line


def _writer(form: Format, part: str) -> Callable[[Record, bytes | None], Written]:
    """Return a function that formats the key or the value of a record."""
    if form.name == "bytes":
        return lambda _, data: _bytes(data)
    name = encode_basestring(form.name)
    shown_as: Callable[[Any], str] = encode_basestring if form.name == "string" else json_text

    def written(record: Record, data: bytes | None) -> Written:
        if data is None:
            return _NOTHING
        try:
            found = form.decode(data)
        except UndecodableRecord:
            found = decode_at(form, data, Place(record.topic, record.partition, record.offset, part))  # its error names the record
        return shown_as(form.show(found)), name

    return written


def _bytes(data: bytes | None) -> Written:
    if data is None:
        return _NOTHING
    text = readable_text(data)
    return (encode_basestring(text), '"text"') if text is not None else (f'"{base64.b64encode(data).decode()}"', '"base64"')


def _headers(headers: tuple[tuple[str, bytes | None], ...]) -> str:
    written = ((encode_basestring(name), *_bytes(data)) for name, data in headers)
    return "[" + ", ".join([f'{{"key": {name}, "value": {value}, "encoding": {encoding}}}' for name, value, encoding in written]) + "]"
