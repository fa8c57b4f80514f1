"""Reads from some offsets on, also what is still to come, without joining a group and without committing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

from kops.core.models import TopicPartition
from kops.core.records import Record
from kops.gateways.kafka.client import Client
from kops.gateways.kafka.offsets import Offsets
from kops.gateways.kafka.records import BATCH, PASSING, POLL_SECONDS, as_record, broken, librdkafka_partition, settings
from kops.gateways.kafka.translate import is_authentication, translate


def follow(client: Client, starts: Mapping[TopicPartition, int], isolation: str) -> Iterator[list[Record]]:
    """Yield records as they come, and an empty batch now and then while none comes; it never ends.

    Brokers that go and come back are waited for.

    :raises Unreachable: when no broker has answered for the time limit of a request, or who we are is refused
    :raises OperationFailed: when the records to be read next are gone
    """
    trouble: list[Any] = []
    consumer = client.consumer({**settings(client, isolation), "error_cb": trouble.append})
    try:
        consumer.assign([librdkafka_partition(partition, offset) for partition, offset in starts.items()])
        heard = time.monotonic()
        while True:
            batch = []
            for message in consumer.consume(BATCH, POLL_SECONDS):
                error = message.error()
                if error is None:
                    batch.append(as_record(message))
                elif error.name() in PASSING:
                    trouble.append(error)
                else:
                    raise broken(client, error, (message.topic(), message.partition()), message.offset())
            yield batch
            if batch or not trouble:
                heard = time.monotonic()
                trouble.clear()
            elif is_authentication(trouble[-1]):
                raise translate(trouble[-1], "read records", client.connection.bootstrap_servers)
            elif time.monotonic() - heard > client.timeout:
                Offsets(client).bounds(list(starts)[:1])  # raises when it is the brokers that are silent, not the producers
                trouble.clear()
    finally:
        consumer.close()
