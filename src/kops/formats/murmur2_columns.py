"""Kafka's murmur2 on whole Arrow columns: the same partitions as ``kops.core.murmur2``, millions of keys per second."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kops.core.murmur2 import partition_for

if TYPE_CHECKING:
    import numpy
    import pyarrow

    Numbers = numpy.ndarray[Any, numpy.dtype[Any]]

_SEED = 0x9747B28C
_M = 0x5BD1E995
_ROWS = 32_768
"""Rows hashed together: their hashes, offsets and gathered words stay in the processor's cache."""
_FEW = 24
"""Below this many rows, hashing the rest of long keys one by one is faster than one numpy call per word."""


def partitions_of(keys: pyarrow.Array, partitions: int) -> pyarrow.Array:
    """Return the partition of every key as an Arrow ``int32`` array; null where the key is null.

    :param keys: binary or string, of either offset width; may be sliced
    :raises ValueError: when ``partitions`` is not positive
    """
    import pyarrow

    if partitions < 1:
        raise ValueError(f"a topic has at least one partition, not {partitions}")
    data, offsets = _buffers(keys)
    hashes = _hash_all(data, offsets, partitions)
    mask = keys.is_null().to_numpy(zero_copy_only=False) if keys.null_count else None
    return pyarrow.array(hashes, pyarrow.int32(), mask=mask)


def _buffers(keys: pyarrow.Array) -> tuple[Numbers, Numbers]:
    """Return the bytes of a column, and where each row starts (one more than rows)."""
    import numpy
    import pyarrow

    kind = keys.type
    if kind in (pyarrow.binary(), pyarrow.string()):
        width = "<i4"
    elif kind in (pyarrow.large_binary(), pyarrow.large_string()):
        width = "<i8"
    else:
        return _buffers(keys.cast(pyarrow.large_binary()))
    _, starts, content = keys.buffers()
    data = numpy.frombuffer(content, numpy.uint8) if content is not None and content.size else numpy.zeros(0, numpy.uint8)
    if starts is None or not len(keys):
        return data, numpy.zeros(1, numpy.int64)
    return data, numpy.frombuffer(starts, width)[keys.offset : keys.offset + len(keys) + 1].astype(numpy.int64)


def _hash_all(data: Numbers, offsets: Numbers, partitions: int) -> Numbers:
    import numpy

    rows = len(offsets) - 1
    result = numpy.empty(rows, numpy.int32)
    # A uint32 at every byte position (overlapping, unaligned); padded so that a row's last bytes can be read as a word too.
    first, last = int(offsets[0]), int(offsets[-1])
    padded = numpy.zeros(last - first + 8, numpy.uint8)
    padded[: last - first] = data[first:last]
    words: Numbers = numpy.ndarray((len(padded) - 3,), numpy.dtype("<u4"), buffer=padded, strides=(1,))
    for start in range(0, rows, _ROWS):
        piece = offsets[start : start + _ROWS + 1] - first
        result[start : start + len(piece) - 1] = _hash_rows(padded, words, piece, partitions)
    return result


def _hash_rows(data: Numbers, words: Numbers, offsets: Numbers, partitions: int) -> Numbers:
    import numpy

    m = numpy.uint32(_M)
    starts, lengths = offsets[:-1], numpy.diff(offsets)
    h = numpy.uint32(_SEED) ^ lengths.astype(numpy.uint32)
    blocks = lengths >> 2
    most, fewest = int(blocks.max()), int(blocks.min())
    rows: Any = slice(None)
    finished_alone: list[int] = []
    for block in range(most):
        if block >= fewest:
            rows = numpy.flatnonzero(blocks > block)
            if len(rows) < _FEW and most - block > _FEW:
                finished_alone = rows.tolist()
                break
        k = words[starts[rows] + 4 * block] * m
        k ^= k >> numpy.uint32(24)
        k *= m
        h[rows] = (h[rows] * m) ^ k
    _tail(words, starts, lengths, h)
    h ^= h >> numpy.uint32(13)
    h *= m
    h ^= h >> numpy.uint32(15)
    result = ((h & numpy.uint32(0x7FFFFFFF)) % numpy.uint32(partitions)).astype(numpy.int32)
    for row in finished_alone:
        result[row] = partition_for(data[offsets[row] : offsets[row + 1]].tobytes(), partitions)
    return result


def _tail(words: Numbers, starts: Numbers, lengths: Numbers, h: Numbers) -> None:
    """Mix in the one to three bytes after the last whole word."""
    import numpy

    left = lengths & 3
    rows = numpy.flatnonzero(left)
    if not len(rows):
        return
    masks = numpy.array([0, 0xFF, 0xFFFF, 0xFFFFFF], numpy.uint32)
    rest = words[starts[rows] + (lengths[rows] & ~3)] & masks[left[rows]]
    h[rows] = (h[rows] ^ rest) * numpy.uint32(_M)
