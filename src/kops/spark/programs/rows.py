"""Rows of a changelog as columns; those of a snapshot stand for a changelog, or are what a task's stores start from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kops.formats import runner_frames as frames

if TYPE_CHECKING:
    import pyarrow

_BATCH = 50_000


def rows_schema() -> pyarrow.Schema:
    """Return how rows of a changelog are kept: headers as frames have them, empty where there are none."""
    import pyarrow

    binary = pyarrow.binary()
    return pyarrow.schema([("key", binary), ("value", binary), ("timestamp", pyarrow.int64()), ("headers", binary)])


def snapshot_rows(folder: str, partition: int) -> pyarrow.Table:
    """Return what a snapshot has of a partition of a changelog."""
    import pyarrow
    from pyarrow import compute, dataset

    rows = dataset.dataset(folder, format="parquet").to_table(
        columns=["key", "value", "timestamp", "headers"], filter=compute.field("partition") == partition
    )
    lists = rows["headers"].to_pylist()
    headers = [frames.encoded_headers([(one["key"], one["value"]) for one in each or ()]) for each in lists]
    columns = [rows["key"], rows["value"], rows["timestamp"], pyarrow.array(headers, pyarrow.binary())]
    return pyarrow.table(columns, names=rows_schema().names).cast(rows_schema())


def restored(changelog: str, folder: str, partition: int) -> Iterator[frames.Batch]:
    """Yield them as records of the changelog, in the order of their time, in about which they were written."""
    import numpy
    from pyarrow import compute

    whole = snapshot_rows(folder, partition).sort_by("timestamp")
    for start in range(0, whole.num_rows, _BATCH):
        rows = whole.slice(start, _BATCH).combine_chunks()
        count = rows.num_rows
        zeros, partitions = numpy.zeros(count, numpy.int32), numpy.full(count, partition, numpy.int32)
        key, value, headers = (rows[name].chunk(0) for name in ("key", "value", "headers"))
        given = compute.if_else(compute.equal(compute.binary_length(headers), 0), None, headers)
        offsets = numpy.arange(start, start + count, dtype=numpy.int64)
        yield frames.Batch([changelog], zeros, partitions, offsets, rows["timestamp"].to_numpy(), key, value, given)
