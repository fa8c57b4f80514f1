"""The jobs that commands run: compute a store, compare it with its changelog, stage the difference."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kops.core.errors import Refused
from kops.core.statefile import StateFile, Store
from kops.spark.aggregates import MIXED, ROUNDED, aggregated, depends_on_order
from kops.spark.difference import all_added, compacted_view, difference
from kops.spark.partitions import with_partitions
from kops.spark.prepare import FATES, Prepared, prepare
from kops.spark.source import KafkaSource, TopicRange
from kops.spark.stage import Staged, write_stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

_SAMPLE = 200
_NAMED = 5


@dataclass(frozen=True)
class Job:
    """A store to compute.

    :param source: what is read of its topic
    :param changelog: all of its changelog, as it is now
    :param partitions: of the changelog
    :param skip_undecodable: pass over records that are not of the formats, as ``LogAndContinueExceptionHandler`` does
    """

    state_file: StateFile
    store: Store
    source: TopicRange
    changelog: TopicRange
    partitions: int
    skip_undecodable: bool = False


@dataclass(frozen=True)
class Counts:
    """What was seen on the way.

    :param read: records read of the topic
    :param dropped: how many of them did not count, by reason (``kops.spark.prepare.FATES``)
    :param keys: that the store should hold
    :param mixed: keys whose records' order is not known, where it matters
    :param staged: what its changelog lacks
    """

    read: int
    dropped: dict[str, int]
    keys: int
    mixed: int
    staged: Staged


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
    from pyspark.sql import Observation

    ordered = depends_on_order(job.store.aggregate) and not any_order and not job.store.key_by
    prepared = prepare(kafka.read(replace(job.source, split=not ordered)), job.state_file, job.store, lenient=job.skip_undecodable)
    of_records, of_keys = Observation(), Observation()
    expected = _expected(prepared, job, of_records, of_keys, any_order=any_order)
    if job.changelog.records:
        stage = difference(expected, compacted_view(kafka.read(replace(job.changelog, headers=True))))
    else:
        stage = all_added(expected)
    staged = write_stage(stage, path)
    fates, keys = of_records.get, of_keys.get
    if fates["undecodable"] and not job.skip_undecodable:
        raise _undecodable(prepared, job, fates["undecodable"])
    if keys["rounded"]:
        return None
    dropped = {name: fates[name] for name in FATES.values()}
    return Counts(fates["read"], dropped, keys["keys"], keys["mixed"], staged)


def _expected(prepared: Prepared, job: Job, of_records: Observation, of_keys: Observation, *, any_order: bool) -> DataFrame:
    """Return what the store should hold, counting on the way."""
    from pyspark.sql import functions

    fates = [functions.expr(f"count_if(fate = {number}) as {name}") for number, name in FATES.items()]
    judged = prepared.judged.observe(of_records, functions.expr(f"{prepared.records} as read"), *fates)
    expected = aggregated(prepared, prepared.kept(judged), job.store, any_order=any_order)
    doubts = [functions.expr(f"count_if(doubt = {number}) as {name}") for number, name in ((MIXED, "mixed"), (ROUNDED, "rounded"))]
    counted = expected.observe(of_keys, functions.expr("count_if(value is not null) as keys"), *doubts)
    return with_partitions(counted, job.partitions) if job.store.key_by else counted


def partition_times(kafka: KafkaSource, wanted: TopicRange) -> dict[int, int]:
    """Return the greatest timestamp of every partition that has records, in milliseconds since the epoch."""
    from pyspark.sql import functions

    rows = kafka.read(wanted).groupBy("partition").agg(functions.expr("max(timestamp_ms) as latest")).collect()
    return {row.partition: row.latest for row in rows}


def _is_float_sum(store: Store) -> bool:
    return store.aggregate.kind == "sum" and depends_on_order(store.aggregate)


def _looks_order_free(kafka: KafkaSource, job: Job) -> bool:
    """Tell whether the first records have numbers that add without rounding, so that adding in any order is worth a try."""
    from pyspark.sql import functions

    ranges = {number: (start, min(end, start + _SAMPLE)) for number, (start, end) in job.source.ranges.items()}
    prepared = prepare(kafka.read(replace(job.source, ranges=ranges)), job.state_file, job.store)
    found = prepared.kept().agg(functions.expr("coalesce(bool_and(v * 256 = floor(v * 256)), true) as exact")).collect()
    return bool(found[0].exact)


class UndecodableInput(Refused):
    """Records whose bytes are not of the formats that the state file names; nothing was changed."""

    slug = "undecodable_record"


def _undecodable(prepared: Prepared, job: Job, count: int) -> UndecodableInput:
    topic, source = job.source.topic, job.store.source
    first = prepared.undecodable.orderBy("partition", "offset").limit(_NAMED).collect()
    places = [f"{topic}:{row.partition} at offset {row.offset} ({row.part})" for row in first]
    more = f" and {count - len(places)} more" if count > len(places) else ""
    plural = "record is" if count == 1 else "records are"
    formats = f"key {source.key}, value {source.value}"
    return UndecodableInput(
        f"store {job.store.name}: {count} {plural} not of the formats of {job.state_file.path} ({formats}): {', '.join(places)}{more}",
        hint="correct the formats, or, when the application itself passes over such records, use --on-error skip",
        topic=topic,
        count=count,
        records=[{"partition": row.partition, "offset": row.offset, "part": row.part} for row in first],
    )
