"""Produces whole record batches, encoded from Arrow columns, to one topic.

One request per leader is in flight. A broker that restarts forgets a producer whose records are older than
``producer.id.expiration.ms`` (a day), because it uses the records' timestamps: a batch that is resent to it is then written twice, which is
harmless in a changelog.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kops.formats.batches.encode import Columns, columns_of, encode, sections_of_lists, split
from kops.formats.batches.header import HEADER_BYTES
from kops.gateways.wire.connections import PATIENCE_SECONDS, REQUEST_MILLISECONDS, Patience, await_quota, connected, is_passing, patiently
from kops.gateways.wire.producer import IdempotentProducer, ProduceAnswer, answers_of, later_sequence

REQUEST_RECORDS = 200_000
"""Records collected before they are sent: larger batches are cheaper to write, and to read ever after."""
REQUEST_BYTES = 16 << 20
"""The batches of one request. A broker closes the connection at ``socket.request.max.bytes``, 100 MiB by default."""
_RETRY_SECONDS = 0.1


@dataclass
class WriteReport:
    written: int = 0
    failed: int = 0
    error: str | None = None


@dataclass(frozen=True)
class _Batch:
    columns: Columns
    sequence: int

    @property
    def size(self) -> int:
        return int(self.columns.sizes.sum()) + HEADER_BYTES


def write_batches(batches: Iterator[Any], topic: str, settings: Mapping[str, Any]) -> dict[int, WriteReport]:
    """Write Arrow batches (partition, key, value, timestamp, and headers if any) and return the outcome by partition.

    :param settings: librdkafka's
    :raises kafka.errors.KafkaError: when the brokers cannot be reached
    :raises TimeoutError: when a batch was not acknowledged in time; sending everything again is safe for state
    """
    import pyarrow

    producer = BatchProducer(topic, settings)
    try:
        gathered: list[Any] = []
        for batch in batches:
            gathered.append(batch)
            if sum(map(len, gathered)) >= REQUEST_RECORDS:
                producer.write(pyarrow.Table.from_batches(gathered))
                gathered = []
        if gathered:
            producer.write(pyarrow.Table.from_batches(gathered))
        return producer.reports
    finally:
        producer.close()


class BatchProducer(IdempotentProducer):
    def __init__(self, topic: str, settings: Mapping[str, Any]) -> None:
        super().__init__(connected(settings))
        self.topic = topic
        self.reports: dict[int, WriteReport] = {}
        self._request_bytes = REQUEST_BYTES
        self._held = 0.0
        self._become(patiently(self._identify, wait=_RETRY_SECONDS))

    def write(self, table: Any) -> None:
        """Write the records of an Arrow table, as ``write_batches`` takes them, in order within each partition."""
        import pyarrow.compute

        partition_column = table.column("partition")
        for round_ in _rounds(
            {
                number: _columns(part)
                for number in sorted(pyarrow.compute.unique(partition_column).to_pylist())
                if len(part := table.filter(pyarrow.compute.equal(partition_column, number)))
            }
        ):
            self._deliver(round_)

    def _deliver(self, columns: Mapping[int, Columns]) -> None:
        """Send one batch to each of these partitions, repeatedly until each is acknowledged or rejected."""
        pending = {
            number: [_Batch(part, self._numbered(self.topic, number, len(part)).sequence)]
            for number, part in columns.items()
            if not self._refused(number, part)
        }
        patience = Patience()
        while pending:
            held, left = self._held, sum(map(len, pending.values()))
            answers = self._send({number: queue[0] for number, queue in pending.items()})
            patience.extend(self._held - held)
            for number, answer in answers.items():
                self._settle(pending, number, answer)
            if sum(map(len, pending.values())) != left:
                patience.renew()
            if any(answer.error is not None and answer.error.retriable for answer in answers.values()) or len(answers) < len(pending):
                if patience.is_over:
                    raise TimeoutError(f"{self.topic}:{min(pending)} did not acknowledge a batch within {PATIENCE_SECONDS:g} s")
                time.sleep(_RETRY_SECONDS)
                self._refresh(self.topic)

    def _settle(self, pending: dict[int, list[_Batch]], number: int, answer: ProduceAnswer) -> None:
        """Process one answer: the batch is written, retried, retried in halves, or rejected."""
        queue, report = pending[number], self.reports.setdefault(number, WriteReport())
        batch = queue[0]
        if answer.error is None:
            report.written += len(batch.columns)
            del queue[0]
        elif answer.is_too_large and len(batch.columns) > 1:
            middle = len(batch.columns) // 2
            halves = (batch.columns.part(0, middle), batch.columns.part(middle, len(batch.columns)))
            queue[0:1] = [_Batch(halves[0], batch.sequence), _Batch(halves[1], later_sequence(batch.sequence, middle))]
        elif not answer.error.retriable:
            report.failed += sum(len(waiting.columns) for waiting in queue)
            report.error = answer.reason(self.topic)
            queue.clear()
        if not queue:
            del pending[number]

    def _refused(self, number: int, columns: Columns) -> bool:
        """Count records for a partition that rejected one before: its sequence is broken, so nothing more is sent there."""
        report = self.reports.setdefault(number, WriteReport())
        if report.error is not None:
            report.failed += len(columns)
        return report.error is not None

    def _send(self, batches: Mapping[int, _Batch]) -> dict[int, ProduceAnswer]:
        """Send batches to the leaders of their partitions; partitions without an answer are left out."""
        from kafka.errors import KafkaError

        leaders: dict[int, list[int]] = {}
        for number in batches:
            leader = self._leader(self.topic, number)
            if leader is not None:
                leaders.setdefault(leader, []).append(number)
        answers: dict[int, ProduceAnswer] = {}
        for leader, numbers in leaders.items():
            for some in _requests({number: batches[number] for number in numbers}, self._request_bytes):
                self._held += await_quota(self._client, leader)
                try:
                    answers |= self._ask(leader, some)
                except KafkaError as error:
                    if not is_passing(error):
                        raise
                    if len(some) > 1:  # the broker may accept smaller requests only, and shows that by closing the connection
                        self._request_bytes = max(1, sum(batch.size for batch in some.values()) // 2)
                    break
        return answers

    def _ask(self, leader: int, batches: Mapping[int, _Batch]) -> dict[int, ProduceAnswer]:
        encoded = {number: encode(batch.columns, replace(self._identity, sequence=batch.sequence)) for number, batch in batches.items()}
        return answers_of(
            self._client.send_and_receive(leader, self._produce_request(self.topic, encoded), timeout_ms=REQUEST_MILLISECONDS)
        )

    def _identify(self) -> Any:
        from kafka.errors import for_code

        answer = self._client.send_and_receive(self._client.least_loaded_node(), self._identity_request(), timeout_ms=REQUEST_MILLISECONDS)
        if answer.error_code:
            raise for_code(answer.error_code)(f"no producer id for {self.topic}")
        return answer


def _columns(records: Any) -> Columns:
    """Return the records of one partition, an Arrow table, as columns to encode."""
    key, value, timestamp, *headers = (
        records.column(name).combine_chunks() for name in ("key", "value", "timestamp", "headers") if name in records.column_names
    )
    return columns_of(key, value, timestamp, sections_of_lists(*headers) if headers else None)


def _requests(batches: Mapping[int, _Batch], limit: int) -> Iterator[dict[int, _Batch]]:
    """Yield the batches in requests of at most ``limit`` bytes; a larger batch is sent on its own."""
    some: dict[int, _Batch] = {}
    size = 0
    for number, batch in batches.items():
        if some and size + batch.size > limit:
            yield some
            some, size = {}, 0
        some[number] = batch
        size += batch.size
    if some:
        yield some


def _rounds(partitions: Mapping[int, Columns]) -> Iterator[dict[int, Columns]]:
    """Yield one batch per partition at a time, until all are sent."""
    queues = {number: split(columns) for number, columns in partitions.items()}
    while queues:
        found = {number: next(queue, None) for number, queue in queues.items()}
        queues = {number: queue for number, queue in queues.items() if found[number] is not None}
        if queues:
            yield {number: part for number, part in found.items() if part is not None}
