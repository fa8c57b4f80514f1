"""Records as rows of the JSON contract, and as filters see them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kops.core.errors import KopsError, UndecodableRecord
from kops.core.models import TopicPartition
from kops.core.records.models import Record, timestamp_text
from kops.formats.base import Format, Place, as_text_or_base64, decode_at
from kops.formats.registry import FORMATS
from kops.output.records import STREAM_KEYS

BYTES, JSON = FORMATS["bytes"], FORMATS["json"]


def record_row(record: Record, key: Format, value: Format) -> dict[str, Any]:
    """Return a record as a row of the JSON contract.

    :raises UndecodableRecord: naming topic, partition and offset
    """
    row: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": timestamp_text(record.timestamp),
        "timestamp_ms": record.timestamp,
    }
    for part, form, data in (("key", key, record.key), ("value", value, record.value)):
        decoded = decode_at(form, data, Place(record.topic, record.partition, record.offset, part))
        if form.name == "bytes":
            row[part], row[f"{part}_encoding"] = _bytes(decoded)
        else:
            row[part] = None if data is None else form.show(decoded)
    headers = ((name, *_bytes(data)) for name, data in record.headers)
    row["headers"] = [{"key": name, "value": text, "encoding": encoding} for name, text, encoding in headers]
    row["tombstone"] = record.value is None
    return row


def _bytes(data: bytes | None) -> tuple[str | None, str | None]:
    """Return bytes as text or base64, and which of the two it is."""
    if data is None:
        return None, None
    shown = as_text_or_base64(data)
    return shown["data"], shown["encoding"]


def stream_row(record: Record, key: Format, value: Format) -> dict[str, Any]:
    """Return a record as a row of ``records consume``, with the encoding of key and value: text, base64, or the name of the format."""
    row = record_row(record, key, value)
    named = {f"{part}_encoding": None if getattr(record, part) is None else form.name for part, form in (("key", key), ("value", value))}
    return {name: row[name] if name in row else named[name] for name in STREAM_KEYS}


def row_or_bytes(record: Record, key: Format, value: Format, problems: list[str]) -> dict[str, Any]:
    """Return a record as :func:`stream_row` does; a key or value that cannot be decoded is shown as bytes.

    :param problems: receives a sentence per such key or value
    """
    try:
        return stream_row(record, key, value)
    except UndecodableRecord as wrong:
        problems.append(f"{wrong.message}; its bytes are shown")
        if wrong.details.get("part") == "key":
            return row_or_bytes(record, BYTES, value, problems)
        return row_or_bytes(record, key, BYTES, problems)


class Subject:
    """A record as filters see it: decoded on demand, in the formats in which it is shown."""

    def __init__(self, record: Record, key: Format, value: Format) -> None:
        self._record = record
        self._formats = {"key": key, "value": value}

    def part(self, name: str) -> Any:
        data = getattr(self._record, name)
        if name not in self._formats or data is None:
            return data
        form = self._formats[name]
        return _as_searched(data) if form.name == "bytes" else self._decoded(name, data)

    def inside(self, name: str) -> Any:
        """Return the decoded key or value to search inside; for bytes and strings, the JSON in it, or None if it is not JSON."""
        data = getattr(self._record, name)
        if data is None:
            return None
        if self._formats[name].name not in ("bytes", "string"):
            return self._decoded(name, data)
        try:
            return JSON.show(JSON.decode(data))
        except KopsError:
            return None

    def headers(self, name: str) -> Iterable[str | None]:
        for key, data in self._record.headers:
            if key == name:
                yield None if data is None else _as_searched(data)

    def _decoded(self, name: str, data: bytes) -> Any:
        form, record = self._formats[name], self._record
        return form.show(decode_at(form, data, Place(record.topic, record.partition, record.offset, name)))


def _as_searched(data: bytes) -> str:
    shown = as_text_or_base64(data)
    return shown["data"] if shown["encoding"] == "text" else f"base64:{shown['data']}"


def with_groups_shown(batches: Iterable[list[Record]]) -> Iterator[list[Record]]:
    """Yield the records of ``__consumer_offsets`` with JSON in place of the brokers' own bytes."""
    from kops.formats.groups.shown import shown_record

    for batch in batches:
        pairs = [shown_record(record.key, record.value) for record in batch]
        yield [record._replace(key=JSON.encode(key), value=JSON.encode(value)) for record, (key, value) in zip(batch, pairs, strict=True)]


def unstable_notes(unstable: Mapping[TopicPartition, int]) -> list[str]:
    """Return a sentence per partition whose last records are held back by an open transaction."""
    return [
        f"{partition} has an open transaction at offset {offset}: nothing from there on is shown" for partition, offset in unstable.items()
    ]
