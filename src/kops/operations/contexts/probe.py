"""``kops context test``: connects, and reports the cluster and the principal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from kops.config.connection import Connection
from kops.operations.services import Services

if TYPE_CHECKING:
    from kops.core.models import Cluster
    from kops.core.progress import Progress
    from kops.gateways.kafka import Kafka


def probe(services: Services) -> dict[str, Any]:
    """Connect, and return the cluster and the principal.

    :raises Unreachable: when no broker answers, or the login is rejected
    """
    connection = services.connection
    started = time.monotonic()
    cluster = _cluster(services.kafka, connection, services.progress)
    return {
        "name": connection.name or None,
        "cluster_id": cluster.cluster_id,
        "controller": cluster.controller,
        "brokers": [{"id": broker.id, "address": f"{broker.host}:{broker.port}"} for broker in cluster.brokers],
        "security_protocol": connection.security_protocol,
        "sasl_mechanism": connection.sasl_mechanism if connection.uses_sasl else None,
        "authenticated_as": authenticated_as(connection),
        "seconds": round(time.monotonic() - started, 3),
    }


def prove(connection: Connection, progress: Progress, *, connects: bool) -> None:
    """Refuse a connection that does not work: its secrets and certificates are loaded as by each of kops' clients.

    :param connects: also connect to the brokers
    :raises ConfigError: when a client cannot use a secret or certificate
    :raises Unreachable: when no broker answers, or the login is rejected
    """
    from kops.gateways.kafka import Kafka
    from kops.gateways.kafka.admin import can_express, kafka_python_settings

    kafka = Kafka(connection)
    try:
        if can_express(connection):
            kafka_python_settings(connection)
        kafka.client.load()
        if connects:
            _cluster(kafka, connection, progress)
    finally:
        kafka.close()


def _cluster(kafka: Kafka, connection: Connection, progress: Progress) -> Cluster:
    progress.step(f"connecting to {', '.join(connection.bootstrap_servers)}")
    return kafka.cluster()


def authenticated_as(connection: Connection) -> str:
    """Return the identity used to log in; brokers do not report the principal that their mapping rules derive from it."""
    if connection.uses_sasl and connection.sasl_mechanism == "OAUTHBEARER":
        return connection.oauth.client_id or "the principal of the token"
    if connection.uses_sasl:
        return connection.username or ""
    if connection.uses_tls and (connection.certificate_file or connection.keystore_file):
        return f"the certificate in {connection.certificate_file or connection.keystore_file}"
    return "anonymous"
