"""What compresses the records of a batch (``org.apache.kafka.common.record.CompressionType``), the other way round."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

_XERIAL = b"\x82SNAPPY\x00"
_MORE = 0x80  # the bit of a varint's octet that says that more follow


def decompressed(records: bytes, codec: int) -> bytes:
    """Return the records of a batch decompressed.

    :param codec: of the batch's attributes: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd
    :raises ValueError: when that is not possible, or there is no such codec
    """
    if codec not in _CODECS:
        raise ValueError(f"no compression has the number {codec}")
    try:
        return _CODECS[codec](records)
    except (OSError, IndexError, struct.error, zlib.error) as error:
        raise ValueError(f"compression {codec}: {error}") from error


def _gzip(records: bytes) -> bytes:
    return zlib.decompress(records, wbits=31)


def _snappy(records: bytes) -> bytes:
    """Decompress one block, or the frames of snappy-java: a header of 16 bytes, and blocks that say their length."""
    if not records.startswith(_XERIAL):
        return _snappy_block(records)
    parts, at = [], 16
    while at < len(records):
        (length,) = struct.unpack_from(">i", records, at)
        parts.append(_snappy_block(records[at + 4 : at + 4 + length]))
        at += 4 + length
    return b"".join(parts)


def _snappy_block(block: bytes) -> bytes:
    import pyarrow

    size, shift, at = 0, 0, 0
    while True:
        size |= (block[at] & 0x7F) << shift
        if block[at] < _MORE:
            break
        shift, at = shift + 7, at + 1
    return pyarrow.decompress(block, size, codec="snappy", asbytes=True)  # type: ignore[no-any-return]


def _streamed(codec: str) -> Callable[[bytes], bytes]:
    def decompress(records: bytes) -> bytes:
        import pyarrow

        with pyarrow.CompressedInputStream(pyarrow.py_buffer(records), codec) as stream:
            return stream.read()  # type: ignore[no-any-return]

    return decompress


_CODECS: dict[int, Callable[[bytes], bytes]] = {0: bytes, 1: _gzip, 2: _snappy, 3: _streamed("lz4"), 4: _streamed("zstd")}
