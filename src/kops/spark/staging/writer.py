"""Writes records to a changelog from Spark's tasks, and reads them back: explicit partition and timestamp, headers only if requested.

Spark's own Kafka sink cannot set a timestamp, and the timestamp is state. For an at-least-once application the producer is idempotent and
without transactions, because the application restores ``read_uncommitted`` and would restore aborted records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kops.core.errors import MissingRequirement, OperationFailed
from kops.spark.driver.failures import raise_hidden_interrupt
from kops.spark.frames import expression, task_number

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession

    from kops.spark.reading.ranges import TopicRange
    from kops.spark.reading.source import KafkaSource


Report = tuple[int, int, "str | None"]
"""Records written, records rejected, and the first reason."""
REPORT_SCHEMA = "partition int, written bigint, failed bigint, error string"
_CANCELLED = "cancelled as part of cancellation of all jobs"
"""On Ctrl-C PySpark cancels all jobs and then raises; if that exception is lost in a callback, this text is all that remains of it."""


@dataclass(frozen=True)
class WriteTarget:
    """Where records go.

    :param settings: librdkafka's, secrets included: never to be shown
    :param transactional_id: prefix of the tasks' transactional ids; None: no transactions
    :param partitions: of the topic
    :param in_order: write the records of a partition in the order of their timestamps
    :param headers: whether the records have headers, as those of joins and of suppress do
    """

    topic: str
    settings: Mapping[str, str] = field(repr=False)
    transactional_id: str | None = None
    partitions: int = 1
    in_order: bool = False
    headers: bool = False


@dataclass(frozen=True)
class WriteResult:
    """What the tasks report about one partition.

    :param failed: records that the broker rejected
    :param error: the first reason
    """

    written: int
    failed: int
    error: str | None = None


def write_stage(session: SparkSession, path: str, target: WriteTarget, *, backwards: bool = False) -> dict[int, WriteResult]:
    """Write the records to append according to a stage; return the result by partition.

    Tasks of this machine read the files of a stage themselves, so that nothing goes through the JVM.

    :param backwards: write what undoes the stage
    """
    from kops.spark.staging.difference import to_append
    from kops.spark.staging.stage import by_tasks, read_stage
    from kops.spark.staging.stage_files import files_of, records_to_append

    files = files_of(path) if by_tasks(session, path) else []
    if not files or not _any_order(target):
        return write_records(to_append(read_stage(session, path, headers=target.headers), backwards=backwards), target)

    def read(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for number in (row for batch in batches for row in batch.column(0).to_pylist()):
            yield from records_to_append(files[number], backwards=backwards, headers=target.headers)

    return _written(session.range(0, len(files), 1, len(files)), target, read)


def write_records(records: DataFrame, target: WriteTarget) -> dict[int, WriteResult]:
    """Write records (partition, key, value, timestamp; headers if the target has them) and return the result by partition.

    :raises MissingRequirement: when the machines that run the tasks lack a Python module
    """
    chosen = records.select("partition", "key", "value", "timestamp", *(["headers"] if target.headers else []))
    if not _any_order(target):
        # Always the same number of tasks: a run after a crash then has the same transactional ids and fences what the crash left open.
        chosen = chosen.repartition(target.partitions, "partition")
    if target.in_order:
        chosen = chosen.sortWithinPartitions("partition", "timestamp", "key")
    return _written(chosen, target, iter)


def _any_order(target: WriteTarget) -> bool:
    """Whether any task may write any record."""
    return target.transactional_id is None and not target.in_order


def _written(frame: DataFrame, target: WriteTarget, records_of: Callable[[Iterable[Any]], Iterator[Any]]) -> dict[int, WriteResult]:
    """Run the tasks that write; each writes what ``records_of`` makes of its batches."""

    def write(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
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
    result: dict[int, WriteResult] = {}
    for row in rows:
        before = result.get(row.partition, WriteResult(0, 0))
        result[row.partition] = WriteResult(before.written + row.written, before.failed + row.failed, before.error or row.error)
    return result


def writes_whole_batches(target: WriteTarget) -> bool:
    """Whether records are encoded as columns: not in transactions, nor where only librdkafka can connect.

    librdkafka takes a timestamp of 0 for "now", and takes several times as long.
    """
    from kops.gateways.wire.connections import can_connect

    return target.transactional_id is None and can_connect(target.settings)


def _explained(error: Exception, topic: str) -> Exception:
    text = str(error)
    if "No module named" in text:
        module = text.split("No module named", 1)[1].split(maxsplit=1)[0].strip("'\"")
        hint = "pip install confluent-kafka pyarrow numpy on every worker"
        return MissingRequirement(f"Spark's workers have no Python module {module}", hint=hint)
    lines = [line.strip() for line in text.splitlines() if "Error" in line or "Exception" in line]
    reason = lines[-1] if lines else text[:300]
    return OperationFailed(f"writing to {topic} failed: {reason}", hint="run it again: what was written is recognised")


def _write_batches(batches: Iterable[Any], target: WriteTarget) -> dict[int, Report]:
    from kops.gateways.wire.batch_producer import write_batches
    from kops.gateways.wire.librdkafka_writer import LibrdkafkaWriter

    if writes_whole_batches(target):
        found = write_batches(iter(batches), target.topic, target.settings)
        return {number: (report.written, report.failed, report.error) for number, report in found.items()}
    own_id = None if target.transactional_id is None else f"{target.transactional_id}-{task_number()}"
    return LibrdkafkaWriter(target.topic, target.settings, own_id).write(batches)


def differing_tails(kafka: KafkaSource, tail: TopicRange, wanted: DataFrame, fingerprints: Mapping[int, list[int]]) -> dict[int, str]:
    """Return the partitions whose tail is not what was to be written, with the reason.

    Compares counts and sums of hashes first; only a partition where they differ is compared record by record, by the last record of each
    key, because a retried task may have written the same record twice.

    :param tail: of the changelog, with headers if they are compared
    :param wanted: partition, key, value, timestamp, and headers if they are compared
    """
    from kops.spark.staging.stage import contents_of

    headers = ["coalesce(headers, array()) as headers"] if "headers" in wanted.columns else []
    if kafka.batches and not headers:
        contents = kafka.batches.contents(tail)
    else:
        contents = contents_of(kafka.read(tail).selectExpr("partition", "key", "value", "timestamp_ms as timestamp", *headers))
    found = {number: content.fingerprint for number, content in contents.items()}
    suspects = [number for number, wanted_print in fingerprints.items() if found.get(number) != wanted_print]
    suspects += [number for number in found if number not in fingerprints]
    if not suspects:
        return {}
    return _different(kafka.read(tail), wanted, suspects)


def _different(tail: DataFrame, wanted: DataFrame, suspects: list[int]) -> dict[int, str]:
    chosen = f"partition in ({', '.join(map(str, suspects))})"
    headers = "headers" in wanted.columns
    last = expression(f"max_by(struct(value, timestamp_ms{', headers' if headers else ''}), offset) as last")
    same_headers = " and wanted.headers <=> coalesce(found.last.headers, array())" if headers else ""
    left = wanted.where(chosen).alias("wanted")
    right = tail.where(chosen).groupBy("partition", "key").agg(last).alias("found")
    joined = left.join(right, expression("wanted.partition = found.partition and wanted.key = found.key"), "full_outer")
    rows = (
        joined.selectExpr(
            "coalesce(wanted.partition, found.partition) as partition",
            "found.key is null as is_missing",
            "wanted.key is null as is_foreign",
            f"not (wanted.value <=> found.last.value and wanted.timestamp <=> found.last.timestamp_ms{same_headers}) as is_different",
        )
        .groupBy("partition")
        .agg(*(expression(f"count_if({name}) as {name}") for name in ("is_missing", "is_foreign", "is_different")))
        .collect()
    )
    return {
        row.partition: f"{row.is_missing} records missing, {row.is_foreign} not ours,"
        f" {row.is_different - row.is_missing - row.is_foreign} different"
        for row in rows
        if row.is_different
    }
