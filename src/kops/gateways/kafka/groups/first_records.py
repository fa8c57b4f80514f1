"""The first record at or after an offset, for many partitions at once: how old is the next record that a group would read.

Nothing joins a group and nothing is committed: partitions are assigned manually, and each is dropped once it has returned a record.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Iterable
from typing import Any
from uuid import uuid4

from kops.core.errors import KopsError, TimedOut
from kops.core.groups.lag import FirstRecord, Place
from kops.core.models import TopicPartition
from kops.gateways.kafka.client import Client
from kops.gateways.kafka.records_messages import LOG_APPEND_TIME, PASSING, librdkafka_partition
from kops.gateways.kafka.translate import is_authentication, translate

AT_ONCE = 1000
"""Partitions per assignment: a fetch of all of them takes some tens of MB."""
MOST_MESSAGES = 1000
NEAR = 200
"""Up to this many offsets are read to get to the next requested one: a seek discards what was fetched."""
POLL_SECONDS = 0.05
_PASSING = (*PASSING, "UNKNOWN_TOPIC_OR_PART")
_SETTINGS = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    # One record per partition is needed: fetch no more than necessary.
    "queued.min.messages": 1,
    "queued.max.messages.kbytes": 65_536,
    "fetch.message.max.bytes": 65_536,
    "fetch.wait.max.ms": 20,
    "fetch.queue.backoff.ms": 0,  # if it is longer, each assignment after the first waits for seconds
    "reconnect.backoff.max.ms": 1_000,
}

Answer = FirstRecord | KopsError | None
"""None: there is no record from this offset to the end."""


def first_records(client: Client, places: Iterable[Place], *, isolation: str) -> dict[Place, Answer]:
    """Return the first record at or after each place, or why it is not known.

    :param isolation: ``read_committed`` skips aborted and open transactions
    """
    by_partition: dict[tuple[str, int], list[int]] = defaultdict(list)
    for partition, offset in sorted(set(places)):
        by_partition[partition.topic, partition.partition].append(offset)
    answers: dict[Place, Answer] = {}
    if not by_partition:
        return answers
    consumer = client.consumer({**_SETTINGS, "group.id": f"kops-reader-{uuid4().hex}", "isolation.level": isolation})
    try:
        names = list(by_partition)
        for start in range(0, len(names), AT_ONCE):
            answers |= _Assignment(client, consumer, {name: by_partition[name] for name in names[start : start + AT_ONCE]}).read()
    finally:
        consumer.close()
    return answers


class _Assignment:
    """Some partitions, each read until all of its offsets are answered, in ascending order."""

    def __init__(self, client: Client, consumer: Any, wanted: dict[tuple[str, int], list[int]]) -> None:
        self._client = client
        self._consumer = consumer
        self._left = {name: deque(offsets) for name, offsets in wanted.items()}
        self._answers: dict[Place, Answer] = {}
        self._trouble: Any = None

    def read(self) -> dict[Place, Answer]:
        from confluent_kafka import TopicPartition as Librdkafka

        first = [Librdkafka(*name, offsets[0]) for name, offsets in self._left.items()]
        self._consumer.assign(first)
        self._consumer.resume(first)  # the previous assignment may have paused them, and that outlives it
        heard = time.monotonic()
        while self._left:
            before = len(self._answers)
            finished = []
            moved: set[tuple[str, int]] = set()
            for message in self._messages():
                name = (message.topic(), message.partition())
                if name not in self._left or name in moved:
                    continue  # what was fetched before a seek is of no use at the new place
                if self._take(message, name):
                    moved.add(name)
                if not self._left[name]:
                    del self._left[name]
                    finished.append(Librdkafka(*name))
            if finished and self._left:
                self._consumer.pause(finished)
            if len(self._answers) > before:
                heard = time.monotonic()
            elif time.monotonic() - heard > self._client.timeout or (self._trouble is not None and is_authentication(self._trouble)):
                self._give_up()
        return self._answers

    def _messages(self) -> list[Any]:
        """Return the messages that have arrived, as soon as there is one: ``consume`` alone would wait for as many as it may return."""
        first = self._consumer.poll(POLL_SECONDS)
        return [] if first is None else [first, *self._consumer.consume(MOST_MESSAGES, 0)]

    def _take(self, message: Any, name: tuple[str, int]) -> bool:
        """Answer every open offset up to a message's; return whether the partition was moved to its next offset by a seek."""
        left, error, offset = self._left[name], message.error(), message.offset()
        partition = TopicPartition(*name)
        if error is None:
            kind, timestamp = message.timestamp()
            found = FirstRecord(offset, timestamp if kind else None, kind == LOG_APPEND_TIME)
            while left and left[0] <= offset:
                self._answers[partition, left.popleft()] = found
            if not left or left[0] - offset <= NEAR:
                return False
        elif error.name() == "_PARTITION_EOF":
            self._answers |= {(partition, wanted): None for wanted in left}
            left.clear()
        elif error.name() in _PASSING:
            self._trouble = error
            return False
        else:
            doing = f"read {partition} at offset {left[0]}"
            self._answers[partition, left.popleft()] = translate(error, doing, self._client.connection.bootstrap_servers)
        if left:
            self._consumer.seek(librdkafka_partition(partition, left[0]))
        return bool(left)

    def _give_up(self) -> None:
        servers, seconds = self._client.connection.bootstrap_servers, self._client.timeout
        for name, offsets in self._left.items():
            for offset in offsets:
                partition = TopicPartition(*name)
                doing = f"read {partition} at offset {offset}"
                late = TimedOut(f"could not {doing} within {seconds:g} s", hint="see whether its leader answers")
                self._answers[partition, offset] = translate(self._trouble, doing, servers) if self._trouble else late
        self._left = {}
