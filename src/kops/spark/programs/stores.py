"""Compares what a program wrote to a changelog with what that holds, and stages the difference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kops.spark.columns.difference import stage_rows
from kops.spark.programs.changelogs import Changelogs
from kops.spark.programs.inputs import encoded_headers_column
from kops.spark.programs.rows import rows_schema, snapshot_rows
from kops.spark.programs.spill import Rows, zip_parts
from kops.spark.programs.versions import as_records
from kops.spark.staging.difference import ADDED
from kops.spark.staging.stage_files import write_file

if TYPE_CHECKING:
    import numpy
    import pyarrow
    from numpy.typing import NDArray

    from kops.formats.batches.columns import RecordColumns
    from kops.spark.programs.models import Run, StoreTask
    from kops.spark.programs.task_output import TaskOutput
    from kops.spark.reading.batch_source import Read

_TIME_BYTES = 8
LOST = 200


def staged(run: Run, store: StoreTask, partition: int, written: TaskOutput, read: Read) -> dict[str, Any]:
    """Stage the rows that the changelog lacks; return the counts.

    Records of suppressions get no timestamp from the program but the time when they are sent, so times are not compared there.
    """
    wanted, timed = rows_wanted(run, store, written)
    return _compared(wanted, store, partition, read, timed=timed)


def rows_wanted(run: Run, store: StoreTask, written: TaskOutput) -> tuple[Rows, bool]:
    """Return the rows that a program wrote, and whether timestamps are compared."""
    rows, timed = written.of(store), written.timed(store)
    return (rows if timed else rows.map(lambda table: _at_time(table, int(run.settings["wall_clock"])))), timed


def _at_time(rows: pyarrow.Table, time: int) -> pyarrow.Table:
    import pyarrow

    return rows.set_column(2, "timestamp", pyarrow.array([time] * len(rows), pyarrow.int64()))


def _compared(wanted: Rows, store: StoreTask, partition: int, read: Read, *, timed: bool) -> dict[str, Any]:
    """Stage what the changelog lacks of some rows; return the counts, and as ``lost`` some of the keys that it lacks, as texts.

    :param wanted: the last row of each key, or its versions
    :param timed: timestamps are compared too
    """
    from pyarrow import compute

    held = _newest(store, _rows_held(store, partition, read))
    counts = {"headers": False, "keys": 0, "held": 0, "expired": 0, "lost_keys": 0}
    lost: list[bytes] = []

    def rows() -> Iterator[pyarrow.RecordBatch]:
        """Yield the rows to be staged; the writer of versioned stores puts records into the order of time, whatever the order here."""
        latest = latest_window(wanted, store)
        for expected, found in zip_parts(wanted, held):
            records = as_records(expected) if store.as_records else expected
            records, expired = without_expired(records, found, store, latest)
            counts["keys"] += expected.num_rows - expected["value"].null_count - expired
            counts["held"] += found.num_rows - found["value"].null_count
            counts["expired"] += expired
            counts["headers"] |= _any_headers(records) or _any_headers(found)
            for batch in stage_rows(records, found, partition, timed=timed):
                added = batch.filter(compute.equal(batch["action"], ADDED))["key"]
                counts["lost_keys"] += len(added)
                if len(lost) < LOST:
                    lost.extend(added.to_pylist())
                yield batch

    sums = [each for batch in write_file(rows(), store.stage) for each in batch.to_pylist()]
    return {"sums": sums, "lost": [key.hex() for key in sorted(lost)[:LOST]], **counts}


def _any_headers(rows: pyarrow.Table) -> bool:
    from pyarrow import compute

    return bool(compute.any(compute.greater(compute.binary_length(rows["headers"]), 0)).as_py())


def _newest(store: StoreTask, tables: Iterable[pyarrow.Table]) -> Rows:
    """Return the last row of each key of a changelog, or its versions."""
    changelogs = Changelogs(store.stage, [store], repeating=[store.changelog])
    for table in tables:
        changelogs.add(store.changelog, table)
    return changelogs.of(store.changelog)


def unexpired_rows(written: TaskOutput, store: StoreTask) -> Rows:
    """Return the rows that are values, of windows those that have not expired."""
    values = written.of(store).map(_values)
    latest, nothing = latest_window(values, store), rows_schema().empty_table()
    return values.map(lambda table: without_expired(table, nothing, store, latest)[0])


def _values(rows: pyarrow.Table) -> pyarrow.Table:
    from pyarrow import compute

    return rows.filter(compute.is_valid(rows["value"])) if rows["value"].null_count else rows


def _rows_held(store: StoreTask, partition: int, read: Read) -> Iterator[pyarrow.Table]:
    if store.snapshot is not None:
        yield from snapshot_rows(store.snapshot, partition)
    elif store.held is not None:
        yield from map(_held, read(store.held))


def latest_window(rows: Rows, store: StoreTask) -> int | None:
    """Return the latest time in the keys of all parts of a store of windows; None: it has none, or its windows do not expire."""
    return max((int(_times(table, store).max()) for table in rows if table.num_rows), default=None) if store.time_at else None


def without_expired(wanted: pyarrow.Table, found: pyarrow.Table, store: StoreTask, latest: int | None) -> tuple[pyarrow.Table, int]:
    """Leave out expired windows, unless the changelog still has them: the store has dropped them, and nothing deletes them there.

    :param latest: of all parts (``latest_window``)
    :return: the others, and how many with a value have expired
    """
    import pyarrow
    from pyarrow import compute

    if latest is None or not wanted.num_rows:
        return wanted, 0
    gone = _times(wanted, store) < latest - store.expires_ms
    if gone.any():
        held = compute.is_in(wanted["key"].combine_chunks(), value_set=found["key"].combine_chunks())
        gone &= ~held.to_numpy(zero_copy_only=False)
    if not gone.any():
        return wanted, 0
    expired = wanted.filter(pyarrow.array(gone))
    return wanted.filter(pyarrow.array(~gone)), expired.num_rows - expired["value"].null_count


def _times(rows: pyarrow.Table, store: StoreTask) -> NDArray[numpy.int64]:
    """Return the times in the keys of a store of windows."""
    import numpy
    from pyarrow import compute

    texts = compute.binary_slice(rows["key"].combine_chunks(), store.time_at, store.time_at + _TIME_BYTES)
    _, _, content = texts.buffers()
    return numpy.frombuffer(content, ">i8", len(texts)).astype(numpy.int64)


def _held(records: RecordColumns) -> pyarrow.Table:
    import pyarrow

    columns = records.where(records.key_lengths >= 0) if (records.key_lengths < 0).any() else records
    found = [columns.keys(), columns.values(), pyarrow.array(columns.timestamps), encoded_headers_column(columns).fill_null(b"")]
    return pyarrow.table(found, schema=rows_schema())
