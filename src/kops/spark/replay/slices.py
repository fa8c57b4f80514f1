"""What a replay sends next: batches as they were fetched, or records that are encoded again, each for its own destination if need be."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from kops.formats.batches.columns import RecordColumns
from kops.formats.batches.copy import columns_of_records, columns_of_table, renewed
from kops.formats.batches.encode import MAX_BATCH_BYTES, Columns, encode, split
from kops.formats.batches.frames import Frames, frames_of
from kops.formats.batches.header import Batch
from kops.formats.batches.merge import merged, split_frames

if TYPE_CHECKING:
    import numpy
    import pyarrow
    from numpy.typing import NDArray

    from kops.gateways.wire.transactions import Encode


Held = TypeVar("Held", bound="Records")
NUMBER_BYTES = 8
"""Bytes of each number that is kept per record."""


@dataclass(frozen=True)
class Payload:
    topic: str
    partition: int
    records: int
    encode: Encode


class Slice(Protocol):
    """Consecutive records of a partition of the source."""

    @property
    def end(self) -> int:
        """The offset of the source after the last record."""

    @property
    def records(self) -> int:
        """The number of records."""

    @property
    def size(self) -> int:
        """Their approximate size in bytes, including the numbers kept per record, which exceed small records themselves."""

    def payloads(self) -> Iterator[Payload]:
        """Yield the batches to send."""

    def halves(self) -> tuple[Slice, ...]:
        """Return both halves; empty if they cannot be separated."""

    def first(self, count: int) -> Slice:
        """Return the first records."""

    def start(self) -> int:
        """Return the offset of the first record."""


@dataclass(frozen=True)
class Destinations:
    """The destinations of records.

    :param counts: partitions of each topic
    :param by_key: whether murmur2 of the key determines the partition
    :param most: maximum bytes of a batch
    :param codec: compression, one of ``formats.batches.compression.CODECS``
    """

    topic: str
    counts: Mapping[str, int]
    by_key: bool = False
    most: int = MAX_BATCH_BYTES
    codec: int = 0


class Records(Protocol):
    """Records of one partition, in the order of their offsets."""

    def __len__(self) -> int: ...

    @property
    def offsets(self) -> NDArray[numpy.int64]:
        """Their offsets in the source."""

    def where(self: Held, chosen: Any) -> Held:
        """Return the records selected by a mask or a slice."""


@dataclass(frozen=True)
class WholeBatch:
    """A batch that is sent unchanged."""

    data: bytes
    batch: Batch
    partition: int
    destinations: Destinations

    @property
    def end(self) -> int:
        return self.batch.last_offset + 1

    @property
    def records(self) -> int:
        return self.batch.records

    @property
    def size(self) -> int:
        return self.batch.end - self.batch.at

    def payloads(self) -> Iterator[Payload]:
        yield Payload(
            self.destinations.topic, self.partition, self.batch.records, lambda producer: renewed(self.data, self.batch, producer)
        )

    def opened(self) -> MergedSlice:
        return MergedSlice(frames_of(self.data, [self.batch]), self.partition, self.end, self.destinations)

    def halves(self) -> tuple[Slice, ...]:
        return self.opened().halves()

    def first(self, count: int) -> Slice:
        return self if count >= self.records else self.opened().first(count)

    def start(self) -> int:
        return self.batch.base_offset


@dataclass(frozen=True)
class RecordSlice(ABC, Generic[Held]):
    """Records from batches of a partition, which can be cut anywhere."""

    held: Held
    partition: int
    end: int
    destinations: Destinations

    @property
    def records(self) -> int:
        return len(self.held)

    @property
    @abstractmethod
    def size(self) -> int: ...

    @abstractmethod
    def payloads(self) -> Iterator[Payload]: ...

    def _part(self, start: int, stop: int) -> Slice:
        end = self.end if stop >= len(self.held) else int(self.held.offsets[stop])
        return replace(self, held=self.held.where(slice(start, stop)), end=end)

    def halves(self) -> tuple[Slice, ...]:
        count = len(self.held)
        return () if count < 2 else (self._part(0, count // 2), self._part(count // 2, count))  # noqa: PLR2004 - two halves

    def first(self, count: int) -> Slice:
        return self._part(0, count)

    def start(self) -> int:
        return int(self.held.offsets[0])


@dataclass(frozen=True)
class MergedSlice(RecordSlice[Frames]):
    """Records of several batches that are sent as one."""

    @property
    def size(self) -> int:
        return bytes_of(self.held)

    def payloads(self) -> Iterator[Payload]:
        return merged_payloads(self.held, self.destinations, self.destinations.topic, self.partition)


def bytes_of(frames: Frames) -> int:
    """Return the approximate size of records in bytes, including the numbers kept per record."""
    return int((frames.ends - frames.at).sum()) + 4 * NUMBER_BYTES * len(frames)


def merged_payloads(frames: Frames, destinations: Destinations, topic: str, partition: int) -> Iterator[Payload]:
    for part in split_frames(frames, destinations.most):
        yield Payload(topic, partition, len(part), partial(merged, part, codec=destinations.codec))


_BITS = 32


@dataclass(frozen=True)
class RoutedFrames:
    """Records, each with its destination.

    :param topics: index into ``Destinations.counts``
    """

    frames: Frames
    topics: NDArray[numpy.int64]
    numbers: NDArray[numpy.int64]

    def __len__(self) -> int:
        return len(self.frames)

    @property
    def offsets(self) -> NDArray[numpy.int64]:
        return self.frames.offsets

    def where(self, chosen: Any) -> RoutedFrames:
        return RoutedFrames(self.frames.where(chosen), self.topics[chosen], self.numbers[chosen])


@dataclass(frozen=True)
class RoutedSlice(RecordSlice[RoutedFrames]):
    @property
    def size(self) -> int:
        return bytes_of(self.held.frames) + 2 * NUMBER_BYTES * len(self.held)

    def payloads(self) -> Iterator[Payload]:
        import numpy

        names, destinations = list(self.destinations.counts), self.held.topics << _BITS | self.held.numbers
        for place in numpy.unique(destinations).tolist():
            chosen = destinations == place
            frames = self.held.frames if chosen.all() else self.held.frames.where(chosen)
            yield from merged_payloads(frames, self.destinations, names[place >> _BITS], place & (1 << _BITS) - 1)


@dataclass(frozen=True)
class KeyedSlice(RecordSlice[RecordColumns]):
    """Records whose destinations follow from their keys."""

    @property
    def size(self) -> int:
        return int((self.held.headers_at - self.held.key_at).sum()) + 7 * NUMBER_BYTES * len(self.held)

    def payloads(self) -> Iterator[Payload]:
        import numpy

        numbers = numpy.asarray(by_key(self.held.keys(), self.partition, self.destinations.counts[self.destinations.topic]))
        for number in numpy.unique(numbers).tolist():
            yield from _encoded(columns_of_records(self.held.where(numbers == number)), self.destinations, self.destinations.topic, number)


@dataclass(frozen=True)
class RowSlice:
    """Rows made by Spark: offset, topic, target_partition, key, value, timestamp_ms, headers."""

    table: pyarrow.Table
    end: int
    destinations: Destinations

    @property
    def records(self) -> int:
        return int(self.table.num_rows)

    @property
    def size(self) -> int:
        return int(self.table.nbytes)

    def payloads(self) -> Iterator[Payload]:
        from pyarrow import compute

        for topic in compute.unique(self.table["topic"]).to_pylist():
            of_topic = self.table.filter(compute.equal(self.table["topic"], topic))
            count = self.destinations.counts[topic]
            keys, source = of_topic["key"].combine_chunks(), of_topic["partition"][0].as_py()
            numbers = by_key(keys, source, count) if self.destinations.by_key else of_topic["target_partition"].combine_chunks()
            for number in compute.unique(numbers).to_pylist():
                part = of_topic.filter(compute.equal(numbers, number))
                yield from _encoded(columns_of_table(part), self.destinations, topic, number)

    def _cut(self, at: int) -> tuple[Slice, ...]:
        """Cut where a record of the source ends, as several rows may come from one."""
        import numpy

        offsets = numpy.asarray(self.table["offset"])
        changes = numpy.flatnonzero(numpy.diff(offsets)) + 1
        if not len(changes):
            return ()
        row = int(changes[min(int(numpy.searchsorted(changes, at)), len(changes) - 1)])
        return (
            RowSlice(self.table.slice(0, row), int(offsets[row]), self.destinations),
            RowSlice(self.table.slice(row), self.end, self.destinations),
        )

    def halves(self) -> tuple[Slice, ...]:
        return self._cut(self.table.num_rows // 2)

    def first(self, count: int) -> Slice:
        end = self.end if count >= self.table.num_rows else int(self.table["offset"][count - 1].as_py()) + 1
        return RowSlice(self.table.slice(0, count), end, self.destinations)

    def start(self) -> int:
        return int(self.table["offset"][0].as_py())


def by_key(keys: pyarrow.Array, source: int, count: int) -> pyarrow.Array:
    """Return the partition of each key, as the producer's default partitioner does; without a key, that of the source."""
    from kops.formats.murmur2_columns import partitions_of

    return partitions_of(keys, count).fill_null(source % count)


def _encoded(columns: Columns, destinations: Destinations, topic: str, partition: int) -> Iterator[Payload]:
    for part in split(columns, destinations.most):
        yield Payload(topic, partition, len(part), partial(encode, part, codec=destinations.codec))
