"""A real Kafka for the tests: ``KOPS_TEST_BOOTSTRAP_SERVERS``, else one of ``support/services.py``.

What brokers of the version that ``KOPS_TEST_KAFKA_VERSION`` names do not have is left out (``needs_kafka``); Apache's tools and libraries
stay those that kops is tested with.
"""

import contextlib
import os
import re
import uuid
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from kops.config.connection import Connection
from kops.core.errors import MissingRequirement, UsageProblem
from kops.gateways.machine.jars import KAFKA_VERSION, jars_of, kafka_set
from kops.gateways.machine.jdk import require_jdk
from support.patience import HANG_SECONDS
from support.services import VERSION, own_kafkas, shared_kafka


def needs_kafka(version: str) -> pytest.MarkDecorator:
    """Leave a test out where the brokers are older than this version: ``@needs_kafka("4.1")``."""
    return pytest.mark.skipif(_numbers(VERSION) < _numbers(version), reason=f"this needs Kafka {version}, and the brokers are {VERSION}")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


@dataclass(frozen=True)
class Broker:
    """A Kafka that all tests share: make topics and groups with names of their own, and break nothing."""

    bootstrap_servers: str

    @property
    def connection(self) -> Connection:
        return Connection(tuple(self.bootstrap_servers.split(",")))

    @property
    def client(self) -> dict[str, str]:
        """The settings of a confluent-kafka client."""
        return {"bootstrap.servers": self.bootstrap_servers}


@pytest.fixture(scope="session")
def jdk():
    """The JDK of this machine; tests that need it are left out when there is none."""
    try:
        return require_jdk()
    except MissingRequirement as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def kafka_jar_files(jdk):
    """The jars of Apache Kafka, from the cache; fetched the first time."""
    try:
        return jars_of(kafka_set(), Path(os.environ["KOPS_CACHE_DIR"]))
    except MissingRequirement as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def broker_jar_files(kafka_jar_files):
    """The jars of the brokers that the tests start."""
    return broker_jars(VERSION) if VERSION != KAFKA_VERSION else kafka_jar_files


def broker_jars(version: str) -> list[Path]:
    """Return the jars of brokers of a version, from the cache or fetched; the test is left out where that cannot be."""
    try:
        return jars_of(kafka_set(version), Path(os.environ["KOPS_CACHE_DIR"]))
    except (MissingRequirement, UsageProblem) as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def broker(request, tmp_path_factory):
    """A Kafka shared by the whole run, with ``bootstrap_servers``, ``connection`` and ``client``."""
    if given := os.environ.get("KOPS_TEST_BOOTSTRAP_SERVERS"):
        yield Broker(given)
        return
    jars, jdk = (partial(request.getfixturevalue, name) for name in ("broker_jar_files", "jdk"))
    with shared_kafka(tmp_path_factory.mktemp("kafka") / "shared", jars, jdk) as servers:
        yield Broker(servers)


@pytest.fixture
def own_broker(broker_jar_files, jdk, tmp_path_factory):
    """Start a Kafka for one test: ``own_broker(brokers=3, security="sasl-ssl")``; gone with the test."""
    with own_kafkas(VERSION, broker_jar_files, jdk, tmp_path_factory) as start:
        yield start


@pytest.fixture(scope="module")
def own_brokers(broker_jar_files, jdk, tmp_path_factory):
    """Start a Kafka for the tests of one module, as ``own_broker`` does for one test."""
    with own_kafkas(VERSION, broker_jar_files, jdk, tmp_path_factory) as start:
        yield start


@pytest.fixture(scope="session")
def second_broker(broker_jar_files, jdk, tmp_path_factory):
    """Another cluster of one broker, shared by the tests of what goes from one to the other; a test may restart it."""
    with own_kafkas(VERSION, broker_jar_files, jdk, tmp_path_factory) as start:
        yield start()


@pytest.fixture
def unique(request):
    """Make a name that no other test uses: ``unique("orders")``."""
    test = re.sub(r"[^A-Za-z0-9]+", "-", request.node.name).strip("-").lower()[:40]
    return lambda prefix="": "-".join(part for part in (prefix, test, uuid.uuid4().hex[:8]) if part)


@pytest.fixture
def topic(broker, unique):
    """Create a topic: ``topic("orders", partitions=3, config={"cleanup.policy": "compact"})`` gives its name; deleted afterwards."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient(broker.client)
    made: list[str] = []

    def create(
        prefix: str = "t", *, partitions: int = 1, replication_factor: int = 1, config: dict[str, str] | None = None, name: str = ""
    ) -> str:
        name = name or unique(prefix)
        new = NewTopic(name, num_partitions=partitions, replication_factor=replication_factor, config=config or {})
        admin.create_topics([new], operation_timeout=HANG_SECONDS)[name].result(HANG_SECONDS)
        made.append(name)
        return name

    yield create
    if made:
        for gone in admin.delete_topics(made, operation_timeout=HANG_SECONDS).values():
            with contextlib.suppress(Exception):  # the test may have deleted it
                gone.result(HANG_SECONDS)
