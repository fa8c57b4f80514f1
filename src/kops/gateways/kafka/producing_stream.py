"""Produces records: a few at once, or any number of them with a report for each whether it was acknowledged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kops.core.errors import KopsError, OperationFailed, TimedOut, UsageProblem
from kops.core.findings import counted
from kops.core.models import NewRecord
from kops.gateways.kafka.client import Client
from kops.gateways.kafka.records_messages import speed
from kops.gateways.kafka.translate import is_authentication, translate

SETTINGS = {"enable.idempotence": True, "partitioner": "murmur2_random", "linger.ms": 5}
"""Places keys where the Java client does: librdkafka's default partitioner is a different one."""


def produce(client: Client, topic: str, records: Iterable[NewRecord]) -> int:
    """Produce records and wait for all acknowledgements.

    :returns: the number of acknowledged records
    :raises KopsError: on the first record that was rejected
    :raises TimedOut: when some were not acknowledged in time; they may have arrived
    """
    producer = client.producer_at_rest or client.producer(dict(SETTINGS))
    client.producer_at_rest = None
    refused: list[Any] = []
    count = 0

    def delivered(error: Any, _message: Any) -> None:
        if error is not None:
            refused.append(error)

    for record in records:
        where = {} if record.partition is None else {"partition": record.partition}
        when = {} if record.timestamp is None else {"timestamp": record.timestamp}
        producer.produce(topic, record.value, record.key, headers=list(record.headers), on_delivery=delivered, **where, **when)
        count += 1
    with fatal_errors(client, topic):
        left = producer.flush(client.timeout)
    if refused:
        raise translate(refused[0], f"produce to {topic}", client.connection.bootstrap_servers)
    if left:
        raise TimedOut(
            f"not acknowledged: {left} of {counted(count, 'record')} to {topic}", hint="they may have arrived: look before sending again"
        )
    client.producer_at_rest = producer
    return count


PARTITIONERS = {"murmur2": "murmur2_random", "crc32": "consistent_random", "fnv1a": "fnv1a_random", "random": "random"}
"""kops' names -> librdkafka's partitioners: Java's, librdkafka's own (kcat, Python, .NET), Sarama's, and none. Without a key: random."""
KEPT = 100
"""Rejected records whose reason is kept; all are counted."""
MOST_BATCH = 1_000_000
_BATCH_OVERHEAD = 200
_QUEUED = 100_000
_POLL_EVERY = 1000


@dataclass
class AcknowledgedRecords:
    """Records that one partition acknowledged.

    :param first: the lowest offset; -1 if the broker reports none
    """

    records: int = 0
    first: int = -1
    last: int = -1


