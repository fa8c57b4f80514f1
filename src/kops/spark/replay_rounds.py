"""What a replay sends next: batches as they were fetched, or records that are encoded anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from kops.formats.record_batch_copy import columns_of_records, columns_of_table, renewed
from kops.formats.record_batches import MAX_BATCH_BYTES, Columns, Producer, encode, split
from kops.formats.record_columns import Batch, RecordColumns, decode

if TYPE_CHECKING:
    import pyarrow

    from kops.spark.transactions import Encode


@dataclass(frozen=True)
class Payload:
    """One record batch for one partition."""

    topic: str
    partition: int
    records: int
    encode: Encode


class Round(Protocol):
    """Records that follow one another in a partition of the source."""

    @property
    def end(self) -> int:
        """The offset of the source that comes after them."""

    @property
    def records(self) -> int:
        """How many there are."""

    @property
    def size(self) -> int:
        """About how many bytes they take."""

    def payloads(self) -> Iterator[Payload]:
        """Yield the batches to send."""

    def halves(self) -> tuple[Round, ...]:
        """Return both halves; nothing when they cannot be told apart."""

    def first(self, count: int) -> Round:
        """Return the first records."""

    def start(self) -> int:
        """Return the offset of the first record."""


@dataclass(frozen=True)
class Places:
    """Where records that are encoded anew go.

    :param counts: partitions of each topic
    :param by_key: murmur2 of the key says which partition
    :param most: bytes of a batch
    :param codec: that they are compressed by, of ``record_batch_compression.CODECS``
    """

    topic: str
    counts: Mapping[str, int]
    by_key: bool = False
    most: int = MAX_BATCH_BYTES
    codec: int = 0


@dataclass(frozen=True)
class WholeBatch:
    """A batch that goes on as it is."""

    data: bytes
    batch: Batch
    partition: int
    places: Places

    @property
    def end(self) -> int:
        """Return the offset of the source that comes after the records."""
        return self.batch.last_offset + 1

    @property
    def records(self) -> int:
        """Return how many records there are."""
        return self.batch.records

    @property
    def size(self) -> int:
        """Return about how many bytes they take."""
        return self.batch.end - self.batch.at

    def payloads(self) -> Iterator[Payload]:
        """Yield the batches to send."""
        yield Payload(self.places.topic, self.partition, self.batch.records, lambda producer: renewed(self.data, self.batch, producer))

    def decoded(self) -> Decoded:
        """Return its records."""
        return Decoded(decode(self.data, [self.batch]), self.partition, self.end, self.places)

    def halves(self) -> tuple[Round, ...]:
        """Return both halves; nothing when they cannot be told apart."""
        return self.decoded().halves() or ()

    def first(self, count: int) -> Round:
        """Return the first records."""
        return self if count >= self.records else self.decoded().first(count)

    def start(self) -> int:
        """Return the offset of the first record."""
        return self.batch.base_offset


@dataclass(frozen=True)
class Decoded:
    """Records that were decoded in Python."""

    columns: RecordColumns
    partition: int
    end: int
    places: Places

    @property
    def records(self) -> int:
        """Return how many records there are."""
        return len(self.columns)

    @property
    def size(self) -> int:
        """Return about how many bytes they take."""
        lengths = self.columns.headers_at - self.columns.key_at
        return int(lengths.sum())

    def payloads(self) -> Iterator[Payload]:
        """Yield the batches to send."""
        import numpy

        if not self.places.by_key:
            yield from _batches(self.places, self.partition, columns_of_records(self.columns))
            return
        numbers = numpy.asarray(_by_key(self.columns.keys(), self.partition, self.places.counts[self.places.topic]))
        for number in numpy.unique(numbers).tolist():
            yield from _batches(self.places, number, columns_of_records(self.columns.where(numbers == number)))

    def _part(self, start: int, stop: int) -> Decoded:
        end = self.end if stop >= len(self.columns) else int(self.columns.offsets[stop])
        return Decoded(self.columns.where(slice(start, stop)), self.partition, end, self.places)

    def halves(self) -> tuple[Round, ...]:
        """Return both halves; nothing when they cannot be told apart."""
        count = len(self.columns)
        return () if count < 2 else (self._part(0, count // 2), self._part(count // 2, count))  # noqa: PLR2004 - two halves

    def first(self, count: int) -> Round:
        """Return the first records."""
        return self._part(0, count)

    def start(self) -> int:
        """Return the offset of the first record."""
        return int(self.columns.offsets[0])


@dataclass(frozen=True)
class Rows:
    """Rows that Spark made: offset, topic, target_partition, key, value, timestamp_ms, headers."""

    table: pyarrow.Table
    end: int
    places: Places

    @property
    def records(self) -> int:
        """Return how many records there are."""
        return int(self.table.num_rows)

    @property
    def size(self) -> int:
        """Return about how many bytes they take."""
        return int(self.table.nbytes)

    def payloads(self) -> Iterator[Payload]:
        """Yield the batches to send."""
        from dataclasses import replace

        from pyarrow import compute

        for topic in compute.unique(self.table["topic"]).to_pylist():
            of_topic = self.table.filter(compute.equal(self.table["topic"], topic))
            places, count = replace(self.places, topic=topic), self.places.counts[topic]
            keys, source = of_topic["key"].combine_chunks(), of_topic["partition"][0].as_py()
            numbers = _by_key(keys, source, count) if self.places.by_key else of_topic["target_partition"].combine_chunks()
            for number in compute.unique(numbers).to_pylist():
                part = of_topic.filter(compute.equal(numbers, number))
                yield from _batches(places, number, columns_of_table(part))

    def _cut(self, at: int) -> tuple[Round, ...]:
        """Cut where a record of the source ends, as several rows may come of one."""
        import numpy

        offsets = numpy.asarray(self.table["offset"])
        changes = numpy.flatnonzero(numpy.diff(offsets)) + 1
        if not len(changes):
            return ()
        row = int(changes[min(int(numpy.searchsorted(changes, at)), len(changes) - 1)])
        return (Rows(self.table.slice(0, row), int(offsets[row]), self.places), Rows(self.table.slice(row), self.end, self.places))

    def halves(self) -> tuple[Round, ...]:
        """Return both halves; nothing when they cannot be told apart."""
        return self._cut(self.table.num_rows // 2)

    def first(self, count: int) -> Round:
        """Return the first records."""
        end = self.end if count >= self.table.num_rows else int(self.table["offset"][count - 1].as_py()) + 1
        return Rows(self.table.slice(0, count), end, self.places)

    def start(self) -> int:
        """Return the offset of the first record."""
        return int(self.table["offset"][0].as_py())


def _by_key(keys: pyarrow.Array, source: int, count: int) -> pyarrow.Array:
    """Return the partition of each key as the producer's default partitioner does; without a key that of the source."""
    from kops.formats.murmur2_columns import partitions_of

    return partitions_of(keys, count).fill_null(source % count)


def _batches(places: Places, partition: int, columns: Columns) -> Iterator[Payload]:
    for part in split(columns, places.most):
        yield Payload(places.topic, partition, len(part), _encoder(part, places.codec))


def _encoder(columns: Columns, codec: int) -> Encode:
    def encoded(producer: Producer) -> bytes:
        return encode(columns, producer, codec)

    return encoded


def reasons_of(error: Any) -> str:
    """Return what an error of a client says, in one line."""
    return " ".join(str(error).split())[:300] or type(error).__name__
