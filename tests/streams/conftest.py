"""What the proofs against the real Kafka Streams share."""

import pytest

from support.streams import Oracle
from support.streams_apps import Cluster


@pytest.fixture(scope="session")
def oracle():
    """The real Kafka Streams without a broker."""
    with Oracle() as running:
        yield running


@pytest.fixture(scope="session")
def cluster(broker):
    """The shared broker, through plain client calls."""
    return Cluster(broker.bootstrap_servers)


@pytest.fixture
def prefix(cluster, unique):
    """A name for the topics and the application of one test; all that begins with it is deleted afterwards."""
    name = unique()
    yield name
    left = cluster.topics(name)
    if left:
        cluster.delete(*left)
