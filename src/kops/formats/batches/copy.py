"""Copies record batches without decoding them: only the producer fields and the checksum are rewritten.

The broker's ``LogValidator`` determines which batches allow this: no gaps between offsets, no LogAppendTime, and no attributes other than
compression and transactional. All others are decoded and re-encoded.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

from kops.formats.batches.columns import RecordColumns
from kops.formats.batches.compression import TooManyBytes, decompressed
from kops.formats.batches.encode import Columns, columns_of, sections_of_columns, sections_of_lists
from kops.formats.batches.header import COMPRESSION, HEADER_BYTES, TRANSACTIONAL, Batch, HugeBatch, Producer, framed

if TYPE_CHECKING:
    import pyarrow

_WORD = 0xFFFF_FFFF_FFFF_FFFF


def can_go_on(batch: Batch) -> bool:
    """Whether a broker accepts the batch from a producer once its producer fields are replaced."""
    return not batch.has_gaps and not batch.attributes & ~(COMPRESSION | TRANSACTIONAL)


def is_compressed(batch: Batch) -> bool:
    return bool(batch.attributes & COMPRESSION)


def renewed(data: bytes, batch: Batch, producer: Producer) -> bytes:
    """Return the batch with this producer's fields; its records are unchanged."""
    records, times = data[batch.at + HEADER_BYTES : batch.end], (batch.base_timestamp, batch.max_timestamp)
    return framed(records, batch.records, times, producer, batch.attributes & COMPRESSION)


def fingerprint(data: bytes, batch: Batch, *, inflated: bool = False) -> int:
    """Return a 64-bit fingerprint of a batch's records and base timestamp, whatever its producer and its offsets.

    It consists of two checksums with different polynomials. On any machine they cost less than a cryptographic hash, and forgery is not a
    concern here.

    :param inflated: take the decompressed records, which stay the same if a broker recompresses them
    """
    import google_crc32c

    records, codec = data[batch.at + HEADER_BYTES : batch.end], batch.attributes & COMPRESSION
    try:
        content = decompressed(records, codec) if inflated and codec else records
    except TooManyBytes as error:
        raise HugeBatch(f"the batch at offset {batch.base_offset} cannot be read: {error}") from error
    more = struct.pack(">qi", batch.base_timestamp, batch.records)
    high: int = google_crc32c.extend(google_crc32c.value(content), more)
    return high << 32 | zlib.crc32(more, zlib.crc32(content))


def added(one: int, other: int) -> int:
    return (one + other) & _WORD


def columns_of_records(records: RecordColumns) -> Columns:
    """Return decoded records as columns to be re-encoded."""
    return columns_of(records.keys(), records.values(), records.timestamps, sections_of_columns(records))


def columns_of_table(table: pyarrow.Table) -> Columns:
    """Return the rows of an Arrow table (key, value, timestamp_ms, headers) as columns to be encoded."""
    keys, values, times, headers = (table.column(name).combine_chunks() for name in ("key", "value", "timestamp_ms", "headers"))
    return columns_of(keys, values, times, sections_of_lists(headers))
