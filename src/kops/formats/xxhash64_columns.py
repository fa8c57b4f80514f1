"""The 64-bit hash of Spark's ``xxhash64`` for whole columns, so that tasks and Spark SQL compute the same hash for a record.

The algorithm is XXH64 as ``org.apache.spark.sql.catalyst.expressions.XxHash64Function`` has it: the hash of one column is
the seed of the next, and a null leaves it unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy
    import pyarrow
    from numpy.typing import NDArray

    from kops.formats.batches.columns import RecordColumns

    Hashes = NDArray[numpy.uint64]

SEED = 42
"""The seed of the first column in Spark SQL."""

_PRIME_1 = 0x9E3779B185EBCA87
_PRIME_2 = 0xC2B2AE3D27D4EB4F
_PRIME_3 = 0x165667B19E3779F9
_PRIME_4 = 0x85EBCA77C2B2AE63
_PRIME_5 = 0x27D4EB2F165667C5
_WRAP = (1 << 64) - 1
_BLOCK, _WORD, _HALF = 32, 8, 4


def record_hashes(records: RecordColumns) -> Hashes:
    """Return ``xxhash64(key, value is null, value, timestamp)`` of each record."""
    import numpy

    found: Hashes = numpy.full(len(records), SEED, dtype=numpy.uint64)
    found = hash_bytes(found, records.data, records.key_at, records.key_lengths)
    found = hash_int(found, records.value_lengths < 0)
    found = hash_bytes(found, records.data, records.value_at, records.value_lengths)
    return hash_long(found, records.timestamps)


def column_hashes(
    keys: pyarrow.Array, values: pyarrow.Array, timestamps: NDArray[numpy.int64], headers: pyarrow.ListArray | None = None
) -> Hashes:
    """Return ``xxhash64(key, value is null, value, timestamp, headers)`` of each row; a row without headers has the hash of the others.

    :param keys: and ``values``: binary
    :param headers: lists of key and value
    """
    found = binary_hashes(keys)
    data, at, lengths = _pieces_of(values)
    found = hash_int(found, lengths < 0)
    found = hash_long(hash_bytes(found, data, at, lengths), timestamps)
    return found if headers is None else _hash_headers(found, headers)


def binary_hashes(column: pyarrow.Array) -> Hashes:
    """Return ``xxhash64`` of each value of a binary column."""
    import numpy

    return hash_bytes(numpy.full(len(column), SEED, dtype=numpy.uint64), *_pieces_of(column))


def _hash_headers(seeds: Hashes, headers: pyarrow.ListArray) -> Hashes:
    """Hash the first header of each row that has one, then the second, and so on: of each the key, then the value."""
    import numpy
    import pyarrow

    counts = headers.value_lengths().fill_null(0).to_numpy()
    starts, found = headers.offsets.to_numpy()[:-1], seeds.copy()
    for number in range(int(counts.max(initial=0))):
        rows = numpy.flatnonzero(counts > number)
        chosen = headers.values.take(pyarrow.array(starts[rows] + number))
        for name in ("key", "value"):
            found[rows] = hash_bytes(found[rows], *_pieces_of(chosen.field(name).cast(pyarrow.binary())))
    return found


def _pieces_of(column: pyarrow.Array) -> tuple[Any, NDArray[numpy.int64], NDArray[numpy.int64]]:
    """Return the bytes with the values of a binary column, where each value begins, and its length; -1 for null."""
    import numpy

    _, bounds, data = column.buffers()
    ends = numpy.frombuffer(bounds, numpy.int32)[column.offset : column.offset + len(column) + 1].astype(numpy.int64)
    lengths = numpy.diff(ends)
    if column.null_count:
        lengths[column.is_null().to_numpy(zero_copy_only=False)] = -1
    return b"" if data is None else data, ends[:-1], lengths


def hash_long(seeds: Hashes, numbers: NDArray[Any]) -> Hashes:
    import numpy

    return _finished(_with_word(seeds + _u(_PRIME_5 + 8), numbers.astype(numpy.int64).view(numpy.uint64)))


def hash_int(seeds: Hashes, numbers: NDArray[Any]) -> Hashes:
    """Hash 32-bit integers, or booleans, which Spark hashes as 1 and 0."""
    import numpy

    return _finished(_with_half(seeds + _u(_PRIME_5 + 4), numbers.astype(numpy.uint32).astype(numpy.uint64)))


def hash_bytes(seeds: Hashes, data: Any, at: NDArray[numpy.int64], lengths: NDArray[numpy.int64]) -> Hashes:
    """Hash pieces of ``data``.

    :param data: ``bytes``, or an Arrow buffer
    :param at: where each begins
    :param lengths: of each; -1 for null
    """
    import numpy

    rows = numpy.flatnonzero(lengths >= 0)
    found = seeds.copy()
    if len(rows):
        found[rows] = _hash_pieces(found[rows], _Pieces(data, at[rows], lengths[rows]))
    return found


def _hash_pieces(seeds: Hashes, pieces: _Pieces) -> Hashes:
    import numpy

    lengths = pieces.left.astype(numpy.uint64)
    value = seeds + _u(_PRIME_5)
    long = numpy.flatnonzero(pieces.left >= _BLOCK)
    if len(long):
        value[long] = _blocks(seeds[long], pieces, long)
    value += lengths
    for width, mix in ((_WORD, _with_word), (_HALF, _with_half), (1, _with_octet)):
        rows = numpy.flatnonzero(pieces.left >= width)
        while len(rows):
            value[rows] = mix(value[rows], pieces.words(rows, width))
            pieces.advance(rows, width)
            rows = rows[pieces.left[rows] >= width]
    return _finished(value)


@dataclass
class _Pieces:
    """What is left to hash of each piece.

    :param at: position of its next byte
    :param left: number of bytes left
    """

    data: Any
    at: NDArray[numpy.int64]
    left: NDArray[numpy.int64]

    def words(self, rows: NDArray[numpy.int64], width: int, *, skip: int = 0) -> Hashes:
        """Return the next little-endian integers of some pieces, aligned or not."""
        import numpy

        windows: NDArray[Any] = numpy.ndarray((len(self.data) - width + 1,), f"<u{width}", self.data, strides=(1,))
        return windows[self.at[rows] + skip].astype(numpy.uint64)

    def advance(self, rows: NDArray[numpy.int64], width: int) -> None:
        """Skip ``width`` bytes of some pieces."""
        self.at[rows] += width
        self.left[rows] -= width


def _blocks(seeds: Hashes, pieces: _Pieces, rows: NDArray[numpy.int64]) -> Hashes:
    """Hash the whole 32-byte blocks of some pieces in four lanes."""
    import numpy

    lanes = [seeds + _u(start) for start in (_PRIME_1 + _PRIME_2, _PRIME_2, 0, -_PRIME_1)]
    active = numpy.arange(len(rows))
    while len(active):
        chosen = rows[active]
        for number, lane in enumerate(lanes):
            word = pieces.words(chosen, _WORD, skip=number * _WORD)
            lane[active] = _rotated_left(lane[active] + word * _u(_PRIME_2), 31) * _u(_PRIME_1)
        pieces.advance(chosen, _BLOCK)
        active = active[pieces.left[chosen] >= _BLOCK]
    first, *others = (_rotated_left(lane, turn) for lane, turn in zip(lanes, (1, 7, 12, 18), strict=True))
    value = first + others[0] + others[1] + others[2]
    for lane in lanes:
        value = (value ^ (_rotated_left(lane * _u(_PRIME_2), 31) * _u(_PRIME_1))) * _u(_PRIME_1) + _u(_PRIME_4)
    return value


def _with_word(value: Hashes, word: Hashes) -> Hashes:
    mixed = value ^ (_rotated_left(word * _u(_PRIME_2), 31) * _u(_PRIME_1))
    return _rotated_left(mixed, 27) * _u(_PRIME_1) + _u(_PRIME_4)


def _with_half(value: Hashes, half: Hashes) -> Hashes:
    return _rotated_left(value ^ (half * _u(_PRIME_1)), 23) * _u(_PRIME_2) + _u(_PRIME_3)


def _with_octet(value: Hashes, octet: Hashes) -> Hashes:
    return _rotated_left(value ^ (octet * _u(_PRIME_5)), 11) * _u(_PRIME_1)


def _finished(value: Hashes) -> Hashes:
    value = (value ^ (value >> _u(33))) * _u(_PRIME_2)
    value = (value ^ (value >> _u(29))) * _u(_PRIME_3)
    return value ^ (value >> _u(32))


def _rotated_left(value: Hashes, bits: int) -> Hashes:
    return (value << _u(bits)) | (value >> _u(64 - bits))


def _u(number: int) -> numpy.uint64:
    import numpy

    return numpy.uint64(number & _WRAP)
