"""Reads from given offsets on, including future records, without joining a group and without committing."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any

from kops.core.models import TopicPartition
from kops.core.records.models import Record
from kops.gateways.kafka.client import Client, in_thread
from kops.gateways.kafka.offsets import Offsets
from kops.gateways.kafka.records_messages import BATCH, PASSING, POLL_SECONDS, as_record, broken, librdkafka_partition, settings
from kops.gateways.kafka.translate import is_authentication, translate

LOOK_SECONDS = 5.0
"""How often to check whether a topic has more partitions."""


def follow(client: Client, starts: Mapping[TopicPartition, int], isolation: str, *, whole: str | None = None) -> Iterator[list[Record]]:
    """Yield records as they arrive, and an empty batch now and then while none do; never ends.

    Waits for brokers that are temporarily down.

    :param whole: a topic whose future partitions are read too, from their first record on
    :raises Unreachable: when no broker has answered within the time limit of a request, or our credentials are rejected
    :raises OperationFailed: when the records to be read next no longer exist
    """
    trouble: list[Any] = []
    growth = _Growth(client, whole, starts) if whole is not None else None
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
            if growth is not None and (new := growth.seen()):
                consumer.incremental_assign([librdkafka_partition(partition, 0) for partition in new])
            if batch or not trouble:
                heard = time.monotonic()
                trouble.clear()
            elif is_authentication(trouble[-1]):
                raise translate(trouble[-1], "read records", client.connection.bootstrap_servers)
            elif time.monotonic() - heard > client.timeout:
                Offsets(client).bounds(list(starts)[:1])  # raises if the brokers are silent, and not just the producers
                trouble.clear()
    finally:
        consumer.close()


class _Growth:
    """Checks periodically, in a thread of its own, for new partitions of a topic."""

    def __init__(self, client: Client, topic: str, known: Iterable[TopicPartition]) -> None:
        self._offsets = Offsets(client)
        self._topic = topic
        self._known = set(known)
        self._looked = time.monotonic()
        self._looking: Future[tuple[TopicPartition, ...]] | None = None

    def seen(self) -> list[TopicPartition]:
        """Return the new partitions, without waiting."""
        if self._looking is None:
            if time.monotonic() - self._looked > LOOK_SECONDS:
                self._looking = in_thread(lambda: self._offsets.partitions_or_errors([self._topic])[0].get(self._topic, ()))
            return []
        if not self._looking.done():
            return []
        found, self._looking, self._looked = self._looking, None, time.monotonic()
        if found.exception() is not None:  # the reader reports silent brokers
            return []
        new = [partition for partition in found.result() if partition not in self._known]
        self._known.update(new)
        return new
