"""What one partition of a changelog should hold but does not, computed on columns in a task. In Spark SQL: ``difference``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kops.formats.runner_frames import decoded_headers
from kops.formats.xxhash64_columns import column_hashes
from kops.spark.reading.batch_source import partition_column
from kops.spark.staging.difference import APPENDED, HEADER_COLUMNS, STAGE_COLUMNS

if TYPE_CHECKING:
    import numpy
    import pyarrow
    from numpy.typing import NDArray

    Rows = NDArray[numpy.int64]

_AT_ONCE = 200_000
_MISSING = -1
_SAME = -1


def stage_rows(wanted: pyarrow.Table, found: pyarrow.Table, partition: int, *, timed: bool) -> Iterator[pyarrow.RecordBatch]:
    """Yield the rows that differ, in the format of ``stage_files.write_file``.

    :param wanted: key, value (null: should not be there), timestamp, and headers, if they are compared; each key once
    :param found: key, value (null: a tombstone), timestamp, odd or headers; each key once. Headers are ``encoded_headers``, empty: none
    :param timed: whether timestamps are compared
    """
    wanted, found = wanted.combine_chunks(), found.combine_chunks()
    keys, of_wanted, of_found = _matched(wanted["key"], found["key"])
    for start in range(0, len(keys), _AT_ONCE):
        piece = slice(start, start + _AT_ONCE)
        pairs = _Pairs(wanted, found, of_wanted[piece], of_found[piece])
        batch = pairs.rows(keys[piece], partition, timed=timed)
        if batch.num_rows:
            yield batch


def _matched(wanted: pyarrow.ChunkedArray, found: pyarrow.ChunkedArray) -> tuple[pyarrow.Array, Rows, Rows]:
    """Return all keys, and for each its row in ``wanted`` and in ``found``, or ``_MISSING``."""
    import numpy
    import pyarrow

    if not len(found):
        return _joined(wanted), numpy.arange(len(wanted)), numpy.full(len(wanted), _MISSING)
    numbered = _joined(pyarrow.chunked_array([*wanted.chunks, *found.chunks], pyarrow.binary())).dictionary_encode()
    numbers = numbered.indices.to_numpy()
    keys = numbered.dictionary
    of_wanted, of_found = numpy.full(len(keys), _MISSING), numpy.full(len(keys), _MISSING)
    of_wanted[numbers[: len(wanted)]] = numpy.arange(len(wanted))
    of_found[numbers[len(wanted) :]] = numpy.arange(len(found))
    return keys, of_wanted, of_found


def _joined(column: pyarrow.ChunkedArray) -> pyarrow.Array:
    import pyarrow

    chunks = column.chunks
    return chunks[0] if len(chunks) == 1 else pyarrow.concat_arrays(chunks) if chunks else pyarrow.array([], pyarrow.binary())


class _Pairs:
    """The rows expected and found for some keys, side by side."""

    def __init__(self, wanted: pyarrow.Table, found: pyarrow.Table, of_wanted: Rows, of_found: Rows) -> None:
        from pyarrow.compute import not_equal

        self.is_found = of_found != _MISSING
        self.after, self.after_time = (_taken(wanted[name], of_wanted) for name in ("value", "timestamp"))
        self.before, self.before_time = (_taken(found[name], of_found) for name in ("value", "timestamp"))
        self.headers: tuple[pyarrow.Array, ...] = ()
        if "headers" in wanted.column_names:
            self.headers = _taken(found["headers"], of_found), _taken(wanted["headers"], of_wanted)
        self.odd = not_equal(*self.headers) if self.headers else _taken(found["odd"], of_found)

    def actions(self, *, timed: bool) -> NDArray[Any]:
        """Return each key's index in ``APPENDED``, or ``_SAME``."""
        import numpy
        from pyarrow.compute import not_equal

        is_wanted, was_there = _flags(self.after.is_valid()), _flags(self.before.is_valid())
        unlike = _flags(not_equal(self.after, self.before)) | _flags(self.odd)
        if timed:
            unlike |= _flags(not_equal(self.after_time, self.before_time))
        cases = {
            "added": is_wanted & ~was_there,
            "changed": is_wanted & was_there & unlike,
            "removed": ~is_wanted & was_there,
            "erased": ~is_wanted & ~self.is_found,
        }
        return numpy.select([cases[name] for name in APPENDED], list(range(len(APPENDED))), _SAME)

    def rows(self, keys: pyarrow.Array, partition: int, *, timed: bool) -> pyarrow.RecordBatch:
        import numpy
        import pyarrow
        from pyarrow import compute

        actions = self.actions(timed=timed)
        columns = {
            "key": keys,
            "before_present": self.before.is_valid(),
            "before_value": self.before,
            "before_timestamp": self.before_time,
            "after_present": self.after.is_valid(),
            "after_value": self.after,
            "after_timestamp": self.after_time,
            "action": pyarrow.array(actions),
            **dict(zip(HEADER_COLUMNS, self.headers, strict=False)),
        }
        rows = pyarrow.RecordBatch.from_pydict(columns)
        if (actions == _SAME).any():
            rows = rows.take(pyarrow.array(numpy.flatnonzero(actions != _SAME)))
        times = compute.coalesce(rows["after_timestamp"], rows["before_timestamp"])
        headers = {name: _header_lists(rows[name]) for name in columns if name in HEADER_COLUMNS}
        hashes = column_hashes(rows["key"], rows["after_value"], times.to_numpy(), headers.get(HEADER_COLUMNS[1]))
        staged = {
            **{name: rows[name] for name in columns},
            **headers,
            "partition": partition_column(partition, rows.num_rows),
            "action": pyarrow.array(APPENDED).take(rows["action"]),
            "timestamp": times,
            "high": pyarrow.array((hashes >> numpy.uint64(32)).astype(numpy.int64)),
            "low": pyarrow.array((hashes & numpy.uint64(0xFFFFFFFF)).astype(numpy.int64)),
        }
        names = (*STAGE_COLUMNS, *headers, "timestamp", "high", "low")
        return pyarrow.RecordBatch.from_pydict({name: staged[name] for name in names})


def _header_lists(encoded: pyarrow.Array) -> pyarrow.Array:
    """Return headers as Spark has them; null where there are none."""
    import pyarrow

    kind = pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())]))
    texts = encoded.dictionary_encode()  # those of suppress buffers are all the same
    lists = [[{"key": name, "value": value} for name, value in decoded_headers(text)] or None for text in texts.dictionary.to_pylist()]
    return pyarrow.array(lists, kind).take(texts.indices)


def _taken(column: pyarrow.ChunkedArray, rows: Rows) -> pyarrow.Array:
    """Return the values at these rows; null for missing rows."""
    import pyarrow

    missing = rows == _MISSING
    if missing.all():
        return pyarrow.nulls(len(rows), column.type)
    return column.combine_chunks().take(pyarrow.array(rows, mask=missing if missing.any() else None))


def _flags(column: pyarrow.Array) -> NDArray[numpy.bool_]:
    """Return booleans, with null as false."""
    flags: NDArray[numpy.bool_] = column.fill_null(False).to_numpy(zero_copy_only=False)
    return flags
