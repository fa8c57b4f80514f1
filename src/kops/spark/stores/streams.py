"""The view of a key-value store that is filled by one stream, or by one topic as a table."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from kops.core.statefile.models import FAUST
from kops.spark.columns.partial_aggregates import FATES as FATES_COUNTED
from kops.spark.columns.partial_aggregates import SCHEMA, joined, partial_aggregate_of
from kops.spark.driver.observing import Watch, sums, watched
from kops.spark.frames import expression
from kops.spark.job import FATES, ReadCounts
from kops.spark.staging.difference import COLUMNS, SURE, TIMED
from kops.spark.stores.aggregates import aggregated, depends_on_order
from kops.spark.stores.base import adding_on, with_base
from kops.spark.stores.partitions import placed
from kops.spark.stores.prepare import PreparedRecords, prepare
from kops.spark.stores.views import View, observed_keys, observed_records, refuse_undecodable, seen_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kops.spark.job import Job
    from kops.spark.reading.batch_source import BatchSource
    from kops.spark.reading.source import KafkaSource


def stream_view(kafka: KafkaSource, job: Job) -> View:
    store = job.store if job.store.moves else replace(job.store, key_by=None)
    ordered = depends_on_order(store.aggregate) and not store.key_by
    prepared = prepare(kafka.read(replace(job.source, split=not ordered)), job.state_file, job.store, lenient=job.skip_undecodable)
    judged, of_records = observed_records(prepared)
    kept = with_base(prepared.kept(judged), job, prepared.value_type)
    added = adding_on(store) if job.base else store
    rows, of_keys = observed_keys(aggregated(prepared, kept, added))
    where = placed(kafka, rows, job) if store.key_by else rows
    return View(_timed(where, job), lambda: seen_of(prepared, job, of_records, of_keys))


def partial_aggregates_view(batches: BatchSource, job: Job) -> View:
    """Compute a store for which tasks aggregate their own records (``partial_aggregates``).

    A record that is not in the declared formats makes the view void: the view of the records then has to name it.
    """
    counted, of_tasks = watched(batches.reduced(job.source, SCHEMA, partial_aggregate_of(job.store)), sums(FATES_COUNTED))
    rows, of_keys = observed_keys(joined(counted, job.store))

    def seen() -> ReadCounts:
        fates, keys = of_tasks.get, of_keys.get
        dropped = {name: fates.get(name, 0) for name in FATES.values()}
        return ReadCounts(fates["read"], dropped, keys["keys"], keys["mixed"], void=fates["unfit"])

    return View(_timed(rows, job), seen)


def _timed(rows: DataFrame, job: Job) -> DataFrame:
    """Mark rows so that no timestamp counts, for a library whose tables have none."""
    if job.state_file.library != FAUST:
        return rows
    return rows.withColumn("doubt", expression(f"if(doubt = {SURE}, {TIMED}, doubt)"))


_PARTITIONS = 1_000_000
"""More partitions than a topic has: the number of a partition among all topics is the topic's index times this, plus its own."""
_MERGED = "merged"


def merged_view(kafka: KafkaSource, job: Job) -> View:
    store = job.store
    parts: list[tuple[Job, PreparedRecords, Watch]] = []
    kept: list[DataFrame] = []
    for feed, (source, wanted) in enumerate(zip(store.inputs, job.sources, strict=True)):
        of_topic = replace(job, source=wanted, store=replace(store, source=source))
        prepared = prepare(kafka.read(wanted), job.state_file, of_topic.store, lenient=job.skip_undecodable)
        judged, observation = observed_records(prepared)
        parts.append((of_topic, prepared, observation))
        kept.append(_numbered(prepared.kept(judged), feed, by_partition=not store.key_by))
    value_type = parts[0][1].value_type
    records = with_base(reduce(lambda one, other: one.unionByName(other), kept), job, value_type, merged=True)
    store = adding_on(store) if job.base else store
    rows = aggregated(parts[0][1], records, replace(store, key_by=store.key_by or _MERGED))
    counted, of_keys = observed_keys(rows)
    where = placed(kafka, counted, job) if store.key_by else _unnumbered(counted)
    return View(where, lambda: _seen_of_all(parts, of_keys))


def _numbered(records: DataFrame, feed: int, *, by_partition: bool) -> DataFrame:
    """Give the partitions of all topics unique numbers; if a key stays in its partition, that number is prepended to the key."""
    key = "concat(cast(partition as binary), key) as key" if by_partition else "key"
    return records.selectExpr(f"partition + {feed * _PARTITIONS} as partition", "offset", "timestamp_ms", key, "v")


def _unnumbered(rows: DataFrame) -> DataFrame:
    partition = "cast(conv(hex(substring(key, 1, 4)), 16, 10) as int) as partition"
    return rows.selectExpr(partition, "substring(key, 5) as key", "value", "timestamp", "doubt").select(*COLUMNS)


def _seen_of_all(parts: list[tuple[Job, PreparedRecords, Watch]], of_keys: Watch) -> ReadCounts:
    read, dropped, keys = 0, dict.fromkeys(FATES.values(), 0), of_keys.get
    for job, prepared, observation in parts:
        fates = observation.get
        refuse_undecodable(prepared, job, fates["undecodable"])
        read += fates["read"]
        dropped = {name: count + fates[name] for name, count in dropped.items()}
    return ReadCounts(read, dropped, keys["keys"], keys["mixed"])
