"""Encodes whole columns as Kafka record batches (magic 2).

The layout is that of ``DefaultRecordBatch`` and ``DefaultRecord`` (KIP-98): a header of 61 bytes, then records whose
lengths and deltas are zigzag varints. numpy computes every length and position on columns, and puts every byte in place
with one scatter per field, so no Python runs per record.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kops.formats.batches.compression import compressed
from kops.formats.batches.header import HEADER_BYTES, Producer, framed
from kops.formats.batches.varints import put_varints, read_varints, varints_of

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from kops.formats.batches.columns import RecordColumns


MAX_BATCH_BYTES = 900_000
"""Stays below a topic's default ``max.message.bytes`` (1 MiB), as the Java and C clients do."""

_RECORD_OVERHEAD = 30  # upper bound for the varints and the attributes of one record


@dataclass(frozen=True)
class Columns:
    """Records of one partition, in their order.

    :param keys: offsets (int64, one more than records) into ``key_bytes``; ``key_null`` marks keys that are absent
    :param values: offsets into ``value_bytes`` in the same way; ``value_null`` marks tombstones
    :param timestamps: int64, milliseconds since the epoch
    :param headers: offsets into ``header_bytes``, which holds for each record the number of its headers, then the headers; None when no
        record has any
    """

    key_bytes: NDArray[numpy.uint8]
    keys: NDArray[numpy.int64]
    key_null: NDArray[numpy.bool_]
    value_bytes: NDArray[numpy.uint8]
    values: NDArray[numpy.int64]
    value_null: NDArray[numpy.bool_]
    timestamps: NDArray[numpy.int64]
    header_bytes: NDArray[numpy.uint8] | None = None
    headers: NDArray[numpy.int64] | None = None

    def __len__(self) -> int:
        return len(self.timestamps)

    @property
    def sizes(self) -> NDArray[numpy.int64]:
        """Upper bound of the bytes that each record takes."""
        import numpy

        sizes: NDArray[numpy.int64] = numpy.diff(self.keys) + numpy.diff(self.values) + _RECORD_OVERHEAD
        return sizes if self.headers is None else sizes + numpy.diff(self.headers)

    def part(self, start: int, stop: int) -> Columns:
        """Return the records ``start`` <= n < ``stop`` without copying bytes."""
        ends = slice(start, stop + 1)
        rows = slice(start, stop)
        return Columns(
            self.key_bytes,
            self.keys[ends],
            self.key_null[rows],
            self.value_bytes,
            self.values[ends],
            self.value_null[rows],
            self.timestamps[rows],
            self.header_bytes,
            None if self.headers is None else self.headers[ends],
        )


def columns_of(keys: Any, values: Any, timestamps: Any, headers: Sections | None = None) -> Columns:
    """Convert Arrow columns.

    :param keys: pyarrow binary array; null for no key
    :param values: pyarrow binary array; null for a tombstone
    :param timestamps: pyarrow int64 array, milliseconds
    :param headers: as ``sections_of_columns`` and ``sections_of_lists`` return them
    """
    import numpy

    return Columns(*_binary(keys), *_binary(values), numpy.asarray(timestamps, dtype=numpy.int64), *(headers or (None, None)))


def one_record(key: bytes, value: bytes, timestamp: int) -> Columns:
    """Return a single record as columns, without an Arrow array: for the first one pyarrow imports pandas, which takes 0.2 s.

    :param timestamp: milliseconds since the epoch
    """
    import numpy

    present = numpy.zeros(1, dtype=bool)
    contents = [(numpy.frombuffer(each, dtype=numpy.uint8), numpy.array([0, len(each)]), present) for each in (key, value)]
    return Columns(*contents[0], *contents[1], numpy.array([timestamp]))


def split(columns: Columns, limit: int = MAX_BATCH_BYTES) -> Iterator[Columns]:
    """Split the records into parts that fit into batches of ``limit`` bytes; a record that is too large is yielded alone."""
    return (columns.part(start, stop) for start, stop in bounds_of_batches(columns.sizes, limit))


