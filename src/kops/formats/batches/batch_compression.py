"""Compresses the records of a batch (``org.apache.kafka.common.record.CompressionType``) so that every client reads them."""

from __future__ import annotations

import zlib
from collections.abc import Callable

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
"""Numbers of a batch's attributes, by the name that ``compression.type`` has."""

_GZIP = 31  # zlib's way to say: with gzip's header


def compressed(records: bytes, codec: int) -> bytes:
    """Return the records of a batch compressed.

    :param codec: one of ``CODECS``
    """
    return _CODECS[codec](records)


def _gzip(records: bytes) -> bytes:
    packer = zlib.compressobj(wbits=_GZIP)
    return packer.compress(records) + packer.flush()


def _arrow(codec: str) -> Callable[[bytes], bytes]:
    def compress(records: bytes) -> bytes:
        import pyarrow

        return pyarrow.compress(records, codec=codec, asbytes=True)  # type: ignore[no-any-return]

    return compress


_CODECS: dict[int, Callable[[bytes], bytes]] = {0: bytes, 1: _gzip, 2: _arrow("snappy"), 3: _arrow("lz4"), 4: _arrow("zstd")}
