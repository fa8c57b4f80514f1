"""Merges the records of several batches: keys, values and headers are copied unchanged; only deltas from a batch's first record change.

This costs half as much as decoding the records into columns and encoding these.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kops.formats.batches.encode import batch_of, bounds_of_batches
from kops.formats.batches.frames import Frames
from kops.formats.batches.header import Producer
from kops.formats.batches.varints import put_varints, varints_of

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

_OVERHEAD = 20
"""Upper bound for the length, attributes and deltas of one record."""


def split_frames(frames: Frames, limit: int) -> Iterator[Frames]:
    """Split the records into parts that fit into batches of ``limit`` bytes; a record that is too large is yielded alone."""
    return (frames.where(slice(*bounds)) for bounds in bounds_of_batches(frames.ends - frames.at + _OVERHEAD, limit))


def merged(frames: Frames, producer: Producer, codec: int = 0) -> bytes:
    """Return one record batch with timestamps of type CreateTime.

    :param codec: one of the numbers in ``compression.CODECS``
    """
    return batch_of(_laid_out(frames), frames.timestamps, producer, codec)


def _laid_out(frames: Frames) -> bytes:
    """Join the recomputed and the unchanged part of each record."""
    import numpy
    import pyarrow

    count, low = len(frames), int(frames.at[0])
    fresh, begins = _fresh(frames)
    bounds = numpy.empty(3 * count, dtype=numpy.int32)  # of the recomputed parts, then in turn of the unchanged parts and the gaps
    bounds[:count] = begins
    bounds[count::2] = frames.at - low + len(fresh)
    bounds[count + 1 :: 2] = frames.ends - low + len(fresh)
    content = pyarrow.py_buffer(b"".join((fresh.data, memoryview(frames.content)[low : int(frames.ends[-1])])))
    pieces = pyarrow.Array.from_buffers(pyarrow.binary(), 3 * count - 1, [None, pyarrow.py_buffer(bounds), content])
    order = numpy.empty(2 * count, dtype=numpy.int32)
    order[0::2] = numpy.arange(count)
    order[1::2] = numpy.arange(count, 3 * count - 1, 2)
    wanted = pyarrow.Array.from_buffers(pyarrow.int32(), 2 * count, [None, pyarrow.py_buffer(order)])  # pyarrow.array() would load pandas
    joined: bytes = pieces.take(wanted).buffers()[2].to_pybytes()
    return joined


def _fresh(frames: Frames) -> tuple[NDArray[numpy.uint8], NDArray[numpy.int64]]:
    """Return length, attributes and deltas of all records, and where those of each begin."""
    import numpy

    deltas = varints_of(frames.timestamps - frames.timestamps[0])
    offsets = varints_of(numpy.arange(len(frames), dtype=numpy.int64))
    lengths = varints_of(1 + deltas[1] + offsets[1] + frames.ends - frames.at)
    sizes = lengths[1] + 1 + deltas[1] + offsets[1]
    ends = numpy.cumsum(sizes)
    begins = ends - sizes
    out = numpy.zeros(int(ends[-1]), dtype=numpy.uint8)
    at = begins
    for varints, gap in ((lengths, 1), (deltas, 0), (offsets, 0)):
        put_varints(out, at, varints)
        at = at + varints[1] + gap
    return out, begins
