"""Produces whole record batches, encoded from Arrow columns, through kafka-python's connections.

Idempotent (KIP-98): a producer id, and a sequence number for each partition, of which one request is in flight; so a batch
whose answer was lost is sent again and recognised by the broker, and the order stays. Only a broker that restarts does not
recognise it when its records are older than ``producer.id.expiration.ms`` (a day): that producer it has forgotten, as it goes by the
records' timestamps, and the batch is there twice, which a changelog takes. Transactions stay with confluent-kafka.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kops.formats.batches.encode import Columns, columns_of, encode, split
from kops.formats.batches.header import HEADER_BYTES, Producer
from kops.gateways.wire.connections import await_quota, connected, refresh
from kops.gateways.wire.kafka_python import request_class

REQUEST_RECORDS = 200_000
"""Records gathered before they are sent: larger batches are cheaper to write, and to read ever after."""
REQUEST_BYTES = 16 << 20
"""Of the batches of one request. A broker ends the connection at ``socket.request.max.bytes``, 100 MiB unless it is told otherwise."""
PATIENCE_SECONDS = 120.0
"""How long batches are sent again while none is acknowledged, as ``delivery.timeout.ms`` of the Java producer."""

_RETRY_SECONDS = 0.1
_REQUEST_MILLISECONDS = 30_000
_PRODUCE_VERSIONS = {"min_version": 3, "max_version": 9}
"""Of the Produce requests: from the one that carries record batches of magic 2 to the last that names topics."""
_ALL_IN_SYNC_REPLICAS = -1
_SEQUENCES = 0x7FFF_FFFF
"""Sequence numbers begin again at 0 after the largest int32."""
_TOO_LARGE = ("MESSAGE_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE")
_WRITTEN_ALREADY = "DUPLICATE_SEQUENCE_NUMBER"


@dataclass
class Report:
    """What became of the records of one partition."""

    written: int = 0
    failed: int = 0
    error: str | None = None


@dataclass(frozen=True)
class _Batch:
    columns: Columns
    sequence: int

    @property
    def size(self) -> int:
        """Return about how many bytes it takes."""
        return int(self.columns.sizes.sum()) + HEADER_BYTES


def write_batches(batches: Iterator[Any], topic: str, settings: Mapping[str, Any]) -> dict[int, Report]:
    """Write Arrow batches (partition, key, value, timestamp) and return what became of them, by partition.

    :param settings: librdkafka's
    :raises kafka.errors.KafkaError: when the brokers cannot be reached
    :raises TimeoutError: when a batch was not acknowledged in time; sending it all again is safe for state
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


