"""kafka-python's admin client, for what confluent-kafka does not support for groups.

Imported only when needed. confluent-kafka 2.16 sees neither share nor streams groups, cannot delete single offsets, and mishandles the
metadata of offsets: it writes a NUL after it, and reads past its end (hence the UnicodeDecodeError). Reading committed offsets with it
is not safe at all: see ``offsets_fetch``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from kops.config.connection import Connection
from kops.config.librdkafka import librdkafka_settings
from kops.core.errors import AuthenticationFailed, ConfigError, Unreachable
from kops.gateways.kafka.certificates import why_tls_fails
from kops.gateways.kafka.translate import too_old, translate_kafka_python
from kops.gateways.wire.connections import client_settings
from kops.gateways.wire.kafka_python import broker_release, forget_coordinators

if TYPE_CHECKING:
    from kafka import KafkaAdminClient

    from kops.gateways.kafka.client import Client

RETRY_SECONDS = 0.1
PATIENCE_SECONDS = 15.0
"""Controllers fence a broker that was silent for ``broker.session.timeout.ms``, 9 s; until then clients are sent to it."""
_COORDINATOR_MOVES = ("NotCoordinatorError", "CoordinatorNotAvailableError", "CoordinatorLoadInProgressError")

_BROKER_GONE = ("KafkaConnectionError", "NodeNotReadyError", "UnknownBrokerIdError")
_LEADER_MOVES = ("NotLeaderForPartitionError", "FencedLeaderEpochError", "UnknownLeaderEpochError")
"""kafka-python's admin client reads the metadata for each of its requests to leaders."""


def can_express(connection: Connection) -> bool:
    """Whether kafka-python supports everything that this connection needs."""
    return not connection.keystore_file and not (connection.sasl_mechanism == "OAUTHBEARER" and not connection.oauth.token_command)


def kafka_python_settings(connection: Connection) -> dict[str, Any]:
    """Return the settings of a kafka-python client. This reads the secrets.

    :raises ConfigError: when kafka-python has no such setting, or a secret or certificate cannot be read
    """
    if not can_express(connection):
        raise ConfigError(
            "this request needs a client that knows neither PKCS12 key stores nor OAuth token endpoints",
            hint="use certificate_file and key_file (PEM), or oauth_token_command, in the context",
        )
    milliseconds = int(connection.timeout * 1000)
    times = {"request_timeout_ms": milliseconds, "bootstrap_timeout_ms": milliseconds}
    return client_settings(librdkafka_settings(connection)) | times


class Wire:
    """A kafka-python admin client that connects on its first request."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.connection = client.connection

    def ask(self, doing: str, request: Callable[[KafkaAdminClient], Any], *, patient: bool = False) -> Any:
        """Make a request, and retry it while the group's coordinator is moving.

        :param patient: for requests that only read: also retry while a broker that just died still counts as in service, or one that is no
            longer the leader still counts as the leader
        :raises KopsError: translated from kafka-python's error
        """
        from kafka.errors import IncompatibleBrokerVersion, KafkaError

        admin = self._admin
        started = time.monotonic()
        limits = dict.fromkeys(_COORDINATOR_MOVES, self.connection.timeout)
        if patient:
            limits |= dict.fromkeys((*_BROKER_GONE, *_LEADER_MOVES), min(self.connection.timeout, PATIENCE_SECONDS))
        while True:
            try:
                return request(admin)
            except IncompatibleBrokerVersion as error:
                raise too_old(doing, error, broker_release(admin)) from error
            except KafkaError as error:
                if time.monotonic() - started > limits.get(type(error).__name__, -1.0):
                    raise translate_kafka_python(error, doing, self.connection.bootstrap_servers) from error
                forget_coordinators(admin)
                time.sleep(RETRY_SECONDS)

    @property
    def _admin(self) -> KafkaAdminClient:
        if self._client.second is None:
            self._client.second = self._connected()
        return self._client.second

    def _connected(self) -> KafkaAdminClient:
        settings = kafka_python_settings(self.connection)
        # The first client knows better why a cluster cannot be reached: the second one waits, and then has no reason to give.
        reached = self._client.admin.describe_cluster(request_timeout=self._client.timeout)
        from kafka import KafkaAdminClient  # the import takes as long as the answer, or longer
        from kafka.errors import KafkaError

        # It logs every connection attempt, to stderr unless there is a handler; what matters is raised as an error.
        log = logging.getLogger("kafka")
        log.addHandler(logging.NullHandler())
        log.propagate = False
        self._client.wait(reached, "describe the cluster")
        try:
            return KafkaAdminClient(**settings)
        except KafkaError as error:
            addresses = ",".join(self.connection.bootstrap_servers)
            if self.connection.uses_tls and (why := why_tls_fails(librdkafka_settings(self.connection))):
                hint = "`kops context show --resolved` says where the security settings come from"
                raise AuthenticationFailed(f"no TLS connection: {why}", hint=hint) from error
            raise Unreachable(f"kafka-python cannot connect to {addresses}: {error}", hint="`kops context test` looks closer") from error


def settled(answer: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return the errors by partition.

    :raises kafka.errors.KafkaError: when one of them means that the coordinator is moving, so that ``Wire.ask`` retries
    """
    for error in answer.values():
        if error.__name__ in _COORDINATOR_MOVES:
            raise error
    return answer
