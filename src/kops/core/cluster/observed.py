"""A cluster as observed, and its partitions by what is wrong with them.

The counts are those of Apache's ``kafka-topics --unavailable-partitions``, ``--under-min-isr-partitions`` and so on
(``TopicCommand`` of kafka-tools 4.3): a replica that a reassignment is still adding does not count as missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from kops.core.cluster.models import LogDir, Quorum, RegisteredBroker, Release
from kops.core.models import Broker, Partition, Setting, Topic, TopicPartition
from kops.core.topics.settings import MIN_IN_SYNC


@dataclass(frozen=True)
class ObservedCluster:
    """A cluster as observed.

    :param brokers: those in service
    :param registered: those that the controllers know; empty if they do not report them
    :param settings: of the topics whose settings could be read, by topic and name
    :param adding: brokers that partitions are being moved to
    :param eligible: out-of-sync brokers that may lead without loss
    :param unanswering: brokers that do not answer us, although the controllers consider them in service
    """

    topics: tuple[Topic, ...]
    brokers: tuple[Broker, ...]
    registered: tuple[RegisteredBroker, ...] = ()
    settings: Mapping[str, Mapping[str, Setting]] = field(default_factory=dict)
    quorum: Quorum | None = None
    adding: Mapping[TopicPartition, frozenset[int]] = field(default_factory=dict)
    eligible: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    log_dirs: tuple[LogDir, ...] = ()
    versions: Mapping[int, Release] = field(default_factory=dict)
    unanswering: frozenset[int] = frozenset()
    cluster_id: str = ""

    @property
    def live(self) -> frozenset[int]:
        return frozenset(broker.id for broker in self.brokers)

    def partitions(self) -> Iterator[tuple[TopicPartition, Partition]]:
        for topic in self.topics:
            for partition in topic.partitions:
                yield TopicPartition(topic.name, partition.partition), partition

    def minimum(self, topic: str) -> int | None:
        """min.insync.replicas of a topic; None if it could not be read."""
        found = self.settings.get(topic, {}).get(MIN_IN_SYNC)
        return int(found.value) if found is not None and found.value and found.value.isdigit() else None


@dataclass(frozen=True)
class PartitionTrouble:
    """The partitions of a cluster by what is wrong with them; a partition may be in several lists, as in Apache's tool.

    :param at_min_isr: with one in-sync replica fewer, producers with acks=all are refused; includes partitions with all replicas in sync
    """

    offline: tuple[TopicPartition, ...]
    under_replicated: tuple[TopicPartition, ...]
    under_min_isr: tuple[TopicPartition, ...]
    at_min_isr: tuple[TopicPartition, ...]
    not_preferred: tuple[TopicPartition, ...]


def partition_trouble(observed: ObservedCluster) -> PartitionTrouble:

    def those(test: Callable[[TopicPartition, Partition], bool]) -> tuple[TopicPartition, ...]:
        return tuple(place for place, partition in observed.partitions() if test(place, partition))

    def in_sync_less_minimum(place: TopicPartition, partition: Partition) -> int | None:
        minimum = observed.minimum(place.topic)
        return None if minimum is None else len(partition.in_sync_replicas) - minimum

    return PartitionTrouble(
        offline=those(lambda _, partition: partition.leader is None or partition.leader not in observed.live),
        under_replicated=those(lambda place, partition: is_under_replicated(partition, observed.adding.get(place, frozenset()))),
        under_min_isr=those(lambda place, partition: (in_sync_less_minimum(place, partition) or 0) < 0),
        at_min_isr=those(lambda place, partition: in_sync_less_minimum(place, partition) == 0),
        not_preferred=those(lambda _, partition: bool(partition.replicas) and partition.leader not in (None, partition.replicas[0])),
    )


def is_under_replicated(partition: Partition, adding: frozenset[int] = frozenset()) -> bool:
    """Whether replicas are out of sync, not counting those that are still being added."""
    return len(set(partition.replicas) - adding) > len(partition.in_sync_replicas)
