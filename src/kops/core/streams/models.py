"""A Kafka Streams application as its cluster shows it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kops.core.models import TopicPartition

CLASSIC, STREAMS = "classic", "streams"
_THREAD = re.compile(r"-StreamThread-\d+-consumer$")


@dataclass(frozen=True, order=True)
class Task:
    """A unit of an application's work: ``<sub-topology>_<partition>``."""

    subtopology: str
    partition: int

    def __str__(self) -> str:
        return f"{self.subtopology}_{self.partition}"


@dataclass(frozen=True)
class Part:
    """A sub-topology, as far as it is known.

    :param source_topics: external topics that it reads
    :param patterns: regular expressions by which it subscribes
    :param repartition_topics: internal topics that it reads
    :param changelog_topics: of its stores
    :param sink_topics: external topics that it writes; only a description of the topology names them
    :param repartition_sinks: internal topics that it writes
    """

    subtopology: str
    source_topics: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    repartition_topics: tuple[str, ...] = ()
    changelog_topics: tuple[str, ...] = ()
    sink_topics: tuple[str, ...] = ()
    repartition_sinks: tuple[str, ...] = ()
    stores: tuple[str, ...] = ()
    is_global: bool = False


@dataclass(frozen=True)
class StreamsMember:
    """A member of the application's group: a thread in the classic protocol, an instance in the streams protocol.

    :param process_id: the same for all members of an instance; empty if unknown
    :param application_server: ``host:port`` from ``application.server``; None if it is not set
    :param partitions: that it reads
    """

    member_id: str
    client_id: str
    host: str
    process_id: str = ""
    application_server: str | None = None
    active: tuple[Task, ...] = ()
    standby: tuple[Task, ...] = ()
    warmup: tuple[Task, ...] = ()
    partitions: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True)
class Instance:
    """One running ``KafkaStreams``: the members of one process id."""

    process_id: str
    application_server: str | None
    members: tuple[StreamsMember, ...]

    @property
    def active(self) -> tuple[Task, ...]:
        return _tasks(member.active for member in self.members)

    @property
    def standby(self) -> tuple[Task, ...]:
        return _tasks(member.standby for member in self.members)

    @property
    def warmup(self) -> tuple[Task, ...]:
        return _tasks(member.warmup for member in self.members)

    @property
    def label(self) -> str:
        """The instance as people know it: its ``application.server``, or host and client id."""
        return self.application_server or f"{self.members[0].host} ({self.client_id})"

    @property
    def client_id(self) -> str:
        """Its ``client.id`` without the suffix that Kafka Streams adds per thread."""
        return _THREAD.sub("", self.members[0].client_id)


@dataclass(frozen=True)
class Application:
    """An application and its group.

    :param protocol: ``classic`` or ``streams`` (KIP-1071)
    :param parts: its sub-topologies; without stores and topics if they are unknown
    :param complete: whether the parts are the whole topology, as reported by the group or a description
    :param unknown: what could not be read, one sentence each
    """

    application: str
    protocol: str
    state: str
    members: tuple[StreamsMember, ...] = ()
    parts: tuple[Part, ...] = ()
    complete: bool = False
    unknown: tuple[str, ...] = ()

    @property
    def instances(self) -> tuple[Instance, ...]:
        found: dict[str, list[StreamsMember]] = {}
        for member in self.members:
            found.setdefault(member.process_id or member.member_id, []).append(member)
        made = [
            Instance(process, next((one.application_server for one in some if one.application_server), None), tuple(some))
            for process, some in found.items()
        ]
        return tuple(sorted(made, key=lambda one: (one.label, one.process_id)))


def _tasks(some: Iterable[tuple[Task, ...]]) -> tuple[Task, ...]:
    return tuple(sorted({task for tasks in some for task in tasks}))
