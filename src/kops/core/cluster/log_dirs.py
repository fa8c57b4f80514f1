"""What lies on the disks of brokers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kops.core.models import TopicPartition


@dataclass(frozen=True)
class ReplicaOnDisk:
    """A replica of a partition in one log directory of one broker.

    :param size: bytes of its segments, on this broker alone
    :param offset_lag: offsets that it is behind the high watermark; of a future replica, behind the one that it will replace
    :param future: whether it is being moved here from another log directory of the same broker
    """

    partition: TopicPartition
    size: int
    offset_lag: int = 0
    future: bool = False


@dataclass(frozen=True)
class LogDir:
    """A log directory of a broker.

    :param total_bytes: of the volume that it lies on, None when the broker does not report it (before Kafka 3.3); ``usable_bytes`` too
    :param problem: why it cannot be used, empty when it can: an offline disk
    """

    broker: int
    path: str
    replicas: tuple[ReplicaOnDisk, ...] = ()
    total_bytes: int | None = None
    usable_bytes: int | None = None
    problem: str = ""

    @property
    def size(self) -> int:
        """Return the bytes of the replicas that were asked for, future ones included: they take room too."""
        return sum(replica.size for replica in self.replicas)


def sizes_by_replica(log_dirs: Iterable[LogDir]) -> Mapping[TopicPartition, Mapping[int, int]]:
    """Return for each partition the bytes of its replica on each broker, without those that are still being moved."""
    sizes: dict[TopicPartition, dict[int, int]] = {}
    for log_dir in log_dirs:
        for replica in log_dir.replicas:
            if not replica.future:
                sizes.setdefault(replica.partition, {})[log_dir.broker] = replica.size
    return sizes
