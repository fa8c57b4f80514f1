"""What a replay sends next if each record has its own destination: by its key, or by the result of an expression."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from kops.formats.batches.columns import RecordColumns
from kops.formats.batches.copy import columns_of_records, columns_of_table
from kops.formats.batches.encode import Columns, encode, split
from kops.formats.batches.frames import Frames
from kops.spark.replay.slices import NUMBER_BYTES, Destinations, Payload, RecordSlice, Slice, bytes_of, merged_payloads

if TYPE_CHECKING:
    import numpy
    import pyarrow
    from numpy.typing import NDArray

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
    """Records with one destination each."""

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
