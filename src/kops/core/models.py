"""kops' own types for what Kafka has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

READ_COMMITTED, READ_UNCOMMITTED = ISOLATIONS = ("read_committed", "read_uncommitted")
"""``isolation.level`` of a consumer."""
INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata")


def isolation_of(*, committed: bool) -> str:
    """Return ``read_committed``, which leaves out aborted and open transactions, or ``read_uncommitted``."""
    return READ_COMMITTED if committed else READ_UNCOMMITTED


@dataclass(frozen=True, order=True)
class TopicPartition:
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}:{self.partition}"


def numbers_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Return the partition numbers of each topic, in order and without duplicates."""
    numbers: dict[str, list[int]] = {}
    for one in sorted(set(partitions)):
        numbers.setdefault(one.topic, []).append(one.partition)
    return numbers


@dataclass(frozen=True)
class Broker:
    id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True)
class Cluster:
    """A cluster: its id never changes, its addresses may.

    :param controller: broker id of the controller as clients see it; None if there is none
    """

    cluster_id: str
    controller: int | None
    brokers: tuple[Broker, ...]


@dataclass(frozen=True)
class Partition:
    """A partition's leader and replicas, as broker ids; the leader is None while there is none."""

    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    in_sync_replicas: tuple[int, ...]


@dataclass(frozen=True)
class Topic:
    name: str
    partitions: tuple[Partition, ...]
    topic_id: str | None = None
    internal: bool = False

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0].replicas) if self.partitions else 0

    @property
    def places(self) -> tuple[TopicPartition, ...]:
        return tuple(TopicPartition(self.name, each.partition) for each in self.partitions)


@dataclass(frozen=True)
class Setting:
    """A setting of a topic or broker.

    :param value: None if the broker does not show it (sensitive)
    :param source: ``topic``, ``broker``, ``broker default`` (dynamic cluster-wide) or ``default``; ``gateways.kafka.settings`` has others
    :param inherited: the value that applies if the topic sets none; None if unknown
    :param read_only: whether only a broker's ``server.properties`` can set it, and a restart
    """

    name: str
    value: str | None
    source: str
    sensitive: bool = False
    inherited: str | None = None
    read_only: bool = False


def value_of(settings: Mapping[str, Setting], name: str, default: str = "") -> str:
    """Return the value of a setting; empty if the broker does not show it.

    :param default: if the topic has no such setting
    """
    return (settings[name].value or "") if name in settings else default


@dataclass(frozen=True)
class NewTopic:
    """A topic to be created; None leaves the choice to the broker."""

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Bounds:
    """The offsets of a partition: ``log_start_offset`` <= offset < ``log_end_offset``."""

    log_start_offset: int
    log_end_offset: int

    @property
    def offsets(self) -> int:
        """How many offsets there are: an upper bound for the records."""
        return self.log_end_offset - self.log_start_offset

    @property
    def empty(self) -> bool:
        return self.log_start_offset == self.log_end_offset


@dataclass(frozen=True)
class CommittedOffset:
    """A committed offset: the next one that the group will process.

    :param metadata: the text that the client stored with it; None if it is not UTF-8 and could not be read
    """

    offset: int
    metadata: str | None = ""
    leader_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class ShareOffset:
    """Where a share group is in a partition.

    :param start: the first offset that is not yet processed for good; None before the first member fetched
    :param lag: offsets left to process, without those processed out of order; None if the brokers do not report it
    """

    start: int | None
    lag: int | None = None


@dataclass(frozen=True, slots=True)
class GroupOffsets:
    """What a group has committed, by topic and partition.

    :param offsets: of every commit
    :param epochs: leader epochs, where a commit has one
    :param metadata: where it is not empty; None where it could not be read
    """

    offsets: dict[str, dict[int, int]] = field(default_factory=dict)
    epochs: dict[str, dict[int, int]] = field(default_factory=dict)
    metadata: dict[str, dict[int, str | None]] = field(default_factory=dict)

    @classmethod
    def of(cls, commits: Mapping[TopicPartition, CommittedOffset]) -> GroupOffsets:
        """Return commits as ``commits`` yields them, by topic again."""
        found = cls()
        for place, committed in commits.items():
            found.offsets.setdefault(place.topic, {})[place.partition] = committed.offset
            if committed.leader_epoch is not None:
                found.epochs.setdefault(place.topic, {})[place.partition] = committed.leader_epoch
            if committed.metadata != "":
                found.metadata.setdefault(place.topic, {})[place.partition] = committed.metadata
        return found

    def columns(self) -> Iterator[tuple[str, tuple[int, ...], tuple[int, ...]]]:
        """Yield each topic with the partitions that have a commit, and their offsets; in order."""
        for topic in sorted(self.offsets):
            offsets = self.offsets[topic]
            partitions = tuple(sorted(offsets))
            yield topic, partitions, tuple(map(offsets.__getitem__, partitions))

    def commits(self) -> Iterator[tuple[TopicPartition, CommittedOffset]]:
        """Yield each commit, in the order of partitions."""
        for topic, partitions, offsets in self.columns():
            epochs, metadata = self.epochs.get(topic, {}), self.metadata.get(topic, {})
            for partition, offset in zip(partitions, offsets, strict=True):
                yield TopicPartition(topic, partition), CommittedOffset(offset, metadata.get(partition, ""), epochs.get(partition))


@dataclass(frozen=True)
class Member:
    member_id: str
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...] = ()
    group_instance_id: str | None = None


@dataclass(frozen=True)
class Group:
    """A group.

    :param state: EMPTY, STABLE, ... in Kafka's words, upper case; UNKNOWN when the client cannot see it
    :param type: classic, consumer, share, streams, connect or unknown
    :param protocol: assignor of a classic group: ``stream`` marks a live Kafka Streams application
    """

    group_id: str
    state: str
    type: str
    protocol: str = ""
    coordinator: Broker | None = None
    members: tuple[Member, ...] = ()

    @property
    def assigned(self) -> set[TopicPartition]:
        """The partitions that its members read, as far as their assignments can be decoded."""
        return {partition for member in self.members for partition in member.assignment}


@dataclass(frozen=True)
class NewRecord:
    """A record to be produced.

    :param timestamp: milliseconds since the epoch; None for now
    :param partition: None: the one that the Java client would choose
    """

    key: bytes | None
    value: bytes | None
    timestamp: int | None = None
    partition: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True)
class WorkingMember(Member):
    """A member of a share, streams or Connect group.

    :param epoch: of the member; it changes with its assignment. None if there is none
    :param work: what it does, other than reading partitions: ``active 0_1`` (a task of Kafka Streams), ``connector sink``, ``task sink-0``
    """

    epoch: int | None = None
    work: tuple[str, ...] = ()


@dataclass(frozen=True)
class Subtopology:
    """A sub-topology, as the Kafka Streams application registered it with its group.

    :param source_topics: topics that it reads
    :param repartition_topics: internal topics that it reads
    :param changelog_topics: of its stores
    """

    subtopology: str
    source_topics: tuple[str, ...] = ()
    repartition_topics: tuple[str, ...] = ()
    changelog_topics: tuple[str, ...] = ()


@dataclass(frozen=True)
class WorkingGroup(Group):
    """A share, streams or Connect group whose members are known.

    :param epoch: of the group; it changes with members and topics. None if there is none
    """

    epoch: int | None = None
    subtopologies: tuple[Subtopology, ...] = ()
