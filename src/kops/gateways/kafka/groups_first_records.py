"""The first record at or after an offset, for many partitions at once: how old is what a group would read next.

Nothing joins a group and nothing is committed: partitions are assigned by hand, and each is left as soon as it gave one record.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any
from uuid import uuid4

from kops.core.errors import KopsError, TimedOut
from kops.core.lag import FirstRecord, Place
from kops.core.models import TopicPartition
from kops.gateways.kafka.client import Client
from kops.gateways.kafka.translate import is_authentication, translate

AT_ONCE = 1000
"""Partitions in one assignment: a fetch of all of them holds some tens of MB."""
POLL_SECONDS = 0.05
_LOG_APPEND_TIME = 2
_PASSING = ("_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_TIMED_OUT", "GROUP_AUTHORIZATION_FAILED", "UNKNOWN_TOPIC_OR_PART")
_SETTINGS = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    # One record of each partition is wanted: fetch no more than there must be.
    "queued.min.messages": 1,
    "queued.max.messages.kbytes": 65_536,
    "fetch.message.max.bytes": 65_536,
    "fetch.wait.max.ms": 20,
    "fetch.queue.backoff.ms": 10,
    "reconnect.backoff.max.ms": 1_000,
}

Answer = FirstRecord | KopsError | None
"""None: there is no record from this offset to the end."""


def first_records(client: Client, places: Iterable[Place], *, isolation: str) -> dict[Place, Answer]:
    """Return the first record at each place or after it, or why it is not known.

    :param isolation: ``read_committed`` passes aborted and open transactions over
    """
    answers: dict[Place, Answer] = {}
    rounds = list(_rounds(places))
    if not rounds:
        return answers
    consumer = client.consumer({**_SETTINGS, "group.id": f"kops-reader-{uuid4().hex}", "isolation.level": isolation})
    try:
        for each in rounds:
            answers |= _Round(client, consumer, each).read()
    finally:
        consumer.close()
    return answers


def _rounds(places: Iterable[Place]) -> Iterator[dict[TopicPartition, int]]:
    """Yield places so that a partition is in each round once: a consumer has one position in it."""
    by_partition: dict[TopicPartition, list[int]] = defaultdict(list)
    for partition, offset in sorted(set(places)):
        by_partition[partition].append(offset)
    deepest = max(map(len, by_partition.values()), default=0)
    for depth in range(deepest):
        current = {partition: offsets[depth] for partition, offsets in by_partition.items() if len(offsets) > depth}
        names = list(current)
        for start in range(0, len(names), AT_ONCE):
            yield {partition: current[partition] for partition in names[start : start + AT_ONCE]}


class _Round:
    """One assignment of partitions, read until each has given a record or its end."""

    def __init__(self, client: Client, consumer: Any, wanted: dict[TopicPartition, int]) -> None:
        self._client = client
        self._consumer = consumer
        self._open = {(partition.topic, partition.partition): (partition, offset) for partition, offset in wanted.items()}
        self._answers: dict[Place, Answer] = {}
        self._trouble: Any = None

    def read(self) -> dict[Place, Answer]:
        from confluent_kafka import TopicPartition as Librdkafka

        wanted = [Librdkafka(topic, number, place[1]) for (topic, number), place in self._open.items()]
        self._consumer.assign(wanted)
        self._consumer.resume(wanted)  # the round before may have paused them, and that outlives the assignment
        heard = time.monotonic()
        while self._open:
            finished = [done for message in self._consumer.consume(len(self._open), POLL_SECONDS) if (done := self._take(message))]
            if finished:
                heard = time.monotonic()
                if self._open:
                    self._consumer.pause([Librdkafka(*done) for done in finished])
            elif time.monotonic() - heard > self._client.timeout or (self._trouble is not None and is_authentication(self._trouble)):
                self._give_up()
        return self._answers

    def _take(self, message: Any) -> tuple[str, int] | None:
        """Note what a message says, and return its partition when that is finished."""
        key = (message.topic(), message.partition())
        place = self._open.get(key)
        error = message.error()
        if place is None:
            return None
        if error is None:
            kind, timestamp = message.timestamp()
            if message.offset() < place[1]:
                return None
            self._answers[place] = FirstRecord(message.offset(), timestamp if kind else None, kind == _LOG_APPEND_TIME)
        elif error.name() == "_PARTITION_EOF":
            self._answers[place] = None
        elif error.name() in _PASSING:
            self._trouble = error
            return None
        else:
            self._answers[place] = translate(error, f"read {place[0]} at offset {place[1]}", self._client.connection.bootstrap_servers)
        del self._open[key]
        return key

    def _give_up(self) -> None:
        """Answer for the partitions that gave nothing in time."""
        servers, seconds = self._client.connection.bootstrap_servers, self._client.timeout
        for partition, offset in self._open.values():
            doing = f"read {partition} at offset {offset}"
            late = TimedOut(f"could not {doing} within {seconds:g} s", hint="see whether its leader answers")
            self._answers[partition, offset] = translate(self._trouble, doing, servers) if self._trouble else late
        self._open = {}
