"""`kops cluster describe` and `kops brokers list`: controllers and features, and each broker's share of leaders, replicas and bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from kops.core.cluster.models import Feature, LogDir, Quorum, QuorumReplica, RegisteredBroker, Release, oldest_release
from kops.core.errors import KopsError
from kops.core.models import Cluster, Topic
from kops.core.times import time_text
from kops.operations.cluster.observe import Gaps, note_unseen_topics, releases
from kops.operations.services import Services

Row = dict[str, Any]
NO_SHARE: Mapping[str, int] = {"leaders": 0, "preferred_leaders": 0, "replicas": 0, "out_of_sync_replicas": 0}


def describe(services: Services) -> tuple[Row, Mapping[str, KopsError]]:
    """Return what the cluster reports about itself, and the errors of requests that failed.

    :raises Unreachable: when no broker answers
    """
    details, gaps = services.kafka.details, Gaps()
    cluster = services.kafka.cluster()
    quorum = gaps.ask("quorum", details.quorum)
    features = gaps.ask("features", details.features) or ()
    brokers = known_brokers(cluster, gaps.ask("registered brokers", details.registered_brokers) or ())
    in_service = [broker.id for broker in brokers if not broker.fenced]
    known = gaps.answered("version", releases(services, in_service, gaps))
    of_all = oldest_release(known.values()) if len(known) == len(in_service) else None
    metadata = next((feature for feature in features if feature.name == "metadata.version"), None)
    body = {
        "cluster_id": cluster.cluster_id,
        "controller": _controller(quorum, cluster),
        **_release_row(of_all),
        "metadata_version": metadata.release if metadata else None,
        "quorum": quorum_row(quorum) if quorum else None,
        "features": [_feature_row(feature) for feature in features],
        "brokers": [
            {
                "id": broker.id,
                "host": broker.host,
                "port": broker.port,
                "rack": broker.rack,
                "in_service": not broker.fenced and broker.id not in services.kafka.down(),
                **_release_row(known.get(broker.id)),
            }
            for broker in brokers
        ],
    }
    return body, gaps.errors


def known_brokers(cluster: Cluster, registered: Iterable[RegisteredBroker]) -> list[RegisteredBroker]:
    """Return the brokers in service and those that only the controllers know, by id."""
    known = {broker.id: broker for broker in registered}
    in_service = {broker.id: RegisteredBroker(broker.id, broker.host, broker.port, broker.rack, fenced=False) for broker in cluster.brokers}
    return [broker for _, broker in sorted({**in_service, **known}.items())]


def _release_row(release: Release | None) -> Row:
    return {
        "kafka_version": release.exact if release else None,
        "kafka_version_at_least": release.at_least if release else None,
    }


def _controller(quorum: Quorum | None, cluster: Cluster) -> Row | None:
    """Return the active controller. KRaft brokers name one of themselves as the controller in metadata; only the quorum knows better."""
    if quorum is not None:
        return None if quorum.leader is None else {"id": quorum.leader, "endpoint": quorum.endpoints.get(quorum.leader)}
    found = next((broker for broker in cluster.brokers if broker.id == cluster.controller), None)
    return {"id": found.id, "endpoint": f"{found.host}:{found.port}"} if found else None


def quorum_row(quorum: Quorum) -> Row:
    return {
        "leader": quorum.leader,
        "leader_epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "voters": [_replica_row(quorum, voter) for voter in quorum.voters],
        "observers": [_replica_row(quorum, observer) for observer in quorum.observers],
    }


def _replica_row(quorum: Quorum, replica: QuorumReplica) -> Row:
    return {
        "id": replica.id,
        "endpoint": quorum.endpoints.get(replica.id),
        "log_end_offset": replica.log_end_offset,
        "lag": quorum.lag(replica),
        "lag_ms": quorum.behind(replica),
        "last_fetch": None if replica.last_fetch is None else time_text(replica.last_fetch),
        "last_caught_up": None if replica.last_caught_up is None else time_text(replica.last_caught_up),
    }


def _feature_row(feature: Feature) -> Row:
    least, most = feature.supported or (None, None)
    return {
        "name": feature.name,
        "finalized_level": feature.finalized,
        "supported_min": least,
        "supported_max": most,
        "release": feature.release,
    }


def brokers(services: Services) -> tuple[list[Row], Mapping[str, KopsError]]:
    """Return a row per broker with its leaders, replicas and log directories, and the errors of requests that failed.

    :raises Unreachable: when no broker answers
    """
    gaps = Gaps()
    cluster = services.kafka.cluster()
    registered = known_brokers(cluster, gaps.ask("registered brokers", services.kafka.details.registered_brokers) or ())
    topics = services.kafka.topics.describe()
    in_service = [broker.id for broker in registered if not broker.fenced]
    answers = gaps.ask("log directories", partial(services.kafka.log_dirs.describe_or_errors, in_service))
    note_unseen_topics(gaps, partial(services.kafka.hidden_topics, internal=True, answers=answers))
    disks = gaps.answered("log directories", answers or {})
    down = services.kafka.down()
    shares = shares_of(topics.values())
    # Before Kafka 4.0 a broker that is down shows only in the replica lists of partitions.
    unknown = [RegisteredBroker(broker_id, "", -1, None, fenced=True) for broker_id in shares.keys() - {one.id for one in registered}]
    rows = []
    for broker in sorted([*registered, *unknown], key=lambda broker: broker.id):
        known = [log_dir_row(one) for one in disks.get(broker.id, ())]
        rows.append(
            {
                "id": broker.id,
                "host": broker.host or None,
                "port": broker.port if broker.host else None,
                "rack": broker.rack,
                "in_service": not broker.fenced and broker.id not in down,
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
    for partition in (partition for topic in topics for partition in topic.partitions):
        for place, broker in enumerate(partition.replicas):
            share = shares.setdefault(broker, dict(NO_SHARE))
            share["leaders"] += partition.leader == broker
            share["preferred_leaders"] += place == 0
            share["replicas"] += 1
            share["out_of_sync_replicas"] += broker not in partition.in_sync_replicas
    return shares


def log_dir_row(found: LogDir) -> Row:
    return {
        "path": found.path,
        "replicas": sum(not replica.future for replica in found.replicas),
        "future_replicas": sum(replica.future for replica in found.replicas),
        "size_bytes": found.size,
        "total_bytes": found.total_bytes,
        "usable_bytes": found.usable_bytes,
        "problem": found.problem or None,
    }
