"""Records of a store's topics that the application may have sent to its repartition topic last, by their new keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from kops.spark.stores.prepare import KEPT, NULL_VALUE, prepare

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

    from kops.spark.reading.source import KafkaSource
    from kops.spark.stores.jobs import Job


class Sent(NamedTuple):
    """A record that was sent on with a new key."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes


def last_sent(kafka: KafkaSource, job: Job, counts: Mapping[bytes, int]) -> Iterator[Sent]:
    """Yield, for each key and each partition of a topic, the last records that got this key, by their offsets.

    A record with a null value is sent on too: only the aggregation behind the repartition topic drops it.

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


def without(rows: DataFrame, offsets: Mapping[int, Iterable[int]]) -> DataFrame:
    """Leave some offsets of partitions out, and the order of the others as it is."""
    import numpy

    left_out = {partition: numpy.array(sorted(some), numpy.int64) for partition, some in offsets.items()}

    def keep(batches: Iterable[pyarrow.RecordBatch]) -> Iterable[pyarrow.RecordBatch]:
        import pyarrow

        for batch in batches:
            partitions, found = batch.column("partition").to_numpy(), batch.column("offset").to_numpy()
            gone = numpy.zeros(len(found), bool)
            for partition, some in left_out.items():
                gone |= (partitions == partition) & numpy.isin(found, some)
            yield batch.filter(pyarrow.array(~gone)) if gone.any() else batch

    return rows.mapInArrow(keep, rows.schema)
