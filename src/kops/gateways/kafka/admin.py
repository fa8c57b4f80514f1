"""kafka-python's admin client, for what confluent-kafka does not support for groups.

Imported only when needed. confluent-kafka 2.16 sees neither share nor streams groups, cannot delete single offsets, and mishandles the
metadata of offsets: it writes a NUL after it, and reads past its end (hence the UnicodeDecodeError). Reading committed offsets with it
is not safe at all: see ``offsets_fetch``.
"""

from __future__ import annotations

import importlib
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from kops.config.connection import Connection
from kops.config.librdkafka import librdkafka_settings
from kops.core.errors import AuthenticationFailed, BrokerDown, ConfigError, KopsError, OperationFailed, Unreachable, answer_or_error
from kops.gateways.kafka.certificates import why_tls_fails
from kops.gateways.kafka.presence import DOWN_HINT, FRESH_SECONDS
from kops.gateways.kafka.translate import request_in, too_old, translate_kafka_python
from kops.gateways.threads import in_thread
from kops.gateways.wire.connections import client_settings
from kops.gateways.wire.kafka_python import (
    avoid,
    broker_release,
    by_coordinator,
    forget_coordinators,
    highest_version,
    known_brokers,
    request_class,
    require_permit,
    run,
    send,
)

if TYPE_CHECKING:
    from kafka import KafkaAdminClient

    from kops.gateways.kafka.client import Client

T = TypeVar("T")

RETRY_SECONDS = 0.1
QUORUM_MILLISECONDS = 1000
"""Controllers that have a leader answer within this time; its only use is to decide whether to wait for new leaders of partitions."""
PATIENCE_SECONDS = 15.0
"""Controllers fence a broker that was silent for ``broker.session.timeout.ms``, 9 s; until then clients are sent to it."""
_COORDINATOR_MOVES = ("NotCoordinatorError", "CoordinatorNotAvailableError", "CoordinatorLoadInProgressError")

_BROKER_GONE = ("KafkaConnectionError", "NodeNotReadyError", "UnknownBrokerIdError")
_LEADER_MOVES = ("NotLeaderForPartitionError", "FencedLeaderEpochError", "UnknownLeaderEpochError")
"""kafka-python's admin client reads the metadata for each of its requests to leaders."""


def _ask_one(request: Callable[[KafkaAdminClient, int], T], broker: int, admin: KafkaAdminClient) -> T:
    return request(admin, broker)


def can_express(connection: Connection) -> bool:
    """Whether kafka-python supports everything that this connection needs."""
    return not connection.keystore_file


def kafka_python_settings(connection: Connection) -> dict[str, Any]:
    """Return the settings of a kafka-python client. This reads the secrets.

    :raises ConfigError: when kafka-python has no such setting, or a secret or certificate cannot be read
    """
    if not can_express(connection):
        raise ConfigError(
            "this request needs a client that does not know PKCS12 key stores",
            hint="use certificate_file and key_file (PEM) in the context",
        )
    milliseconds = int(connection.timeout * 1000)
    times = {"request_timeout_ms": milliseconds, "bootstrap_timeout_ms": milliseconds}
    return client_settings(librdkafka_settings(connection)) | times


