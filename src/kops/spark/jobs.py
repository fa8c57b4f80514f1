"""The jobs that commands run: compute a store, compare it with its changelog, stage the difference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from kops.core.statefile import StateFile, Store
from kops.core.statefile.models import KEY_VALUE, PLAIN, SESSION, SLIDING, TABLES, VERSIONED, WINDOW
from kops.spark.aggregates import depends_on_order
from kops.spark.difference import all_added, compacted_view, difference
from kops.spark.prepare import prepare
from kops.spark.source import KafkaSource, TopicRange
from kops.spark.stage import Staged, write_stage
from kops.spark.streams import stream_view
from kops.spark.streams_merged import merged_view
from kops.spark.tables_view import tables_view
from kops.spark.versioned import versioned_view
from kops.spark.views import View
from kops.spark.windows_view import windowed_view

_SAMPLE = 200


@dataclass(frozen=True)
class Job:
    """A store to compute.

    :param source: what is read of its topic
    :param changelog: all of its changelog, as it is now
    :param partitions: of the changelog
    :param skip_undecodable: pass over records that are not of the formats, as ``LogAndContinueExceptionHandler`` does
    :param others: what is read of its further topics
    :param loose: of a grouped table: not every change of the table is known, or not their order
    """

    state_file: StateFile
    store: Store
    source: TopicRange
    changelog: TopicRange
    partitions: int
    skip_undecodable: bool = False
    others: tuple[TopicRange, ...] = ()
    loose: bool = False

    @property
    def sources(self) -> tuple[TopicRange, ...]:
        """Return what is read of all its topics."""
        return (self.source, *self.others)


@dataclass(frozen=True)
class Counts:
    """What was seen on the way.

    :param read: records read of the topic
    :param dropped: how many of them did not count, by reason (``kops.spark.prepare.FATES``)
    :param keys: that the store should hold
    :param mixed: keys whose records' order is not known, where it matters
    :param staged: what its changelog lacks
    :param noted: what else was counted, by name (``kops.spark.views.Seen``)
    """

    read: int
    dropped: dict[str, int]
    keys: int
    mixed: int
    staged: Staged
    noted: Mapping[str, int] = field(default_factory=dict)


class Viewer(Protocol):
    """Computes what stores of a type should hold."""

    def __call__(self, kafka: KafkaSource, job: Job, *, any_order: bool) -> View:
        """Return the view, to be computed when its rows are read.

        :param any_order: floating-point values are believed to be such that no addition rounds; ``Seen.rounded`` tells where this is wrong
        """


VIEWS: Mapping[str, Viewer] = {
    KEY_VALUE: stream_view,
    PLAIN: stream_view,
    TABLES: tables_view,
    VERSIONED: versioned_view,
    WINDOW: windowed_view,
    SLIDING: windowed_view,
    SESSION: windowed_view,
}
"""What computes a store, by the type that its state file names."""


def stage_difference(kafka: KafkaSource, job: Job, path: str) -> Counts:
    """Compute a store and write what its changelog lacks to a stage.

    :raises UndecodableInput: naming the first records that are not of the formats; nothing is left behind that counts
    """
    if _is_float_sum(job.store) and _looks_order_free(kafka, job):
        counts = _attempt(kafka, job, path, any_order=True)
        if counts is not None:
            return counts
    counts = _attempt(kafka, job, path, any_order=False)
    if counts is None:
        raise AssertionError("only sums in any order are attempted")
    return counts


def _attempt(kafka: KafkaSource, job: Job, path: str, *, any_order: bool) -> Counts | None:
    """Compute and stage; None when the order of additions matters after all."""
    viewer = merged_view if job.others and job.store.type == KEY_VALUE else VIEWS[job.store.type]
    view = viewer(kafka, job, any_order=any_order)
    try:
        if job.changelog.records:
            held = view.held() if view.held else compacted_view(kafka.read(replace(job.changelog, headers=True)))
            stage = difference(view.rows, view.live(held), empty=view.empty)
        else:
            stage = all_added(view.rows)
        staged = write_stage(stage, path)
        seen = view.seen()
    finally:
        view.done()
    return None if seen.rounded else Counts(seen.read, seen.dropped, seen.keys, seen.mixed, staged, seen.noted)


def partition_times(kafka: KafkaSource, wanted: TopicRange) -> dict[int, int]:
    """Return the greatest timestamp of every partition that has records, in milliseconds since the epoch."""
    from pyspark.sql import functions

    rows = kafka.read(wanted).groupBy("partition").agg(functions.expr("max(timestamp_ms) as latest")).collect()
    return {row.partition: row.latest for row in rows}


def _is_float_sum(store: Store) -> bool:
    return store.aggregate.kind == "sum" and depends_on_order(store.aggregate) and store.type == KEY_VALUE


def _looks_order_free(kafka: KafkaSource, job: Job) -> bool:
    """Tell whether the first records have numbers that add without rounding, so that adding in any order is worth a try."""
    from pyspark.sql import functions

    ranges = {number: (start, min(end, start + _SAMPLE)) for number, (start, end) in job.source.ranges.items()}
    prepared = prepare(kafka.read(replace(job.source, ranges=ranges)), job.state_file, job.store)
    found = prepared.kept().agg(functions.expr("coalesce(bool_and(v * 256 = floor(v * 256)), true) as exact")).collect()
    return bool(found[0].exact)
