"""Finds the records of Kafka record batches (magic 2): where each begins and ends, its offset and its timestamp.

Only the start of each record has to be found record by record, because each record begins with its length. Everything
else is done on whole columns with numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kops.formats.batches.compression import TooManyBytes, decompressed
from kops.formats.batches.header import COMPRESSION, HEADER_BYTES, LOG_APPEND_TIME, Batch, HugeBatch, UnreadableBatch, is_sound
from kops.formats.batches.varints import MORE, read_varints, varint_at

if TYPE_CHECKING:
    import numpy
    import pyarrow
    from numpy.typing import NDArray

MOST_AT_ONCE = 1 << 30
"""Limit for the bytes of decompressed records held at once; positions in them fit into 32 bits."""
_FEW, _MANY = 32, 4096


@dataclass(frozen=True)
class Frames:
    """Records of one partition, ordered by offset.

    :param offsets: and ``timestamps`` (milliseconds since the epoch): int64
    :param at: and ``ends``: positions in ``content`` where a record's key begins, its length included, and where the record ends; int64
    """

    content: bytes
    offsets: NDArray[numpy.int64]
    timestamps: NDArray[numpy.int64]
    at: NDArray[numpy.int64]
    ends: NDArray[numpy.int64]

    def __len__(self) -> int:
        return len(self.offsets)

    def where(self, chosen: Any) -> Frames:
        """Return the records selected by a mask or a slice."""
        return Frames(self.content, *(column[chosen] for column in (self.offsets, self.timestamps, self.at, self.ends)))


def compacted(frames: Frames) -> Frames:
    """Return the records, copied if they use less than half of their ``content``, so that the rest can be freed."""
    import numpy

    lengths = frames.ends - frames.at
    ends = numpy.cumsum(lengths)
    if not len(frames) or 2 * int(ends[-1]) >= len(frames.content):
        return frames
    content = cut_out(frames.content, frames.at, lengths).buffers()[2].to_pybytes()
    return Frames(content, frames.offsets, frames.timestamps, ends - lengths, ends)


def frames_in_parts(data: bytes, batches: Sequence[Batch]) -> Iterator[Frames]:
    """Find the records of batches, in several parts if they take more than ``MOST_AT_ONCE`` decompressed; see ``frames_of``."""
    try:
        found = frames_of(data, batches)
    except HugeBatch:
        if len(batches) == 1:
            raise
        middle = len(batches) // 2
        yield from frames_in_parts(data, batches[:middle])
        yield from frames_in_parts(data, batches[middle:])
    else:
        yield found


def frames_of(data: bytes, batches: Sequence[Batch], only: NDArray[numpy.int64] | None = None) -> Frames:
    """Find the records of batches.

    :param data: the bytes that contain the batches
    :param only: ascending offsets; other records may be left out, which is faster for few records out of many
    :raises UnreadableBatch: when a checksum is wrong, or a batch cannot be decompressed
    :raises HugeBatch: when one batch, or all of them together, takes too much memory
    """
    import numpy

    for batch in batches:
        if not is_sound(data, batch):
            raise UnreadableBatch(f"the batch at offset {batch.base_offset} is damaged: its checksum is wrong")
    content, begins = _contents(data, batches)
    octets = numpy.frombuffer(content, dtype=numpy.uint8)
    pairs = zip(batches, begins, strict=True)
    starts = [found for batch, begin in pairs for found in _find_records(content, octets, begin, batch.records)]
    counts = numpy.fromiter((batch.records for batch in batches), numpy.int64, len(batches))
    at = numpy.concatenate(starts, dtype=numpy.int64) if starts else numpy.empty(0, dtype=numpy.int64)
    if batches and only is not None and not any(batch.has_gaps for batch in batches):
        counts, rows = _rows_of(batches, only)
        at = at[rows]
    lengths, at = read_varints(octets, at)
    ends = at + lengths
    time_deltas, at = read_varints(octets, at + 1)  # skips the attributes, which are unused
    offset_deltas, at = read_varints(octets, at)
    offsets = _each(batches, counts, lambda batch: batch.base_offset) + offset_deltas
    return Frames(content, offsets, _timestamps(batches, counts, time_deltas), at, ends)


def _contents(data: bytes, batches: Sequence[Batch]) -> tuple[bytes, list[int]]:
    """Return bytes that contain the decompressed records of all batches, and where those of each batch begin."""
    if not any(batch.attributes & COMPRESSION for batch in batches):
        return data, [batch.at + HEADER_BYTES for batch in batches]
    parts, begins, at = [], [], 0
    for batch in batches:
        try:
            part = decompressed(data[batch.at + HEADER_BYTES : batch.end], batch.attributes & COMPRESSION)
        except ValueError as error:
            raise UnreadableBatch(f"the batch at offset {batch.base_offset} cannot be decompressed: {error}") from error
        except TooManyBytes as error:
            raise HugeBatch(f"the batch at offset {batch.base_offset} cannot be read: {error}") from error
        begins.append(at)
        parts.append(part)
        at += len(part)
        if at > MOST_AT_ONCE:
            raise HugeBatch(f"the batches up to offset {batch.base_offset} take more than {MOST_AT_ONCE >> 20} MiB decompressed")
    return b"".join(parts), begins


def _find_records(content: bytes, octets: NDArray[numpy.uint8], at: int, count: int) -> Iterator[Any]:
    """Yield the positions where the records of a batch begin, as arrays and lists.

    A run of consecutive records of the same length is found in one step. If the lengths change all the time, this is tried
    less often.
    """
    import numpy

    patience = _FEW
    if count <= _FEW:
        yield _one_by_one(content, at, count)[0]
        return
    while count > 0:
        length, after = varint_at(content, at)
        size = after - at + length
        same = numpy.ones(count, dtype=bool)
        for octet in range(at, after):
            found = octets[octet : octet + size * (count - 1) + 1 : size]
            same[len(found) :] = False
            same[: len(found)] &= found == content[octet]
        alike = count if same.all() else int(same.argmin())
        yield numpy.arange(at, at + size * alike, size, dtype=numpy.int64)
        at, count = at + size * alike, count - alike
        patience = _FEW if alike >= _FEW else min(2 * patience, _MANY)
        if alike < _FEW and count > 0:
            starts, at = _one_by_one(content, at, min(count, patience))
            count -= len(starts)
            yield starts


def _one_by_one(content: bytes, at: int, count: int) -> tuple[list[int], int]:
    """Return where records begin, and where the next one does: few steps per record, because nothing else here runs as often."""
    starts: list[int] = []
    add = starts.append
    for _ in range(count):
        add(at)
        length = content[at]
        if length < MORE:
            at += 1 + (length >> 1)
        elif content[at + 1] < MORE:
            at += 2 + ((length & 0x7F | content[at + 1] << 7) >> 1)
        else:
            length, at = varint_at(content, at)
            at += length
    return starts, at


def with_any(batches: Sequence[Batch], offsets: NDArray[numpy.int64]) -> list[Batch]:
    """Return the batches whose offset range contains any of ``offsets``, which are ascending."""
    import numpy

    bounds = numpy.array([(batch.base_offset, batch.last_offset) for batch in batches], dtype=numpy.int64).reshape(-1, 2)
    there = numpy.searchsorted(offsets, bounds[:, 0]) < numpy.searchsorted(offsets, bounds[:, 1], "right")
    return [batches[row] for row in numpy.flatnonzero(there).tolist()]


def _rows_of(batches: Sequence[Batch], offsets: NDArray[numpy.int64]) -> tuple[NDArray[numpy.int64], NDArray[numpy.int64]]:
    """Return how many of ``offsets`` each batch holds, and their rows among all records; requires batches without gaps."""
    import numpy

    first, last, records = numpy.array([(batch.base_offset, batch.last_offset, batch.records) for batch in batches]).T
    batch_of = numpy.searchsorted(first, offsets, "right") - 1
    inside = (batch_of >= 0) & (offsets <= last[batch_of])
    batch_of, offsets = batch_of[inside], offsets[inside]
    begins = numpy.cumsum(records) - records
    return numpy.bincount(batch_of, minlength=len(batches)), begins[batch_of] + offsets - first[batch_of]


def _each(batches: Sequence[Batch], counts: NDArray[numpy.int64], of: Callable[[Batch], int]) -> NDArray[numpy.int64]:
    """Repeat a number per batch for each of the batch's records."""
    import numpy

    return numpy.repeat(numpy.fromiter(map(of, batches), numpy.int64, len(batches)), counts)


