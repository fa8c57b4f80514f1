"""The shared broker as these tests use it: what is on it, its groups as kops sees them, and kops itself."""

import pytest

from kops.config.connection import Connection
from kops.gateways.kafka import Kafka
from support.consumer_groups import visible
from support.streams_apps import Cluster


@pytest.fixture
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
