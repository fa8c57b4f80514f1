"""Writes records to a changelog from Spark's tasks: explicit partition, explicit timestamp, and no headers but where they are asked for.

Spark's own Kafka sink cannot set a timestamp, and the timestamp is state. For an at-least-once application the producer
is idempotent and without transactions, because it restores ``read_uncommitted`` and would restore what was aborted.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING, Any

from kops.core.errors import MissingRequirement, OperationFailed
from kops.spark.driver.failures import raise_hidden_interrupt

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

Report = tuple[int, int, "str | None"]
"""Records written, records refused, and the first reason."""
REPORT_SCHEMA = "partition int, written bigint, failed bigint, error string"
_CANCELLED = "cancelled as part of cancellation of all jobs"
"""On Ctrl-C PySpark cancels all jobs and then raises; where that is lost in a callback, this is what is left of it."""
_FLUSH_SECONDS = 120.0
_TRANSACTION_RECORDS = 200_000
_TRANSACTION_BYTES = (1 << 20, 64 << 20)
"""The first transaction holds so much, and none more than the second. Each takes as much time as the brokers let it, and is to be over well
before ``transaction.timeout.ms``, 60 s: the next holds twice as much after a short one, and half after a long one."""
_SHORT_SECONDS, _LONG_SECONDS = 3.0, 12.0
_COORDINATOR_SECONDS = 60.0

_PRODUCER = {
    "enable.idempotence": True,
    "linger.ms": 20,
    "batch.num.messages": 100_000,
    "batch.size": 900_000,
    "queue.buffering.max.messages": 500_000,
    "queue.buffering.max.kbytes": 256 << 10,
    "delivery.report.only.error": True,
    "statistics.interval.ms": 0,
}


@dataclass(frozen=True)
class Target:
    """Where records go.

    :param settings: librdkafka's, secrets included: never to be shown
    :param transactional_id: prefix of the tasks' transactional ids; None: no transactions
    :param partitions: of the topic
    :param in_order: write the records of a partition in the order of their timestamps
    :param headers: the records have headers, as those of joins and of suppress do
    """

    topic: str
    settings: Mapping[str, str] = field(repr=False)
    transactional_id: str | None = None
    partitions: int = 1
    in_order: bool = False
    headers: bool = False


@dataclass(frozen=True)
class Written:
    """What the tasks say of one partition.

    :param failed: records that the broker refused
    :param error: the first reason
    """

    written: int
    failed: int
    error: str | None = None


def write_stage(session: SparkSession, path: str, target: Target, *, backwards: bool = False) -> dict[int, Written]:
    """Write what a stage says is to be appended, and return what became of it, by partition.

    Tasks of this machine read the files of a stage themselves, so that nothing goes through the JVM.

    :param backwards: write what takes the stage back
    """
    from kops.spark.staging.difference import to_append
    from kops.spark.staging.stage import by_tasks, read_stage
    from kops.spark.staging.stage_files import files_of, records_to_append

    files = files_of(path) if by_tasks(session, path) else []
    if not files or not _any_order(target):
        return write_records(to_append(read_stage(session, path), backwards=backwards), target)

    def read(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for number in (row for batch in batches for row in batch.column(0).to_pylist()):
            yield from records_to_append(files[number], backwards=backwards)

    return _written(session.range(0, len(files), 1, len(files)), target, read)


def write_records(records: DataFrame, target: Target) -> dict[int, Written]:
    """Write records (partition, key, value, timestamp, headers where the target has them) and return what became of them, by partition.

    :raises MissingRequirement: when the machines that run the tasks lack a Python module
    """
    chosen = records.select("partition", "key", "value", "timestamp", *(["headers"] if target.headers else []))
    if not _any_order(target):
        # Always as many tasks, so that a run after a crash has the transactional ids of that one and fences what it left open.
        chosen = chosen.repartition(target.partitions, "partition")
    if target.in_order:
        chosen = chosen.sortWithinPartitions("partition", "timestamp", "key")
    return _written(chosen, target, iter)


def _any_order(target: Target) -> bool:
    """Tell whether any task may write any record."""
    return target.transactional_id is None and not target.in_order


def _written(frame: DataFrame, target: Target, records_of: Callable[[Iterable[Any]], Iterator[Any]]) -> dict[int, Written]:
    """Run the tasks that write, each what ``records_of`` makes of its batches."""

    def write(batches: Iterable[pyarrow.RecordBatch]) -> Iterable[pyarrow.RecordBatch]:
        import pyarrow

        rows = [(number, *report) for number, report in sorted(_write_batches(records_of(batches), target).items())]
        types = (pyarrow.int32(), pyarrow.int64(), pyarrow.int64(), pyarrow.string())
        arrays = [pyarrow.array([row[index] for row in rows], kind) for index, kind in enumerate(types)]
        yield pyarrow.RecordBatch.from_arrays(arrays, ["partition", "written", "failed", "error"])

    try:
        rows = frame.mapInArrow(write, REPORT_SCHEMA).collect()
    except Exception as error:
        if _CANCELLED in str(error):
            raise KeyboardInterrupt from error
        raise_hidden_interrupt(error)
        raise _explained(error, target.topic) from error
    result: dict[int, Written] = {}
    for row in rows:
        before = result.get(row.partition, Written(0, 0))
        result[row.partition] = Written(before.written + row.written, before.failed + row.failed, before.error or row.error)
    return result


def writes_time_zero(target: Target) -> bool:
    """Tell whether a timestamp of 0 can be written: to librdkafka it means now."""
    from kops.gateways.wire.connections import can_connect

    return _whole_batches(target) and can_connect(target.settings)


def _whole_batches(target: Target) -> bool:
    """Tell whether records are encoded as columns, which have neither transactions nor headers."""
    return target.transactional_id is None and not target.headers


def _explained(error: Exception, topic: str) -> Exception:
    text = str(error)
    if "No module named" in text:
        module = text.split("No module named", 1)[1].split(maxsplit=1)[0].strip("'\"")
        hint = "pip install confluent-kafka pyarrow numpy on every worker"
        return MissingRequirement(f"Spark's workers have no Python module {module}", hint=hint)
    lines = [line.strip() for line in text.splitlines() if "Error" in line or "Exception" in line]
    reason = lines[-1] if lines else text[:300]
    return OperationFailed(f"writing to {topic} failed: {reason}", hint="run it again: what was written is recognised")


def _write_batches(batches: Iterable[Any], target: Target) -> dict[int, Report]:
    """Write everything, wait for the broker, and count by partition: written, failed, first error."""
    from kops.gateways.wire.batch_producer import write_batches
    from kops.gateways.wire.connections import can_connect

    if _whole_batches(target) and can_connect(target.settings):
        found = write_batches(iter(batches), target.topic, target.settings)
        return {number: (report.written, report.failed, report.error) for number, report in found.items()}
    return _Librdkafka(target).write(batches)


class _Librdkafka:
    """Writes through confluent-kafka: in transactions, or over a connection that only librdkafka can make."""

    def __init__(self, target: Target) -> None:
        from confluent_kafka import Producer
        from pyspark import TaskContext

        self._target, self._written, self._failed, self._open = target, Counter[int](), dict[int, tuple[int, str]](), 0
        self._most_bytes, self._bytes, self._since = _TRANSACTION_BYTES[0], 0, 0.0
        settings: dict[str, Any] = {"client.id": "kops", **target.settings, **_PRODUCER, "on_delivery": self._on_failure}
        if target.transactional_id is not None:
            context = TaskContext.get()
            settings["transactional.id"] = f"{target.transactional_id}-{context.partitionId() if context else 0}"
        self._producer = Producer(settings)

    def write(self, batches: Iterable[Any]) -> dict[int, Report]:
        """Produce all batches, and wait for their acknowledgement."""
        transactional = self._target.transactional_id is not None
        if transactional:
            self._begin()
        for batch in batches:
            for part in _parts(batch, self._most_bytes) if transactional else (batch,):
                if transactional and not self._open:
                    self._producer.begin_transaction()
                    self._since, self._bytes = time.monotonic(), 0
                self._produce(part)
                self._open += part.num_rows
                self._bytes += part.nbytes
                if transactional and (self._open >= _TRANSACTION_RECORDS or self._bytes >= self._most_bytes):
                    self._settle()
        self._settle()
        partitions = sorted({*self._written, *self._failed})
        reports = {number: (self._failed.get(number, (0, None)), self._written[number]) for number in partitions}
        return {number: (written - failed[0], failed[0], failed[1]) for number, (failed, written) in reports.items()}

    def _begin(self) -> None:
        """Become the only writer of this transactional id.

        :raises TimeoutError: when the coordinator does not answer in time
        """
        from confluent_kafka import KafkaError, KafkaException

        try:
            self._producer.init_transactions(_COORDINATOR_SECONDS)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._TIMED_OUT and not error.args[0].retriable():
                raise
            raise TimeoutError(
                f"the transaction coordinator did not answer within {_COORDINATOR_SECONDS:g} s: {error.args[0].str()}"
                " (is a broker of __transaction_state away?)"
            ) from error

    def _settle(self) -> None:
        left = self._producer.flush(_FLUSH_SECONDS)
        if left:
            raise TimeoutError(f"{left} records were not acknowledged within {_FLUSH_SECONDS:g} s")
        if self._target.transactional_id is not None and self._open:
            self._producer.commit_transaction(_FLUSH_SECONDS)
            took = time.monotonic() - self._since
            least, most = _TRANSACTION_BYTES
            if took < _SHORT_SECONDS:
                self._most_bytes = min(2 * self._most_bytes, most)
            elif took > _LONG_SECONDS:
                self._most_bytes = max(self._most_bytes // 2, least // 16)
        self._open = 0

    def _produce(self, batch: Any) -> None:
        """Hand one Arrow batch to librdkafka, waiting whenever its queue is full."""
        partitions, keys, values, timestamps, *rest = (column.to_pylist() for column in batch.columns)
        if any(timestamp <= 0 for timestamp in timestamps):
            raise ValueError("a record has the timestamp 0, which librdkafka takes for now")
        produce, topic = self._producer.produce, self._target.topic
        all_headers = [[(each["key"], each["value"]) for each in headers or ()] for headers in rest[0]] if rest else repeat(None)
        for partition, key, value, timestamp, headers in zip(partitions, keys, values, timestamps, all_headers, strict=False):
            while True:
                try:
                    produce(topic, value, key, partition, timestamp=timestamp, headers=headers)
                    break
                except BufferError:
                    self._producer.poll(0.05)
        self._producer.poll(0)
        self._written.update(partitions)

    def _on_failure(self, error: Any, message: Any) -> None:
        count, first = self._failed.get(message.partition(), (0, error.str()))
        self._failed[message.partition()] = (count + 1, first)


def _parts(batch: pyarrow.RecordBatch, most_bytes: int) -> Iterator[pyarrow.RecordBatch]:
    """Yield an Arrow batch in parts of about so many bytes."""
    rows = max(1, batch.num_rows * most_bytes // max(1, batch.nbytes))
    yield from (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))
