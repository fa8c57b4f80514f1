"""The jobs that commands run: compute a store, compare it with its changelog, stage the difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kops.core.statefile import StateFile, Store
from kops.core.statefile.models import KEY_VALUE, PLAIN, SESSION, SLIDING, TABLES, VERSIONED, WINDOW
from kops.core.statefile.sources import WALL_CLOCK
from kops.spark.columns.partial_aggregates import aggregates_in_tasks
from kops.spark.columns.partial_windows import aggregates_windows_in_tasks
from kops.spark.columns.whole_partitions import reason_against_tasks, stage_whole_partitions
from kops.spark.driver.observing import by_partition, counts_by_partition, watched
from kops.spark.frames import expression
from kops.spark.job import Job, Seen
from kops.spark.reading.ranges import TopicRange
from kops.spark.reading.snapshot import read_snapshot
from kops.spark.reading.source import KafkaSource
from kops.spark.staging.difference import all_added, compacted_view, difference
from kops.spark.staging.stage import StagedPartitions, write_stage
from kops.spark.stores.prepare import timed_records
from kops.spark.stores.streams import merged_view, partial_aggregates_view, stream_view
from kops.spark.stores.tables_view import tables_view
from kops.spark.stores.versioned import versioned_view
from kops.spark.stores.views import View
from kops.spark.stores.windows_view import partial_windows_view, windowed_view
from kops.spark.windows.keys import suffix_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, kw_only=True)
class Counts(Seen):
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
    """Compute a store and stage the difference to its changelog, in the fastest way that is correct for its records.

    :raises UndecodableInput: naming the first records that are not in the declared formats; whatever was staged does not count
    """
    try:
        return _first_that_counts(kafka, job, path)
    except Exception:
        if kafka.batches is None or not kafka.batches.met_unreadable:
            raise
        return _first_that_counts(replace(kafka, batches=None), job, path)


def reason_for_sql(kafka: KafkaSource, job: Job, path: str) -> str | None:
    """Return why Spark SQL computes a store; None if tasks compute its partitions as columns.

    Even then Spark SQL may be used: a task gives up on a partition that has more keys than it can hold, or records in other formats.
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


def _first_that_counts(kafka: KafkaSource, job: Job, path: str) -> Counts:
    if kafka.batches is not None and reason_for_sql(kafka, job, path) is None:
        found = stage_whole_partitions(kafka.batches, job, path)
        if found is not None:
            staged, seen = found
            return Counts(**vars(seen), staged=staged)
    by_rows = job.base is not None or kafka.has_archived(job.sources)
    of_input = replace(kafka, batches=None) if by_rows else kafka
    for view in _views(of_input, job):
        counts = _attempt(kafka, job, path, view)
        if counts is not None:
            return counts
    raise AssertionError("the last way counts always")


def _views(kafka: KafkaSource, job: Job) -> Iterator[View]:
    if kafka.batches and job.store.type == KEY_VALUE and aggregates_in_tasks(job.store) and not job.others:
        yield partial_aggregates_view(kafka.batches, job)
    if kafka.batches and aggregates_windows_in_tasks(job.store) and job.source.records:
        windows = partial_windows_view(kafka, kafka.batches, job)
        if windows is not None:
            yield windows
    if kafka.batches and job.store.type == TABLES:
        yield tables_view(kafka, job)
    kafka = replace(kafka, batches=None)
    view_of = merged_view if job.others and job.store.type == KEY_VALUE else VIEWS[job.store.type]
    yield view_of(kafka, job)


def _attempt(kafka: KafkaSource, job: Job, path: str, view: View) -> Counts | None:
    """Compute and stage; None if the view is void."""
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
    return None if seen.void else Counts(**vars(seen), staged=staged)


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
