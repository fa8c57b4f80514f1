"""What the proofs against the real Kafka Streams share."""

import os
from pathlib import Path

import pytest

from support.streams_apps import Cluster

# Spark's Python workers import the reducers of support/ too.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH")]))


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
