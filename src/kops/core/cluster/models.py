"""What a cluster reports about itself: controllers, features, brokers, and what is in their log directories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kops.core.models import TopicPartition

METADATA_VERSIONS = (
    *("3.0-IV1", "3.1-IV0", "3.2-IV0", "3.3-IV0", "3.3-IV1", "3.3-IV2", "3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2"),
    *("3.6-IV0", "3.6-IV1", "3.6-IV2", "3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0"),
    *("4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0"),
    *("4.4-IV0", "4.4-IV1", "4.4-IV2"),
)
"""The release that each level of ``metadata.version`` belongs to, from level 1 on (``MetadataVersion`` of Apache Kafka 4.4)."""
_HIGHEST = {
    name.partition("-")[0]: level for level, name in enumerate(METADATA_VERSIONS, start=1) if not name.startswith(("3.0", "3.1", "3.2"))
}
"""The highest level that each release supports, by release from 3.3 on (KIP-778); with unstable levels, for development, it is higher."""
NEWEST_KNOWN = next(reversed(_HIGHEST))


@dataclass(frozen=True)
class Release:
    """What is known of a broker's release: no request asks for it, but what the broker supports has grown from release to release.

    :param at_least: the oldest release that supports as much, such as ``4.3``
    :param is_exact: whether the next release would support more, so that it is this one
    :param level: the highest level of ``metadata.version`` that it supports; None: it does not say, as before KRaft
    """

    at_least: str
    is_exact: bool = False
    level: int | None = None

    @property
    def exact(self) -> str | None:
        return self.at_least if self.is_exact else None

    @property
    def text(self) -> str:
        if self.is_exact:
            return self.at_least
        unknown = f", metadata.version up to {self.level}" if self.level and self.level > len(METADATA_VERSIONS) else ""
        return f"{self.at_least} or newer{unknown}"


def release_of(level: int | None, by_requests: str) -> Release:
    """Return a broker's release, as far as it is known.

    :param level: the highest level of ``metadata.version`` that it supports
    :param by_requests: the oldest release that knows the versions of requests that it supports
    """
    known = [name for name, highest in _HIGHEST.items() if level is not None and highest <= level]
    if not known or _numbers(by_requests) > _numbers(known[-1]):
        return Release(by_requests, level=level)
    return Release(known[-1], known[-1] != NEWEST_KNOWN and _HIGHEST[known[-1]] == level, level)


def oldest_release(releases: Iterable[Release]) -> Release | None:
    """Return the release of all brokers together; exact if they are all of one release."""
    found = sorted(releases, key=lambda release: _numbers(release.at_least))
    return replace(found[0], is_exact=found[0].is_exact and found[0] == found[-1]) if found else None


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


DEFAULT_ENTITY = ""
"""The name of an entity for the quota of all users or clients that have none of their own."""


@dataclass(frozen=True)
class Quota:
    """A quota of clients, on each broker.

    :param entity: names by type, ``user`` and ``client-id``; ``DEFAULT_ENTITY`` for the default
    :param values: by key, such as ``consumer_byte_rate`` (bytes a second)
    """

    entity: Mapping[str, str]
    values: Mapping[str, float]


@dataclass(frozen=True)
class QuorumReplica:
    """A replica of the cluster's metadata log: a voter (controller) or an observer (broker).

    Times are the leader's, in milliseconds since the epoch; None if it never heard from the replica.

    :param log_end_offset: None if the leader does not know it
    :param directory: the id of its log directory, as Kafka prints it; None where the cluster reports none (Kafka 3.9)
    """

    id: int
    log_end_offset: int | None
    last_fetch: int | None
    last_caught_up: int | None
    directory: str | None = None


@dataclass(frozen=True)
class Quorum:
    """The controllers, which keep the metadata log together.

    :param leader: node id of the active controller; None while there is none
    :param endpoints: ``host:port`` by node id, where the cluster reports them (Kafka 3.9)
    :param listeners: name, host and port of each, in the same way
    """

    leader: int | None
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...] = ()
    endpoints: Mapping[int, str] = field(default_factory=dict)
    listeners: Mapping[int, Sequence[tuple[str, str, int]]] = field(default_factory=dict)

    @property
    def leader_replica(self) -> QuorumReplica | None:
        return next((voter for voter in self.voters if voter.id == self.leader), None)

    def lag(self, replica: QuorumReplica) -> int | None:
        """Return how many records of the metadata log a replica is behind the leader; None if either end offset is unknown."""
        leader = self.leader_replica
        if leader is None or leader.log_end_offset is None or replica.log_end_offset is None:
            return None
        return max(0, leader.log_end_offset - replica.log_end_offset)

    def silence(self, replica: QuorumReplica) -> int | None:
        """Return how many milliseconds ago a replica fetched, by the leader's clock; None if it never did or no leader is known."""
        leader = self.leader_replica
        if leader is None or leader.last_fetch is None or replica.last_fetch is None:
            return None
        return max(0, leader.last_fetch - replica.last_fetch)

    def behind(self, replica: QuorumReplica) -> int | None:
        """Return how many milliseconds ago a replica had last caught up with the leader, by the leader's clock; None if unknown."""
        leader = self.leader_replica
        if leader is None or leader.last_caught_up is None or replica.last_caught_up is None:
            return None
        return max(0, leader.last_caught_up - replica.last_caught_up)


@dataclass(frozen=True)
class Feature:
    """A feature of the cluster: the levels that the queried broker supports, and the one in force.

    :param finalized: 0 if it was never set
    """

    name: str
    supported: tuple[int, int] | None
    finalized: int

    @property
    def release(self) -> str | None:
        """The release that the level of ``metadata.version`` belongs to; None for other features and unknown levels."""
        known = self.name == "metadata.version" and 0 < self.finalized <= len(METADATA_VERSIONS)
        return METADATA_VERSIONS[self.finalized - 1] if known else None


@dataclass(frozen=True)
class RegisteredBroker:
    """A broker that the controllers know.

    :param fenced: registered but not in service: it is down or still starting
    """

    id: int
    host: str
    port: int
    rack: str | None
    fenced: bool


@dataclass(frozen=True)
class ReplicaOnDisk:
    """A replica of a partition in one log directory of one broker.

    :param size: bytes of its segments, on this broker only
    :param future: whether it is being moved here from another log directory of the same broker
    """

    partition: TopicPartition
    size: int
    future: bool = False


@dataclass(frozen=True)
class LogDir:
    """A log directory of a broker.

    :param total_bytes: of its volume; None if the broker does not report it (before Kafka 3.3), like ``usable_bytes``
    :param problem: why it cannot be used, such as an offline disk; empty if it can
    """

    broker: int
    path: str
    replicas: tuple[ReplicaOnDisk, ...] = ()
    total_bytes: int | None = None
    usable_bytes: int | None = None
    problem: str = ""

    @property
    def size(self) -> int:
        """Bytes of the replicas that were asked for, including future ones: they take up space too."""
        return sum(replica.size for replica in self.replicas)


def sizes_by_replica(log_dirs: Iterable[LogDir]) -> Mapping[TopicPartition, Mapping[int, int]]:
    """Return for each partition the bytes of its replica on each broker, without replicas that are still being moved."""
    sizes: dict[TopicPartition, dict[int, int]] = {}
    for log_dir in log_dirs:
        for replica in log_dir.replicas:
            if not replica.future:
                sizes.setdefault(replica.partition, {})[log_dir.broker] = replica.size
    return sizes
