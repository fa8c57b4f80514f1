"""The 61-byte header of a record batch (magic 2), with a checksum of everything that follows it (``DefaultRecordBatch``)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES = HEADER.size
LENGTH_FROM = 12
"""The length of a batch counts the bytes from here on."""
CRC_FROM = 21
"""The checksum covers everything from the attributes on."""
MAGIC = 2
COMPRESSION, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL = 0x07, 0x08, 0x10, 0x20
"""Bits of the attributes."""
_NO_EPOCH = -1


class UnreadableBatch(ValueError):
    """A batch that is damaged, or in a format older than Kafka 0.11."""


class HugeBatch(Exception):
    """Batches whose decompressed records take more memory than allowed. Unlike for a damaged batch, another reader would not help."""


@dataclass(frozen=True)
class Producer:
    """The producer that writes, by which the broker recognizes batches that it already has (KIP-98).

    :param sequence: number of the first record in this producer's sequence for the partition
    :param transactional: whether the batch belongs to a transaction
    """

    producer_id: int
    epoch: int
    sequence: int
    transactional: bool = False


@dataclass(frozen=True)
class Batch:
    """Position of a record batch in a response, and the fields of its header (``DefaultRecordBatch``).

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
        """Whether it holds a transaction marker instead of records."""
        return bool(self.attributes & CONTROL)

    @property
    def has_gaps(self) -> bool:
        """Whether offsets between its first and its last were removed by compaction."""
        return self.records != self.last_offset - self.base_offset + 1

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)


def framed(records: bytes, count: int, times: tuple[int, int], producer: Producer, codec: int) -> bytes:
    """Return a batch of records, as a producer sends it.

    :param records: encoded, and compressed if ``codec`` is not 0
    :param times: base timestamp, which their deltas are relative to, and maximum timestamp
    """
    import google_crc32c

    length = HEADER_BYTES - LENGTH_FROM + len(records)
    identity = (producer.producer_id, producer.epoch, producer.sequence)
    # the delta of the last offset, then base and maximum timestamp
    fields = (codec | (TRANSACTIONAL if producer.transactional else 0), count - 1, *times, *identity, count)
    # The broker sets the base offset and the leader epoch: they lie before what the checksum covers, so it stays valid.
    tail = HEADER.pack(0, length, _NO_EPOCH, MAGIC, 0, *fields)[CRC_FROM:]
    checksum = google_crc32c.extend(google_crc32c.value(tail), records)
    return HEADER.pack(0, length, _NO_EPOCH, MAGIC, checksum, *fields) + records


def batches_of(data: bytes) -> list[Batch]:
    """Return the complete batches of a Fetch response's records; a truncated last batch is left out.

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
    import google_crc32c

    return bool(google_crc32c.value(data[batch.at + CRC_FROM : batch.end]) == batch.checksum)


MOST = 5
"""Only the first gaps are kept, up to this many."""


@dataclass
class Gaps:
    """Ranges of offsets (first, last), both inclusive, that lack at least one record.

    Aborted records and transaction markers stay in a log that is never compacted, so they leave no gap between its batches.
    """

    found: list[tuple[int, int]] = field(default_factory=list)

    def see(self, batches: Sequence[Batch], start: int, end: int) -> None:
        """Add the gaps within and between consecutive batches.

        :param start: the offset at which the first batch is expected to begin, unless it begins before
        :param end: offsets from here on are ignored
        """
        expected = start
        for batch in batches:
            if batch.base_offset > expected:
                self._add(expected, min(batch.base_offset, end) - 1)
            if batch.has_gaps and batch.base_offset >= start:
                self._add(batch.base_offset, min(batch.last_offset, end - 1))
            expected = batch.last_offset + 1

    def _add(self, first: int, last: int) -> None:
        if first <= last and len(self.found) < MOST:
            self.found.append((first, last))
