"""What a changelog lacks of what a program wrote to it: compared, and staged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kops.spark.columns.difference import stage_rows
from kops.spark.programs.inputs import headers_of
from kops.spark.programs.rows import rows_schema, snapshot_rows
from kops.spark.programs.versions import as_records, as_versions
from kops.spark.reading.gathering import gathered, newest_of_each_key
from kops.spark.staging.stage_files import SUMS_SCHEMA, write_file

if TYPE_CHECKING:
    import pyarrow

    from kops.formats.batches.columns import RecordColumns
    from kops.spark.programs.models import ProgramTask, Run, StoreTask
    from kops.spark.programs.written import Written
    from kops.spark.reading.batch_source import Piece, Read

_SUMS = tuple(name.split()[0] for name in SUMS_SCHEMA.split(", "))


def staged(run: Run, store: StoreTask, task: ProgramTask, written: Written, read: Read) -> dict[str, Any]:
    """Stage what the changelog lacks; return the counts.

    Where the program gives no timestamp, as suppressions do not, that of a record is when it was sent, and is not compared.
    """
    wanted, timed = _timed(run, _rows(written, store))
    return compared(wanted, store, task.partition, read, timed=timed)


def rows_wanted(run: Run, store: StoreTask, written: Written, held: pyarrow.Table) -> tuple[pyarrow.Table, bool]:
    """Return the rows that a program wrote, without windows that have expired and are not held; and whether timestamps are compared."""
    wanted, timed = _timed(run, _rows(written, store))
    return _without_expired(wanted, held, store)[0], timed


def _timed(run: Run, wanted: pyarrow.Table) -> tuple[pyarrow.Table, bool]:
    import pyarrow
    from pyarrow import compute

    timed = not compute.any(compute.less(wanted["timestamp"], 0)).as_py()
    if not timed:
        wanted = wanted.set_column(2, "timestamp", pyarrow.array([int(run.settings["wall_clock"])] * len(wanted), pyarrow.int64()))
    return wanted, timed


def compared(wanted: pyarrow.Table, store: StoreTask, partition: int, read: Read, *, timed: bool) -> dict[str, Any]:
    """Stage what the changelog lacks of some rows; return the counts.

    :param wanted: the last row of each key, or its versions
    :param timed: timestamps are compared too
    """
    import pyarrow
    from pyarrow import compute

    held = _rows_held(store, partition, read)
    found = newest(held) if store.history_ms is None else as_versions(_one_table(held), store.history_ms)
    keys = wanted.num_rows - wanted["value"].null_count
    if store.as_records:
        wanted = as_records(wanted)
    wanted, expired = _without_expired(wanted, found, store)
    rows_to_stage = stage_rows(wanted, found, partition, timed=timed)
    sums = pyarrow.Table.from_batches([*write_file(rows_to_stage, store.stage)] or [_no_sums()]).to_pylist()
    return {
        "sums": sums,
        "headers": any(compute.any(compute.greater(compute.binary_length(table["headers"]), 0)).as_py() for table in (wanted, found)),
        "keys": keys - expired,
        "held": found.num_rows - found["value"].null_count,
        "expired": expired,
    }


def newest(tables: Iterable[pyarrow.Table]) -> pyarrow.Table:
    """Return the last row of each key."""
    return newest_of_each_key(_one_table(gathered(tables, newest_of_each_key)))


def _one_table(tables: Iterable[pyarrow.Table]) -> pyarrow.Table:
    import pyarrow

    return pyarrow.concat_tables([rows_schema().empty_table(), *tables]).combine_chunks()


def _rows(written: Written, store: StoreTask) -> pyarrow.Table:
    found = written.of(store)
    return found if store.history_ms is None else as_versions(found, store.history_ms)


def lasting(written: Written, store: StoreTask) -> pyarrow.Table:
    """Return the rows that are values, of windows those that have not expired."""
    from pyarrow import compute

    wanted = _rows(written, store)
    return _without_expired(wanted.filter(compute.is_valid(wanted["value"])), rows_schema().empty_table(), store)[0]


def _rows_held(store: StoreTask, partition: int, read: Read) -> Iterator[pyarrow.Table]:
    if store.snapshot is not None:
        yield snapshot_rows(store.snapshot, partition)
    elif store.held is not None:
        yield from rows_of(store.held, read)


def rows_of(piece: Piece, read: Read) -> Iterator[pyarrow.Table]:
    """Yield the rows of a changelog's partition."""
    for columns in read(piece):
        yield _held(columns)


def _without_expired(wanted: pyarrow.Table, found: pyarrow.Table, store: StoreTask) -> tuple[pyarrow.Table, int]:
    """Leave out windows that have expired, unless the changelog still has them: nothing deletes them there, and time did elsewhere."""
    import numpy
    import pyarrow
    from pyarrow import compute

    if not store.time_at or not wanted.num_rows:
        return wanted, 0
    keys = wanted["key"].combine_chunks()
    texts = b"".join(key[store.time_at : store.time_at + 8] for key in keys.to_pylist())
    times = numpy.frombuffer(texts, ">i8")
    gone = times < times.max() - store.expires_ms
    gone &= ~compute.is_in(keys, value_set=found["key"].combine_chunks()).to_numpy(zero_copy_only=False)
    return (wanted.filter(pyarrow.array(~gone)) if gone.any() else wanted), int(gone.sum())


def _no_sums() -> pyarrow.RecordBatch:
    import pyarrow

    return pyarrow.RecordBatch.from_pydict({name: pyarrow.array([], pyarrow.int64()) for name in _SUMS})


def _held(records: RecordColumns) -> pyarrow.Table:
    import pyarrow

    columns = records.where(records.key_lengths >= 0) if (records.key_lengths < 0).any() else records
    found = [columns.keys(), columns.values(), pyarrow.array(columns.timestamps), headers_of(columns).fill_null(b"")]
    return pyarrow.table(found, schema=rows_schema())
