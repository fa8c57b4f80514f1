"""The last records of a store's topics that the application may have sent to its repartition topic, by their new keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from kops.spark.job import KEPT, NULL_VALUE
from kops.spark.stores.prepare import prepare

if TYPE_CHECKING:
    from kops.spark.job import Job
    from kops.spark.reading.source import KafkaSource


class Sent(NamedTuple):
    """A record that was sent on with a new key."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes


def last_sent(kafka: KafkaSource, job: Job, counts: Mapping[bytes, int]) -> Iterator[Sent]:
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
            yield Sent(source.topic, row.partition, row.offset, row.timestamp_ms, bytes(row.key))
