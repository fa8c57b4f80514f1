"""The view of a store that is filled by several topics: ``builder.stream(List.of(...))`` or ``KStream.merge``.

A task has one partition of each topic. The order between topics is that in which they were fetched, which is not recorded anywhere. So
this is computed as after a new key, where records of several partitions meet: what depends on their order is reported as such.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from kops.spark.driver.observing import Watch
from kops.spark.job import FATES, Seen
from kops.spark.staging.difference import COLUMNS
from kops.spark.stores.aggregates import aggregated
from kops.spark.stores.base import adding_on, with_base
from kops.spark.stores.partitions import placed
from kops.spark.stores.prepare import Prepared, prepare
from kops.spark.stores.views import View, observed_keys, observed_records, refuse_undecodable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kops.spark.job import Job
    from kops.spark.reading.source import KafkaSource

_PARTITIONS = 1_000_000
"""More partitions than a topic has: the number of a partition among all topics is the topic's index times this, plus its own."""
_MERGED = "merged"


def merged_view(kafka: KafkaSource, job: Job, *, any_order: bool) -> View:
    store = job.store
    parts: list[tuple[Job, Prepared, Watch]] = []
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
    rows = aggregated(parts[0][1], records, replace(store, key_by=store.key_by or _MERGED), any_order=any_order)
    counted, of_keys = observed_keys(rows)
    where = placed(kafka, counted, job) if store.key_by else _unnumbered(counted)
    return View(where, lambda: _seen(parts, of_keys))


def _numbered(records: DataFrame, feed: int, *, by_partition: bool) -> DataFrame:
    """Give the partitions of all topics unique numbers; if a key stays in its partition, that number is prepended to the key."""
    key = "concat(cast(partition as binary), key) as key" if by_partition else "key"
    return records.selectExpr(f"partition + {feed * _PARTITIONS} as partition", "offset", "timestamp_ms", key, "v")


def _unnumbered(rows: DataFrame) -> DataFrame:
    partition = "cast(conv(hex(substring(key, 1, 4)), 16, 10) as int) as partition"
    return rows.selectExpr(partition, "substring(key, 5) as key", "value", "timestamp", "doubt").select(*COLUMNS)


def _seen(parts: list[tuple[Job, Prepared, Watch]], of_keys: Watch) -> Seen:
    read, dropped, keys = 0, dict.fromkeys(FATES.values(), 0), of_keys.get
    for job, prepared, observation in parts:
        fates = observation.get
        refuse_undecodable(prepared, job, fates["undecodable"])
        read += fates["read"]
        dropped = {name: count + fates[name] for name, count in dropped.items()}
    return Seen(read, dropped, keys["keys"], keys["mixed"], keys["rounded"])
