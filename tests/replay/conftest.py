"""What the proofs of `kops replay` share: the broker as plain clients see it, and kops in this process with one Spark session."""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from support.json_keys import keys_of
from support.programs import Record
from support.streams_apps import Cluster, without_offsets

# Spark's Python workers import the functions of support/ too.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH")]))


PINNED = yaml.safe_load((Path(__file__).parent / "json_keys.yaml").read_text(encoding="utf-8"))


@pytest.fixture
def as_pinned():
    """Compare the keys of a command's JSON with those that are pinned, and return it."""

    def check(command, outcome):
        assert sorted(keys_of(outcome.out)) == PINNED[command]
        return outcome.json

    return check


@dataclass(frozen=True)
class Scene:
    """A broker with topics of one test."""

    cluster: Cluster
    prefix: str

    def topic(self, name: str, partitions: int = 2, **config: str) -> str:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        return self.cluster.create(f"{self.prefix}-{name}", partitions, {"retention.ms": "-1", **settings})

    def read(self, topic: str) -> list[Record]:
        """Return what readers of committed data see, without the offsets."""
        return without_offsets(self.cluster.read(topic))


@pytest.fixture(scope="session")
def cluster(broker):
    return Cluster(broker.bootstrap_servers)


@pytest.fixture
def scene(cluster, unique):
    name = unique()
    yield Scene(cluster, name)
    left = cluster.topics(name)
    if left:
        cluster.delete_all(left)


@pytest.fixture
def kops(run_kops, broker, spark):
    """Run kops against the broker, in this process."""
    return lambda *arguments: run_kops(*arguments, "-B", broker.bootstrap_servers)
