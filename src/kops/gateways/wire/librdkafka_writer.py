"""Writes Arrow batches of records through confluent-kafka: in transactions, or if only librdkafka can connect."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from typing import TYPE_CHECKING, Any

from kops.gateways.wire.connections import PATIENCE_SECONDS

if TYPE_CHECKING:
    import pyarrow

_TRANSACTION_RECORDS = 200_000
_TRANSACTION_BYTES = (1 << 20, 64 << 20)
"""The first transaction has at most the first number of bytes, and none more than the second. Each takes as long as the brokers need, and
should end well before ``transaction.timeout.ms``, 60 s: after a short one the next holds twice as much, after a long one half."""
_SHORT_SECONDS, _LONG_SECONDS = 3.0, 12.0
_COORDINATOR_SECONDS = 60.0
_PRODUCER = {
    "enable.idempotence": True,
    "linger.ms": 20,
    "batch.num.messages": 100_000,
    "batch.size": 900_000,
    "queue.buffering.max.messages": 500_000,
    "queue.buffering.max.kbytes": 256 << 10,
    "delivery.report.only.error": True,  # no call of Python per acknowledged record
    "statistics.interval.ms": 0,
}


class LibrdkafkaWriter:
    """Writes to one topic.

    :param settings: librdkafka's, secrets included
    :param transactional_id: None: no transactions
    """

    def __init__(self, topic: str, settings: Mapping[str, Any], transactional_id: str | None) -> None:
        from confluent_kafka import Producer

        self._topic, self._transactional_id = topic, transactional_id
        self._written, self._failed, self._open = Counter[int](), dict[int, tuple[int, str]](), 0
        self._most_bytes, self._bytes, self._since = _TRANSACTION_BYTES[0], 0, 0.0
        own: dict[str, Any] = {"client.id": "kops", **settings, **_PRODUCER, "on_delivery": self._on_failure}
        if transactional_id is not None:
            own["transactional.id"] = transactional_id
        self._producer = Producer(own)

    def write(self, batches: Iterable[Any]) -> dict[int, tuple[int, int, str | None]]:
        """Produce all batches (partition, key, value, timestamp, and headers if any), and wait until they are acknowledged.

        :return: by partition the records written, the records rejected, and the first reason
        :raises TimeoutError: when records are not acknowledged in time
        :raises ValueError: when a record has the timestamp 0
        """
        transactional = self._transactional_id is not None
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
        left = self._producer.flush(PATIENCE_SECONDS)
        if left:
            raise TimeoutError(f"{left} records were not acknowledged within {PATIENCE_SECONDS:g} s")
        if self._transactional_id is not None and self._open:
            self._producer.commit_transaction(PATIENCE_SECONDS)
            took = time.monotonic() - self._since
            least, most = _TRANSACTION_BYTES
            if took < _SHORT_SECONDS:
                self._most_bytes = min(2 * self._most_bytes, most)
            elif took > _LONG_SECONDS:
                self._most_bytes = max(self._most_bytes // 2, least // 16)
        self._open = 0

    def _produce(self, batch: Any) -> None:
        """Pass one Arrow batch to librdkafka, waiting whenever its queue is full."""
        partitions, keys, values, timestamps, *rest = (column.to_pylist() for column in batch.columns)
        if any(timestamp <= 0 for timestamp in timestamps):
            raise ValueError("a record has the timestamp 0, which librdkafka takes for now")
        produce, topic = self._producer.produce, self._topic
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
    """Yield an Arrow batch in parts of about ``most_bytes``."""
    rows = max(1, batch.num_rows * most_bytes // max(1, batch.nbytes))
    yield from (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))
