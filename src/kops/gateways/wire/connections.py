"""Connections to brokers through kafka-python: librdkafka's properties in its terms, and how long a request is retried."""

from __future__ import annotations

import contextlib
import ctypes
import ssl
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar

from kops.config.oauth import ENDPOINT, extensions_of, token_of
from kops.config.tls import accept_as_java
from kops.core.errors import ConfigError
from kops.gateways.wire.kafka_python import connections, reading_metadata, token_provider

PATIENCE_SECONDS = 120.0
"""How long a request is retried, like ``delivery.timeout.ms`` of the Java producer."""
REQUEST_MILLISECONDS = 30_000

_NAMES = {
    "client.id": "client_id",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
}
_TLS = (
    "ssl.ca.location", "ssl.ca.pem", "ssl.certificate.location", "ssl.certificate.pem", "ssl.key.location", "ssl.key.pem",
    "ssl.key.password", "ssl.endpoint.identification.algorithm",
)  # fmt: skip
_TUNING = frozenset({
    "api.version.request", "api.version.request.timeout.ms", "broker.address.ttl", "client.rack", "connections.max.idle.ms",
    "enable.metrics.push", "log.connection.close", "log.queue", "log.thread.name", "log_level", "metadata.max.age.ms",
    "reconnect.backoff.max.ms", "reconnect.backoff.ms", "request.timeout.ms", "retry.backoff.max.ms", "retry.backoff.ms",
    "socket.connection.setup.timeout.ms", "socket.keepalive.enable", "socket.max.fails", "socket.nagle.disable",
    "socket.receive.buffer.bytes", "socket.send.buffer.bytes", "socket.timeout.ms", "statistics.interval.ms",
    "topic.metadata.propagation.max.ms", "topic.metadata.refresh.fast.interval.ms", "topic.metadata.refresh.interval.ms",
    "topic.metadata.refresh.sparse",
})  # fmt: skip
"""librdkafka properties that change how it works, but not what it may read or write: they are ignored here."""
_LARGEST_ANSWER = 1 << 30  # a single record batch may be larger than what a fetch requests
_POLL_MILLISECONDS = 1000
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's mallopt(3)
_KEPT_BYTES = 32 << 20  # the maximum that every glibc accepts

T = TypeVar("T")


def not_honoured(settings: Mapping[str, Any]) -> list[str]:
    """Return the librdkafka properties of a connection that a task's connection would not honour."""
    others = sorted(set(settings) - {"bootstrap.servers", *_NAMES, *_TLS, *_TUNING})
    return others if settings.get("sasl.mechanism") != "OAUTHBEARER" else [name for name in others if name not in ("oauth_cb", *ENDPOINT)]


def can_connect(settings: Mapping[str, Any]) -> bool:
    """Whether a task can connect as librdkafka's properties require; the alternatives are confluent-kafka and Spark's own source."""
    return not not_honoured(settings)


