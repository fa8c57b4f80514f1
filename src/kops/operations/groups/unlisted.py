"""Groups that no broker can list: only the leader of a partition of ``__consumer_offsets`` knows the groups stored in it."""

from __future__ import annotations

from kops.core.errors import KopsError, Unreachable
from kops.core.findings import counted
from kops.core.models import Partition
from kops.operations.services import Services

KEPT_IN = "__consumer_offsets"


def unlisted(services: Services) -> KopsError | None:
    """Return why a list of groups may be incomplete.

    None if every partition of ``__consumer_offsets`` has a leader, or the topic may not be described.
    """
    partitions = _partitions(services)
    leaderless = sum(part.leader is None for part in partitions)
    if not leaderless:
        return None
    return Unreachable(
        f"groups are missing: {leaderless} of {counted(len(partitions), 'partition')} of {KEPT_IN} without a leader",
        hint="`kops cluster health` tells which brokers are down",
    )


def is_settling(services: Services) -> bool:
    """Whether replicas of ``__consumer_offsets`` are out of sync.

    A coordinator that has just taken over knows only what it knows to be replicated, and reports older groups as DEAD for a moment.
    """
    return any(len(part.in_sync_replicas) < len(part.replicas) for part in _partitions(services))


def _partitions(services: Services) -> tuple[Partition, ...]:
    try:
        topic = services.kafka.topics.existing([KEPT_IN]).get(KEPT_IN)
    except KopsError:
        return ()
    return tuple(topic.partitions) if topic else ()
