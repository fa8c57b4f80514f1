"""Record batches that go on as they are: only who writes them and their checksum are rewritten.

``LogValidator`` of the broker says which may: offsets without gaps, no time of appending, and nothing in the attributes but the
compression and the transaction. All others are decoded and encoded again.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Any

from kops.formats.batches.columns import RecordColumns
from kops.formats.batches.compression import TooManyBytes, decompressed
from kops.formats.batches.encode import Columns, columns_of
from kops.formats.batches.header import COMPRESSION, HEADER_BYTES, TRANSACTIONAL, Batch, HugeBatch, Producer, framed
from kops.formats.batches.headers import sections_of_columns

if TYPE_CHECKING:
    import pyarrow

_WORD = 0xFFFF_FFFF_FFFF_FFFF


def can_go_on(batch: Batch) -> bool:
    """Tell whether a broker takes a batch as a producer's, once the producer's fields are renewed."""
    return not batch.has_gaps and not batch.attributes & ~(COMPRESSION | TRANSACTIONAL)


def is_compressed(batch: Batch) -> bool:
    """Tell whether the records of a batch are compressed."""
    return bool(batch.attributes & COMPRESSION)


def renewed(data: bytes, batch: Batch, producer: Producer) -> bytes:
    """Return a batch as this producer's, its records untouched."""
    records, times = data[batch.at + HEADER_BYTES : batch.end], (batch.base_timestamp, batch.max_timestamp)
    return framed(records, batch.records, times, producer, batch.attributes & COMPRESSION)


def fingerprint(data: bytes, batch: Batch, *, inflated: bool = False) -> int:
    """Return 64 bits of what a batch says, whoever wrote it and wherever it stands: its records, and the time that theirs count from.

    They are two checksums of different polynomials, which on any machine cost less than a hash against forgers, whom there are none of.

    :param inflated: of its records decompressed, which stay the same where a broker recompresses them
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
    """Return the sum of two fingerprints, which is the same in any order."""
    return (one + other) & _WORD


def columns_of_records(records: RecordColumns) -> Columns:
    """Return decoded records as they are encoded again."""
    columns = columns_of(records.keys(), records.values(), records.timestamps)
    return with_headers(columns, sections_of_columns(records))


def with_headers(columns: Columns, sections: tuple[Any, Any] | None) -> Columns:
    """Return records with their headers."""
    from dataclasses import replace

    return columns if sections is None else replace(columns, header_bytes=sections[0], headers=sections[1])


def columns_of_table(table: pyarrow.Table) -> Columns:
    """Return the rows of an Arrow table (key, value, timestamp_ms, headers) as they are encoded."""
    from kops.formats.batches.headers import sections_of_lists

    parts = (table.column(name).combine_chunks() for name in ("key", "value", "timestamp_ms"))
    return with_headers(columns_of(*parts), sections_of_lists(table.column("headers")))
