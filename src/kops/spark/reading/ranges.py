"""What is read of a topic, and the columns in which it comes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

SCHEMA = "key binary, value binary, partition int, offset bigint, timestamp_ms bigint"
HEADERS = "headers array<struct<key: string, value: binary>>"
SPLIT_RECORDS = 4_000_000
"""Bigger partitions are read by several tasks."""


@dataclass(frozen=True)
class TopicRange:
    """What is read of a topic: whole offset ranges, decided before.

    :param ranges: partition -> (first offset, the offset after the last)
    :param read_committed: leave out what transactions aborted
    :param headers: read the headers too
    :param split: let big partitions be read by several tasks
    :param without: partition -> offsets that are left out
    :param begins: partition -> where the application began to read it, of those where that was not at offset 0
    """

    topic: str
    ranges: Mapping[int, tuple[int, int]]
    read_committed: bool = False
    headers: bool = False
    split: bool = True
    begins: Mapping[int, int] = field(default_factory=dict)
    without: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    @property
    def records(self) -> int:
        """Return how many offsets the ranges have."""
        return sum(end - start for start, end in self.ranges.values())

    @property
    def trimmed(self) -> dict[int, tuple[int, int]]:
        """Return the ranges that begin after what the application has read first."""
        return {number: (start, end) for number, (start, end) in self.ranges.items() if start > self.begins.get(number, 0)}


def without(rows: DataFrame, offsets: Mapping[int, Iterable[int]]) -> DataFrame:
    """Leave some offsets of partitions out, and the order of the others as it is."""
    import numpy

    left_out = {partition: numpy.array(sorted(some), numpy.int64) for partition, some in offsets.items()}

    def keep(batches: Iterable[pyarrow.RecordBatch]) -> Iterable[pyarrow.RecordBatch]:
        import pyarrow

        for batch in batches:
            partitions, found = batch.column("partition").to_numpy(), batch.column("offset").to_numpy()
            gone = numpy.zeros(len(found), bool)
            for partition, some in left_out.items():
                gone |= (partitions == partition) & numpy.isin(found, some)
            yield batch.filter(pyarrow.array(~gone)) if gone.any() else batch

    return rows.mapInArrow(keep, rows.schema)
