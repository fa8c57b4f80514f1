"""A changelog's keys in other partitions, and the last records that an application sent to its repartition topic.

Each key goes where Kafka's default partitioner puts the application's own key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from kops.spark.frames import expression, kept_on_disk, with_murmur2
from kops.spark.job import KEPT, NULL_VALUE
from kops.spark.reading.snapshot import Content, write_snapshot
from kops.spark.staging.difference import all_added
from kops.spark.staging.stage import write_stage
from kops.spark.stores.prepare import prepare
from kops.spark.stores.versioned import restorable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kops.spark.job import Job
    from kops.spark.reading.ranges import TopicRange
    from kops.spark.reading.source import KafkaSource


@dataclass(frozen=True)
class RepartitionedStore:
    """A store in both partitionings.

    :param after: what the stage for the new partitions holds, and ``before`` that for the old ones
    :param misplaced: keys that are not where the default partitioner puts them
    :param with_headers: records that have headers; if there are any, both are staged as snapshots, which keep them
    """

    after: Mapping[int, Content]
    before: Mapping[int, Content]
    keys: int
    misplaced: int
    with_headers: int


def stage_repartitioned(
    kafka: KafkaSource, changelog: TopicRange, paths: tuple[str, str], *, partitions: int, suffix: int, history_ms: int | None
) -> RepartitionedStore:
    """Stage what a changelog holds twice: for its new partitions, and as it is.

    :param paths: of the stages, new and old
    :param partitions: the new number
    :param suffix: number of bytes after the application's key in a stored key
    :param history_ms: of a versioned store; None: of another one
    """
    after, before = paths
    view = restorable(kafka.read(changelog), history_ms, versioned=history_ms is not None)
    counts_of = {"usual": len(changelog.ranges), "target": partitions}  # where the default partitioner puts each key, old and new
    with kept_on_disk(with_murmur2(view, counts_of, suffix=suffix)) as placed:
        counts = placed.agg(
            expression("count(distinct key) as keys"),
            expression("count(distinct if(partition != usual, key, null)) as misplaced"),
            expression("count_if(size(headers) > 0) as with_headers"),
        ).collect()[0]
        moved, held = (
            placed.selectExpr(f"{place} as partition", "key", "value", "timestamp", "headers") for place in ("target", "partition")
        )
        keep = write_snapshot if counts.with_headers else _staged
        return RepartitionedStore(keep(moved, after), keep(held, before), counts.keys, counts.misplaced, counts.with_headers)


def _staged(view: DataFrame, path: str) -> dict[int, Content]:
    return write_stage(all_added(view.select("partition", "key", "value", "timestamp")), path).contents


class SentRecord(NamedTuple):
    """A record that was sent on with a new key."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes


def last_sent(kafka: KafkaSource, job: Job, counts: Mapping[bytes, int]) -> Iterator[SentRecord]:
    """Yield, per key and partition of a topic, the last records that got this key, by their offsets.

    A record with a null value is sent too: only the aggregation after the repartition topic drops it.

    :param counts: how many to yield at most, by key
    """
    from pyspark.sql import functions

    wanted = kafka.session.createDataFrame([(key, count) for key, count in counts.items()], "key binary, most int")
    for source, of_topic in zip(job.store.inputs, job.sources, strict=True):
        store = replace(job.store, source=source)
        judged = prepare(kafka.read(of_topic), job.state_file, store, lenient=job.skip_undecodable).judged
        sent = judged.where(f"fate in ({KEPT}, {NULL_VALUE}) and key is not null")
        theirs = sent.select("partition", "offset", "timestamp_ms", "key").join(functions.broadcast(wanted), "key")
        numbered = theirs.selectExpr("*", "row_number() over (partition by key, partition order by offset desc) as back")
        for row in numbered.where("back <= most").orderBy("partition", "offset").collect():
            yield SentRecord(source.topic, row.partition, row.offset, row.timestamp_ms, bytes(row.key))
