"""Writes records to a changelog from Spark's tasks: explicit partition, explicit timestamp, no headers.

Spark's own Kafka sink cannot set a timestamp, and the timestamp is state. For an at-least-once application the producer
is idempotent and without transactions, because it restores ``read_uncommitted`` and would restore what was aborted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kops.core.errors import MissingRequirement, OperationFailed

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

REPORT_SCHEMA = "partition int, written bigint, failed bigint, error string"
_FLUSH_SECONDS = 120.0

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
    """

    topic: str
    settings: Mapping[str, str] = field(repr=False)
    transactional_id: str | None = None


@dataclass(frozen=True)
class Written:
    """What the tasks say of one partition.

    :param failed: records that the broker refused
    :param error: the first reason
    """

    written: int
    failed: int
    error: str | None = None


def write_records(records: DataFrame, target: Target) -> dict[int, Written]:
    """Write records (partition, key, value, timestamp) and return what became of them, by partition.

    :raises MissingRequirement: when the machines that run the tasks have no confluent-kafka
    """

    def write(batches: Iterable[pyarrow.RecordBatch]) -> Iterable[pyarrow.RecordBatch]:
        import pyarrow

        rows = [(number, *report) for number, report in sorted(_write_batches(batches, target).items())]
        types = (pyarrow.int32(), pyarrow.int64(), pyarrow.int64(), pyarrow.string())
        arrays = [pyarrow.array([row[index] for row in rows], kind) for index, kind in enumerate(types)]
        yield pyarrow.RecordBatch.from_arrays(arrays, ["partition", "written", "failed", "error"])

    try:
        rows = records.select("partition", "key", "value", "timestamp").mapInArrow(write, REPORT_SCHEMA).collect()
    except Exception as error:
        raise _explained(error, target.topic) from error
    result: dict[int, Written] = {}
    for row in rows:
        before = result.get(row.partition, Written(0, 0))
        result[row.partition] = Written(before.written + row.written, before.failed + row.failed, before.error or row.error)
    return result


def _explained(error: Exception, topic: str) -> Exception:
    text = str(error)
    if "No module named" in text:
        module = text.split("No module named", 1)[1].split(maxsplit=1)[0].strip("'\"")
        hint = "pip install confluent-kafka pyarrow numpy on every worker"
        return MissingRequirement(f"Spark's workers have no Python module {module}", hint=hint)
    lines = [line.strip() for line in text.splitlines() if "Error" in line or "Exception" in line]
    reason = lines[-1] if lines else text[:300]
    return OperationFailed(f"writing to {topic} failed: {reason}", hint="run it again: what was written is recognised")


def _write_batches(batches: Iterable[Any], target: Target) -> dict[int, list[Any]]:
    """Produce everything, wait for the broker, and count by partition: [written, failed, first error]."""
    from confluent_kafka import Producer

    reports: dict[int, list[Any]] = {}
    settings: dict[str, Any] = {"client.id": "kops", **target.settings, **_PRODUCER}
    if target.transactional_id is not None:
        from pyspark import TaskContext

        context = TaskContext.get()
        settings["transactional.id"] = f"{target.transactional_id}-{context.partitionId() if context else 0}"

    def failed(error: Any, message: Any) -> None:
        report = reports.setdefault(message.partition(), [0, 0, None])
        report[0] -= 1
        report[1] += 1
        report[2] = report[2] or error.str()

    producer = Producer({**settings, "on_delivery": failed})
    if target.transactional_id is not None:
        producer.init_transactions()
        producer.begin_transaction()
    for batch in batches:
        _produce(producer, target.topic, batch, reports)
    left = producer.flush(_FLUSH_SECONDS)
    if left:
        raise TimeoutError(f"{left} records were not acknowledged within {_FLUSH_SECONDS:g} s")
    if target.transactional_id is not None:
        producer.commit_transaction()
    return reports


def _produce(producer: Any, topic: str, batch: Any, reports: dict[int, list[Any]]) -> None:
    """Hand one Arrow batch to librdkafka, waiting whenever its queue is full."""
    partitions, keys, values, timestamps = (column.to_pylist() for column in batch.columns)
    produce = producer.produce
    for partition, key, value, timestamp in zip(partitions, keys, values, timestamps, strict=True):
        while True:
            try:
                produce(topic, value, key, partition, timestamp=timestamp)
                break
            except BufferError:
                producer.poll(0.05)
    producer.poll(0)
    for partition in set(partitions):
        reports.setdefault(partition, [0, 0, None])[0] += partitions.count(partition)
