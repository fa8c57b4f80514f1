"""How many bytes topics take, as the brokers' log directories say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kops.core.cluster.models import LogDir, sizes_by_replica
from kops.core.errors import KopsError
from kops.core.models import Topic, TopicPartition
from kops.operations.services import Services

Sizes = Mapping[TopicPartition, Mapping[int, int]]
"""Bytes by partition and broker."""


def replica_sizes(services: Services, topics: Sequence[Topic]) -> tuple[Sizes, list[str]]:
    """Ask every broker that has a replica for its sizes; return them, and what could not be read."""
    brokers = {replica for topic in topics for partition in topic.partitions for replica in partition.replicas}
    places = [place for topic in topics for place in topic.places]
    found: list[LogDir] = []
    problems: list[str] = []
    for answer in services.kafka.log_dirs.describe_or_errors(brokers, places).values():
        if isinstance(answer, KopsError):
            problems.append(f"sizes are not whole: {answer.message}")
        else:
            found += answer
            problems += [f"broker {one.broker} cannot use {one.path}: {one.problem}" for one in answer if one.problem]
    return sizes_by_replica(found), problems


def size_of(topic: Topic, sizes: Sizes, *, whole: bool) -> dict[str, Any]:
    """Return sizes in bytes: of the leaders, of all replicas, and of each replica; None for a sum with unknown parts."""
    rows = [
        {"partition": place.partition, "broker": broker, "size_bytes": size}
        for place in topic.places
        for broker, size in sorted(sizes.get(place, {}).items())
    ]
    leaders = [partition.leader for partition in topic.partitions]
    by_leader = [
        sizes.get(place, {}).get(leader) if leader is not None else None for place, leader in zip(topic.places, leaders, strict=True)
    ]
    known = [size for size in by_leader if size is not None]
    return {
        "size_bytes": sum(known) if len(known) == len(by_leader) else None,
        "replicas_size_bytes": sum(row["size_bytes"] for row in rows) if whole else None,
        "replica_sizes": rows,
    }
