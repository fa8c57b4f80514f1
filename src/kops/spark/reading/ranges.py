"""The offset ranges to read of a topic, and the columns of the result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kops.core.times import ANY_TIME, Times

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

SCHEMA = "key binary, value binary, partition int, offset bigint, timestamp_ms bigint"
COLUMNS = ("key", "value", "partition", "offset", "timestamp_ms")
"""Those of ``SCHEMA``."""
HEADERS_TYPE = "array<struct<key: string, value: binary>>"
HEADERS = f"headers {HEADERS_TYPE}"
SPLIT_RECORDS = 4_000_000
"""Larger partitions are read by several tasks."""


@dataclass(frozen=True)
class TopicRange:
    """What is read of a topic: whole offset ranges, fixed in advance.

    :param ranges: partition -> (first offset, the offset after the last)
    :param read_committed: leave out aborted transactions
    :param headers: read the headers too
    :param split: let several tasks read a large partition
    :param without: partition -> offsets to leave out
    :param times: read the records with these timestamps only
    :param begins: partition -> the offset where the application started to read it, if that was not 0
    """

    topic: str
    ranges: Mapping[int, tuple[int, int]]
    read_committed: bool = False
    headers: bool = False
    split: bool = True
    begins: Mapping[int, int] = field(default_factory=dict)
    without: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    times: Times = ANY_TIME

    @property
    def records(self) -> int:
        """Return the number of offsets in the ranges."""
        return sum(end - start for start, end in self.ranges.values())

    @property
    def trimmed(self) -> dict[int, tuple[int, int]]:
        """Return the ranges that begin after the first offset that the application has read."""
        return {number: (start, end) for number, (start, end) in self.ranges.items() if start > self.begins.get(number, 0)}


def without(rows: DataFrame, offsets: Mapping[int, Iterable[int]]) -> DataFrame:
    """Leave out some offsets of partitions; the order of the others does not change."""
    import numpy

    left_out = {partition: numpy.array(sorted(some), numpy.int64) for partition, some in offsets.items()}

    def keep(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow

        for batch in batches:
            partitions, found = batch.column("partition").to_numpy(), batch.column("offset").to_numpy()
            gone = numpy.zeros(len(found), bool)
            for partition, some in left_out.items():
                gone |= (partitions == partition) & numpy.isin(found, some)
            yield batch.filter(pyarrow.array(~gone)) if gone.any() else batch

    return rows.mapInArrow(keep, rows.schema)
