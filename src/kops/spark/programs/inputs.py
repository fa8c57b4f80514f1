"""The input of a program's task: its topics, archived records of them, and what earlier tasks wrote to repartition topics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from queue import Queue
from threading import Thread
from typing import TYPE_CHECKING, Any

from kops.core.errors import Refused
from kops.core.streams.local_state import CATCH_UP
from kops.core.streams.program_doubts import BACKWARD, BY_TIME
from kops.formats import runner_frames as frames
from kops.spark.programs.rows import BATCH, record_batches

if TYPE_CHECKING:
    import pyarrow

    from kops.formats.batches.columns import RecordColumns
    from kops.spark.programs.models import ProgramTask, Run, WaitingRecord
    from kops.spark.reading.batch_source import Read, TaskInput

_AHEAD = 2


def topic_batches(run: Run, task: ProgramTask, topic: str, piece: TaskInput | None, read: Read) -> Iterator[frames.Batch]:
    """Yield the records of a topic, archived ones first."""
    if topic in task.archived:
        yield from _of_archive(run, topic, task.partition)
    if piece is not None:
        slices = (each for columns in read(piece) for each in _slices(columns))
        yield from prefetched(columns_batch(topic, piece.partition, each) for each in slices)


def _of_archive(run: Run, topic: str, partition: int) -> Iterator[frames.Batch]:
    import pyarrow
    from pyarrow import ipc

    file = run.archived(topic, partition)
    if not file.exists():
        return
    yield from record_batches(topic, partition, ipc.open_file(pyarrow.memory_map(str(file))).read_all(), "timestamp_ms")


def _slices(columns: RecordColumns) -> Iterator[RecordColumns]:
    for start in range(0, len(columns), BATCH):
        yield columns.where(slice(start, start + BATCH))


def prefetched(items: Iterable[Any]) -> Iterator[Any]:
    """Yield items that a thread fetches ahead, so that reading continues while the program works."""
    made: Queue[tuple[bool, Any]] = Queue(_AHEAD)
    stopped = False

    def make() -> None:
        try:
            for item in items:
                if stopped:
                    return
                made.put((True, item))
            made.put((False, None))
        except BaseException as error:
            made.put((False, error))

    thread = Thread(target=make, daemon=True)
    thread.start()
    try:
        while True:
            is_item, item = made.get()
            if is_item:
                yield item
            elif item is None:
                return
            else:
                raise item
    finally:
        stopped = True
        while thread.is_alive():  # it may wait for room in the queue, and would for ever
            while not made.empty():
                made.get_nowait()
            thread.join(0.01)


def columns_batch(topic: str, partition: int, columns: RecordColumns) -> frames.Batch:
    import numpy

    topics, partitions = numpy.zeros(len(columns), numpy.int32), numpy.full(len(columns), partition, numpy.int32)
    texts = columns.keys(), columns.values(), encoded_headers_column(columns)
    return frames.Batch([topic], topics, partitions, columns.offsets, columns.timestamps, *texts)


def encoded_headers_column(columns: RecordColumns) -> pyarrow.Array:
    """Return the headers of each record encoded as in frames; null if it has none."""
    import numpy
    import pyarrow

    with_headers = columns.has_headers()
    if not with_headers.any():
        return pyarrow.nulls(len(columns), pyarrow.binary())
    found: list[bytes | None] = [None] * len(columns)
    for row in numpy.flatnonzero(with_headers).tolist():
        found[row] = frames.encoded_headers(columns.headers(row))
    return pyarrow.array(found, pyarrow.binary())


def repartitioned_batches(run: Run, topic: str, task: ProgramTask, order: str) -> Iterator[frames.Batch]:
    """Yield the records that tasks wrote to a partition of a repartition topic, each task's in its order.

    Several tasks' records are merged by time, or given one task after another. If the tasks did not run in this order, their records of the
    run by time are given.
    """
    import numpy
    import pyarrow
    from pyarrow import ipc

    files = run.files(topic, task.partition, order) or run.files(topic, task.partition, BY_TIME)
    tables = [ipc.open_file(pyarrow.memory_map(str(file))).read_all() for file in files]
    if not tables:
        if order == BY_TIME:
            _refuse_waiting(topic, task, task.waiting.get(topic, ()))
        return
    whole = pyarrow.concat_tables(reversed(tables) if order == BACKWARD else tables)
    if len(tables) > 1 and order == BY_TIME:
        reached = numpy.concatenate([numpy.maximum.accumulate(table["timestamp"].to_numpy()) for table in tables])
        whole = whole.take(pyarrow.array(numpy.argsort(reached, kind="stable")))
    whole, left = _without(whole, task.waiting.get(topic, ()))
    if order == BY_TIME:  # in another, what a cache passes on may be other records
        _refuse_waiting(topic, task, left)
    yield from record_batches(topic, task.partition, whole)


def _without(whole: pyarrow.Table, records: Sequence[WaitingRecord]) -> tuple[pyarrow.Table, list[WaitingRecord]]:
    """Drop the waiting records, the last ones of equals; return the remaining rows, and the waiting records that are not among them."""
    import numpy
    import pyarrow

    waiting = list(records)
    if not waiting:
        return whole, []
    wanted: dict[WaitingRecord, int] = {}
    for key in waiting:
        wanted[key] = wanted.get(key, 0) + 1
    keep = numpy.ones(whole.num_rows, bool)
    keys, values, times = (whole[name].to_pylist() for name in ("key", "value", "timestamp"))
    for row in range(whole.num_rows - 1, -1, -1):
        key = (keys[row], values[row], times[row])
        if wanted.get(key):
            keep[row] = False
            wanted[key] -= 1
            waiting.remove(key)
            if not waiting:
                break
    return whole.filter(pyarrow.array(keep)), waiting


def _refuse_waiting(topic: str, task: ProgramTask, left: Sequence[WaitingRecord]) -> None:
    if left:
        raise Refused(
            f"{topic}:{task.partition} holds {len(left)} records not processed by the application, such as of the key {left[0][0]!r}, which"
            " the program does not write again: they would count twice",
            hint=CATCH_UP,
        )
