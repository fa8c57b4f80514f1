"""The settings of confluent-kafka's consumer, and its messages as records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from kops.core.errors import KopsError, OperationFailed
from kops.core.models import TopicPartition
from kops.core.records.models import Record
from kops.gateways.kafka.client import Client
from kops.gateways.kafka.translate import translate

BATCH = 500
"""Larger batches are slower: their objects no longer fit into the caches (twice the CPU at 10,000, measured)."""
POLL_SECONDS = 0.1
SPEED = {
    "check.crcs": True,
    "reconnect.backoff.max.ms": 1_000,
    "fetch.wait.max.ms": 100,
    "fetch.message.max.bytes": 4 * 1024 * 1024,
    "fetch.queue.backoff.ms": 2,
    "queued.min.messages": 100_000,
    "queued.max.messages.kbytes": 16 * 1024,
}
"""With its default of a second, librdkafka pauses that long whenever its queue is full: a quarter of the speed (measured)."""
LOG_APPEND_TIME = 2
PASSING = ("_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_TIMED_OUT", "GROUP_AUTHORIZATION_FAILED")
"""Errors that reading recovers from: brokers that come back, and a group that is named but never used."""


def speed(client: Client, wanted: Mapping[str, Any] = SPEED) -> dict[str, Any]:
    """Return settings that make reading fast, except those that the user has set (-X, or in the context)."""
    return {name: value for name, value in wanted.items() if name not in client.settings}


def settings(client: Client, isolation: str) -> dict[str, Any]:
    """Return the settings of a consumer that joins no group and commits nothing."""
    return {
        "group.id": f"kops-reader-{uuid4().hex}",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "isolation.level": isolation,
        "max.poll.interval.ms": 86_400_000,
        **speed(client),
    }


def broken(client: Client, error: Any, place: tuple[str | None, int | None], offset: int | None) -> KopsError:
    where = f"read {place[0]}:{place[1]}"
    if error.name() != "_AUTO_OFFSET_RESET":
        return translate(error, f"{where} at offset {offset}", client.connection.bootstrap_servers)
    return OperationFailed(
        f"could not {where} at offset {offset}: its records are gone, deleted by retention, truncation or another leader",
        hint="run the command again: it starts from the log start as it is now",
        topic=place[0],
        partition=place[1],
        offset=offset,
    )


def as_record(message: Any) -> Record:
    kind, timestamp = message.timestamp()
    return Record(
        message.topic(),
        message.partition(),
        message.offset(),
        timestamp if kind else None,
        message.key(),
        message.value(),
        _headers(message),
        kind == LOG_APPEND_TIME,
    )


def as_records(messages: list[Any]) -> list[Record]:
    return [as_record(message) for message in messages]


def parts_reader(names: Sequence[str]) -> Callable[[list[Any]], list[tuple[Any, ...]]]:
    """Return a function that reads some fields of messages, as in :func:`as_record`; only times and headers are processed in Python."""
    from confluent_kafka import Message

    readers: dict[str, Callable[[Any], Any]] = {
        "topic": Message.topic,
        "partition": Message.partition,
        "offset": Message.offset,
        "timestamp": _timestamp,
        "key": Message.key,
        "value": Message.value,
        "headers": _headers,
    }
    chosen = [readers[name] for name in names]
    if not chosen:
        return lambda messages: [()] * len(messages)
    return lambda messages: list(zip(*(map(read, messages) for read in chosen), strict=True))


def _timestamp(message: Any) -> int | None:
    kind, timestamp = message.timestamp()
    return timestamp if kind else None


def _headers(message: Any) -> tuple[tuple[str, bytes | None], ...]:
    headers = message.headers()
    return tuple(headers) if headers else ()


def librdkafka_partition(partition: TopicPartition, offset: int | None = None) -> Any:
    from confluent_kafka import TopicPartition as Librdkafka

    return Librdkafka(partition.topic, partition.partition) if offset is None else Librdkafka(partition.topic, partition.partition, offset)
