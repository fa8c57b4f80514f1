"""The data of Kafka Streams' assignor inside the classic protocol: ``SubscriptionInfo`` and ``AssignmentInfo``, versions 1 to 11.

A member of a classic group sends ``ConsumerProtocolSubscription`` and receives ``ConsumerProtocolAssignment``; both carry the
assignor's own bytes. Follows the source of kafka-streams 4.3 (``processor.internals.assignment``). Pure.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from kops.core.errors import UndecodableRecord
from kops.core.models import TopicPartition
from kops.core.streams.models import Task
from kops.formats.kafka_types import INT, SHORT, Reader

LATEST = 11
_NAMED = 10
"""From this version on, a task may belong to a named topology."""
_COMMON = 3
_HAS_ENDPOINT = 2
_HAS_PREVIOUS_TASKS = range(1, 7)
_UUID_BYTES = 16


@dataclass(frozen=True)
class Subscription:
    """What a member reports about itself.

    :param process_id: of its instance
    :param application_server: ``host:port``; None when it has none
    """

    version: int
    process_id: str
    application_server: str | None = None


@dataclass(frozen=True)
class Assignment:
    """The tasks of a member.

    :param active: its tasks, in the order of its partitions
    :param standby: tasks whose state it copies, with the partitions that they read
    """

    active: tuple[Task, ...]
    standby: Mapping[Task, tuple[TopicPartition, ...]]


def subscription_data(data: bytes) -> bytes:
    """Return the assignor's part of ``ConsumerProtocolSubscription``, which follows the version and the topics."""
    reader = Reader(data)
    reader.number(SHORT)
    reader.array(reader.text)
    return reader.sized()


def assignment_data(data: bytes) -> tuple[tuple[TopicPartition, ...], bytes]:
    """Return the partitions of ``ConsumerProtocolAssignment``, in its order, and the assignor's part.

    ``StreamsPartitionAssignor`` sorts both partitions and tasks, so that the n-th partition belongs to the n-th task.
    """
    reader = Reader(data)
    reader.number(SHORT)
    topics = reader.array(lambda: (reader.text(), reader.array(lambda: reader.number(INT))))
    return tuple(TopicPartition(topic, number) for topic, numbers in topics for number in numbers), reader.sized()


def decode_subscription(data: bytes) -> Subscription:
    """Read a ``SubscriptionInfo``.

    :raises UndecodableRecord: for bytes that end too early, and for a version that is not known
    """
    reader = Reader(data)
    version = _version(reader)
    process = str(uuid.UUID(bytes=reader.raw(_UUID_BYTES)))
    if version in _HAS_PREVIOUS_TASKS:
        for _ in range(2):
            reader.array(lambda: _task(reader, 0))
    endpoint = reader.sized().decode("utf-8", "replace") if version >= _HAS_ENDPOINT else ""
    return Subscription(version, process, endpoint or None)


def decode_assignment(data: bytes) -> Assignment:
    """Read an ``AssignmentInfo`` up to the tasks; which host reads which partitions, and an error, follow.

    :raises UndecodableRecord: as for a subscription
    """
    reader = Reader(data)
    version = _version(reader)
    active = reader.array(lambda: _task(reader, version))
    standby = dict(reader.array(lambda: (_task(reader, version), reader.array(lambda: TopicPartition(reader.text(), reader.number(INT))))))
    return Assignment(active, standby)


def _version(reader: Reader) -> int:
    version = reader.number(INT)
    if not 1 <= version <= LATEST:
        raise UndecodableRecord(f"version {version} of Kafka Streams' assignment is not known", hint="a newer kops may know it")
    if version >= _COMMON:
        reader.number(INT)  # the newest version that the member, or the whole group, knows
    return version


def _task(reader: Reader, version: int) -> Task:
    subtopology, partition = reader.number(INT), reader.number(INT)
    if version >= _NAMED:
        name = reader.raw(2 * max(0, reader.number(INT))).decode("utf-16-be", "replace")
        return Task(f"{name}__{subtopology}" if name else str(subtopology), partition)
    return Task(str(subtopology), partition)
