"""Produces a few records, each acknowledged by all in-sync replicas or reported as an error."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kops.core.errors import TimedOut
from kops.core.models import NewRecord
from kops.gateways.kafka.client import Client
from kops.gateways.kafka.translate import translate

SETTINGS = {"enable.idempotence": True, "partitioner": "murmur2_random", "linger.ms": 5}
"""Places keys where the Java client does: librdkafka's default partitioner is a different one."""


def produce(client: Client, topic: str, records: Iterable[NewRecord]) -> int:
    """Produce records and wait for all acknowledgements.

    :returns: the number of acknowledged records
    :raises KopsError: on the first record that was rejected
    :raises TimedOut: when some were not acknowledged in time; they may have arrived
    """
    producer = client.producer(dict(SETTINGS))
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
    left = producer.flush(client.timeout)
    if refused:
        raise translate(refused[0], f"produce to {topic}", client.connection.bootstrap_servers)
    if left:
        raise TimedOut(
            f"{left} of {count} records to {topic} were not acknowledged", hint="they may have arrived: look before sending again"
        )
    return count
