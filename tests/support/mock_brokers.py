"""The brokers that librdkafka brings along for tests of its own: real sockets, and leaders, errors and outages as a test wants them."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

PRODUCER = 0
LIST_OFFSETS = 2
"""The number of the request."""


class MockBrokers:
    """Brokers 1, 2, ..., which know little more than topics and offsets.

    :param library: of librdkafka
    """

    def __init__(self, library: ctypes.CDLL, count: int) -> None:
        self._library = library
        for name in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_mock_cluster_new"):
            getattr(library, name).restype = ctypes.c_void_p
        library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
        library.rd_kafka_conf_set.argtypes = [ctypes.c_void_p, *[ctypes.c_char_p] * 3, ctypes.c_size_t]
        why = ctypes.create_string_buffer(200)
        settings = library.rd_kafka_conf_new()
        library.rd_kafka_conf_set(settings, b"log_level", b"0", why, len(why))
        self._client = ctypes.c_void_p(library.rd_kafka_new(PRODUCER, ctypes.c_void_p(settings), why, len(why)))
        assert self._client.value, why.value
        self._cluster = ctypes.c_void_p(library.rd_kafka_mock_cluster_new(self._client, count))
        self.servers: str = library.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()

    def close(self) -> None:
        self._library.rd_kafka_mock_cluster_destroy(self._cluster)
        self._library.rd_kafka_destroy(self._client)

    def topic(self, name: str, partitions: int = 1, replicas: int = 1) -> None:
        self._done("rd_kafka_mock_topic_create", name.encode(), partitions, replicas)

    def lead(self, topic: str, partition: int, broker: int) -> None:
        """Let a broker lead a partition."""
        self._done("rd_kafka_mock_partition_set_leader", topic.encode(), partition, broker)

    def fail(self, request: int, *codes: int) -> None:
        """Let the next requests of a kind fail, each with its code."""
        array = (ctypes.c_int * len(codes))(*codes)
        self._library.rd_kafka_mock_push_request_errors_array(self._cluster, ctypes.c_int16(request), ctypes.c_size_t(len(codes)), array)

    def down(self, broker: int = 1) -> None:
        self._done("rd_kafka_mock_broker_set_down", broker)

    def up(self, broker: int = 1) -> None:
        self._done("rd_kafka_mock_broker_set_up", broker)

    def slow(self, milliseconds: int, broker: int = 1) -> None:
        """Let a broker answer so much later."""
        self._done("rd_kafka_mock_broker_set_rtt", broker, milliseconds)

    def _done(self, name: str, *arguments: object) -> None:
        assert getattr(self._library, name)(self._cluster, *arguments) == 0, name


@contextlib.contextmanager
def mock_brokers(count: int = 1) -> Iterator[MockBrokers]:
    """Start some brokers in this process."""
    found = sorted(Path(confluent_kafka.__file__).parents[1].glob("confluent_kafka.libs/librdkafka*"))
    if not found:
        pytest.skip("confluent-kafka brings no librdkafka of its own here")
    brokers = MockBrokers(ctypes.CDLL(str(found[0])), count)
    try:
        yield brokers
    finally:
        brokers.close()
