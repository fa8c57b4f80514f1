"""What a replay sends next: batches as they were fetched, or records that are encoded anew."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from kops.formats.record_batch_copy import columns_of_records, columns_of_table, renewed
from kops.formats.record_batch_header import Batch
from kops.formats.record_batch_merge import merged, split_frames
from kops.formats.record_batches import MAX_BATCH_BYTES, Columns, encode, split
from kops.formats.record_columns import RecordColumns
from kops.formats.record_frames import Frames, frames_of

if TYPE_CHECKING:
    import numpy
    import pyarrow
    from numpy.typing import NDArray

    from kops.spark.transactions import Encode

Held = TypeVar("Held", "Frames", "RecordColumns", "RoutedFrames")
_BITS = 32
_NUMBER = 8
"""Bytes of each number that is noted of a record."""


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
        """About how many bytes they take, what is noted of each included: of small records that is more than themselves."""

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

    def opened(self) -> Merged:
        """Return its records."""
        return Merged(frames_of(self.data, [self.batch]), self.partition, self.end, self.places)

    def halves(self) -> tuple[Round, ...]:
        """Return both halves; nothing when they cannot be told apart."""
        return self.opened().halves() or ()

    def first(self, count: int) -> Round:
        """Return the first records."""
        return self if count >= self.records else self.opened().first(count)

    def start(self) -> int:
        """Return the offset of the first record."""
        return self.batch.base_offset


@dataclass(frozen=True)
class _Cut(ABC, Generic[Held]):
    """Records of batches of a partition, which can be cut anywhere."""

    held: Held
    partition: int
    end: int
    places: Places

    @property
    def records(self) -> int:
        """Return how many records there are."""
        return len(self.held)

    @property
    @abstractmethod
    def size(self) -> int:
        """Return about how many bytes they take."""

    @abstractmethod
    def payloads(self) -> Iterator[Payload]:
        """Yield the batches to send."""

    def _part(self, start: int, stop: int) -> Round:
        end = self.end if stop >= len(self.held) else int(self.held.offsets[stop])
        return replace(self, held=self.held.where(slice(start, stop)), end=end)

    def halves(self) -> tuple[Round, ...]:
        """Return both halves; nothing when they cannot be told apart."""
        count = len(self.held)
        return () if count < 2 else (self._part(0, count // 2), self._part(count // 2, count))  # noqa: PLR2004 - two halves

    def first(self, count: int) -> Round:
        """Return the first records."""
        return self._part(0, count)

    def start(self) -> int:
        """Return the offset of the first record."""
        return int(self.held.offsets[0])


@dataclass(frozen=True)
class Merged(_Cut[Frames]):
    """Records of several batches that go on as one."""

    @property
    def size(self) -> int:
        """Return about how many bytes they take."""
        return _bytes_of(self.held)

    def payloads(self) -> Iterator[Payload]:
        """Yield the batches to send."""
        return _merged(self.held, self.places, self.places.topic, self.partition)


@dataclass(frozen=True)
class RoutedFrames:
    """Records, each with where it goes.

    :param topics: which of ``Places.counts``
    """

    frames: Frames
    topics: NDArray[numpy.int64]
    numbers: NDArray[numpy.int64]

    def __len__(self) -> int:
        return len(self.frames)

    @property
    def offsets(self) -> NDArray[numpy.int64]:
        """Return where they stand in the source."""
        return self.frames.offsets

    def where(self, chosen: Any) -> RoutedFrames:
        """Return the records that a mask or a slice chooses."""
        return RoutedFrames(self.frames.where(chosen), self.topics[chosen], self.numbers[chosen])


@dataclass(frozen=True)
class Routed(_Cut[RoutedFrames]):
    """Records that go each to its own place."""

    @property
    def size(self) -> int:
        """Return about how many bytes they take."""
        return _bytes_of(self.held.frames) + 2 * _NUMBER * len(self.held)

    def payloads(self) -> Iterator[Payload]:
        """Yield the batches to send."""
        import numpy

        names, places = list(self.places.counts), self.held.topics << _BITS | self.held.numbers
        for place in numpy.unique(places).tolist():
            chosen = places == place
            frames = self.held.frames if chosen.all() else self.held.frames.where(chosen)
            yield from _merged(frames, self.places, names[place >> _BITS], place & (1 << _BITS) - 1)


@dataclass(frozen=True)
class ByKey(_Cut[RecordColumns]):
    """Records that go where their keys say."""

    @property
    def size(self) -> int:
        """Return about how many bytes they take."""
        return int((self.held.headers_at - self.held.key_at).sum()) + 7 * _NUMBER * len(self.held)

    def payloads(self) -> Iterator[Payload]:
        """Yield the batches to send."""
        import numpy

        numbers = numpy.asarray(by_key(self.held.keys(), self.partition, self.places.counts[self.places.topic]))
        for number in numpy.unique(numbers).tolist():
            yield from _encoded(columns_of_records(self.held.where(numbers == number)), self.places, self.places.topic, number)


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
        from pyarrow import compute

        for topic in compute.unique(self.table["topic"]).to_pylist():
            of_topic = self.table.filter(compute.equal(self.table["topic"], topic))
            count = self.places.counts[topic]
            keys, source = of_topic["key"].combine_chunks(), of_topic["partition"][0].as_py()
            numbers = by_key(keys, source, count) if self.places.by_key else of_topic["target_partition"].combine_chunks()
            for number in compute.unique(numbers).to_pylist():
                part = of_topic.filter(compute.equal(numbers, number))
                yield from _encoded(columns_of_table(part), self.places, topic, number)

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


def by_key(keys: pyarrow.Array, source: int, count: int) -> pyarrow.Array:
    """Return the partition of each key as the producer's default partitioner does; without a key that of the source."""
    from kops.formats.murmur2_columns import partitions_of

    return partitions_of(keys, count).fill_null(source % count)


def _bytes_of(frames: Frames) -> int:
    return int((frames.ends - frames.at).sum()) + 4 * _NUMBER * len(frames)


def _merged(frames: Frames, places: Places, topic: str, partition: int) -> Iterator[Payload]:
    for part in split_frames(frames, places.most):
        yield Payload(topic, partition, len(part), partial(merged, part, codec=places.codec))


def _encoded(columns: Columns, places: Places, topic: str, partition: int) -> Iterator[Payload]:
    for part in split(columns, places.most):
        yield Payload(topic, partition, len(part), partial(encode, part, codec=places.codec))


def reasons_of(error: Any) -> str:
    """Return what an error of a client says, in one line."""
    return " ".join(str(error).split())[:300] or type(error).__name__