class Sender:
    """Sends records to one topic. Memory: what is in flight, at most 100,000 records or 64 MiB.

    :param partitioner: a name of ``PARTITIONERS``
    :param acks: ``all``, or ``1`` for the leader alone
    :param largest: max.message.bytes of the topic: a larger record is sent on its own, because a broker rejects whole batches
    :ivar sent: records handed over so far
    :ivar refused: number of records that were rejected or not acknowledged in time
    :ivar reasons: where the first of them came from, and why they were rejected
    """

    def __init__(self, client: Client, topic: str, *, partitioner: str, acks: str, largest: int) -> None:
        self._client = client
        self._topic = topic
        self._trouble: list[Any] = []
        self._producer = client.producer(
            {
                "enable.idempotence": acks == "all",
                **speed(
                    client,
                    {
                        "linger.ms": 20,
                        "batch.size": max(1, min(largest, MOST_BATCH) - _BATCH_OVERHEAD),
                        "queue.buffering.max.messages": _QUEUED,
                        "queue.buffering.max.kbytes": 64 * 1024,
                        "message.timeout.ms": int(client.timeout * 1000),
                    },
                ),
                "partitioner": PARTITIONERS[partitioner],
                "acks": acks,
                "error_cb": self._on_error,
            }
        )
        self.sent = 0
        self.refused = 0
        self.reasons: list[tuple[str, KopsError]] = []
        self.delivered: dict[int, AcknowledgedRecords] = {}

    def send(self, record: NewRecord, where: str) -> None:
        """Hand a record over; blocks while too many are in flight.

        :param where: where the record comes from, for the error: ``line 17``
        :raises Unreachable: when the brokers reject our credentials
        """

        def delivered(error: Any, message: Any) -> None:
            if error is None:
                self._count(message.partition(), message.offset())
            else:
                self._refuse(where, _explained(error, self._topic, self._client))

        if record.timestamp == 0:  # librdkafka takes 0 for "now", which would change the record
            self._refuse(where, OperationFailed("the time 1970-01-01T00:00:00.000Z cannot be sent", hint="any later one can"))
            return
        extra: dict[str, Any] = {} if record.partition is None else {"partition": record.partition}
        if record.timestamp is not None:
            extra["timestamp"] = record.timestamp
        with fatal_errors(self._client, self._topic):
            self._hand_over(record, where, extra, delivered)
        self.sent += 1
        if self.sent % _POLL_EVERY == 0:
            with fatal_errors(self._client, self._topic):
                self._producer.poll(0)
            self._raise_trouble()

    def _hand_over(self, record: NewRecord, where: str, extra: Mapping[str, Any], delivered: Callable[[Any, Any], None]) -> None:
        from confluent_kafka import KafkaException

        while True:
            try:
                self._producer.produce(self._topic, record.value, record.key, headers=list(record.headers), on_delivery=delivered, **extra)
                break
            except BufferError:
                self._producer.poll(0.1)
                self._raise_trouble()
            except KafkaException as error:  # too large for the client's own limit, or no such partition
                self._refuse(where, _explained(error.args[0], self._topic, self._client))
                break

    def finish(self) -> int:
        """Wait until each record is acknowledged or rejected; return how many are neither."""
        with fatal_errors(self._client, self._topic):
            left: int = self._producer.flush(self._client.timeout + 5)
        if not self.delivered:
            self._raise_trouble()
        return left

    def _count(self, partition: int, offset: int | None) -> None:
        each = self.delivered.setdefault(partition, AcknowledgedRecords())
        each.records += 1
        if offset is not None and offset >= 0:
            each.first = offset if each.first < 0 else min(each.first, offset)
            each.last = max(each.last, offset)

    def _refuse(self, where: str, error: KopsError) -> None:
        self.refused += 1
        if len(self.reasons) < KEPT:
            self.reasons.append((where, error))

    def _on_error(self, error: Any) -> None:
        if is_authentication(error):
            self._trouble.append(error)

    def _raise_trouble(self) -> None:
        if self._trouble:
            raise translate(self._trouble[-1], f"produce to {self._topic}", self._client.connection.bootstrap_servers)


def _explained(error: Any, topic: str, client: Client) -> KopsError:
    if error.name() == "MSG_SIZE_TOO_LARGE":
        return UsageProblem(
            f"could not produce to {topic}: the record is too large",
            hint="see max.message.bytes of the topic, and -X message.max.bytes=N here",
        )
    return translate(error, f"produce to {topic}", client.connection.bootstrap_servers)


@contextmanager
def fatal_errors(client: Client, topic: str) -> Iterator[None]:
    """Translate a fatal error, such as that of a missing right that an idempotent producer needs.

    confluent-kafka sets it as the exception of a call and then still runs callbacks, in which any call ends with a SystemError.
    """
    from confluent_kafka import KafkaException

    try:
        yield
    except (KafkaException, SystemError) as error:
        fatal = error if isinstance(error, KafkaException) else error.__cause__ or error.__context__
        if not isinstance(fatal, KafkaException):
            raise
        raise _explained(fatal.args[0], topic, client) from error
