"""The shared broker as these tests use it: what is on it, its groups as kops sees them, and kops itself."""

from pathlib import Path

import pytest

from kops.config.connection import Connection
from kops.gateways.kafka import Kafka
from support.consumer_groups import visible
from support.kafka import needs_kafka
from support.streams_apps import Cluster

HERE = Path(__file__).parent
SINCE = {
    "[consumer]": "4.0",  # the consumers' protocol of KIP-848
    "[streams]": "4.1",
    "share_group": "4.1",
    "test_groups_of_every_type_are_listed": "4.1",
    "test_groups_that_the_client_library_cannot_see_are_named_as_such": "4.1",
    "test_members_and_their_partitions_are_described": "4.0",
    "test_the_broker_refuses_commits_for_members_that_nobody_saw": "4.0",
}
"""By what a test's name has in it, the Kafka that its groups need."""


def pytest_collection_modifyitems(items):
    """Leave out tests of groups that older brokers do not have; see ``KOPS_TEST_KAFKA_VERSION``."""
    for item in items:
        for sign, version in SINCE.items():
            if HERE in item.path.parents and sign in item.name:
                item.add_marker(needs_kafka(version))


@pytest.fixture(scope="session")
def cluster(broker):
    return Cluster(broker.bootstrap_servers)


@pytest.fixture
def groups(broker):
    return Kafka(Connection((broker.bootstrap_servers,))).groups


@pytest.fixture
def kops(run_kops, broker):
    """Run kops against the broker."""
    return lambda *arguments: run_kops(*arguments, "-B", broker.bootstrap_servers)


@pytest.fixture
def contexts(home):
    """Write contexts by name into the configuration of this test, such as those of a sandbox (``Sandbox.context``)."""

    def write(**contexts):
        config = home / "config" / "kops" / "config.toml"
        config.parent.mkdir(parents=True, exist_ok=True)
        texts = (f"[contexts.{name}]\n" + "".join(f"{key} = {value!r}\n" for key, value in one.items()) for name, one in contexts.items())
        config.write_text("".join(texts))

    return write


@pytest.fixture
def topic(topic, cluster):
    """Make topics that the broker, when it is asked next, has heard of."""
    return visible(topic, cluster)


@pytest.fixture
def group(unique, groups):
    """A name for a group; it and those that begin with it are deleted afterwards.

    Name this fixture after ``topic`` in tests of share groups, so that it ends first: for one whose topics are gone, Kafka waits 30 s.
    """
    name = unique("g")
    yield name
    groups.delete([group_id for group_id in groups.ids() if group_id.startswith(name)])
