"""Stores of which each task computes a whole partition: it reads the input, then the changelog, and stages the difference.

Without a new key, a partition of a changelog depends on one partition of the input, and on no other: neither for stream time nor for
expiry. So on one machine only counts go through the JVM. What tasks cannot do is left to Spark (``FallBack``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kops.core.statefile import Form, Windows
from kops.core.statefile.models import FAUST, INTEGRAL, KEY_VALUE
from kops.formats.batches.columns import no_records
from kops.spark.columns.difference import stage_rows
from kops.spark.columns.partial_aggregates import CHOSEN, PartialAggregate, big_endian, can_aggregate_in_tasks, partial_aggregate_of
from kops.spark.columns.partial_aggregates import FATES as COUNTED
from kops.spark.columns.partial_windows import (
    EXPIRY,
    WINDOW_FATES,
    FirstRecordTracker,
    can_aggregate_windows_in_tasks,
    partial_windows_of,
    too_short,
    without_expired,
)
from kops.spark.job import FATES, NOTED, ReadCounts
from kops.spark.reading.batch_source import TaskInput, partition_column, task_input
from kops.spark.reading.codec import WIDTHS
from kops.spark.reading.gathering import newest_of_each_key, whole
from kops.spark.reading.ranges import SPLIT_RECORDS
from kops.spark.staging.stage import StagedPartitions, by_tasks, make_folder, staged_of
from kops.spark.staging.stage_files import SUMS_SCHEMA, write_file

if TYPE_CHECKING:
    import pyarrow

    from kops.formats.batches.columns import RecordColumns
    from kops.spark.job import Job
    from kops.spark.reading.batch_source import BatchSource, Read

_NUMBERS = (*COUNTED, *WINDOW_FATES, *EXPIRY, "keys", "held", "unrestorable", "left")
_SCHEMA = ", ".join([SUMS_SCHEMA, *(f"{name} bigint" for name in _NUMBERS)])
_LEFT = ".left"
"""A file next to those of the stage: a task found that the store must be left to Spark, and the others need not continue."""


class FallBack(Enum):
    """What a task met, so that the whole store is left to Spark."""

    LARGE = auto()
    """More keys of a partition than it can hold (``gathering.WHOLE_RECORDS``, ``WHOLE_BYTES``)."""
    UNFIT = auto()
    """A record that is not in the declared formats, or a null value that deletes the ``last`` or ``first`` of a window."""


def reason_against_tasks(batches: BatchSource, job: Job, path: str) -> str | None:
    """Return why tasks cannot compute whole partitions of a store; None if they can.

    :param path: of the stage
    """
    store, ranges = job.store, job.source.ranges.values()
    if job.others:
        return "several topics fill it"
    if not by_tasks(batches.session, path):
        return "not all tasks run on this machine and reach the stage"
    if store.aggregate.kind not in CHOSEN and store.aggregate.form.name not in INTEGRAL:
        return f"{store.aggregate.kind} of {store.aggregate.form} depends on the order of additions or on Java's comparisons"
    if store.type != KEY_VALUE:
        return _reason_against_windows(job)
    if not can_aggregate_in_tasks(store):
        return "its records need expressions, or formats that are decoded"
    large = max((end - start for start, end in ranges), default=0)
    return f"a partition has {large:,} records, more than one task reads" if large > SPLIT_RECORDS else None


def _reason_against_windows(job: Job) -> str | None:
    if not can_aggregate_windows_in_tasks(job.store):
        return "its windows are made record by record, or its records need expressions"
    return None if job.source.records else "there is nothing to read"


def stage_whole_partitions(batches: BatchSource, job: Job, path: str) -> tuple[StagedPartitions, ReadCounts] | FallBack:
    """Compute a store and stage the difference to its changelog, or return why that must be left to Spark."""
    store = job.store
    make_folder(path)
    compute = _Compute(
        partial_aggregate_of(store) if store.type == KEY_VALUE else partial_windows_of(store),
        store.aggregate.form,
        store.window,
        timed=job.state_file.library != FAUST,
        folder=path,
    )
    pieces = _pieces(job)

    def run(number: int, read: Read) -> Iterator[pyarrow.Table]:
        yield compute(*pieces[number], read)

    rows = batches.by_task(len(pieces), _SCHEMA, run).collect() if pieces else []
    counts = {name: sum(row[name] for row in rows) for name in _NUMBERS}
    if counts["left"]:
        return FallBack.UNFIT if counts["unfit"] else FallBack.LARGE
    live: dict[int, int] = {row.partition: 0 for row in rows}
    for row in rows:
        live[row.partition] += row.held
    return staged_of([row for row in rows if row.records is not None]), replace(_seen(job, counts), live=live)


def _pieces(job: Job) -> list[tuple[int, TaskInput | None, TaskInput | None]]:
    """Return the input and changelog range of each task, largest first."""
    numbers = {*job.source.ranges, *job.changelog.ranges}
    found = [(number, task_input(job.source, number), task_input(job.changelog, number)) for number in numbers]
    size = {number: sum(piece.end - piece.start for piece in pieces if piece) for number, *pieces in found}
    return sorted((each for each in found if size[each[0]]), key=lambda each: (-size[each[0]], each[0]))


def _seen(job: Job, counts: dict[str, int]) -> ReadCounts:
    dropped = {name: counts.get(name, 0) for name in FATES.values()}
    if job.store.window is None:
        return ReadCounts(counts["read"], dropped, counts["keys"], 0)
    noted = {name: counts.get(name, 0) for name in NOTED}
    trimmed = job.source.trimmed.values()
    noted["trimmed"] = len(trimmed)
    noted["uncovered"] += sum(start == end for start, end in trimmed)
    return ReadCounts(counts["read"], dropped, counts["keys"], 0, noted=noted, unrestorable=counts["unrestorable"])


class _LeftToSpark(Exception):
    """The store must be left to Spark."""


@dataclass(frozen=True)
class _Compute:
    """Computes a partition and writes its file of the stage; runs in tasks.

    :param form: of the aggregate
    :param timed: whether timestamps are compared
    :param folder: of the stage
    """

    partial: PartialAggregate
    form: Form
    windows: Windows | None
    timed: bool
    folder: str

    def __call__(self, partition: int, source: TaskInput | None, changelog: TaskInput | None, read: Read) -> pyarrow.Table:
        counts = dict.fromkeys(_NUMBERS, 0)
        try:
            wanted, found = self._sides(source, changelog, read, counts)
        except _LeftToSpark:
            Path(self.folder, _LEFT).touch()
            return _row(partition, [], counts | {"left": 1})
        counts["keys"] = wanted.num_rows - wanted["value"].null_count
        counts["held"] = found.num_rows - found["value"].null_count
        return _row(partition, list(write_file(stage_rows(wanted, found, partition, timed=self.timed), self.folder)), counts)

    def _sides(
        self, source: TaskInput | None, changelog: TaskInput | None, read: Read, counts: dict[str, int]
    ) -> tuple[pyarrow.Table, pyarrow.Table]:
        """Return what the store should hold and what the changelog holds: key, value, timestamp."""
        first = FirstRecordTracker(self._while_fit(read(source), counts) if source else ())
        summed = self._whole(self.partial.tables(chain([no_records()], first), counts), self.partial.merge)
        found = self._whole(_held(chain([no_records()], read(changelog) if changelog else ())), newest_of_each_key)
        if counts["unfit"]:
            raise _LeftToSpark
        if self.windows is not None:
            counts["unrestorable"] = too_short(found["key"])
            summed, found = without_expired(summed, found, self.windows, counts)
            counts["uncovered"] = first.uncovered(source, summed["start"].to_numpy())
        return self._as_wanted(self.partial.with_keys(summed)), found

    def _as_wanted(self, summed: pyarrow.Table) -> pyarrow.Table:
        import pyarrow

        is_chosen = "value" in summed.column_names
        value = summed["value"] if is_chosen else big_endian(summed["number"].to_numpy(), WIDTHS[self.form.name])
        return pyarrow.table({"key": summed["key"], "value": value, "timestamp": summed["timestamp_ms"]})

    def _whole(self, tables: Iterable[pyarrow.Table], merge: Any) -> pyarrow.Table:
        found = whole(tables, merge)
        if found is None:
            raise _LeftToSpark
        return found

    def _while_fit(self, records: Iterable[RecordColumns], counts: dict[str, int]) -> Iterator[RecordColumns]:
        left = Path(self.folder, _LEFT)
        for columns in records:
            if counts["unfit"] or left.exists():
                raise _LeftToSpark
            yield columns


def _held(records: Iterable[RecordColumns]) -> Iterator[pyarrow.Table]:
    """Yield the records of a changelog in the format of ``difference.compacted_view``: key, value, timestamp, odd."""
    import pyarrow

    for each in records:
        columns = each.where(each.key_lengths >= 0) if (each.key_lengths < 0).any() else each
        yield pyarrow.table(
            {
                "key": columns.keys(),
                "value": columns.values(),
                "timestamp": pyarrow.array(columns.timestamps),
                "odd": pyarrow.array(columns.has_headers()),
            }
        )


def _row(partition: int, sums: list[pyarrow.RecordBatch], counts: dict[str, int]) -> pyarrow.Table:
    """Return a row of ``_SCHEMA``, whose sums are null if nothing is staged."""
    import pyarrow

    columns: dict[str, Any] = {name.split()[0]: pyarrow.nulls(1, pyarrow.int64()) for name in SUMS_SCHEMA.split(", ")}
    columns |= {name: batch[name] for batch in sums for name in batch.schema.names}
    columns |= {"partition": partition_column(partition, 1)}
    return pyarrow.table(columns | {name: pyarrow.array([counts[name]], pyarrow.int64()) for name in _NUMBERS})
