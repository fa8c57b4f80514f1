"""Tumbling and hopping windows: which windows each record updates, and which records are late. DataFrame to DataFrame.

``TimeWindows.windowsFor`` and ``KStreamWindowAggregate``: a record belongs to every window that starts at a multiple of the advance and
contains it, and updates those that end after the stream time (including the record) minus the grace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kops.core.statefile import Windows
from kops.spark.windows.keys import window_key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def in_windows(timed: DataFrame, windows: Windows) -> DataFrame:
    """Return one row per window that a record updates, with the window's key.

    :param timed: partition, offset, timestamp_ms, key, v, task, before
    :return: partition, offset, timestamp_ms, key, v, task
    """
    start = _first(windows)
    if windows.advance_ms < windows.size_ms:
        start = f"explode(sequence({start}, timestamp_ms, {windows.advance_ms}L))"
    after = f"timestamp_ms >= {windows.alignment_ms}"  # the application has no windows before its alignment
    rows = timed.where(after).selectExpr("*", f"{start} as start")
    is_open = f"start + {windows.size_ms} > greatest(before, timestamp_ms) - {windows.grace_ms}"
    return rows.where(is_open).selectExpr("partition", "offset", "timestamp_ms", f"{window_key('key', 'start')} as key", "v", "task")


def is_late(windows: Windows) -> str:
    """Return SQL that is true for a record that is late for one of its windows."""
    return f"{_first(windows)} + {windows.size_ms} <= greatest(before, timestamp_ms) - {windows.grace_ms}"


def is_boundary(windows: Windows) -> str:
    """Return SQL that is true for a record that would have been late for a window after records of other partitions."""
    last = f"((timestamp_ms - {windows.alignment_ms}) div {windows.advance_ms} * {windows.advance_ms} + {windows.alignment_ms})"
    closed = f"greatest(before, timestamp_ms, others) - {windows.grace_ms}"
    open_now = f"{last} + {windows.size_ms} > greatest(before, timestamp_ms) - {windows.grace_ms}"
    # The first open window of the record starts at a multiple of the advance after `edge`.
    edge = f"(greatest(before, timestamp_ms) - {windows.grace_ms + windows.size_ms + windows.alignment_ms})"
    after_edge = f"(if({edge} < 0, 0L, ({edge} div {windows.advance_ms} + 1) * {windows.advance_ms}) + {windows.alignment_ms})"
    first_open = f"greatest({_first(windows)}, {after_edge})"
    return f"{open_now} and {first_open} + {windows.size_ms} <= {closed}"


def _first(windows: Windows) -> str:
    """Return SQL of the start of a record's first window."""
    earliest = windows.size_ms - windows.advance_ms + windows.alignment_ms
    first = f"greatest(0L, timestamp_ms - {earliest}L) div {windows.advance_ms} * {windows.advance_ms}"
    return f"({first} + {windows.alignment_ms}L)" if windows.alignment_ms else first
