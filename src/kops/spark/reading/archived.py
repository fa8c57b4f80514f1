"""Topics whose oldest records come from an archive: first its rows, then the topic's own, without gap or overlap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kops.spark.reading.archive import read_archive
from kops.spark.reading.ranges import HEADERS, SCHEMA, TopicRange

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILES = "*.parquet"


@dataclass(frozen=True)
class ArchivedTopic:
    """The part of a topic that is read from an archive.

    :param paths: of the archive's runs (``kops.spark.reading.archive``)
    :param ends: partition -> the offset after the last that is in the archive; only partitions for which it is used
    """

    topic: str
    paths: tuple[str, ...]
    ends: Mapping[int, int]

    def divided(self, wanted: TopicRange) -> tuple[TopicRange, TopicRange]:
        """Return what is read from the archive, and what from the topic after it."""
        old, tail = {}, {}
        for partition, (start, end) in wanted.ranges.items():
            cut = max(start, min(end, self.ends.get(partition, start)))
            old[partition], tail[partition] = (start, cut), (cut, end)
        return replace(wanted, ranges=old), replace(wanted, ranges=tail)

    def rows(self, session: SparkSession, old: TopicRange) -> DataFrame:
        """Return the archive's records of these ranges in the format of ``KafkaSource.read``, but unordered."""
        rows = read_archive(session, self.paths).where(within(old.ranges))
        names = [column.split()[0] for column in SCHEMA.split(", ")]
        return rows.select(*names, *([HEADERS.split()[0]] if old.headers else []))


def within(ranges: Mapping[int, tuple[int, int]]) -> str:
    """Return SQL of whether a record is in one of these ranges."""
    several = [
        f"(partition = {partition} and offset >= {start} and offset < {end})"
        for partition, (start, end) in sorted(ranges.items())
        if start < end
    ]
    return " or ".join(several) or "false"


def file_bytes(session: SparkSession, paths: Sequence[str]) -> int:
    """Return the size of an archive's files, without reading them."""
    from pyspark.sql import functions

    total = 0
    for path in paths:
        files = session.read.format("binaryFile").option("recursiveFileLookup", "true").option("pathGlobFilter", _FILES).load(path)
        total += files.agg(functions.expr("coalesce(sum(length), 0) as bytes")).collect()[0]["bytes"]
    return total


def from_time_on(rows: DataFrame, ends: Mapping[int, int], milliseconds: int) -> dict[int, int]:
    """Return the first offset with this timestamp or a later one, for partitions that have one.

    :param rows: of an archive
    :param ends: partition -> the offset up to which to search
    """
    from pyspark.sql import functions

    found = rows.where(within({partition: (0, end) for partition, end in ends.items()})).where(f"timestamp_ms >= {milliseconds}")
    return {row.partition: row["first"] for row in found.groupBy("partition").agg(functions.expr("min(offset) as first")).collect()}