class Wire:
    """A kafka-python admin client that connects on its first request."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.connection = client.connection

    def ask(self, doing: str, request: Callable[[KafkaAdminClient], Any], *, patient: bool = False, controllers: bool = False) -> Any:
        """Make a request, and retry it while the group's coordinator is moving.

        :param patient: for requests that only read: also retry while a broker that just died still counts as in service, or one that is no
            longer the leader still counts as the leader
        :param controllers: for requests that the controllers answer: without a leader of theirs, brokers let clients wait in vain
        :raises KopsError: translated from kafka-python's error
        """
        from kafka.errors import IncompatibleBrokerVersion, KafkaError

        admin, presence = self._admin, self._client.presence
        started = time.monotonic()
        hopeless = False
        limits = dict.fromkeys(_COORDINATOR_MOVES, self.connection.timeout)
        if patient:
            limits |= dict.fromkeys((*_BROKER_GONE, *_LEADER_MOVES), min(self.connection.timeout, PATIENCE_SECONDS))
        while True:
            self._turn(admin)
            if controllers and (down := presence.down()) and not self.elects():
                why = f"the controllers have no leader that answers; {'; '.join(down.values())}"
                raise OperationFailed(f"could not {doing}: {why}", hint=DOWN_HINT)
            try:
                if not patient:
                    return request(admin)
                asked = in_thread(partial(request, admin))
                if not self._client.late([asked]) or not self._turn(admin):
                    return asked.result()
            except IncompatibleBrokerVersion as error:
                raise too_old(doing, request_in(error), broker_release(admin)) from error
            except KafkaError as error:
                kind = type(error).__name__
                if kind in _BROKER_GONE:
                    presence.doubt()
                    if patient and self._turn(admin):
                        continue
                down = presence.down() if kind in _BROKER_GONE else {}
                hopeless = hopeless or (bool(down) and not self.elects())
                if hopeless or time.monotonic() - started > limits.get(kind, -1.0):
                    if down:
                        raise BrokerDown(f"could not {doing}: {'; '.join(down.values())}", hint=DOWN_HINT) from error
                    raise translate_kafka_python(error, doing, self.connection.bootstrap_servers) from error
                forget_coordinators(admin)
                time.sleep(RETRY_SECONDS)

    def require(self, doing: str, request: str, version: int = 0) -> None:
        """Look whether the brokers know a request, before what depends on it is planned; does nothing where this client cannot ask.

        :param request: its name; for what has no request of its own, one that came with the same release
        :raises BrokersTooOld: naming the release that is needed, and theirs
        """
        if not can_express(self.connection):
            return
        admin = self._admin
        known = highest_version(admin, request)
        if known is None or known < version:
            raise too_old(doing, request, broker_release(admin), version)

    def _turn(self, admin: KafkaAdminClient) -> bool:
        """Keep away from brokers that are down; return whether some were found just now, so that it is worth to send a request again.

        kafka-python sends what any broker may answer to one at random.
        """
        down = set(self._client.presence.down())
        avoid(admin, down, FRESH_SECONDS)
        known, self._client.avoided = self._client.avoided, down
        return not down <= known

    def brokers(self) -> list[int]:
        """Return the brokers in kafka-python's metadata."""
        return [each.node_id for each in known_brokers(self._admin)]

    def connect(self) -> None:
        """Connect now."""
        _ = self._admin

    def brokers_or_errors(
        self, broker_ids: Iterable[int], doing: str, request: Callable[[KafkaAdminClient, int], T]
    ) -> dict[int, T | KopsError]:
        """Make a request to each of some brokers, all at once; those that are down are not waited for.

        :param doing: ends with ``of broker`` or the like, to which the id is added
        """
        self.connect()
        presence = self._client.presence
        answers: dict[int, T | KopsError] = {}
        asked = {}
        for broker in sorted(set(broker_ids)):
            if down := presence.problem(broker):
                answers[broker] = down
            else:
                asked[broker] = in_thread(partial(self._outcome, f"{doing} {broker}", partial(_ask_one, request, broker)))
        self._client.late(asked.values())
        for broker, answer in asked.items():
            failed = not answer.done() or isinstance(answer.result(), KopsError)
            answers[broker] = (failed and presence.problem(broker)) or answer.result()
        return answers

    def _outcome(self, doing: str, request: Callable[[KafkaAdminClient], T]) -> T | KopsError:
        try:
            answer: T = self.ask(doing, request)
        except KopsError as error:
            return error
        return answer

    def down_for_good(self) -> Mapping[int, str]:
        """Return the brokers that do not accept connections, once there is no point in waiting for the controllers to replace them."""
        presence, deadline = self._client.presence, time.monotonic() + min(self.connection.timeout, PATIENCE_SECONDS)
        while (down := presence.down()) and self.elects() and time.monotonic() < deadline:
            time.sleep(RETRY_SECONDS)
            presence.forget()
        return down

    def stranded(self, group_ids: Collection[str]) -> dict[str, KopsError]:
        """Return the groups whose coordinators do not accept connections, once there is no point in waiting for other coordinators.

        :returns: why each is not known
        """
        presence, deadline = self._client.presence, time.monotonic() + min(self.connection.timeout, PATIENCE_SECONDS)
        while presence.down() and can_express(self.connection):
            found = answer_or_error(lambda: self.ask("find the coordinators of groups", partial(_coordinators, group_ids), patient=True))
            if isinstance(found, KopsError):
                return dict.fromkeys(group_ids, found)
            problems = {broker: problem for broker in found if (problem := presence.problem(broker, "its coordinator, "))}
            if not problems or time.monotonic() > deadline or not self.elects():
                return {name: problem for broker, problem in problems.items() for name in found[broker]}
            forget_coordinators(self._admin)
            time.sleep(RETRY_SECONDS)
        return {}

    def elects(self) -> bool:
        """Whether the controllers have a leader, and so may move what brokers that are down led: then it is worth to wait for that.

        Also True where that cannot be asked: before Kafka 3.3, without the right.
        """
        if not can_express(self.connection):
            return True
        now, client = time.monotonic(), self._client
        if client.electing is None or now - client.electing[0] > FRESH_SECONDS:
            client.electing = (now, _controllers_answer(self._admin, client.presence.down()))
        return client.electing[1]

    @property
    def _admin(self) -> KafkaAdminClient:
        if self._client.second is None:
            self._client.second = self._connected()
        return self._client.second

    def _connected(self) -> KafkaAdminClient:
        settings = kafka_python_settings(self.connection)
        imported = in_thread(partial(importlib.import_module, "kafka"))  # which takes as long as the answer, or longer
        # The first client knows better why a cluster cannot be reached: the second one waits, and then has no reason to give.
        self._client.cluster()
        imported.result()
        from kafka import KafkaAdminClient
        from kafka.errors import KafkaError

        # It logs every connection attempt, to stderr unless there is a handler; what matters is raised as an error.
        log = logging.getLogger("kafka")
        log.addHandler(logging.NullHandler())
        log.propagate = False
        try:
            made = in_thread(partial(KafkaAdminClient, **(settings | {"bootstrap_servers": self._client.addresses()})))
            if self._client.late([made]) and self._client.presence.down():  # it would wait for each of those in turn
                made = in_thread(partial(KafkaAdminClient, **(settings | {"bootstrap_servers": self._client.addresses()})))
            admin = made.result()
            require_permit(admin, self._client.permit.require)
            self._turn(admin)
            return admin
        except KafkaError as error:
            addresses = ",".join(self.connection.bootstrap_servers)
            if self.connection.uses_tls and (why := why_tls_fails(librdkafka_settings(self.connection))):
                hint = "`kops context show --resolved` says where the security settings come from"
                raise AuthenticationFailed(f"no TLS connection: {why}", hint=hint) from error
            raise Unreachable(f"kafka-python cannot connect to {addresses}: {error}", hint="`kops context test` looks closer") from error


