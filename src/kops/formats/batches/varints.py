"""Zigzag varints, the encoding of lengths and deltas in record batches: single numbers, and columns of them (``ByteUtils``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

MORE = 0x80
"""Continuation bit: another byte follows."""


def varint_at(content: bytes, at: int) -> tuple[int, int]:
    """Return a zigzag varint (``ByteUtils.readVarint``) and the position after it."""
    value = shift = 0
    while True:
        octet = content[at]
        value |= (octet & 0x7F) << shift
        at += 1
        if octet < MORE:
            return (value >> 1) ^ -(value & 1), at
        shift += 7


def read_varints(octets: NDArray[numpy.uint8], at: NDArray[numpy.int64]) -> tuple[NDArray[numpy.int64], NDArray[numpy.int64]]:
    """Return the zigzag varints at some positions, and the positions after them."""
    import numpy

    octet = octets[at]
    value = (octet & 0x7F).astype(numpy.uint64)
    after = at + 1
    rows = numpy.flatnonzero(octet >= MORE)
    shift = 7
    while len(rows):
        octet = octets[after[rows]]
        value[rows] |= (octet & 0x7F).astype(numpy.uint64) << numpy.uint64(shift)
        after[rows] += 1
        rows = rows[octet >= MORE]
        shift += 7
    half, sign = (value >> numpy.uint64(1)).view(numpy.int64), (value & numpy.uint64(1)).view(numpy.int64)
    return half ^ -sign, after


def varints_of(numbers: NDArray[numpy.int64]) -> tuple[NDArray[numpy.uint64], NDArray[numpy.int64]]:
    """Return numbers zigzag-encoded, and how many bytes each takes as a varint (``ByteUtils.writeVarlong``)."""
    import numpy

    zigzag = ((numbers << 1) ^ (numbers >> 63)).view(numpy.uint64)
    sizes = numpy.ones(len(numbers), dtype=numpy.int64)
    largest = int(zigzag.max()) if len(numbers) else 0
    limit = 1 << 7
    while limit <= largest:
        sizes += zigzag >= numpy.uint64(limit)
        limit <<= 7
    return zigzag, sizes


def put_varints(out: NDArray[numpy.uint8], at: NDArray[numpy.int64], varints: tuple[NDArray[numpy.uint64], NDArray[numpy.int64]]) -> None:
    """Write varints to their positions in ``out``, seven bits per byte."""
    import numpy

    zigzag, sizes = varints
    for index in range(int(sizes.max())):
        rows = sizes > index
        seven_bits = (zigzag[rows] >> numpy.uint64(7 * index)) & numpy.uint64(0x7F)
        more = (sizes[rows] > index + 1).astype(numpy.uint64) << numpy.uint64(7)
        out[at[rows] + index] = (seven_bits | more).astype(numpy.uint8)
