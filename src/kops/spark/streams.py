"""The view of a key-value store that one stream fills, or one topic as a table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kops.spark.aggregates import aggregated, depends_on_order
from kops.spark.partitions import with_partitions
from kops.spark.prepare import prepare
from kops.spark.views import View, observed_keys, observed_records, seen_of

if TYPE_CHECKING:
    from kops.spark.jobs import Job
    from kops.spark.source import KafkaSource


def stream_view(kafka: KafkaSource, job: Job, *, any_order: bool) -> View:
    """Compute a store of aggregates by key, or a table.

    :param any_order: add floating-point numbers as they come (``aggregated``)
    """
    ordered = depends_on_order(job.store.aggregate) and not any_order and not job.store.key_by
    prepared = prepare(kafka.read(replace(job.source, split=not ordered)), job.state_file, job.store, lenient=job.skip_undecodable)
    judged, of_records = observed_records(prepared)
    rows, of_keys = observed_keys(aggregated(prepared, prepared.kept(judged), job.store, any_order=any_order))
    placed = with_partitions(rows, job.partitions) if job.store.key_by else rows
    return View(placed, lambda: seen_of(prepared, job, of_records, of_keys))
