"""Which partition a new key goes to: that of the producer's default partitioner, as Kafka Streams' repartition sink uses it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame


def with_partitions(expected: DataFrame, partitions: int, suffix: int = 0) -> DataFrame:
    """Fill the column ``partition`` in with ``murmur2(key) & 0x7fffffff % partitions``.

    :param suffix: bytes after the application's own key, which do not count: those of a window
    """

    def assign(batches: Iterable[pyarrow.RecordBatch]) -> Iterable[pyarrow.RecordBatch]:
        from pyarrow import compute

        from kops.formats.murmur2_columns import partitions_of

        for batch in batches:
            keys = batch.column("key")
            found = partitions_of(compute.binary_slice(keys, 0, -suffix) if suffix else keys, partitions)
            yield batch.set_column(batch.schema.get_field_index("partition"), "partition", found)

    return expected.mapInArrow(assign, expected.schema)
