"""Records chosen, changed and routed by Spark SQL that sees only the columns its expressions use; the rest never leaves the tasks.

A task reads the source and passes Spark the columns used, with each record's offset. A second one, after Spark, takes the results of the
expressions by offset, reads the same batches itself, and combines both. Compared with rows of whole records (``jobs.send_rows``) this saves
a third of the CPU: 1.5 million records filtered, changed and routed took 3.5 and 3.8 s with the proof, as rows 5.4 and 5.6 s.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from kops.core.statefile.sources import Form
from kops.formats.batches.changes import NewContent, with_new
from kops.formats.batches.frames import Frames, compacted, frames_of, with_any
from kops.gateways.wire.connections import patiently
from kops.spark.frames import task_number
from kops.spark.reading.ranges import HEADERS_TYPE
from kops.spark.replay.jobs import OUTCOME, ROWS_AT_ONCE, Job, MisplacedRecord, Outcome, PartitionRange, outcomes_of, row_of, send_partition
from kops.spark.replay.slices import Destinations, RoutedFrames, RoutedSlice, Slice, by_key

if TYPE_CHECKING:
    import numpy
    import pyarrow
    from numpy.typing import NDArray
    from pyspark.sql import DataFrame

    from kops.formats.batches.header import Batch

TYPES: Mapping[str, str] = {
    "partition": "int",
    "offset": "bigint",
    "key": "binary",
    "value": "binary",
    "timestamp_ms": "bigint",
    "headers": HEADERS_TYPE,
}
"""A record's columns; the first two are always present."""
_ALWAYS = ("partition", "offset")
HEADER = "header_"
"""Followed by a number: the column of a header that is set."""
_STAR = re.compile(r"(^|[(,.])\s*\*")
_LITERAL = re.compile(r"\s*'([^'$\\]*)'\s*")


def columns_named(expressions: Iterable[str], key: Form, value: Form) -> tuple[str, ...]:
    """Return those of ``TYPES`` that expressions may use: possibly more than they do, never fewer.

    :param key: and ``value``: formats; a record that is not in them is found whether or not an expression reads it
    """
    texts = [text.lower() for text in expressions]
    if any(_STAR.search(text) or "identifier" in text for text in texts):
        return tuple(TYPES)
    marks = {"key": "key", "value": "value", "timestamp_ms": "timestamp", "headers": "headers"}
    named = {name for name, mark in marks.items() if any(mark in text for text in texts)}
    named |= {name for name, form in (("key", key), ("value", value)) if form.name != "bytes"}
    return tuple(name for name in TYPES if name in _ALWAYS or name in named)


def literal(expression: str) -> bytes | None:
    """Return the bytes of an expression that is a plain text and the same for all records; None for any other."""
    found = _LITERAL.fullmatch(expression)
    return found[1].encode() if found else None


def schema_of(columns: Sequence[str]) -> str:
    return ", ".join(f"{name} {TYPES[name]}" for name in columns)


