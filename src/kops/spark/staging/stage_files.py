"""Files of a stage as the tasks of this machine write them: one per task, complete or absent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kops.config.durable import sync
from kops.spark.frames import task_number
from kops.spark.staging.difference import APPENDED, HEADER_COLUMNS, STAGE_COLUMNS

if TYPE_CHECKING:
    import pyarrow

_ADDED = ("records", "tombstones", "high", "low")
SUMS_SCHEMA = ", ".join(["partition int", *(f"{name} bigint" for name in (*_ADDED, "earliest", "latest", *APPENDED))])
"""What ``write_file`` reports about its rows by partition: ``kops.spark.reading.snapshot.Content``, and the count of each action."""
_ROW_GROUP = 200_000
_GROUP_BYTES = 64 << 20
"""A group of larger values has fewer rows."""


def write_file(batches: Iterable[pyarrow.RecordBatch], folder: str) -> Iterable[pyarrow.RecordBatch]:
    """Write a task's part of a stage, and return the sums of what it holds.

    The file is named after the task, so a second attempt replaces the first.

    :param batches: ``STAGE_COLUMNS``, and ``HEADER_COLUMNS`` if any, with the timestamp to append, and both halves of its hash
    """
    import os

    import pyarrow
    from pyarrow import parquet

    target = Path(folder) / f"part-{task_number():05}.parquet"
    part = target.with_name(f".{target.name}.{os.getpid()}")
    writer, sums = None, []
    for table in _gathered(batches):
        rows = table.select([*STAGE_COLUMNS, *(name for name in HEADER_COLUMNS if name in table.column_names)])
        if writer is None:
            writer = parquet.ParquetWriter(part, rows.schema, compression="lz4", use_dictionary=["action"], write_statistics=False)
        writer.write_table(rows, row_group_size=_ROW_GROUP)
        sums.append(_summed(_counted(table)))
    if writer is None:
        return
    writer.close()
    sync(part)
    part.replace(target)
    sync(target.parent)
    yield from _summed(pyarrow.concat_tables(sums)).to_batches()


def files_of(path: str) -> list[str]:
    return sorted(map(str, Path(path).glob("part-*.parquet")))


def records_to_append(file: str, *, backwards: bool = False, headers: bool = False) -> Iterator[pyarrow.RecordBatch]:
    """Yield the records to append according to a file of a stage: what ``difference.to_append`` makes of its rows.

    :param headers: the rows have headers
    """
    import pyarrow
    from pyarrow import compute, parquet

    new, old = ("before", "after") if backwards else ("after", "before")
    columns = ["partition", "key", f"{new}_present", f"{new}_value", f"{new}_timestamp", f"{old}_timestamp"]
    more = [f"{new}_headers"] if headers else []
    with parquet.ParquetFile(file) as stage:
        for batch in stage.iter_batches(_ROW_GROUP, columns=[*columns, *more]):
            present, time = batch[f"{new}_present"], batch[f"{new}_timestamp"]
            value = compute.if_else(present, batch[f"{new}_value"], None)
            removal = compute.coalesce(time, batch[f"{old}_timestamp"])
            found = [batch["partition"], batch["key"], value, compute.if_else(present, time, removal), *(batch[name] for name in more)]
            yield pyarrow.RecordBatch.from_arrays(found, ["partition", "key", "value", "timestamp", *(["headers"] if headers else [])])


def _gathered(batches: Iterable[pyarrow.RecordBatch]) -> Iterable[pyarrow.Table]:
    """Merge batches into tables of one row group each."""
    import pyarrow

    held: list[pyarrow.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _ROW_GROUP or size >= _GROUP_BYTES:
            yield pyarrow.Table.from_batches(held)
            held, rows, size = [], 0, 0
    if rows:
        yield pyarrow.Table.from_batches(held)


def _counted(table: pyarrow.Table) -> pyarrow.Table:
    """Return one row for each record to append, with a 1 for its action."""
    import pyarrow
    from pyarrow import compute

    def ones(flags: Any) -> Any:
        return compute.cast(flags, pyarrow.int64())

    columns = {
        "partition": table["partition"],
        "records": ones(compute.is_valid(table["partition"])),
        "tombstones": ones(compute.invert(table["after_present"])),
        "high": table["high"],
        "low": table["low"],
        "earliest": table["timestamp"],
        "latest": table["timestamp"],
        **{name: ones(compute.equal(table["action"], name)) for name in APPENDED},
    }
    return pyarrow.table(columns)


def _summed(table: pyarrow.Table) -> pyarrow.Table:
    """Return one row per partition, with the columns of ``SUMS_SCHEMA``."""
    added = [(name, "sum") for name in (*_ADDED, *APPENDED)]
    grouped = table.group_by("partition").aggregate([*added, ("earliest", "min"), ("latest", "max")])
    kinds = {"earliest": "min", "latest": "max"}
    return grouped.select(
        [name if name == "partition" else f"{name}_{kinds.get(name, 'sum')}" for name in table.column_names]
    ).rename_columns(table.column_names)
