"""The stage: what will be appended, and what was there before, as Parquet that a later run or an undo reads."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kops.spark.driver.remote import is_connected
from kops.spark.frames import expression, kept_on_disk
from kops.spark.reading.ranges import TopicRange
from kops.spark.reading.snapshot import Content, added_contents
from kops.spark.reading.source import KafkaSource
from kops.spark.staging.difference import (
    APPENDED,
    HEADER_TYPES,
    HIGH,
    LOW,
    STAGE_COLUMNS,
    all_added,
    compacted_view,
    difference,
    summed,
    to_append,
)
from kops.spark.staging.stage_files import SUMS_SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession


SCHEMA = (
    "partition int, key binary, before_present boolean, before_value binary, before_timestamp bigint,"
    " after_present boolean, after_value binary, after_timestamp bigint, action string"
)


@dataclass(frozen=True)
class StagedPartitions:
    """A stage by changelog partition.

    :param actions: partition -> number of keys that are added, changed, removed, erased
    """

    contents: dict[int, Content]
    actions: dict[int, dict[str, int]]


def write_stage(stage: DataFrame, path: str) -> StagedPartitions:
    """Write the rows of a stage and sum them up.

    On this machine the tasks write the files themselves: Spark's own Parquet writer, and reading its files again for the sums, take 3 s
    more for a million keys, most of it to compile code that is used once. Elsewhere only Spark knows how to reach a path.
    """
    session = stage.sparkSession
    if by_tasks(session, path):
        rows = _written_by_tasks(stage, path)
    else:
        with _observed(stage) as whole:
            write_parquet(whole, path)
        rows = sums_of(session, path)
    return staged_of(rows)


def write_parquet(stage: DataFrame, path: str) -> None:
    """Write the rows of a stage by Spark, which knows how to reach a path."""
    stage.write.mode("overwrite").option("compression", "lz4_raw").parquet(path)


def sums_of(session: SparkSession, path: str, *, headers: bool = False) -> list[Row]:
    """Sum up what a stage has, as it is read again.

    :param headers: the rows have headers
    """
    return summed(to_append(read_stage(session, path, headers=headers)), actions=APPENDED).collect()


def staged_of(rows: Sequence[Row]) -> StagedPartitions:
    """Merge the sums of the parts of a stage (``stage_files.SUMS_SCHEMA``)."""
    actions = {
        number: {name: sum(row[name] for row in rows if row.partition == number) for name in APPENDED}
        for number in {row.partition for row in rows}
    }
    return StagedPartitions(added_contents(rows), actions)


def by_tasks(session: SparkSession, path: str) -> bool:
    """Whether all tasks run on this machine and reach a stage by its path."""
    return not is_connected(session) and (session.conf.get("spark.master") or "").startswith("local") and "://" not in path


@contextmanager
def _observed(stage: DataFrame) -> Iterator[DataFrame]:
    """Make sure that observations of a stage's rows have their counts after the rows were written.

    For a write, Spark Connect 4.0 reports only the last observation, but for a query all of them; so there a query computes and counts the
    rows, and the executors keep them until they are written.
    """
    if not is_connected(stage.sparkSession):
        yield stage
        return
    with kept_on_disk(stage) as kept:
        kept.count()
        yield kept


def read_stage(session: SparkSession, path: str, *, headers: bool = False) -> DataFrame:
    """Return the rows of a stage: ``STAGE_COLUMNS``, with ``HEADER_COLUMNS`` if requested."""
    return session.read.schema(f"{SCHEMA}, {HEADER_TYPES}" if headers else SCHEMA).parquet(path)


def contents_of(records: DataFrame) -> dict[int, Content]:
    """Sum records up: partition, key, value, timestamp, and headers if there are any."""
    return added_contents(summed(records).collect())


def differing_rows(session: SparkSession, path: str, limit: int, where: str) -> list[Row]:
    return read_stage(session, path).where(where).orderBy("partition", "key").limit(limit).collect()


def _written_by_tasks(stage: DataFrame, path: str) -> list[Row]:
    make_folder(path)

    def write(batches: Iterator[Any]) -> Iterator[Any]:
        from kops.spark.staging.stage_files import write_file

        yield from write_file(batches, path)

    hashed = to_append(stage, keep=STAGE_COLUMNS).selectExpr(*STAGE_COLUMNS, "timestamp", f"{HIGH} as high", f"{LOW} as low")
    return hashed.mapInArrow(write, SUMS_SCHEMA).collect()


def make_folder(path: str) -> None:
    """Create the directory of a stage that tasks write, empty."""
    shutil.rmtree(path, ignore_errors=True)
    Path(path).mkdir(parents=True)


def stage_view(kafka: KafkaSource, view: DataFrame, changelog: TopicRange | None, path: str) -> StagedPartitions:
    """Stage the difference between a changelog and a view that it should hold.

    :param view: partition, key, value, timestamp
    :param changelog: what it holds now; None if it is empty
    """
    expected = view.select("partition", "key", "value", "timestamp")
    if changelog is None or not changelog.records:
        return write_stage(all_added(expected), path)
    return write_stage(difference(expected, compacted_view(kafka.read(replace(changelog, headers=True)))), path)


def stage_difference_of(
    kafka: KafkaSource, one: TopicRange, other: TopicRange, path: str, held: Callable[[DataFrame], DataFrame] = compacted_view
) -> StagedPartitions:
    """Stage what one changelog holds and another does not; if their numbers of partitions differ, wherever a key is.

    :param held: what a changelog holds by its log
    """
    views = [held(kafka.read(wanted)) for wanted in (one, other)]
    if len(one.ranges) != len(other.ranges):
        views = [view.selectExpr("0 as partition", "key", "value", "timestamp", "odd") for view in views]
    return write_stage(difference(views[0].where("value is not null"), views[1]), path)


@dataclass(frozen=True)
class Times:
    """Counts of keys by the timestamp of the record that they should have, or that is removed.

    :param earliest: and ``latest``: milliseconds since the epoch
    :param counts: bucket number and action -> keys; all buckets have the same length
    """

    earliest: int
    latest: int
    counts: dict[tuple[int, str], int]


def times_of(session: SparkSession, stage: str, buckets: int) -> Times | None:
    """Return when the keys of a stage changed; None if there are none."""
    rows = read_stage(session, stage).where("action != 'erased'")
    timed = rows.selectExpr("coalesce(after_timestamp, before_timestamp) as time", "action")
    bounds = timed.agg(expression("min(time) as earliest"), expression("max(time) as latest")).collect()[0]
    if bounds.earliest is None:
        return None
    span = bounds.latest - bounds.earliest + 1
    bucket = f"cast(floor((time - {bounds.earliest}) * {buckets} / {span}) as int) as bucket"
    found = timed.selectExpr(bucket, "action").groupBy("bucket", "action").count().collect()
    return Times(bounds.earliest, bounds.latest, {(row["bucket"], row["action"]): row["count"] for row in found})
