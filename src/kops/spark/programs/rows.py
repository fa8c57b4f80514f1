"""Rows of a changelog as columns; those of a snapshot stand for a changelog, or are what a task's stores start from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kops.formats import runner_frames as frames
from kops.spark.staging.stage_files import files_of

if TYPE_CHECKING:
    import pyarrow

BATCH = 50_000
"""Number of records that a program is given at once."""
_TEXTS = ("key", "value", "headers")


def rows_schema() -> pyarrow.Schema:
    """Return how rows of a changelog are kept: headers as frames have them, empty where there are none."""
    import pyarrow

    binary = pyarrow.binary()
    return pyarrow.schema([("key", binary), ("value", binary), ("timestamp", pyarrow.int64()), ("headers", binary)])


def snapshot_rows(folder: str, partition: int) -> Iterator[pyarrow.Table]:
    """Yield what a snapshot has of a partition of a changelog."""
    for rows in _parquet_rows(files_of(folder), ["key", "value", "timestamp", "headers"], partition):
        lists = rows.column("headers").to_pylist()
        yield _with_headers(rows, [frames.encoded_headers([(one["key"], one["value"]) for one in each or ()]) for each in lists])


def record_batches(topic: str, partition: int, rows: pyarrow.Table, times: str = "timestamp") -> Iterator[frames.Batch]:
    """Yield rows as records of a partition, with their offsets if they have such, else with their numbers.

    :param times: the column with their timestamps
    """
    import numpy
    import pyarrow

    if "offset" not in rows.column_names:
        rows = rows.append_column("offset", pyarrow.array(numpy.arange(rows.num_rows, dtype=numpy.int64)))
    for start in range(0, rows.num_rows, BATCH):
        some = rows.slice(start, BATCH).combine_chunks()
        topics, partitions = numpy.zeros(some.num_rows, numpy.int32), numpy.full(some.num_rows, partition, numpy.int32)
        texts = [some[name].combine_chunks() if some[name].num_chunks != 1 else some[name].chunk(0) for name in _TEXTS]
        yield frames.Batch([topic], topics, partitions, some["offset"].to_numpy(), some[times].to_numpy(), *texts)


def staged_rows(folder: str, partition: int) -> Iterator[pyarrow.Table]:
    """Yield what a stage without headers adds to a partition of a changelog."""
    for rows in _parquet_rows(files_of(folder), ["key", "after_value", "after_timestamp"], partition):
        yield _with_headers(rows, [b""] * rows.num_rows)


def _parquet_rows(files: Sequence[str], columns: Sequence[str], partition: int) -> Iterator[pyarrow.RecordBatch]:
    """Yield the rows of a partition, few at a time."""
    from pyarrow import compute, dataset

    if not files:
        return
    few = {"batch_size": BATCH, "batch_readahead": 1, "fragment_readahead": 1}
    yield from dataset.dataset(files, format="parquet").to_batches(columns=columns, filter=compute.field("partition") == partition, **few)


def _with_headers(rows: pyarrow.RecordBatch, headers: Sequence[bytes]) -> pyarrow.Table:
    import pyarrow

    columns = [*(rows.column(number) for number in range(3)), pyarrow.array(headers, pyarrow.binary())]
    return pyarrow.table(columns, names=rows_schema().names).cast(rows_schema())


def snapshot_batches(changelog: str, folder: str, partition: int) -> Iterator[frames.Batch]:
    """Yield them as records of the changelog, in the order of their time, in about which they were written."""
    import pyarrow
    from pyarrow import compute

    rows = pyarrow.concat_tables([rows_schema().empty_table(), *snapshot_rows(folder, partition)]).sort_by("timestamp")
    headers = rows["headers"]
    given = compute.if_else(compute.equal(compute.binary_length(headers), 0), None, headers)
    yield from record_batches(changelog, partition, rows.set_column(rows.column_names.index("headers"), "headers", given))