def client_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a connection in kafka-python's terms, secrets included: never to be shown.

    :param settings: librdkafka's, as returned by ``kops.config.librdkafka``; those without an equivalent in kafka-python are ignored
    :raises ConfigError: when a certificate or key cannot be used
    """
    named = {_NAMES[key]: value for key, value in settings.items() if key in _NAMES}
    named["bootstrap_servers"] = str(settings["bootstrap.servers"]).split(",")
    if str(settings.get("security.protocol", "")).endswith("SSL"):
        named["ssl_context"] = tls_context(settings)
    if settings.get("sasl.mechanism") == "OAUTHBEARER":
        named["sasl_oauth_token_provider"] = token_provider(lambda: token_of(settings), extensions_of(settings))
    return named


def tls_context(settings: Mapping[str, Any]) -> ssl.SSLContext:
    """Return how a broker's certificate is verified, and which one is shown to it.

    :raises ConfigError: when a certificate or key cannot be used
    """
    try:
        authorities = settings.get("ssl.ca.pem")  # where ssl.truststore.certificates of Java's properties ends up
        cafile = None if authorities else settings.get("ssl.ca.location")
        context = accept_as_java(ssl.create_default_context(cadata=authorities, cafile=cafile))
        if settings.get("ssl.endpoint.identification.algorithm", "https") != "https":
            context.check_hostname = False
        with contextlib.ExitStack() as files:
            certificate, key = (_pem_file(settings, part, files) for part in ("certificate", "key"))
            if certificate:
                # Without a password OpenSSL would prompt for one on the terminal, in the middle of a command.
                context.load_cert_chain(certificate, key, settings.get("ssl.key.password") or "")
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError; a ValueError: no PEM in ssl.ca.pem
        raise ConfigError(f"the TLS files of this context cannot be used: {error}", hint="see `kops context show --resolved`") from error
    return context


def _pem_file(settings: Mapping[str, Any], part: str, files: contextlib.ExitStack) -> str | None:
    """Return a file with a certificate or key; a text is put into one that is gone afterwards."""
    text = settings.get(f"ssl.{part}.pem")
    if text is None:
        return settings.get(f"ssl.{part}.location")
    file = files.enter_context(tempfile.NamedTemporaryFile("w", suffix=".pem"))  # noqa: SIM115 - readable by this user only
    file.write(text)
    file.flush()
    return file.name


def connected(settings: Mapping[str, Any]) -> Any:
    """Return a client that is connected to the cluster.

    :param settings: librdkafka's, secrets included
    :raises kafka.errors.KafkaError: when none answers
    """
    from kops.gateways.wire import socket_buffers

    keep_freed_memory()
    client = connections(**client_settings(settings), receive_message_max_bytes=_LARGEST_ANSWER, proxy_url=socket_buffers.URL)
    client.get_broker_version(timeout_ms=REQUEST_MILLISECONDS)
    return client


def leader(client: Any, topic: str, partition: int) -> int | None:
    """Return the broker that leads a partition; None if there is none, or it is not known."""
    from kafka.structs import TopicPartition

    found = client.cluster.leader_for_partition(TopicPartition(topic, partition))
    return None if found in (None, -1) else int(found)


def refresh(client: Any, topic: str) -> None:
    """Refresh the leaders of a topic; brokers that are unreachable are queried again later.

    A topic that the client does not know yet is queried at once: kafka-python would wait for 0.1 s after the metadata that it read when it
    connected, six times in a replay of six partitions on two cores.
    """
    cluster = client.cluster
    future = cluster.request_update() if cluster.add_topic(topic).is_done else reading_metadata(client)
    client.poll(timeout_ms=REQUEST_MILLISECONDS // 10, future=future)


def await_quota(client: Any, node: int | None) -> float:
    """Wait until a broker accepts requests again: a broker whose quota throttles us has announced for how long, and is not lost.

    :param node: the broker; None: any of them
    :returns: seconds waited, which do not count towards time-outs
    """
    began = time.monotonic()
    while delay := min(
        map(client.throttle_delay, [each.node_id for each in client.cluster.brokers()] if node is None else [node]), default=0
    ):
        client.poll(timeout_ms=min(delay + 1, _POLL_MILLISECONDS))
    return time.monotonic() - began


class Patience:
    """How long something is retried, since it started or last made progress."""

    def __init__(self, seconds: float = PATIENCE_SECONDS) -> None:
        self._seconds = seconds
        self.renew()

    def renew(self) -> None:
        self._deadline = time.monotonic() + self._seconds

    def extend(self, seconds: float) -> None:
        """Exclude a time that does not count, such as that of a quota."""
        self._deadline += seconds

    @property
    def waited(self) -> float:
        """Return the seconds counted so far."""
        return time.monotonic() - self._deadline + self._seconds

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self._deadline


def is_passing(error: BaseException) -> bool:
    """Whether a Kafka error may be gone on the next attempt."""
    from kafka.errors import KafkaError

    return isinstance(error, KafkaError) and bool(error.retriable or error.invalid_metadata)


def patiently(
    make: Callable[[], T], *, again: Callable[[BaseException], bool] = is_passing, wait: float = 1.0, seconds: float = PATIENCE_SECONDS
) -> T:
    """Call something that needs a broker, and retry while that may help.

    :param again: which errors to retry; others, and the last one, are raised
    :param wait: seconds between attempts
    :param seconds: how long to retry
    """
    patience = Patience(seconds)
    while True:
        try:
            return make()
        except Exception as error:
            if patience.is_over or not again(error):
                raise
            time.sleep(wait)


@cache
def keep_freed_memory() -> bool:
    """Keep up to ``_KEPT_BYTES`` of the memory that this process frees; return whether its C library supports that.

    Otherwise glibc returns it to the system and requests it again, page by page, for answers of some megabytes that come and go many times
    per second. Measured with Kafka 4.3, 320 MB of records of 1 KB: batches copied in 0.40 s of CPU with 42,000 page faults, without this
    0.60 s and 146,000; decoded in 0.84 s, without this 1.01 s.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all(mallopt(what, _KEPT_BYTES) for what in (_MMAP_THRESHOLD, _TRIM_THRESHOLD))
