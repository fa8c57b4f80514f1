"""Connections of tasks to brokers through kafka-python, whose requests carry whole record batches."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from kops.gateways.wire.freed_memory import keep_freed_memory
from kops.gateways.wire.kafka_python import connections

_NAMES = {
    "client.id": "client_id",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
}
_LARGEST_ANSWER = 1 << 30  # one record batch may be larger than what a fetch asks for
_POLL_MILLISECONDS = 1000
_OTHERS = ("bootstrap.servers", "ssl.endpoint.identification.algorithm")
_TUNING = frozenset({
    "api.version.request", "api.version.request.timeout.ms", "broker.address.ttl", "client.rack", "connections.max.idle.ms",
    "enable.metrics.push", "log.connection.close", "log.queue", "log.thread.name", "log_level", "metadata.max.age.ms",
    "reconnect.backoff.max.ms", "reconnect.backoff.ms", "request.timeout.ms", "retry.backoff.max.ms", "retry.backoff.ms",
    "socket.connection.setup.timeout.ms", "socket.keepalive.enable", "socket.max.fails", "socket.nagle.disable",
    "socket.receive.buffer.bytes", "socket.send.buffer.bytes", "socket.timeout.ms", "statistics.interval.ms",
    "topic.metadata.propagation.max.ms", "topic.metadata.refresh.fast.interval.ms", "topic.metadata.refresh.interval.ms",
    "topic.metadata.refresh.sparse",
})  # fmt: skip
"""Properties of librdkafka that change how it works and not what it may read or write: they are left out here."""


def not_honoured(settings: Mapping[str, Any]) -> list[str]:
    """Return the properties of a connection in librdkafka's terms that a connection made here would not keep to."""
    others = sorted(set(settings) - {*_NAMES, *_OTHERS, *_TUNING})
    if settings.get("sasl.mechanism") != "OAUTHBEARER":
        return others
    return ["sasl.mechanism=OAUTHBEARER", *(name for name in others if name != "oauth_cb" and not name.startswith("sasl.oauthbearer."))]


def can_connect(settings: Mapping[str, Any]) -> bool:
    """Tell whether a connection in librdkafka's terms can be made here; confluent-kafka and Spark's own source are the other ways."""
    return not not_honoured(settings)


def connected(settings: Mapping[str, Any], milliseconds: int) -> Any:
    """Return a client that knows the brokers.

    :param settings: librdkafka's, secrets included
    :param milliseconds: how long the first broker is waited for
    :raises kafka.errors.KafkaError: when none answers
    """
    from kops.gateways.wire import wide_sockets

    keep_freed_memory()
    client = connections(**client_settings(settings), proxy_url=wide_sockets.URL)
    client.get_broker_version(timeout_ms=milliseconds)
    return client


def client_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a connection in kafka-python's terms, secrets included: never to be shown."""
    named = {_NAMES[key]: value for key, value in settings.items() if key in _NAMES}
    named["bootstrap_servers"] = str(settings["bootstrap.servers"]).split(",")
    named["ssl_check_hostname"] = settings.get("ssl.endpoint.identification.algorithm", "https") == "https"
    named["receive_message_max_bytes"] = _LARGEST_ANSWER
    return named


def refresh(client: Any, topic: str, milliseconds: int) -> None:
    """Learn the leaders of a topic anew; brokers that are away are asked again later."""
    cluster = client.cluster
    future = cluster.add_topic(topic)
    if future.is_done:
        future = cluster.request_update()
    client.poll(timeout_ms=milliseconds, future=future)


def await_quota(client: Any, node: int | None = None) -> float:
    """Wait until a broker takes requests again: one that a quota slows down has said for how long, and is not lost.

    :param node: the broker; when None, any of them
    :returns: seconds that it took, which count for no time-out
    """
    began = time.monotonic()
    while delay := min(map(client.throttle_delay, _nodes(client, node)), default=0):
        client.poll(timeout_ms=min(delay + 1, _POLL_MILLISECONDS))
    return time.monotonic() - began


def _nodes(client: Any, node: int | None) -> list[int]:
    return [broker.node_id for broker in client.cluster.brokers()] if node is None else [node]
