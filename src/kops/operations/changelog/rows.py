"""Records of a changelog as rows: keys split into columns, keys and values decoded in the formats that were given or detected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from kops.core.errors import UndecodableRecord
from kops.core.records.models import Record
from kops.formats.base import Format, Place, decode_at, readable_text
from kops.formats.registry import FORMATS
from kops.operations.changelog.detect import Detection
from kops.operations.changelog.layouts import Layout, Value
from kops.operations.records.rows import record_row

_WIDTHS = {8: "long, or double", 4: "int, or float", 2: "short"}
_LAST = ("value", "value_encoding", "headers", "tombstone")


@dataclass(frozen=True)
class NotedRows:
    """Rows, and sentences about them."""

    rows: list[dict[str, Any]]
    notes: list[str]


@dataclass(frozen=True)
class NamedFormats:
    """How records are to be shown, as given; None where nothing was given."""

    key: Format | None = None
    value: Format | None = None
    right: Format | None = None
    window_size: int | None = None


@dataclass(frozen=True)
class Shape:
    """How the records of a changelog become rows.

    :param right: format of the values of a join's right side
    :param window_size: in milliseconds; None when neither it nor the ends of the windows are known
    """

    layout: Layout
    key: Format
    value: Format
    right: Format
    window_size: int | None = None

    def row(self, record: Record) -> dict[str, Any]:
        """Return a record as a row.

        :raises UndecodableRecord: naming topic, partition and offset
        """
        key, columns, found = record.key, {}, Value(record.value)
        if key is not None:
            with _at(record, "key", self.layout):
                columns = self.layout.columns(key, self.window_size)
        if key is not None and record.value is not None:
            with _at(record, "value", self.layout):
                found = self.layout.value(key, record.value, record.headers)
        inner = None if key is None else self.layout.inner(key)
        form = self.right if found.right else self.value
        one = found.data if isinstance(found.data, bytes) else None
        row = record_row(record._replace(key=inner, value=one), self.key, form)
        last = {name: row.pop(name) for name in _LAST if name in row} | {"tombstone": record.value is None}
        place = Place(record.topic, record.partition, record.offset, "value")
        if isinstance(found.data, tuple):
            last["value"] = [form.show(decode_at(form, data, place)) for data in found.data]
            last.pop("value_encoding", None)
        elif found.facts is not None:
            last["value"] = dict(found.facts)
            last.pop("value_encoding", None)
        also = {name: None if data is None else form.show(decode_at(form, data, place)) for name, data in found.also.items()}
        return row | columns | dict(found.columns) | also | last


@contextmanager
def _at(record: Record, part: str, layout: Layout) -> Iterator[None]:
    """Add the record's position to an error when a part of a layout cannot be split."""
    try:
        yield
    except UndecodableRecord as wrong:
        raise UndecodableRecord(
            f"the {part} of {record.topic}:{record.partition} at offset {record.offset} is not {layout.what}: {wrong.message}",
            hint="name another --type, or pass over such records with --on-error skip",
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            part=part,
            format=layout.name,
        ) from wrong


@dataclass
class SkippedRecords:
    """Records that were skipped, counted.

    :ivar shown: rows that were not skipped
    :ivar first: why the first one was skipped
    """

    count: int = 0
    shown: int = 0
    first: UndecodableRecord | None = None

    @property
    def sentence(self) -> str:
        if self.first is None:
            return ""
        return f"warning: undecodable and left out: {self.count:,} of {self.count + self.shown:,}; the first: {self.first.message}"


def rows_of(records: Iterable[Record], shape: Shape, skipped: SkippedRecords, *, skip: bool = False) -> Iterator[dict[str, Any]]:
    """Yield the rows of the JSON contract.

    :param skipped: counts the skipped records
    :raises UndecodableRecord: naming topic, partition and offset, unless such records are to be skipped
    """
    for record in records:
        try:
            row = shape.row(record)
        except UndecodableRecord as wrong:
            if not skip:
                raise
            skipped.count += 1
            skipped.first = skipped.first or wrong
            continue
        skipped.shown += 1
        yield row


def choose_shape(records: Sequence[Record], detected: Detection, named: NamedFormats) -> tuple[Shape, str]:
    """Return how to show records, and a sentence about the formats that were not given.

    Without a given format, it is string when all keys or values are readable UTF-8, otherwise bytes.
    """
    layout = detected.layout
    key, about_keys = choose_format("key", [layout.inner(record.key) for record in records if record.key is not None], named.key)
    left: list[bytes] = []
    right: list[bytes] = []
    if named.value is None or named.right is None:
        for found in _values(records, layout):
            (right if found.right else left).extend((*found.samples, *filter(None, found.also.values())))
    value, about_values = choose_format("value", left, named.value)
    other, about_right = choose_format("right-value", right, named.right)
    size = named.window_size if named.window_size is not None else detected.window_size
    ends = "their windows' ends are not in the topic: --window-size or --state-file says them" if layout.needs_size and size is None else ""
    return Shape(layout, key, value, other, size), "; ".join(filter(None, (about_keys, about_values, about_right, ends)))


def key_bytes(form: Format, typed: str) -> bytes:
    return form.encode(form.parse(typed)) or b""


def _values(records: Iterable[Record], layout: Layout) -> Iterator[Value]:
    for record in records:
        if record.key is not None and record.value is not None:
            with suppress(UndecodableRecord):
                yield layout.value(record.key, record.value, record.headers)


def choose_format(part: str, samples: Iterable[bytes | None], named: Format | None) -> tuple[Format, str]:
    """Return the format that was given, or else the one that keys or values appear to have, and a sentence about it."""
    data = [sample for sample in samples if sample is not None]
    if named is not None or not data:
        return named or FORMATS["string"], ""
    if all(readable_text(sample) is not None for sample in data):
        return FORMATS["string"], f"{part}s shown as string (--{part} names another format)"
    widths = {len(sample) for sample in data}
    width = widths.pop() if len(widths) == 1 else 0
    guess = f"all have {width} bytes: --{part} {_WIDTHS[width]}?" if width in _WIDTHS else f"--{part} names another format"
    return FORMATS["bytes"], f"{part}s shown as bytes ({guess})"