def bounds_of_batches(sizes: NDArray[numpy.int64], limit: int) -> Iterator[tuple[int, int]]:
    """Yield the first record of each batch, and the one after its last."""
    import numpy

    ends, start = numpy.cumsum(sizes), 0
    while start < len(sizes):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(numpy.searchsorted(ends, before + limit - HEADER_BYTES, side="right")))
        yield start, stop
        start = stop


def encode(columns: Columns, producer: Producer, codec: int = 0) -> bytes:
    """Return one record batch with timestamps of type CreateTime.

    :param codec: one of the numbers in ``compression.CODECS``
    """
    return batch_of(_records(columns), columns.timestamps, producer, codec)


def batch_of(laid_out: bytes, timestamps: NDArray[numpy.int64], producer: Producer, codec: int) -> bytes:
    """Return one record batch of encoded records, whose timestamp deltas are relative to the first of ``timestamps``."""
    records = compressed(laid_out, codec) if codec else laid_out
    return framed(records, len(timestamps), (int(timestamps[0]), int(timestamps.max())), producer, codec)


def _records(columns: Columns) -> bytes:
    """Encode all records: length, attributes, deltas, key, value, headers."""
    import numpy

    count = len(columns)
    key_lengths = numpy.diff(columns.keys)
    value_lengths = numpy.diff(columns.values)
    minus_one = numpy.int64(-1)
    deltas = varints_of(columns.timestamps - columns.timestamps[0])
    offsets = varints_of(numpy.arange(count, dtype=numpy.int64))
    key_sizes = varints_of(numpy.where(columns.key_null, minus_one, key_lengths))
    value_sizes = varints_of(numpy.where(columns.value_null, minus_one, value_lengths))
    header_lengths = None if columns.headers is None else numpy.diff(columns.headers)
    # attributes, and the number of headers where there are none: one zero byte each
    bodies = 1 + deltas[1] + offsets[1] + key_sizes[1] + key_lengths + value_sizes[1] + value_lengths
    bodies = bodies + (1 if header_lengths is None else header_lengths)
    lengths = varints_of(bodies)
    ends = numpy.cumsum(bodies + lengths[1])
    at = ends - bodies - lengths[1]
    out = numpy.zeros(int(ends[-1]), dtype=numpy.uint8)
    for varints, gap in ((lengths, 1), (deltas, 0), (offsets, 0), (key_sizes, 0)):
        put_varints(out, at, varints)
        at = at + varints[1] + gap
    put_bytes(out, at, columns.key_bytes, columns.keys, key_lengths)
    at = at + key_lengths
    put_varints(out, at, value_sizes)
    at = at + value_sizes[1]
    put_bytes(out, at, columns.value_bytes, columns.values, value_lengths)
    if columns.header_bytes is not None and columns.headers is not None and header_lengths is not None:
        put_bytes(out, at + value_lengths, columns.header_bytes, columns.headers, header_lengths)
    return out.tobytes()


def put_bytes(
    out: NDArray[numpy.uint8],
    at: NDArray[numpy.int64],
    data: NDArray[numpy.uint8],
    starts: NDArray[numpy.int64],
    lengths: NDArray[numpy.int64],
) -> None:
    """Copy the values of a binary column, each to its position in ``out``."""
    import numpy

    total = int(starts[-1] - starts[0])
    if total:
        shift = numpy.repeat(at - starts[:-1], lengths)
        sources = numpy.arange(int(starts[0]), int(starts[-1]), dtype=numpy.int64)
        out[sources + shift] = data[int(starts[0]) : int(starts[-1])]


