"""How a record batch (magic 2) begins: a header of 61 bytes, of which a checksum covers what follows it (``DefaultRecordBatch``)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES = HEADER.size
LENGTH_FROM = 12
"""The length of a batch counts what comes from here on."""
CRC_FROM = 21
"""The checksum covers everything from the attributes on."""
MAGIC = 2
COMPRESSION, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL = 0x07, 0x08, 0x10, 0x20
"""Of the attributes."""
_NO_EPOCH = -1


class UnreadableBatch(ValueError):
    """A batch that is damaged, or of a format before Kafka 0.11."""


class HugeBatch(Exception):
    """Batches whose records, decompressed, take more memory than they may. Unlike with one that is damaged, no other reader does better."""


@dataclass(frozen=True)
class Producer:
    """Who writes, for the broker's recognition of batches that it has already (KIP-98).

    :param sequence: number of the first record in this producer's sequence for the partition
    :param transactional: what is written belongs to a transaction
    """

    producer_id: int
    epoch: int
    sequence: int
    transactional: bool = False


@dataclass(frozen=True)
class Batch:
    """Where a record batch stands in a response, and what its header says (``DefaultRecordBatch``).

    :param at: position of its first byte
    :param end: position after its last byte
    """

    at: int
    end: int
    base_offset: int
    attributes: int
    last_offset: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    records: int
    checksum: int

    @property
    def is_control(self) -> bool:
        """Whether it holds a transaction's marker instead of records."""
        return bool(self.attributes & CONTROL)

    @property
    def has_gaps(self) -> bool:
        """Whether offsets between its first and its last were removed by compaction."""
        return self.records != self.last_offset - self.base_offset + 1

    @property
    def is_transactional(self) -> bool:
        """Whether it belongs to a transaction."""
        return bool(self.attributes & TRANSACTIONAL)


def framed(records: bytes, count: int, times: tuple[int, int], producer: Producer, codec: int = 0) -> bytes:
    """Return a batch of records, as a producer sends it.

    :param records: laid out, and compressed where ``codec`` is not 0
    :param times: that which theirs count from, and the latest
    """
    import google_crc32c

    length = HEADER_BYTES - LENGTH_FROM + len(records)
    identity = (producer.producer_id, producer.epoch, producer.sequence)
    fields = (codec | (TRANSACTIONAL if producer.transactional else 0), count - 1, *times, *identity, count)
    tail = HEADER.pack(0, length, _NO_EPOCH, MAGIC, 0, *fields)[CRC_FROM:]
    checksum = google_crc32c.extend(google_crc32c.value(tail), records)
    return HEADER.pack(0, length, _NO_EPOCH, MAGIC, checksum, *fields) + records


def batches_of(data: bytes) -> list[Batch]:
    """Return the whole batches of a Fetch response's records; the last may be cut off, and is left out.

    :raises UnreadableBatch: for a format before magic 2
    """
    found, at, size = [], 0, len(data)
    while at + HEADER_BYTES <= size:
        base, length, _, magic, checksum, attributes, last, first_ms, max_ms, producer, _, _, count = HEADER.unpack_from(data, at)
        if magic != MAGIC:
            raise UnreadableBatch(f"the batch at offset {base} has the message format {magic}, older than Kafka 0.11")
        end = at + LENGTH_FROM + length
        if end > size:
            break
        found.append(Batch(at, end, base, attributes, base + last, first_ms, max_ms, producer, count, checksum))
        at = end
    return found


def is_sound(data: bytes, batch: Batch) -> bool:
    """Whether the checksum of a batch is correct."""
    import google_crc32c

    return bool(google_crc32c.value(data[batch.at + CRC_FROM : batch.end]) == batch.checksum)