class BatchProducer:
    """An idempotent producer of whole batches to one topic."""

    def __init__(self, topic: str, settings: Mapping[str, Any]) -> None:
        self.topic = topic
        self.reports: dict[int, Report] = {}
        self._sequences: dict[int, int] = {}
        self._request_bytes = REQUEST_BYTES
        self._held = 0.0
        self._client = connected(settings, _REQUEST_MILLISECONDS)
        self._refresh()
        self._producer = self._identify()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def write(self, table: Any) -> None:
        """Write the records of an Arrow table (partition, key, value, timestamp), in their order within each partition."""
        import pyarrow.compute

        partition_column = table.column("partition")
        for round_ in _rounds(
            {
                number: columns_of(*(part.column(name).combine_chunks() for name in ("key", "value", "timestamp")))
                for number in sorted(pyarrow.compute.unique(partition_column).to_pylist())
                if len(part := table.filter(pyarrow.compute.equal(partition_column, number)))
            }
        ):
            self._deliver(round_)

    def _deliver(self, columns: Mapping[int, Columns]) -> None:
        """Send one batch to each of some partitions, again until each is acknowledged or refused."""
        pending = {number: [self._next(number, part)] for number, part in columns.items() if not self._refused(number, part)}
        deadline = time.monotonic() + PATIENCE_SECONDS
        while pending:
            held, left = self._held, sum(map(len, pending.values()))
            answers = self._send({number: queue[0] for number, queue in pending.items()})
            deadline += self._held - held
            for number, (error, text) in answers.items():
                self._settle(pending, number, error, text)
            if sum(map(len, pending.values())) != left:
                deadline = time.monotonic() + PATIENCE_SECONDS
            again = [number for number, (error, _) in answers.items() if error is not None and error.retriable]
            if again or len(answers) < len(pending):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{self.topic}:{min(pending)} did not acknowledge a batch within {PATIENCE_SECONDS:g} s")
                time.sleep(_RETRY_SECONDS)
                self._refresh()

    def _settle(self, pending: dict[int, list[_Batch]], number: int, error: Any, text: str | None) -> None:
        """Take one answer: the batch is written, goes again, goes again in halves, or is refused."""
        queue, report = pending[number], self.reports.setdefault(number, Report())
        batch = queue[0]
        if error is None or error.message == _WRITTEN_ALREADY:
            report.written += len(batch.columns)
            del queue[0]
        elif error.message in _TOO_LARGE and len(batch.columns) > 1:
            middle = len(batch.columns) // 2
            halves = (batch.columns.part(0, middle), batch.columns.part(middle, len(batch.columns)))
            queue[0:1] = [_Batch(halves[0], batch.sequence), _Batch(halves[1], batch.sequence + middle & _SEQUENCES)]
        elif not error.retriable:
            report.failed += sum(len(waiting.columns) for waiting in queue)
            report.error = text or error.description
            queue.clear()
        if not queue:
            del pending[number]

    def _next(self, number: int, columns: Columns) -> _Batch:
        sequence = self._sequences.get(number, 0)
        self._sequences[number] = sequence + len(columns) & _SEQUENCES
        return _Batch(columns, sequence)

    def _refused(self, number: int, columns: Columns) -> bool:
        """Count records of a partition that refused one before: its sequence is broken, and nothing goes there any more."""
        report = self.reports.setdefault(number, Report())
        if report.error is not None:
            report.failed += len(columns)
        return report.error is not None

    def _send(self, batches: Mapping[int, _Batch]) -> dict[int, tuple[Any, str | None]]:
        """Send batches to the leaders of their partitions; partitions without an answer are left out."""
        from kafka.errors import KafkaError
        from kafka.structs import TopicPartition

        leaders: dict[int, list[int]] = {}
        for number in batches:
            leader = self._client.cluster.leader_for_partition(TopicPartition(self.topic, number))
            if leader not in (None, -1):
                leaders.setdefault(leader, []).append(number)
        answers: dict[int, tuple[Any, str | None]] = {}
        for leader, numbers in leaders.items():
            for some in _requests({number: batches[number] for number in numbers}, self._request_bytes):
                self._held += await_quota(self._client, leader)
                try:
                    answers |= self._ask(leader, some)
                except KafkaError as error:
                    if not (error.retriable or error.invalid_metadata):
                        raise
                    if len(some) > 1:  # the broker may take smaller ones only, and says so by ending the connection
                        self._request_bytes = max(1, sum(batch.size for batch in some.values()) // 2)
                    break
        return answers

    def _ask(self, leader: int, batches: Mapping[int, _Batch]) -> dict[int, tuple[Any, str | None]]:
        from kafka.errors import for_code

        request_type = request_class("ProduceRequest")
        topic_data = request_type.TopicProduceData
        encoded = [
            topic_data.PartitionProduceData(index=number, records=encode(batch.columns, replace(self._producer, sequence=batch.sequence)))
            for number, batch in batches.items()
        ]
        request = request_type(
            transactional_id=None,
            acks=_ALL_IN_SYNC_REPLICAS,
            timeout_ms=_REQUEST_MILLISECONDS,
            topic_data=[topic_data(name=self.topic, partition_data=encoded)],
            **_PRODUCE_VERSIONS,
        )
        response = self._client.send_and_receive(leader, request, timeout_ms=_REQUEST_MILLISECONDS)
        answers = response.responses[0].partition_responses
        return {
            answer.index: (for_code(answer.error_code) if answer.error_code else None, getattr(answer, "error_message", None))
            for answer in answers
        }

    def _refresh(self) -> None:
        refresh(self._client, self.topic, _REQUEST_MILLISECONDS // 10)

    def _identify(self) -> Producer:
        """Get a producer id."""
        from kafka.errors import KafkaTimeoutError, for_code

        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            request = request_class("InitProducerIdRequest")(
                transactional_id=None, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1, min_version=0, max_version=4
            )
            node = self._client.least_loaded_node()
            answer = self._client.send_and_receive(node, request, timeout_ms=_REQUEST_MILLISECONDS)
            if not answer.error_code:
                return Producer(answer.producer_id, answer.producer_epoch, 0)
            if not for_code(answer.error_code).retriable:
                raise for_code(answer.error_code)(f"no producer id for {self.topic}")
            time.sleep(_RETRY_SECONDS)
        raise KafkaTimeoutError(f"no producer id within {PATIENCE_SECONDS:g} s")


def _requests(batches: Mapping[int, _Batch], limit: int) -> Iterator[dict[int, _Batch]]:
    """Yield the batches in requests of so many bytes; one that is larger goes alone."""
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
    """Yield a batch of each partition at a time, until all are through."""
    queues = {number: split(columns) for number, columns in partitions.items()}
    while queues:
        found = {number: next(queue, None) for number, queue in queues.items()}
        queues = {number: queue for number, queue in queues.items() if found[number] is not None}
        if queues:
            yield {number: part for number, part in found.items() if part is not None}
