"""The stage: what will be appended, and what was there before, as Parquet that a later run or an undo reads again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kops.spark.difference import APPENDED, summed, to_append

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession


@dataclass(frozen=True)
class Content:
    """The records that go to one partition.

    :param high: and ``low``: sum of the hashes of the records, the same in any order
    :param earliest: and ``latest``: timestamps, milliseconds since the epoch
    """

    records: int = 0
    tombstones: int = 0
    high: int = 0
    low: int = 0
    earliest: int = 0
    latest: int = 0

    @property
    def fingerprint(self) -> list[int]:
        """Return what two equal contents have in common, as JSON."""
        return [self.records, self.high, self.low]


@dataclass(frozen=True)
class Staged:
    """A stage by changelog partition.

    :param actions: partition -> how many keys are added, changed, removed, erased
    """

    contents: dict[int, Content]
    actions: dict[int, dict[str, int]]


def write_stage(stage: DataFrame, path: str) -> None:
    """Write the rows of a stage."""
    stage.write.mode("overwrite").option("compression", "lz4_raw").parquet(path)


def read_stage(session: SparkSession, path: str) -> DataFrame:
    """Read a stage back."""
    return session.read.parquet(path)


def contents_of(records: DataFrame) -> dict[int, Content]:
    """Sum records up: partition, key, value, timestamp."""
    return {row.partition: _content(row) for row in summed(records).collect()}


def differing_rows(session: SparkSession, path: str, limit: int) -> list[Row]:
    """Return the first rows of a stage that a compacted view shows, by partition and key."""
    return read_stage(session, path).where("action != 'erased'").orderBy("partition", "key").limit(limit).collect()


def describe_stage(session: SparkSession, path: str) -> Staged:
    """Sum a stage up."""
    rows = summed(to_append(read_stage(session, path)), actions=APPENDED).collect()
    contents = {row.partition: _content(row) for row in rows}
    return Staged(contents, {row.partition: {name: row[name] for name in APPENDED} for row in rows})


def _content(row: Row) -> Content:
    return Content(row.records, row.tombstones, row.high, row.low, row.earliest, row.latest)
