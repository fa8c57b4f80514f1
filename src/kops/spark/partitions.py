"""Which partition a new key goes to: that of the producer's default partitioner, as Kafka Streams' repartition sink uses it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame


def with_partitions(expected: DataFrame, partitions: int) -> DataFrame:
    """Fill the column ``partition`` in with ``murmur2(key) & 0x7fffffff % partitions``."""

    def assign(batches: Iterable[pyarrow.RecordBatch]) -> Iterable[pyarrow.RecordBatch]:
        from kops.formats.murmur2_columns import partitions_of

        for batch in batches:
            found = partitions_of(batch.column("key"), partitions)
            yield batch.set_column(batch.schema.get_field_index("partition"), "partition", found)

    return expected.mapInArrow(assign, expected.schema)
