"""A real Kafka for the tests: ``KOPS_TEST_BOOTSTRAP_SERVERS``, else containers, else kops' own sandbox."""

import contextlib
import os
import re
import uuid
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Broker:
    """A Kafka that all tests share: make topics and groups with names of their own, and break nothing."""

    bootstrap_servers: str


@pytest.fixture(scope="session")
def broker():
    """A Kafka shared by the whole run, with ``bootstrap_servers``."""
    given = os.environ.get("KOPS_TEST_BOOTSTRAP_SERVERS")
    if not given:
        pytest.skip("no Kafka: set KOPS_TEST_BOOTSTRAP_SERVERS")
    return Broker(given)


@pytest.fixture
def unique(request):
    """Make a name that no other test uses: ``unique("orders")``."""
    test = re.sub(r"[^A-Za-z0-9]+", "-", request.node.name).strip("-").lower()[:40]
    return lambda prefix="": "-".join(part for part in (prefix, test, uuid.uuid4().hex[:8]) if part)


@pytest.fixture
def topic(broker, unique):
    """Create a topic: ``topic("orders", partitions=3, config={"cleanup.policy": "compact"})`` gives its name; deleted afterwards."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    made: list[str] = []

    def create(
        prefix: str = "t", *, partitions: int = 1, replication_factor: int = 1, config: dict[str, str] | None = None, name: str = ""
    ) -> str:
        name = name or unique(prefix)
        new = NewTopic(name, num_partitions=partitions, replication_factor=replication_factor, config=config or {})
        admin.create_topics([new], operation_timeout=30)[name].result(30)
        made.append(name)
        return name

    yield create
    if made:
        for gone in admin.delete_topics(made, operation_timeout=30).values():
            with contextlib.suppress(Exception):  # the test may have deleted it
                gone.result(30)
