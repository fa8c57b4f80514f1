"""Which windows of one partition have expired, and which may be missing: ``windows.keys.Horizon`` on columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kops.core.statefile import Windows
from kops.spark.windows.keys import FIRST_OFFSETS, WINDOW_SUFFIX

if TYPE_CHECKING:
    import numpy
    import pyarrow
    from numpy.typing import NDArray

    from kops.formats.batches.columns import RecordColumns
    from kops.spark.reading.batch_source import Piece

EXPIRY = ("expired", "hidden", "uncovered", "unaligned")
"""The counts; see ``job.NOTED``."""


@dataclass
class First:
    """Passes records on, and keeps the offset and timestamp of the first."""

    records: Iterable[RecordColumns]
    offset: int | None = None
    timestamp: int = field(default=0)

    def __iter__(self) -> Iterator[RecordColumns]:
        for columns in self.records:
            if self.offset is None and len(columns):
                self.offset, self.timestamp = int(columns.offsets[0]), int(columns.timestamps[0])
            yield columns

    def uncovered(self, piece: Piece | None, starts: NDArray[numpy.int64]) -> int:
        """Count the windows that may have had records which are gone: those up to the timestamp of the first remaining record.

        If there is none among the first offsets, the partition counts as one window.
        """
        if piece is None or not piece.trimmed:
            return 0
        if self.offset is None or self.offset >= piece.start + FIRST_OFFSETS:
            return 1
        return int((starts <= self.timestamp).sum())


def without_expired(
    put: pyarrow.Table, found: pyarrow.Table, windows: Windows, counts: dict[str, int]
) -> tuple[pyarrow.Table, pyarrow.Table]:
    """Leave out what the store has forgotten: of everything that was put, and of what the changelog holds.

    Also counts what a store will expire on restore because of a later window in the changelog.

    :param put: with ``start``
    :param found: with ``key``, the key of a window
    """
    import pyarrow

    starts = put["start"].to_numpy()
    if not len(starts):
        return put, found
    latest = int(starts.max())
    bound = latest - windows.retention_ms
    live = starts > bound
    counts["expired"] = int((~live).sum())
    times, long_enough = window_starts(found["key"].combine_chunks())
    held = long_enough & found["value"].is_valid().to_numpy()
    counts["unaligned"] = int((times[held] % windows.advance_ms != 0).sum())
    held_up_to = int(times[long_enough].max()) if long_enough.any() else latest
    if held_up_to > latest:
        counts["hidden"] = int((live & (starts <= held_up_to - windows.retention_ms)).sum())
    kept = ~long_enough | (times > bound)
    return (
        put if live.all() else put.filter(pyarrow.array(live)),
        found if kept.all() else found.filter(pyarrow.array(kept)),
    )


def too_short(keys: pyarrow.ChunkedArray) -> int:
    """Count keys that are too short to be a window's."""
    from pyarrow import compute

    return int(compute.sum(compute.less(compute.binary_length(keys), WINDOW_SUFFIX)).as_py() or 0)


def window_starts(keys: pyarrow.Array) -> tuple[NDArray[numpy.int64], NDArray[numpy.bool_]]:
    """Return the start in each window's key, and which keys are long enough to have one."""
    import numpy

    _, bounds, data = keys.buffers()
    ends = numpy.frombuffer(bounds, numpy.int32)[keys.offset : keys.offset + len(keys) + 1].astype(numpy.int64)
    long_enough = numpy.diff(ends) >= WINDOW_SUFFIX
    starts = numpy.zeros(len(keys), numpy.int64)
    if long_enough.any():
        numbers: NDArray[numpy.int64] = numpy.ndarray((data.size - 7,), ">i8", data, strides=(1,))
        starts[long_enough] = numbers[ends[1:][long_enough] - WINDOW_SUFFIX]
    return starts, long_enough
