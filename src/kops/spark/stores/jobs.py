"""The jobs that commands run: compute a store, compare it with its changelog, stage the difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kops.core.statefile import StateFile, Store
from kops.core.statefile.models import KEY_VALUE, PLAIN, SESSION, SLIDING, TABLES, VERSIONED, WINDOW
from kops.core.statefile.sources import WALL_CLOCK
from kops.spark.columns.partial_aggregates import can_aggregate_in_tasks
from kops.spark.columns.partial_windows import can_aggregate_windows_in_tasks
from kops.spark.columns.whole_partitions import FallBack, reason_against_tasks, stage_whole_partitions
from kops.spark.driver.observing import by_partition, counts_by_partition, watched
from kops.spark.frames import expression
from kops.spark.job import Job, ReadCounts
from kops.spark.reading.ranges import TopicRange
from kops.spark.reading.snapshot import read_snapshot
from kops.spark.reading.source import KafkaSource
from kops.spark.staging.difference import all_added, compacted_view, difference
from kops.spark.staging.stage import StagedPartitions, write_stage
from kops.spark.stores.prepare import ExpressionPlace, decoded_records, timed_records
from kops.spark.stores.streams import merged_view, partial_aggregates_view, stream_view
from kops.spark.stores.tables_view import tables_view
from kops.spark.stores.versioned import versioned_view
from kops.spark.stores.views import View
from kops.spark.stores.windows_view import partial_windows_view, windowed_view
from kops.spark.windows.keys import suffix_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, kw_only=True)
class Counts(ReadCounts):
    """What was seen while a store was computed, and the staged difference to its changelog.

    :param headers: staged records have headers
    """

    staged: StagedPartitions
    headers: bool = False


VIEWS: Mapping[str, Callable[[KafkaSource, Job], View]] = {
    KEY_VALUE: stream_view,
    PLAIN: stream_view,
    TABLES: tables_view,
    VERSIONED: versioned_view,
    WINDOW: windowed_view,
    SLIDING: windowed_view,
    SESSION: windowed_view,
}
"""Return the view of a store, which is computed when its rows are read; by the type that its state file declares."""


def stage_difference(kafka: KafkaSource, job: Job, path: str) -> Counts:
    """Compute a store and stage the difference to its changelog: as columns by partition, else in Spark SQL (``reason_for_sql``).

    :raises UndecodableInput: naming the first records that are not in the declared formats; whatever was staged does not count
    """
    try:
        return _computed(kafka, job, path)
    except Exception:
        if kafka.batches is None or not kafka.batches.met_unreadable:
            raise
        return _computed(replace(kafka, batches=None), job, path)


def reason_for_sql(kafka: KafkaSource, job: Job, path: str) -> str | None:
    """Return why Spark SQL computes a store; None if tasks compute its partitions as columns.

    Even then Spark SQL does, where a task leaves the store to it for what it meets in the data (``whole_partitions.FallBack``).
    What Spark SQL reads are the records, or what tasks have made of them (``_view_of_reduced``).
    """
    if kafka.batches is None:
        return "whole record batches cannot be read: by the connection's settings, or where Spark runs"
    if job.base is not None:
        return "it continues from a snapshot"
    if kafka.has_archived(job.sources):
        return "an archive has a part of its input"
    if job.held:
        return "a snapshot stands for its changelog"
    return reason_against_tasks(kafka.batches, job, path)


def _computed(kafka: KafkaSource, job: Job, path: str) -> Counts:
    left = None
    if kafka.batches is not None and reason_for_sql(kafka, job, path) is None:
        found = stage_whole_partitions(kafka.batches, job, path)
        if not isinstance(found, FallBack):
            staged, seen = found
            return Counts(**vars(seen), staged=staged)
        left = found
    reduced = None if left is FallBack.UNFIT else _view_of_reduced(kafka, job)
    if reduced is not None:
        counts = _in_sql(kafka, job, path, reduced)
        if not counts.void:
            return counts
    return _in_sql(kafka, job, path, _view_of_records(kafka, job))


def _view_of_reduced(kafka: KafkaSource, job: Job) -> View | None:
    """Return the view of a store of which Spark SQL reads what tasks have made of their records; None if it must read the records.

    Spark SQL reads what tasks made on clusters, where a snapshot stands for the changelog, where a partition outgrows a task, and for
    tables of tables. That buys much of the computation's CPU time: of a million records, in a warm session, a sum of few keys takes 3.4 s
    instead of 4.8 s, 18,000 windows 3.5 s instead of 8.7 s, 651,000 windows 9.4 s instead of 13.8 s, a join of two tables 4.7 s instead of
    11.7 s. Only a sum of 632,000 keys takes as much (6.7 s and 6.5 s).
    """
    batches = kafka.batches
    if batches is None or job.base is not None or kafka.has_archived(job.sources):
        return None
    if job.store.type == TABLES:
        return tables_view(kafka, job)
    if job.store.type == KEY_VALUE and can_aggregate_in_tasks(job.store):
        return partial_aggregates_view(batches, job)
    if job.source.records and can_aggregate_windows_in_tasks(job.store):
        return partial_windows_view(kafka, batches, job)
    return None


def _view_of_records(kafka: KafkaSource, job: Job) -> View:
    view_of = merged_view if job.others and job.store.type == KEY_VALUE else VIEWS[job.store.type]
    return view_of(replace(kafka, batches=None), job)


def _in_sql(kafka: KafkaSource, job: Job, path: str, view: View) -> Counts:
    try:
        if job.held or job.changelog.records:
            found, of_found = watched(_held(kafka, job, view), {"unrestorable": f"count_if({_is_unrestorable(job.store)})"})
            held, of_held = watched(view.live(found), {"live": by_partition("value is not null", len(job.changelog.ranges))})
            staged = write_stage(difference(view.rows, held, empty=view.empty), path)
            seen = replace(view.seen(), live=counts_by_partition(of_held.get["live"]), unrestorable=of_found.get["unrestorable"])
        else:
            staged = write_stage(all_added(view.rows), path)
            seen = view.seen()
    finally:
        view.done()
    return Counts(**vars(seen), staged=staged)


def _is_unrestorable(store: Store) -> str:
    shortest = suffix_of(store.window) if store.window else 0
    return f"length(key) < {shortest}" if shortest else "false"


def _held(kafka: KafkaSource, job: Job, view: View) -> DataFrame:
    """Return what the changelog holds now, or held when a snapshot was taken of it."""
    if job.held:
        rows = read_snapshot(kafka.session, job.held)
        return rows.selectExpr("partition", "key", "value", "timestamp", "coalesce(size(headers) > 0, false) as odd")
    return view.held() if view.held else compacted_view(kafka.newest(job.changelog))


def partition_times(kafka: KafkaSource, wanted: TopicRange, state_file: StateFile, store: Store) -> dict[int, int]:
    """Return the greatest timestamp of every partition that has records, in milliseconds since the epoch.

    :param store: a store that has this as its first topic
    """
    if store.source.timestamp == WALL_CLOCK:
        return {}
    records = replace(wanted, headers=store.source.needs_headers)
    rows = (
        timed_records(kafka.read(records), state_file, store).groupBy("partition").agg(expression("max(timestamp_ms) as latest")).collect()
    )
    return {row.partition: row.latest for row in rows}


def count_table(kafka: KafkaSource, job: Job) -> Counts:
    """Return what restoring the table will read up to the cut.

    :raises UndecodableInput: for records that are not in the declared formats, which would stop the application as well
    """
    view = stream_view(kafka, job)
    view.rows.agg({"timestamp": "max"}).collect()
    return Counts(**vars(replace(view.seen(), mixed=0, latest=None)), staged=StagedPartitions({}, {}))


def undecodable_when_restored(kafka: KafkaSource, job: Job, limit: int) -> tuple[int, list[tuple[int, int]]]:
    """Return how many keys a table restores from its topic whose newest record is not in the declared formats, and where the first are.

    Restoring copies the bytes that the application skips as it reads, and asks no deserializer (``ProcessorStateManager``, KAFKA-8037).

    :return: also partition and offset of the first of them
    """
    newest = kafka.newest(job.source).where("key is not null").groupBy("partition", "key")
    last = newest.agg(expression("max_by(struct(value, timestamp_ms, offset), offset) as last")).where("last.value is not null")
    records = last.selectExpr("partition", "last.offset as offset", "key", "last.value as value", "last.timestamp_ms as timestamp_ms")
    found = decoded_records(records, job.store, ExpressionPlace(job.state_file, job.store), lenient=True).where("key_wrong or value_wrong")
    first = found.select("partition", "offset").orderBy("partition", "offset").limit(limit).collect()
    return (found.count() if len(first) == limit else len(first)), [(row.partition, row.offset) for row in first]
