"""Gives records new keys, values, timestamps or headers; the other parts of each record are copied unchanged.

Arrow assembles the columns, so no Python runs per record unless one loses a header.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from kops.formats.batches.columns import columns_of_frames
from kops.formats.batches.frames import Frames, cut_out
from kops.formats.batches.varints import put_varints, read_varints, varint_at, varints_of

if TYPE_CHECKING:
    import numpy
    import pyarrow
    from numpy.typing import NDArray


@dataclass(frozen=True)
class NewContent:
    """The new parts of some records, as columns with one row per record.

    :param key: and ``value``: binary, null for no key or value; ``timestamps``: milliseconds; None for a part that stays unchanged
    :param headers: name -> binary column, null where a record must not have that header; bytes if all records get the same value
    """

    key: pyarrow.Array | None = None
    value: pyarrow.Array | None = None
    timestamps: NDArray[numpy.int64] | None = None
    headers: Mapping[str, pyarrow.Array | bytes] = field(default_factory=dict)


def with_new(frames: Frames, new: NewContent) -> Frames:
    """Return the records with their new content; new headers come last, in the order of ``new.headers``."""
    import numpy

    times = frames.timestamps if new.timestamps is None else new.timestamps
    if new.key is None and new.value is None and not new.headers:
        return replace(frames, timestamps=times)
    old = columns_of_frames(frames)
    keys_end = old.key_at + numpy.maximum(old.key_lengths, 0)
    parts = [] if new.key is not None else [_Piece(frames.at, keys_end)]
    parts += _content(new.key) if new.key is not None else []
    parts += _content(new.value) if new.value is not None else [_Piece(keys_end, old.headers_at)]
    parts += _with_headers(frames, old.headers_at, new.headers) if new.headers else [_Piece(old.headers_at, frames.ends)]
    bodies = _joined(frames.content, parts)
    _, bounds, content = bodies.buffers()
    ends = numpy.frombuffer(bounds, numpy.int32)[bodies.offset : bodies.offset + len(bodies) + 1].astype(numpy.int64)
    return Frames(content.to_pybytes(), frames.offsets, times, ends[:-1], ends[1:])


@dataclass(frozen=True)
class _Piece:
    """A part of each record that is kept: from one position to another."""

    start: NDArray[numpy.int64]
    end: NDArray[numpy.int64]


def _joined(content: bytes, parts: Iterable[Any]) -> pyarrow.Array:
    """Join the parts of each record; adjacent pieces are cut out together."""
    from pyarrow import compute

    whole: list[Any] = []
    for part in parts:
        if isinstance(part, _Piece) and whole and isinstance(whole[-1], _Piece) and whole[-1].end is part.start:
            whole[-1] = _Piece(whole[-1].start, part.end)
        else:
            whole.append(part)
    columns = [cut_out(content, part.start, part.end - part.start) if isinstance(part, _Piece) else part for part in whole]
    return columns[0] if len(columns) == 1 else compute.binary_join_element_wise(*columns, b"")


def _content(column: pyarrow.Array) -> list[pyarrow.Array]:
    """Encode keys or values as in a record: the length, -1 for null, then the bytes."""
    from pyarrow import compute

    lengths = compute.fill_null(compute.binary_length(column), -1)
    return [_varints(lengths), column.fill_null(b"")]


def _varints(numbers: Any) -> pyarrow.Array:
    """Return a binary column of zigzag varints."""
    import numpy
    import pyarrow

    varints = varints_of(numpy.asarray(numbers, dtype=numpy.int64))
    bounds = numpy.zeros(len(varints[1]) + 1, dtype=numpy.int32)
    numpy.cumsum(varints[1], out=bounds[1:])
    out = numpy.zeros(int(bounds[-1]), dtype=numpy.uint8)
    if len(out):
        put_varints(out, bounds[:-1].astype(numpy.int64), varints)
    return pyarrow.Array.from_buffers(pyarrow.binary(), len(varints[1]), [None, pyarrow.py_buffer(bounds), pyarrow.py_buffer(out)])


def _with_headers(frames: Frames, at: NDArray[numpy.int64], new: Mapping[str, pyarrow.Array | bytes]) -> list[Any]:
    """Return the parts of the records' headers: their number, the headers that are kept, and the new ones.

    :param at: positions of the number of headers
    """
    import numpy
    import pyarrow
    from pyarrow import compute

    octets = numpy.frombuffer(frames.content, dtype=numpy.uint8)
    counts, after = read_varints(octets, at)
    parts: list[Any] = []
    if counts.any():
        named = _named(octets, counts, after, [name.encode() for name in new])
        if named.any():
            unwanted = {name.encode() for name in new}
            kept = [
                _others(frames.content, count, start, unwanted) if loses else (count, frames.content[start:end])
                for count, start, end, loses in zip(*(each.tolist() for each in (counts, after, frames.ends, named)), strict=True)
            ]
            counts = numpy.array([count for count, _ in kept], dtype=numpy.int64)
            parts.append(pyarrow.array([content for _, content in kept], pyarrow.binary()))
        else:
            parts.append(_Piece(after, frames.ends))
    for name, column in new.items():
        prefix = _text(name.encode())
        if isinstance(column, bytes):
            counts = counts + 1
            parts.append(pyarrow.scalar(prefix + _text(column)))
            continue
        counts = counts + numpy.asarray(compute.is_valid(column), dtype=numpy.int64)
        lengths = _varints(compute.fill_null(compute.binary_length(column), 0))
        parts.append(compute.fill_null(compute.binary_join_element_wise(pyarrow.scalar(prefix), lengths, column, b""), b""))
    return [_varints(counts), *parts]


def _text(content: bytes) -> bytes:
    """Encode a header's name or value: its length, then its bytes."""
    length: bytes = _varints([len(content)])[0].as_py()
    return length + content


def _named(
    octets: NDArray[numpy.uint8], counts: NDArray[numpy.int64], at: NDArray[numpy.int64], names: list[bytes]
) -> NDArray[numpy.bool_]:
    """Return a mask of the records that have a header with one of ``names``."""
    import numpy

    found = numpy.zeros(len(counts), dtype=bool)
    rows, left = numpy.flatnonzero(counts), counts[counts > 0]
    at = at[rows]
    while len(rows):
        sizes, at = read_varints(octets, at)
        for name in names:
            candidates = numpy.flatnonzero(sizes == len(name))
            for index, octet in enumerate(name):
                candidates = candidates[octets[at[candidates] + index] == octet]
            found[rows[candidates]] = True
        sizes, at = read_varints(octets, at + sizes)
        at = at + numpy.maximum(sizes, 0)
        left = left - 1
        more = left > 0
        rows, left, at = rows[more], left[more], at[more]
    return found


def _others(content: bytes, count: int, at: int, unwanted: set[bytes]) -> tuple[int, bytes]:
    """Return the number of a record's headers with names other than ``unwanted``, and their bytes."""
    kept = []
    for _ in range(count):
        begin = at
        size, at = varint_at(content, at)
        name = content[at : at + size]
        size, at = varint_at(content, at + size)
        at += max(size, 0)
        if name not in unwanted:
            kept.append(content[begin:at])
    return len(kept), b"".join(kept)