def _binary(array: Any) -> tuple[Any, Any, Any]:
    """Return the bytes, the offsets into them and the null mask of a binary Arrow array."""
    import numpy
    import pyarrow

    if array.null_count:
        # A null may still span bytes, which the lengths would then count.
        nulls = numpy.asarray(array.is_null())
        array = array.fill_null(b"")
    else:
        nulls = numpy.zeros(len(array), dtype=bool)
    wide = pyarrow.types.is_large_binary(array.type)
    _, offsets, data = array.buffers()
    kind = numpy.int64 if wide else numpy.int32
    starts = numpy.frombuffer(offsets, dtype=kind)[array.offset : array.offset + len(array) + 1].astype(numpy.int64)
    content = numpy.frombuffer(data, dtype=numpy.uint8) if data is not None else numpy.empty(0, dtype=numpy.uint8)
    return content, starts, nulls


Sections = tuple["NDArray[numpy.uint8]", "NDArray[numpy.int64]"]
"""Bytes, and where those of each record begin: one position more than records."""


def sections_of_columns(records: RecordColumns) -> Sections | None:
    """Return the headers of decoded records as encoded bytes, copied unchanged; None when no record has any."""
    import numpy

    rows = numpy.flatnonzero(records.has_headers())
    if not len(rows):
        return None
    octets = numpy.frombuffer(records.data, dtype=numpy.uint8)
    lengths = numpy.ones(len(records), dtype=numpy.int64)
    left, at = read_varints(octets, records.headers_at[rows])
    while len(rows):
        for _ in ("name", "value"):
            size, at = read_varints(octets, at)
            at = at + numpy.maximum(size, 0)
        left = left - 1
        done = left == 0
        lengths[rows[done]] = at[done] - records.headers_at[rows[done]]
        rows, left, at = rows[~done], left[~done], at[~done]
    starts = _starts(lengths)
    out = numpy.empty(int(starts[-1]), dtype=numpy.uint8)
    sources = numpy.repeat(records.headers_at - starts[:-1], lengths) + numpy.arange(len(out))
    out[:] = octets[sources]
    return out, starts


def sections_of_lists(lists: Any) -> Sections | None:
    """Encode the headers of an Arrow array: lists of (key: string, value: binary); None when no record has any."""
    import numpy
    import pyarrow

    counts = numpy.asarray(lists.value_lengths().fill_null(0), dtype=numpy.int64)
    total = int(counts.sum())
    if not total:
        return None
    pairs = lists.flatten()
    names, values = (_binary(part.cast(pyarrow.large_binary())) for part in pairs.flatten())
    name_lengths, value_lengths = numpy.diff(names[1]), numpy.diff(values[1])
    name_sizes, value_sizes = varints_of(name_lengths), varints_of(numpy.where(values[2], numpy.int64(-1), value_lengths))
    sizes = name_sizes[1] + name_lengths + value_sizes[1] + value_lengths
    ends = numpy.concatenate([numpy.zeros(1, dtype=numpy.int64), numpy.cumsum(sizes)])
    bounds = numpy.concatenate([numpy.zeros(1, dtype=numpy.int64), numpy.cumsum(counts)])
    numbers = varints_of(counts)
    starts = _starts(numbers[1] + ends[bounds[1:]] - ends[bounds[:-1]])
    out = numpy.zeros(int(starts[-1]), dtype=numpy.uint8)
    put_varints(out, starts[:-1], numbers)
    begin = numpy.repeat(starts[:-1] + numbers[1] - ends[bounds[:-1]], counts)
    at = ends[:-1] + begin
    put_varints(out, at, name_sizes)
    at = at + name_sizes[1]
    put_bytes(out, at, names[0], names[1], name_lengths)
    at = at + name_lengths
    put_varints(out, at, value_sizes)
    put_bytes(out, at + value_sizes[1], values[0], values[1], value_lengths)
    return out, starts


def _starts(lengths: NDArray[numpy.int64]) -> NDArray[numpy.int64]:
    import numpy

    return numpy.concatenate([numpy.zeros(1, dtype=numpy.int64), numpy.cumsum(lengths)])
