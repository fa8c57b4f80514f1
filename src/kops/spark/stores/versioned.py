"""Versioned stores (KIP-889): every version of a key that can still be queried. DataFrame to DataFrame.

A store answers for any time up to its history before the newest timestamp that its task has seen. A record that is older than that when it
arrives is never accepted (``RocksDBVersionedStore.put``), though its changelog has it; one with the timestamp of an existing version of its
key replaces that version. A restore judges the records again in the order of the log, so versions are written in the order of time: then
none is too late.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kops.core.statefile.models import Table
from kops.spark.driver.observing import Watch, watched
from kops.spark.frames import expression
from kops.spark.job import FATES, ReadCounts
from kops.spark.reading.snapshot import snapshot_view
from kops.spark.staging.difference import SURE, all_added
from kops.spark.staging.stage import StagedPartitions, write_stage
from kops.spark.stores.tables import StoreTopics, not_expired
from kops.spark.stores.views import View

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kops.spark.job import Job
    from kops.spark.reading.ranges import TopicRange
    from kops.spark.reading.source import KafkaSource

_OF_KEY = "over (partition by partition, key order by timestamp)"
# In the rows of a view, the version's timestamp follows the key, and a byte precedes the value: 1 for a value, 0 for a deletion.


def versioned_view(kafka: KafkaSource, job: Job) -> View:
    topics = StoreTopics(kafka, job, clocks=False)
    rows, of_keys = watched(as_rows(versions(topics, job)), {"keys": "count(*)"})
    history = _history(job)
    return View(rows, lambda: _seen(topics, of_keys), held=lambda: held_versions(kafka.read(replace(job.changelog, headers=True)), history))


def versions(topics: StoreTopics, job: Job) -> DataFrame:
    """Return the versions that the store should have: partition, key, value (null: deleted), timestamp."""
    store = job.store
    table = Table(store.name, f"stores.{store.name}", store.key_form, store.aggregate.form, source=store.source)
    records = topics.records(table, store.source)
    log = records.selectExpr("_partition as partition", "_key as key", "_raw as value", "_ts as timestamp_ms", "offset")
    return _versions(topics.not_expired(log, _history(job), store.source.topic), _history(job))


def observable(log: DataFrame, history_ms: int) -> DataFrame:
    """Return the versions that can be queried from a store after a log: partition, key, value (null: deleted), timestamp.

    :param log: partition, key, value, timestamp_ms, offset
    """
    return _versions(not_expired(log, history_ms), history_ms)


def _versions(taken: DataFrame, history_ms: int) -> DataFrame:
    last = taken.groupBy("partition", "key", "timestamp_ms").agg(expression("max_by(struct(value), offset) as last"))
    known = last.selectExpr(
        "partition",
        "key",
        "last.value as value",
        "timestamp_ms as timestamp",
        "max(timestamp_ms) over (partition by partition) as newest",
    )
    valid = known.selectExpr("*", f"lead(timestamp) {_OF_KEY} as until").where(f"until is null or until > newest - {history_ms}")
    # The first version with a partition's newest timestamp stays even if it deletes nothing: it records the stream time of the store.
    changed = valid.selectExpr("*", f"lag(value) {_OF_KEY} as before").where(
        "value is not null or before is not null or timestamp = newest"
    )
    return changed.select("partition", "key", "value", "timestamp")


def as_rows(found: DataFrame) -> DataFrame:
    """Return versions as the rows of a view: one key per version."""
    return found.selectExpr(
        "partition",
        "concat(key, cast(timestamp as binary)) as key",
        "if(value is null, X'00', concat(X'01', value)) as value",
        "timestamp",
        f"{SURE} as doubt",
    )


def stage_versions(kafka: KafkaSource, job: Job, path: str) -> StagedPartitions:
    """Stage all versions of a store, to be written in the order of time."""
    return write_stage(all_added(versions(StoreTopics(kafka, job, clocks=False), job)), path)


def stage_held(kafka: KafkaSource, changelog: TopicRange, history_ms: int | None, path: str) -> tuple[StagedPartitions, int]:
    """Stage what a changelog holds now, and return how many of its records have headers, which a stage does not keep.

    :param history_ms: of a versioned store; None: the last record of each key
    """
    records = kafka.read(replace(changelog, headers=True)).where("key is not null")
    if history_ms is None:
        live = snapshot_view(records)
        held = live.select("partition", "key", "value", "timestamp")
        counted = live.where("size(headers) > 0")
    else:
        held, counted = observable(records, history_ms), records.where("size(headers) > 0")
    return write_stage(all_added(held), path), counted.count()


def restorable(records: DataFrame, history_ms: int | None, *, versioned: bool) -> DataFrame:
    """Return what a store restores from a changelog, as ``snapshot_view`` does; of a versioned store without what it never accepted.

    Versions are written back in the order of time, in which none is too late, so the store would take those too.

    :param history_ms: None: of another store, or it is not known
    """
    taken = records if history_ms is None else not_expired(records.where("key is not null"), history_ms)
    return snapshot_view(taken, versioned=versioned)


def held_versions(log: DataFrame, history_ms: int) -> DataFrame:
    """Return the versions that a changelog holds, as the current side of a comparison.

    :param log: with headers
    """
    records = log.where("key is not null")
    rows = as_rows(observable(records, history_ms))
    odd = (
        records.where("size(headers) > 0")
        .selectExpr("partition", "concat(key, cast(timestamp_ms as binary)) as key", "true as odd")
        .distinct()
    )
    return rows.join(odd, ["partition", "key"], "left").selectExpr("partition", "key", "value", "timestamp", "coalesce(odd, false) as odd")


def _history(job: Job) -> int:
    if job.store.history_ms is None:
        raise TypeError(f"{job.store.name} has no versions")
    return job.store.history_ms


def _seen(topics: StoreTopics, of_keys: Watch) -> ReadCounts:
    fates = topics.fates()
    return ReadCounts(fates["read"], {name: fates[name] for name in FATES.values()}, of_keys.get["keys"], 0, noted={"late": topics.expired})
