"""Log directories of brokers and the replicas in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kops.core.models import TopicPartition


@dataclass(frozen=True)
class ReplicaOnDisk:
    """A replica of a partition in one log directory of one broker.

    :param size: bytes of its segments, on this broker only
    :param offset_lag: offsets that it is behind the high watermark; for a future replica, behind the one that it will replace
    :param future: whether it is being moved here from another log directory of the same broker
    """

    partition: TopicPartition
    size: int
    offset_lag: int = 0
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