def ask_for_quorum(admin: KafkaAdminClient, broker: int | None = None, milliseconds: int | None = None) -> dict[str, Any]:
    """Request the quorum; kafka-python's own method expects an answer of version 2 (Kafka 3.8).

    :param broker: None for any
    :param milliseconds: to wait for; None: as for other requests
    """
    from kafka.errors import for_code

    request = request_class("DescribeQuorumRequest")
    topic = request.TopicData
    log = topic(topic_name="__cluster_metadata", partitions=[topic.PartitionData(partition_index=0)])
    found = answer_of(admin, request(topics=[log]), broker, milliseconds)
    partition = found["topics"][0]["partitions"][0]
    if partition["error_code"]:
        raise for_code(partition["error_code"])(partition.get("error_message") or "")
    return found


def answer_of(
    admin: KafkaAdminClient, request: Any, broker: int | None = None, milliseconds: int | None = None, *, binary: bool = False
) -> dict[str, Any]:
    """Return an answer as the fields that its version has.

    :param binary: return bytes and UUIDs as they are; otherwise as text
    :raises kafka.errors.KafkaError: when it is an error
    """
    from kafka.errors import for_code

    found = raw_answer(admin, request, broker, milliseconds, binary=binary)
    if found.get("error_code"):
        raise for_code(found["error_code"])(found.get("error_message") or "")
    return found


def raw_answer(
    admin: KafkaAdminClient, request: Any, broker: int | None = None, milliseconds: int | None = None, *, binary: bool = False
) -> dict[str, Any]:
    """Return an answer as the fields that its version has, errors included; for the parameters see :func:`answer_of`."""

    async def ask() -> Any:
        return await send(admin, request, broker, milliseconds)

    found: dict[str, Any] = run(admin, ask).to_dict(json=not binary)
    return found


def _controllers_answer(admin: KafkaAdminClient, down: Collection[int]) -> bool:
    from kafka.errors import AuthorizationError, IncompatibleBrokerVersion, KafkaError

    broker = next((each.node_id for each in known_brokers(admin) if each.node_id not in down), None)
    try:
        found = ask_for_quorum(admin, broker, QUORUM_MILLISECONDS)
    except (AuthorizationError, IncompatibleBrokerVersion):
        return True
    except KafkaError:
        return False
    return bool(found["topics"][0]["partitions"][0]["leader_id"] >= 0)


def _coordinators(group_ids: Collection[str], admin: KafkaAdminClient) -> dict[int, list[str]]:
    found: dict[int, list[str]] = run(admin, by_coordinator, admin, group_ids)
    return found


def settled(answer: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return the errors by partition.

    :raises kafka.errors.KafkaError: when one of them means that the coordinator is moving, so that ``Wire.ask`` retries
    """
    for error in answer.values():
        if error.__name__ in _COORDINATOR_MOVES:
            raise error
    return answer
