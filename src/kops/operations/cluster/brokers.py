"""``kops cluster brokers``: the partitions that each broker leads and stores, and its log directories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kops.core.cluster.log_dirs import LogDir
from kops.core.cluster.models import RegisteredBroker
from kops.core.errors import KopsError
from kops.core.models import Topic
from kops.operations.cluster.describe import known_brokers
from kops.operations.cluster.observe import Gaps, log_dirs
from kops.operations.services import Services

Row = dict[str, Any]
NO_SHARE: Mapping[str, int] = {"leaders": 0, "preferred_leaders": 0, "replicas": 0, "out_of_sync_replicas": 0}


def brokers(services: Services) -> tuple[list[Row], Mapping[str, KopsError]]:
    """Return a row per broker with its leaders, replicas and log directories, and the errors of requests that failed.

    :raises Unreachable: when no broker answers
    """
    gaps = Gaps()
    cluster = services.kafka.cluster()
    registered = known_brokers(cluster, gaps.ask("registered brokers", services.kafka.details.registered_brokers) or ())
    topics = services.kafka.topics.describe()
    in_service = [broker.id for broker in registered if not broker.fenced]
    disks = log_dirs(services, in_service, gaps)
    shares = shares_of(topics.values())
    # Before Kafka 4.0 a broker that is down shows only in the replica lists of partitions.
    unknown = [RegisteredBroker(broker_id, "", -1, None, fenced=True) for broker_id in shares.keys() - {one.id for one in registered}]
    rows = []
    for broker in sorted([*registered, *unknown], key=lambda broker: broker.id):
        known = [_log_dir_row(one) for one in disks.get(broker.id, ())]
        rows.append(
            {
                "id": broker.id,
                "host": broker.host or None,
                "port": broker.port if broker.host else None,
                "rack": broker.rack,
                "in_service": not broker.fenced,
                **shares.get(broker.id, NO_SHARE),
                "size_bytes": sum(one["size_bytes"] for one in known) if known else None,
                "offline_log_dirs": sum(one["problem"] is not None for one in known) if known else None,
                "log_dirs": known,
            }
        )
    return rows, gaps.errors


def shares_of(topics: Iterable[Topic]) -> dict[int, dict[str, int]]:
    """Count per broker: partitions that it leads, is the preferred leader of, has a replica of, and has an out-of-sync replica of."""
    shares: dict[int, dict[str, int]] = {}
    for part in (part for topic in topics for part in topic.partitions):
        for place, broker in enumerate(part.replicas):
            share = shares.setdefault(broker, dict(NO_SHARE))
            share["leaders"] += part.leader == broker
            share["preferred_leaders"] += place == 0
            share["replicas"] += 1
            share["out_of_sync_replicas"] += broker not in part.in_sync_replicas
    return shares


def _log_dir_row(found: LogDir) -> Row:
    return {
        "path": found.path,
        "replicas": sum(not replica.future for replica in found.replicas),
        "future_replicas": sum(replica.future for replica in found.replicas),
        "size_bytes": found.size,
        "total_bytes": found.total_bytes,
        "usable_bytes": found.usable_bytes,
        "problem": found.problem or None,
    }
