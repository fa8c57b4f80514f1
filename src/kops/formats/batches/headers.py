"""Encodes the headers of records: the bytes after each value, beginning with the number of headers (``DefaultRecord``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kops.formats.batches.encode import put_bytes
from kops.formats.batches.varints import put_varints, read_varints, varints_of

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from kops.formats.batches.columns import RecordColumns

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


def sections_of_lists(headers: Any) -> Sections | None:
    """Encode the headers of an Arrow column: lists of (key: string, value: binary); None when no record has any."""
    import numpy
    import pyarrow

    lists = headers.combine_chunks() if isinstance(headers, pyarrow.ChunkedArray) else headers
    counts = numpy.asarray(lists.value_lengths().fill_null(0), dtype=numpy.int64)
    total = int(counts.sum())
    if not total:
        return None
    pairs = lists.flatten()
    names, values = (_binary(part.cast(pyarrow.large_binary())) for part in pairs.flatten())
    name_sizes, value_sizes = varints_of(names[2]), varints_of(values[2])
    name_lengths, value_lengths = names[2], numpy.maximum(values[2], 0)
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


def _binary(array: Any) -> tuple[NDArray[numpy.uint8], NDArray[numpy.int64], NDArray[numpy.int64]]:
    """Return the bytes of a column, where each value begins (one more than rows), and its length, -1 for null."""
    import numpy
    import pyarrow

    nulls = numpy.asarray(array.is_null())
    whole = array.fill_null(b"").cast(pyarrow.large_binary())
    _, offsets, data = whole.buffers()
    starts = numpy.frombuffer(offsets, dtype=numpy.int64)[whole.offset : whole.offset + len(whole) + 1]
    content = numpy.frombuffer(data, dtype=numpy.uint8) if data is not None else numpy.empty(0, dtype=numpy.uint8)
    return content, starts, numpy.where(nulls, numpy.int64(-1), numpy.diff(starts))
