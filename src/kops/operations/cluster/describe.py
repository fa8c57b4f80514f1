"""`kops cluster describe`: the controllers, features and brokers of a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kops.core.cluster.models import Feature, Quorum, QuorumReplica, RegisteredBroker
from kops.core.errors import KopsError
from kops.core.models import Cluster
from kops.core.times import time_text
from kops.operations.cluster.observe import Gaps, kafka_versions
from kops.operations.services import Services

Row = dict[str, Any]


def describe(services: Services) -> tuple[Row, Mapping[str, KopsError]]:
    """Return what the cluster reports about itself, and the errors of requests that failed.

    :raises Unreachable: when no broker answers
    """
    details, gaps = services.kafka.details, Gaps()
    cluster = services.kafka.cluster()
    quorum = gaps.ask("quorum", details.quorum)
    features = gaps.ask("features", details.features) or ()
    brokers = known_brokers(cluster, gaps.ask("registered brokers", details.registered_brokers) or ())
    releases = gaps.answered("version", kafka_versions(services, [broker.id for broker in brokers if not broker.fenced], gaps))
    metadata = next((feature for feature in features if feature.name == "metadata.version"), None)
    body = {
        "cluster_id": cluster.cluster_id,
        "controller": _controller(quorum, cluster),
        "kafka_version": min(releases.values(), key=_version_order, default=None),
        "metadata_version": metadata.release if metadata else None,
        "quorum": _quorum_row(quorum) if quorum else None,
        "features": [_feature_row(feature) for feature in features],
        "brokers": [
            {
                "id": broker.id,
                "host": broker.host,
                "port": broker.port,
                "rack": broker.rack,
                "in_service": not broker.fenced,
                "kafka_version": releases.get(broker.id),
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


def _version_order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _controller(quorum: Quorum | None, cluster: Cluster) -> Row | None:
    """Return the active controller. KRaft brokers name one of themselves as the controller in metadata; only the quorum knows better."""
    if quorum is not None:
        return None if quorum.leader is None else {"id": quorum.leader, "endpoint": quorum.endpoints.get(quorum.leader)}
    found = next((broker for broker in cluster.brokers if broker.id == cluster.controller), None)
    return {"id": found.id, "endpoint": f"{found.host}:{found.port}"} if found else None


def _quorum_row(quorum: Quorum) -> Row:
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
