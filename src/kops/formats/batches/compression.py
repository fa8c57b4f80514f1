"""Compresses and decompresses the records of a batch (``org.apache.kafka.common.record.CompressionType``)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

from kops.formats.batches.varints import MORE

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
"""Codec numbers in a batch's attributes, by their names in ``compression.type``."""
_GZIP = 31  # zlib's wbits: 15, plus 16 for a gzip header
_XERIAL = b"\x82SNAPPY\x00"
MOST_BYTES = 256 << 20
"""Limit for the decompressed records of one batch: a broker accepts batches of about 1 MB, and real data does not compress 250-fold."""
_AT_ONCE = 4 << 20


class TooManyBytes(Exception):
    """The decompressed records of a batch take more than ``MOST_BYTES``."""

    def __init__(self) -> None:
        super().__init__(f"its records take more than {MOST_BYTES >> 20} MiB decompressed")


def decompressed(records: bytes, codec: int) -> bytes:
    """Decompress the records of a batch.

    :param codec: from the batch's attributes: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd
    :raises TooManyBytes: when they take more than ``MOST_BYTES``
    :raises ValueError: when they cannot be decompressed, or there is no such codec
    """
    if codec not in _CODECS:
        raise ValueError(f"no compression has the number {codec}")
    try:
        return _CODECS[codec](records)
    except (OSError, IndexError, struct.error, zlib.error, OverflowError) as error:
        raise ValueError(f"compression {codec}: {error}") from error


def _gzip(records: bytes) -> bytes:
    inflater = zlib.decompressobj(wbits=_GZIP)
    found = inflater.decompress(records, MOST_BYTES + 1)
    if len(found) > MOST_BYTES:
        raise TooManyBytes
    if not inflater.eof:
        raise ValueError("its end is missing")
    return found


def _snappy(records: bytes) -> bytes:
    """Decompress a raw block, or the framing of snappy-java: a 16-byte header, then blocks, each preceded by its length."""
    if not records.startswith(_XERIAL):
        return _snappy_block(records)
    parts, at, size = [], 16, 0  # the header: 8 bytes of magic, the version, and the oldest version that can read it
    while at < len(records):
        (length,) = struct.unpack_from(">i", records, at)
        if length <= 0:
            raise ValueError(f"a frame of {length} bytes")
        parts.append(_snappy_block(records[at + 4 : at + 4 + length]))
        at, size = at + 4 + length, size + len(parts[-1])
        if size > MOST_BYTES:
            raise TooManyBytes
    return b"".join(parts)


def _snappy_block(block: bytes) -> bytes:
    import pyarrow

    size, shift, at = 0, 0, 0
    while True:
        size |= (block[at] & 0x7F) << shift
        if block[at] < MORE:
            break
        shift, at = shift + 7, at + 1
    if size > MOST_BYTES:  # the size that the block itself claims
        raise TooManyBytes
    return pyarrow.decompress(block, size, codec="snappy", asbytes=True)  # type: ignore[no-any-return]


def _streamed(codec: str) -> Callable[[bytes], bytes]:
    def decompress(records: bytes) -> bytes:
        import pyarrow

        # A frame need not say how long its content is, so it is read in parts, up to the limit.
        with pyarrow.CompressedInputStream(pyarrow.py_buffer(records), codec) as stream:
            parts, size = [], 0
            while part := stream.read(_AT_ONCE):
                parts.append(part)
                size += len(part)
                if size > MOST_BYTES:
                    raise TooManyBytes
        return parts[0] if len(parts) == 1 else b"".join(parts)

    return decompress


_CODECS: dict[int, Callable[[bytes], bytes]] = {0: bytes, 1: _gzip, 2: _snappy, 3: _streamed("lz4"), 4: _streamed("zstd")}


def compressed(records: bytes, codec: int) -> bytes:
    """Compress the records of a batch.

    :param codec: one of the numbers in ``CODECS``
    """
    return _COMPRESS[codec](records)


def _to_gzip(records: bytes) -> bytes:
    packer = zlib.compressobj(wbits=_GZIP)
    return packer.compress(records) + packer.flush()


def _with_arrow(codec: str) -> Callable[[bytes], bytes]:
    def compress(records: bytes) -> bytes:
        import pyarrow

        return pyarrow.compress(records, codec=codec, asbytes=True)  # type: ignore[no-any-return]

    return compress


_COMPRESS: dict[int, Callable[[bytes], bytes]] = {
    0: bytes,
    1: _to_gzip,
    2: _with_arrow("snappy"),  # one raw block, as librdkafka sends it: snappy-java reads that as well as its own framing
    3: _with_arrow("lz4"),
    4: _with_arrow("zstd"),
}
