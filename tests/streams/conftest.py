"""What the proofs against the real Kafka Streams share."""

import os
from pathlib import Path

import pytest

from support.command_line import Outcome
from support.isolation import XDG
from support.streams_apps import Cluster

# Spark's Python workers import the reducers of support/ too.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH")]))


@pytest.fixture(scope="session")
def cluster(broker):
    """The shared broker, through plain client calls."""
    return Cluster(broker.bootstrap_servers)


@pytest.fixture(scope="module")
def run_kops_alone(tmp_path_factory):
    """``run_kops`` with a home of its own, for what a whole module shares."""
    from support.command_line import _run

    home = tmp_path_factory.mktemp("home")

    def run(*arguments: object) -> Outcome:
        with pytest.MonkeyPatch.context() as patch:
            for variable, name in XDG.items():
                patch.setenv(variable, str(home / name))
            return _run(*arguments)

    return run


@pytest.fixture
def prefix(cluster, unique):
    """A name for the topics and the application of one test; all that begins with it is deleted afterwards."""
    name = unique()
    yield name
    left = cluster.topics(name)
    if left:
        cluster.delete(*left)
