"""The view of a store of windows or sessions that is filled by one stream."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kops.core.statefile.models import SESSION, SLIDING, WINDOW
from kops.spark.columns.partial_aggregates import FATES as COUNTED
from kops.spark.columns.partial_aggregates import joined
from kops.spark.columns.partial_windows import WINDOW_FATES, partial_window_rows
from kops.spark.driver.observing import Watch, sums, watched
from kops.spark.frames import expression
from kops.spark.job import FATES, NOTED, ReadCounts
from kops.spark.staging.difference import COLUMNS, MIXED, SURE, TIMED
from kops.spark.stores.aggregates import aggregated, depends_on_order
from kops.spark.stores.partitions import with_partitions
from kops.spark.stores.prepare import PreparedRecords, prepare, timed_records
from kops.spark.stores.views import View, observed_records, refuse_undecodable
from kops.spark.stores.windows_folds import ordered_by_key, ordered_by_task, reduced_windows, sessions, sliding_windows
from kops.spark.windows.keys import (
    FIRST_OFFSETS,
    Horizon,
    by_partition,
    horizon_of,
    in_windows,
    is_boundary,
    is_late,
    start_of,
    suffix_of,
    time_of,
    windows_of,
)
from kops.spark.windows.steps import PASSES_NULLS
from kops.spark.windows.stream_time import (
    StreamTimes,
    is_in_pieces,
    read_in_order,
    stream_times_of_pieces,
    stream_times_of_sources,
    with_stream_time,
    with_task,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kops.spark.job import Job
    from kops.spark.reading.batch_source import BatchSource
    from kops.spark.reading.source import KafkaSource


_REACH = {WINDOW: 0, SLIDING: 2, SESSION: 1}
"""For how many times its size before its start a window depends on records: sessions merge, sliding windows start after other windows."""

_FOLDED = ("last", "first", "reducer")
"""Aggregates of windows that a null value, or a reducer, deletes and restarts."""


def windowed_view(kafka: KafkaSource, job: Job) -> View:
    """Compute windows or sessions.

    Everything that was put is computed and cached first, because only all of it shows what has expired.
    """
    store = job.store
    windows = windows_of(store)
    if not job.source.records:
        return _nothing_read(kafka, job)
    prepared, of_records, timed = _timed(kafka, job)
    rows, of_time = _put(prepared, timed, job)
    placed = with_partitions(rows, job.partitions, suffix_of(windows)) if store.key_by and windows.kind == WINDOW else rows
    put = _with_one_row(placed).persist()
    try:
        horizon = horizon_of(windows, put.where("key is not null"))
        refuse_undecodable(prepared, job, of_records.get["undecodable"])
    except BaseException:
        put.unpersist()
        raise
    return _ComputedWindows(kafka, job, horizon, put, of_records, of_time).view()


def partial_windows_view(kafka: KafkaSource, batches: BatchSource, job: Job) -> View | None:
    """Compute windows for which tasks aggregate their records (``partial_windows``); None if a record is not in the declared formats."""
    windows = windows_of(job.store)
    rows, of_all = watched(partial_window_rows(batches, job.source, job.store), sums((*COUNTED, *WINDOW_FATES)))
    put = _with_one_row(joined(rows, job.store)).persist()
    try:
        horizon = horizon_of(windows, put.where("key is not null"))
        unfit = of_all.get["unfit"]
    except BaseException:
        put.unpersist()
        raise
    if unfit:
        put.unpersist()
        return None
    return _ComputedWindows(kafka, job, horizon, put, of_all, of_all).view()


def _nothing_read(kafka: KafkaSource, job: Job) -> View:
    rows = kafka.read(job.source).selectExpr("partition", "key", "value", "timestamp_ms as timestamp", f"{SURE} as doubt")
    return View(rows, lambda: ReadCounts(0, dict.fromkeys(FATES.values(), 0), 0, 0, noted=dict.fromkeys(NOTED, 0)))


def _with_one_row(frame: DataFrame) -> DataFrame:
    """Add a row of nulls: Spark reports no observation of a frame without rows."""
    nulls = (f"cast(null as {field.dataType.simpleString()}) as {field.name}" for field in frame.schema.fields)
    return frame.union(frame.sparkSession.range(1).selectExpr(*nulls))


def _timed(kafka: KafkaSource, job: Job) -> tuple[PreparedRecords, Watch, DataFrame]:
    """Return the records that reach the processor, each with its stream time."""
    in_pieces = _is_in_pieces(job)
    source = read_in_order(kafka, job.source) if in_pieces else kafka.read(replace(job.source, split=False))
    prepared = prepare(source, job.state_file, job.store, lenient=job.skip_undecodable)
    judged, of_records = observed_records(prepared)
    placed = with_task(prepared.kept(judged), job.partitions if job.store.key_by else None)
    return prepared, of_records, with_stream_time(placed, _known(kafka, job, in_pieces=in_pieces))


def _known(kafka: KafkaSource, job: Job, *, in_pieces: bool) -> StreamTimes:
    """Read what must be known in advance: only needed if partitions are read in pieces, or meet after a new key."""
    several = _is_several(job)
    if not (in_pieces or several):
        return StreamTimes()
    kept = prepare(kafka.read(job.source), job.state_file, job.store, lenient=job.skip_undecodable).kept()
    return stream_times_of_sources(with_task(kept, job.partitions)) if several else stream_times_of_pieces(kept)


def _is_several(job: Job) -> bool:
    """Whether the records of several source partitions meet in a task."""
    return bool(job.store.key_by) and sum(end > start for start, end in job.source.ranges.values()) > 1


def _is_in_pieces(job: Job) -> bool:
    """Whether large partitions may be read in pieces: if only the stream time depends on the order, or rows are shuffled anyway."""
    store, windows = job.store, windows_of(job.store)
    if store.key_by or windows.kind == SLIDING or not is_in_pieces(job.source):
        return False
    return windows.kind == SESSION or store.aggregate.kind in _FOLDED or not depends_on_order(store.aggregate)


def _put(prepared: PreparedRecords, timed: DataFrame, job: Job) -> tuple[DataFrame, Watch]:
    """Return everything that was put into the store, as ``COLUMNS``, with the counts taken of it."""
    store, windows = job.store, windows_of(job.store)
    several, in_pieces = _is_several(job), _is_in_pieces(job)
    passed_over = f"{store.aggregate.kind in PASSES_NULLS} and v is null"
    if windows.kind == WINDOW:
        counts = {"null_values": passed_over, "late": f"not ({passed_over}) and {is_late(windows)}", "boundary": is_boundary(windows)}
        counted, of_time = watched(timed, {name: f"count_if({condition})" for name, condition in counts.items()})
        inside = in_windows(counted.where(f"not ({passed_over})"), windows)
        if store.aggregate.kind not in _FOLDED:
            return aggregated(prepared, inside, store), of_time
        ordered = ordered_by_key(inside.selectExpr("*", "0L as before", "0L as others"), in_pieces=in_pieces, several=several)
        return reduced_windows(ordered, store, prepared.value_type).where("key is not null").select(*COLUMNS), of_time
    of_nulls = timed.selectExpr("*", f"({passed_over}) as passed_over")
    counted, of_time = watched(of_nulls, {"null_values": "count_if(passed_over)"})
    taken = counted.where("not passed_over").drop("passed_over")
    if windows.kind == SESSION:
        rows = sessions(ordered_by_key(taken, in_pieces=in_pieces, several=several), store, prepared.value_type)
    else:
        rows = sliding_windows(ordered_by_task(taken, by_new_key=bool(store.key_by), several=several), store, prepared.value_type)
    return rows, of_time


def _uncovered(kafka: KafkaSource, job: Job, horizon: Horizon, put: DataFrame) -> dict[str, int]:
    """Count the windows that may have had records which the input has lost: those before its first one, if times grow with offsets."""
    trimmed = job.source.trimmed
    if not trimmed:
        return {"trimmed": 0, "uncovered": 0}
    firsts = {number: (start, min(end, start + FIRST_OFFSETS)) for number, (start, end) in trimmed.items()}
    first = expression("min_by(timestamp_ms, offset) as time")
    rows = (
        timed_records(kafka.read(replace(job.source, ranges=firsts)), job.state_file, job.store).groupBy("partition").agg(first).collect()
    )
    times = {row.partition: row.time for row in rows}
    if job.store.key_by and times:
        times = dict.fromkeys(range(job.partitions), max(times.values()))
    windows, lost = horizon.windows, len(trimmed) - len(rows)
    is_old = f"{start_of(windows)} - {_REACH[windows.kind] * windows.size_ms} <= {by_partition(times)}"
    found = put.where(f"key is not null and value is not null and {horizon.is_live(time_of(windows))} and {is_old}").count()
    return {"trimmed": len(trimmed), "uncovered": lost + found}


@dataclass
class _ComputedWindows:
    """What was computed, once everything that was put is known.

    :param put: cached by Spark; rows without a key carry the counts of ``kops.spark.stores.windows_folds``
    :param current: the compacted view of the changelog, if that was read too
    """

    kafka: KafkaSource
    job: Job
    horizon: Horizon
    put: DataFrame
    of_records: Watch
    of_time: Watch
    of_keys: Watch = field(init=False)
    of_changelog: Watch = field(init=False)
    current: DataFrame | None = None

    @property
    def time(self) -> str:
        """Return SQL of the time of a key."""
        return time_of(self.horizon.windows)

    def view(self) -> View:
        return View(self.rows(), self.seen, self.live, self.put.unpersist)

    def rows(self) -> DataFrame:
        is_live = self.horizon.is_live(self.time)
        counts = {
            "keys": f"key is not null and value is not null and {is_live}",
            "expired": f"key is not null and value is not null and not ({is_live})",
            "mixed": f"doubt = {MIXED} and {is_live}",
            "timed": f"doubt = {TIMED} and value is not null and {is_live}",
        }
        tallies = {f"{name}_before": f"coalesce(sum({name}), 0)" for name in ("late", "boundary", "expired", "cached")}
        folded = tallies if "late" in self.put.columns else {}
        counted, self.of_keys = watched(self.put, {name: f"count_if({condition})" for name, condition in counts.items()} | folded)
        return counted.where(f"key is not null and {is_live}").select(*COLUMNS)

    def live(self, current: DataFrame) -> DataFrame:
        """Remove what has expired from a changelog's compacted view, and record how far the changelog is ahead."""
        self.current = current
        rows, self.of_changelog = watched(
            _with_one_row(current), {"ahead": f"coalesce(max({self._ahead}), 0L)", "unaligned": self._unaligned}
        )
        return self.horizon.live(rows.where("key is not null"))

    def seen(self) -> ReadCounts:
        records, times, keys = self.of_records.get, self.of_time.get, self.of_keys.get
        dropped = {name: records.get(name, 0) for name in FATES.values()}
        is_ahead = self.current is not None and self.of_changelog.get["ahead"] > 0
        noted = {
            "late": times.get("late", 0) + keys.get("late_before", 0),
            "boundary": times.get("boundary", 0) + keys.get("boundary_before", 0),
            "null_values": times["null_values"],
            "expired": keys["expired"] + keys.get("expired_before", 0),
            "hidden": self._hidden() if is_ahead else 0,
            "timed": keys["timed"],
            "cached": keys.get("cached_before", 0),
            "unaligned": self.of_changelog.get["unaligned"] if self.current is not None else 0,
            **_uncovered(self.kafka, self.job, self.horizon, self.put),
        }
        return ReadCounts(records["read"], dropped, keys["keys"], keys["mixed"], noted=noted, latest=records.get("latest"))

    @property
    def _unaligned(self) -> str:
        """Return SQL that counts windows of a fixed size whose starts do not fit the state file's."""
        windows = self.horizon.windows
        if windows.kind != WINDOW:
            return "0L"
        return f"count_if(value is not null and pmod({self.time} - {windows.alignment_ms}, {windows.advance_ms}) <> 0)"

    @property
    def _ahead(self) -> str:
        """Return SQL of how far the time of a key is ahead of the stream time of its store."""
        return f"{self.time} - {self.horizon.bound()}"

    def _hidden(self) -> int:
        """Count what a store that restores the changelog would have expired: its stream time is that of the latest key."""
        if self.current is None:
            return 0
        rows = self.current.groupBy("partition").agg(expression(f"max({self._ahead}) as ahead")).where("ahead > 0").collect()
        ahead = by_partition({row.partition: row.ahead for row in rows})
        live, later = self.horizon.is_live(self.time), self.horizon.is_live(self.time, ahead)
        return self.put.where(f"key is not null and value is not null and {live} and not ({later})").count()