def send_changed(new: DataFrame, job: Job, parts: Sequence[PartitionRange], headers: Mapping[str, bytes | None]) -> list[Outcome]:
    """Send records of the source with their new content.

    :param new: ``offset``, and those of ``topic``, ``target_partition``, ``key``, ``value``, ``timestamp_ms`` and ``HEADER``N that change;
        each part in a task of its own, in the order of ``parts``, sorted by offset
    :param headers: the names of the headers to set, in the order of their numbers, with the value if it is the same for all records
    """

    def send(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        from kops.gateways.wire.batch_consumer import BatchConsumer

        part = parts[task_number()]
        with closing(patiently(lambda: BatchConsumer(job.source, job.source_settings, read_committed=True))) as source:

            def slices(start: int) -> Iterator[Slice]:
                rows = _SortedRows(iter(batches))
                rows.before(start)
                return _slices(source.batches(part.partition, start, part.end), rows, part, job.destinations, headers)

            yield row_of(send_partition(job, part, slices))

    return outcomes_of(new.mapInArrow(send, OUTCOME))


class _SortedRows:
    """Rows sorted by offset, consumed up to a given offset."""

    def __init__(self, batches: Iterator[pyarrow.RecordBatch]) -> None:
        self._batches = batches
        self._held: list[pyarrow.RecordBatch] = []

    def before(self, offset: int) -> pyarrow.Table | None:
        """Return the next rows with offsets below this one; None if there are none."""
        import numpy
        import pyarrow

        taken = []
        while self._held or self._more():
            batch = self._held.pop()
            count = int(numpy.searchsorted(numpy.asarray(batch.column("offset")), offset))
            if count:
                taken.append(batch.slice(0, count))
            if count < batch.num_rows:
                self._held.append(batch.slice(count))
                break
        return pyarrow.Table.from_batches(taken) if taken else None

    def _more(self) -> bool:
        batch = next((batch for batch in self._batches if batch.num_rows), None)
        if batch is not None:
            self._held.append(batch)
        return batch is not None


def _slices(
    fetched: Iterable[tuple[bytes, list[Batch]]],
    rows: _SortedRows,
    part: PartitionRange,
    destinations: Destinations,
    headers: Mapping[str, bytes | None],
) -> Iterator[Slice]:
    import numpy

    for data, batches in fetched:
        after = min(part.end, batches[-1].last_offset + 1)
        new = rows.before(after)
        if new is None:
            continue
        offsets = numpy.asarray(new["offset"])
        frames = _chosen(data, batches, offsets)
        for first in range(0, len(offsets), ROWS_AT_ONCE):
            last = min(first + ROWS_AT_ONCE, len(offsets))
            end = after if last == len(offsets) else int(offsets[last])
            yield _slice(
                frames.where(slice(first, last)),
                new.slice(first, last - first),
                PartitionRange(part.partition, int(offsets[first]), end),
                destinations,
                headers,
            )


def _chosen(data: bytes, batches: Sequence[Batch], offsets: NDArray[numpy.int64]) -> Frames:
    """Return the records at these offsets.

    :raises ValueError: when one no longer exists
    """
    import numpy

    frames = frames_of(data, with_any(batches, offsets), offsets)
    if len(frames) == len(offsets) and (frames.offsets == offsets).all():
        return compacted(frames)
    at = numpy.searchsorted(frames.offsets, offsets)
    if not len(frames) or at[-1] >= len(frames) or (frames.offsets[at] != offsets).any():
        raise ValueError("a record was compacted away while it was on its way")
    return compacted(frames.where(at))


def _slice(
    frames: Frames, new: pyarrow.Table, part: PartitionRange, destinations: Destinations, headers: Mapping[str, bytes | None]
) -> RoutedSlice:
    import numpy

    columns = {name: new[name].combine_chunks() for name in new.column_names}
    content = NewContent(
        columns.get("key"),
        columns.get("value"),
        numpy.asarray(columns["timestamp_ms"]) if "timestamp_ms" in columns else None,
        {name: columns[f"{HEADER}{number}"] if same is None else same for number, (name, same) in enumerate(headers.items())},
    )
    changed = with_new(frames, content)
    numbers, topics = _destinations(changed, columns, part, destinations)
    return RoutedSlice(RoutedFrames(changed, topics, numbers), part.partition, part.end, destinations)


def _destinations(
    frames: Frames, columns: Mapping[str, Any], part: PartitionRange, destinations: Destinations
) -> tuple[NDArray[numpy.int64], NDArray[numpy.int64]]:
    """Return the partition of each record, and the index of its topic.

    :raises MisplacedRecord: naming the first whose topic or partition does not exist
    """
    import numpy
    import pyarrow
    from pyarrow import compute

    count = len(frames)
    names, counts = list(destinations.counts), numpy.array(list(destinations.counts.values()), dtype=numpy.int64)
    if "topic" in columns:
        found = compute.index_in(columns["topic"], pyarrow.array(names, pyarrow.string()))
        topics = numpy.asarray(compute.fill_null(found, -1), dtype=numpy.int64)
    else:
        topics = numpy.full(count, names.index(destinations.topic), dtype=numpy.int64)
    if destinations.by_key:
        numbers = _by_key(frames, part.partition, topics, counts)
    elif "target_partition" in columns:
        numbers = numpy.asarray(compute.fill_null(columns["target_partition"], -1), dtype=numpy.int64)
    else:
        numbers = numpy.full(count, part.partition, dtype=numpy.int64)
    wrong = numpy.flatnonzero((topics < 0) | (numbers < 0) | (numbers >= counts[topics]))
    if len(wrong):
        row = int(wrong[0])
        topic = columns["topic"][row].as_py() if "topic" in columns else destinations.topic
        given = columns["target_partition"][row].as_py() if "target_partition" in columns else part.partition
        where = f"{topic}:{given}" if topics[row] >= 0 else f"the topic {topic}"
        raise MisplacedRecord(int(frames.offsets[row]), f"it goes to {where}, which is not a target")
    return numbers, topics


def _by_key(frames: Frames, source: int, topics: NDArray[numpy.int64], counts: NDArray[numpy.int64]) -> NDArray[numpy.int64]:
    import numpy

    from kops.formats.batches.columns import columns_of_frames

    keys = columns_of_frames(frames).keys()
    numbers = numpy.zeros(len(frames), dtype=numpy.int64)
    for count in numpy.unique(counts).tolist():
        rows = (topics >= 0) & (counts[topics] == count)
        if rows.any():
            numbers[rows] = numpy.asarray(by_key(keys, source, count))[rows]
    return numbers
