"""What a replay sends: one partition of the source per task, which sends and commits by itself."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kops.core.times import ANY_TIME, Times
from kops.gateways.wire.transaction_requests import Names
from kops.gateways.wire.transactions import BatchWriter
from kops.spark.frames import task_number
from kops.spark.replay.sender import Overtaken, PartitionProgress, PartitionSender, RecordRefused
from kops.spark.replay.slices import Destinations, RowSlice, Slice

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame


OUTCOME = "partition int, reached bigint, records bigint, fingerprint string, producers array<bigint>, error string, at bigint"
KEPT = "what was committed is in the target, and `kops replay resume ID` continues after it; --debug shows all that Spark said"
"""The hint for when sending tasks fail."""
ROWS_AT_ONCE = 50_000
"""Rows that are encoded together."""
_ABORT_SECONDS = 10


@dataclass(frozen=True)
class PartitionRange:
    """A range of a partition of the source: offsets ``start`` up to, but not including, ``end``."""

    partition: int
    start: int
    end: int


@dataclass(frozen=True)
class Job:
    """A replay, as its tasks need it.

    :param source: topic; ``source_settings`` and ``target_settings``: librdkafka's, secrets included: never shown
    :param name: of the replay: prefix of groups and transactional ids
    :param anchor: topic of the target cluster under whose partition 0 positions are committed
    :param transactional: whether records and position are committed together
    :param rate: records per second of one task
    :param most: maximum number of records to send from one range
    :param inflated: see ``formats.batches.copy.fingerprint``
    :param times: send only the records with these timestamps
    :param known: progress of partitions that were started before, if their groups no longer exist
    :param progress_topic: where transactions store their progress too; None: nowhere
    """

    source: str
    source_settings: Mapping[str, str] = field(repr=False)
    target_settings: Mapping[str, str] = field(repr=False)
    name: str
    anchor: str
    destinations: Destinations
    transactional: bool = True
    rate: float | None = None
    most: int | None = None
    inflated: bool = False
    times: Times = ANY_TIME
    known: Mapping[int, PartitionProgress] = field(default_factory=dict)
    progress_topic: str | None = None

    def names(self, partition: int) -> Names:
        """Return the names by which brokers know the writer of a partition."""
        name = group_of(self.name, partition)
        return Names(name, self.anchor, 0, name if self.transactional else None, self.progress_topic)


@dataclass(frozen=True)
class Outcome:
    """How sending a range of a partition went.

    :param reached: the next offset of the source
    :param error: why it was not sent completely; None if it was
    :param at: the offset of the record that the target rejected
    """

    partition: int
    reached: int
    records: int
    fingerprint: int
    producers: tuple[int, ...]
    error: str | None = None
    at: int | None = None


def group_of(name: str, partition: int) -> str:
    return f"{name}-{partition}"


def send_rows(rows: DataFrame, job: Job, parts: Sequence[PartitionRange]) -> list[Outcome]:
    """Send rows: partition, offset, topic, target_partition, key, value, timestamp_ms, headers.

    :param rows: each part in a task of its own, in the order of ``parts``, sorted by offset
    """

    def send(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        part = parts[task_number()]
        yield row_of(send_partition(job, part, lambda start: _slices_of_rows(batches, part, start, job.destinations)))

    return outcomes_of(rows.mapInArrow(send, OUTCOME))


def _slices_of_rows(
    batches: Iterable[pyarrow.RecordBatch], part: PartitionRange, start: int, destinations: Destinations
) -> Iterator[RowSlice]:
    """Make slices of the rows from an offset on; a slice never ends within a record of the source, which may yield several rows."""
    import numpy
    import pyarrow

    held: pyarrow.Table | None = None
    for batch in batches:
        new = pyarrow.Table.from_batches([batch])
        table = new if held is None else pyarrow.concat_tables([held, new])
        offsets = numpy.asarray(table["offset"])
        if len(offsets) and (set(table["partition"].unique().to_pylist()) != {part.partition} or (numpy.diff(offsets) < 0).any()):
            raise ValueError("the plugin mixes or reorders the records of partitions, so its progress is unknown")
        last = int(numpy.searchsorted(offsets, offsets[-1])) if len(offsets) else 0
        if last < ROWS_AT_ONCE:
            held = table
            continue
        yield from _slice(table.slice(0, last), start, int(offsets[last]), destinations)
        held = table.slice(last)
    if held is not None and held.num_rows:
        yield from _slice(held, start, int(held["offset"][held.num_rows - 1].as_py()) + 1, destinations)


def _slice(table: pyarrow.Table, start: int, end: int, destinations: Destinations) -> Iterator[RowSlice]:
    from pyarrow import compute

    left = table.filter(compute.greater_equal(table["offset"], start))
    if left.num_rows:
        _refuse_misplaced(left, destinations)
        yield RowSlice(left, end, destinations)


def _refuse_misplaced(rows: pyarrow.Table, destinations: Destinations) -> None:
    """Reject rows for partitions that do not exist, naming the first.

    :raises MisplacedRecord: before any of them is sent
    """
    import pyarrow
    from pyarrow import compute

    known = pyarrow.array(list(destinations.counts), pyarrow.string())
    wrong = compute.invert(compute.is_in(rows["topic"], known))
    if not compute.any(wrong).as_py() and not destinations.by_key:
        counts = pyarrow.array(list(destinations.counts.values()), pyarrow.int32()).take(
            compute.index_in(rows["topic"].combine_chunks(), known)
        )
        inside = compute.and_(compute.greater_equal(rows["target_partition"], 0), compute.less(rows["target_partition"], counts))
        wrong = compute.invert(compute.fill_null(inside, False))
    found = rows.filter(wrong).slice(0, 1).to_pylist()
    if found:
        row = found[0]
        where = f"{row['topic']}:{row['target_partition']}" if row["topic"] in destinations.counts else f"the topic {row['topic']}"
        raise MisplacedRecord(row["offset"], f"it goes to {where}, which is not a target")


class MisplacedRecord(RecordRefused):
    """A record whose topic or partition does not exist."""


def send_partition(
    job: Job, part: PartitionRange, slices_from: Callable[[int], Iterable[Slice]], report: Callable[[int, bool], None] | None = None
) -> Outcome:
    """Send a range of a partition and return how that went; runs in tasks.

    :param slices_from: returns the slices from an offset on
    :param report: see ``PartitionSender``
    """
    from kops.gateways.wire.kafka_python import kafka_error

    writer = BatchWriter(job.target_settings, job.names(part.partition))
    sender = PartitionSender(writer, part.start, part.end, job.most, job.rate, job.inflated, report, job.known.get(part.partition))
    error, at = None, None
    try:
        with _aborted_on_hangup():
            sender.run(slices_from)
    except RecordRefused as refused:
        error, at = str(refused), refused.offset
    except (kafka_error(), OSError, ValueError, Overtaken) as failure:  # including time-outs and damaged batches
        kind = type(failure).__name__
        error = f"{kind}: {' '.join(str(failure).split())[:300] or kind}"
    finally:
        with contextlib.suppress(Exception):
            writer.abort()  # so that ``read_committed`` readers need not wait for the transaction's time-out
        writer.close()
    done = getattr(sender, "done", None) or PartitionProgress(part.start)
    return Outcome(part.partition, done.offset, done.records, done.fingerprint, tuple(done.producers), error, at)


@contextlib.contextmanager
def _aborted_on_hangup() -> Iterator[None]:
    """Abort the open transaction if kops ends meanwhile, instead of leaving it to the transaction's time-out.

    PySpark's daemon sends its workers SIGHUP when its JVM has ended. SIGALRM ends those that no broker has answered by then.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(_number: int, _frame: object) -> None:
        signal.alarm(_ABORT_SECONDS)
        sys.exit(1)

    before = signal.signal(signal.SIGHUP, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def row_of(outcome: Outcome) -> pyarrow.RecordBatch:
    import pyarrow

    values = (
        (outcome.partition, pyarrow.int32()),
        (outcome.reached, pyarrow.int64()),
        (outcome.records, pyarrow.int64()),
        (f"{outcome.fingerprint:016x}", pyarrow.string()),
        (list(outcome.producers), pyarrow.list_(pyarrow.int64())),
        (outcome.error, pyarrow.string()),
        (outcome.at, pyarrow.int64()),
    )
    names = [column.split()[0] for column in OUTCOME.split(", ")]
    return pyarrow.RecordBatch.from_arrays([pyarrow.array([value], kind) for value, kind in values], names)


def outcomes_of(rows: DataFrame) -> list[Outcome]:
    return [
        Outcome(row.partition, row.reached, row.records, int(row.fingerprint, 16), tuple(row.producers), row.error, row.at)
        for row in rows.collect()
    ]
