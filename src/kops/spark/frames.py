"""DataFrames: columns from SQL texts and of the partitions that keys belong to, rows from numbered tasks, rows kept on disk.

PySpark is imported on use: nothing but the session may import it first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import Column, DataFrame, SparkSession


def expression(text: str) -> Column:
    from pyspark.sql import functions

    return functions.expr(text)


def expressions(texts: Iterable[str]) -> list[Column]:
    return [expression(text) for text in texts]


def with_murmur2(frame: DataFrame, counts: Mapping[str, int], *, key: str = "key", suffix: int = 0) -> DataFrame:
    """Fill in or add columns with the partition of each key: ``murmur2(key) & 0x7fffffff % partitions``; null without a key.

    :param counts: number of partitions by column
    :param suffix: number of bytes after the application's own key, which do not count: those of a window
    """
    whole = frame.selectExpr("*", *(f"cast(null as int) as {name}" for name in counts if name not in frame.columns))

    def assign(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        import pyarrow
        from pyarrow import compute

        from kops.formats.murmur2_columns import partitions_of

        for batch in batches:
            keys = compute.binary_slice(batch.column(key), 0, -suffix) if suffix else batch.column(key)
            found = {name: partitions_of(keys, count) for name, count in counts.items()}
            arrays = [found.get(name, column) for name, column in zip(batch.schema.names, batch.columns, strict=True)]
            yield pyarrow.RecordBatch.from_arrays(arrays, batch.schema.names)

    return whole.mapInArrow(assign, whole.schema)


def by_task(session: SparkSession, count: int, schema: str, run: Callable[[int], Iterable[pyarrow.RecordBatch]]) -> DataFrame:
    """Return the rows of this many tasks.

    :param schema: of what ``run`` returns
    :param run: runs in tasks, with the number of each
    """

    def give(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for number in (row for batch in batches for row in batch.column(0).to_pylist()):
            yield from run(number)

    return session.range(0, count, 1, max(1, count)).mapInArrow(give, schema)


def numbers_of_tasks(session: SparkSession, count: int) -> list[int]:
    """Return for each task a number that leads to it: Spark assigns a row to a task by the hash of a column."""
    from pyspark.sql import functions

    numbers = session.range(0, 64 * count, 1, 1).groupBy(expression(f"pmod(hash(id), {count}) as task")).agg(functions.min("id"))
    found = {row[0]: row[1] for row in numbers.collect()}
    return [found[task] for task in range(count)]


def task_number() -> int:
    """Return the number of the task that this runs in; 0 outside of tasks."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.partitionId() if context else 0


@contextmanager
def kept_on_disk(frame: DataFrame) -> Iterator[DataFrame]:
    """Cache a frame on disk, so that several actions can use it; its rows need no memory."""
    from pyspark import StorageLevel

    kept = frame.persist(StorageLevel.DISK_ONLY)
    try:
        yield kept
    finally:
        kept.unpersist()
