"""``kops context test``: connects, and reports the cluster and the principal."""

from __future__ import annotations

import time
from typing import Any

from kops.config.connection import Connection
from kops.operations.services import Services


def probe(services: Services) -> dict[str, Any]:
    """Connect, and return the cluster and the principal.

    :raises Unreachable: when no broker answers, or the login is rejected
    """
    connection = services.connection
    started = time.monotonic()
    services.progress.step(f"connecting to {', '.join(connection.bootstrap_servers)}")
    cluster = services.kafka.cluster()
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


def authenticated_as(connection: Connection) -> str:
    """Return the identity used to log in; brokers do not report the principal that their mapping rules derive from it."""
    if connection.uses_sasl and connection.sasl_mechanism == "OAUTHBEARER":
        return connection.oauth.client_id or "the principal of the token"
    if connection.uses_sasl:
        return connection.username or ""
    if connection.uses_tls and (connection.certificate_file or connection.keystore_file):
        return f"the certificate in {connection.certificate_file or connection.keystore_file}"
    return "anonymous"
