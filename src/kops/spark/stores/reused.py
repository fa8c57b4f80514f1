"""A table whose topic is its changelog (``topology.optimization``): there is nothing to compare it with, so it is only counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kops.spark.job import Job
from kops.spark.staging.stage import Staged
from kops.spark.stores.jobs import Counts
from kops.spark.stores.streams import stream_view

if TYPE_CHECKING:
    from kops.spark.reading.source import KafkaSource


def count_table(kafka: KafkaSource, job: Job) -> Counts:
    """Return what restoring the table will read up to the cut.

    :raises UndecodableInput: for records that are not in the declared formats, which would stop the application as well
    """
    view = stream_view(kafka, job, any_order=False)
    view.rows.agg({"timestamp": "max"}).collect()
    seen = view.seen()
    return Counts(seen.read, seen.dropped, seen.keys, 0, Staged({}, {}))