def _timestamps(batches: Sequence[Batch], counts: NDArray[numpy.int64], deltas: NDArray[numpy.int64]) -> NDArray[numpy.int64]:
    """Return the records' timestamps: the maximum of the batch for LogAppendTime, otherwise its base plus each record's delta."""
    import numpy

    times: NDArray[numpy.int64] = _each(batches, counts, lambda batch: batch.base_timestamp) + deltas
    if any(batch.attributes & LOG_APPEND_TIME for batch in batches):
        appended = _each(batches, counts, lambda batch: batch.max_timestamp)
        times = numpy.where(_each(batches, counts, lambda batch: batch.attributes & LOG_APPEND_TIME) != 0, appended, times)
    return times


def cut_out(data: bytes, at: NDArray[numpy.int64], lengths: NDArray[numpy.int64]) -> pyarrow.Array:
    """Return slices of ``data`` as a binary array: every other item of an array of the slices and the gaps between them."""
    import numpy
    import pyarrow

    count = len(at)
    if len(data) > numpy.iinfo(numpy.int32).max:
        raise HugeBatch(f"{len(data):,} bytes of records at once are too many")
    bounds = numpy.empty(2 * count + 1, dtype=numpy.int32)
    bounds[0:-1:2] = at
    bounds[1:-1:2] = at + numpy.maximum(lengths, 0)
    bounds[-1] = bounds[-2] if count else 0
    pieces = pyarrow.Array.from_buffers(pyarrow.binary(), 2 * count, [None, pyarrow.py_buffer(bounds), pyarrow.py_buffer(data)])
    absent = lengths < 0
    chosen = pyarrow.array(numpy.arange(0, 2 * count, 2), mask=absent if absent.any() else None)
    return pieces.take(chosen)
