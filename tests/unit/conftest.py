"""What unit tests share: a mutation of nothing with the services that it needs, for the protocol alone, without a cluster.

The few tests that ask Java come last: in a run from nothing its jars are being fetched meanwhile.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, settings

from kops.config.connection import Connection
from kops.config.paths import Directories
from kops.core.permit import Permit
from kops.core.plan import Item, ItemResult, Plan, Status
from kops.core.progress import NoProgress
from kops.operations.protocol.journal import Journal
from kops.operations.protocol.mutation import Mutation
from support.skipped import LONG, QUICK

HERE = Path(__file__).parent

# No test fails for the time that a busy machine takes. Fewer than the usual 100 examples but in `make test-long`: every run draws others.
EXAMPLES = 15 if os.environ.get(QUICK) else 100 if os.environ.get(LONG) else 25
settings.register_profile("kops", deadline=None, max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kops")


def pytest_collection_modifyitems(items):
    """Move them; where lanes share the tests, items are files at first, which have no fixtures."""
    items.sort(key=lambda item: HERE in item.path.parents and "kafka_jar_files" in getattr(item, "fixturenames", ()))


@dataclass
class Recorded(Mutation):
    """Does nothing but tell what it was asked for, in order; each step can be made to raise."""

    name = "test.recorded"
    log: list[str] = field(default_factory=list)
    statuses: dict[str, Status] = field(default_factory=dict)
    raises: dict[str, BaseException] = field(default_factory=dict)

    def step(self, text):
        self.log.append(text)
        if text in self.raises:
            raise self.raises[text]

    def check(self, services, plan):
        self.step("check")

    def apply(self, services, plan):
        for item in plan.changes:
            self.step(f"apply {item.target}")
            yield ItemResult(item.target, self.statuses.get(item.target, Status.DONE))

    def verify(self, services, plan, results):
        self.step("verify")
        return tuple(results)

    def invert(self, services, plan, results):
        return plan


class Services:
    def __init__(self, cluster_id="cluster-1", **connection):
        self.connection = Connection(("127.0.0.1:1",), name="test", **connection)
        self.progress = NoProgress()
        self.permit = Permit()
        self.kafka = SimpleNamespace(cluster=lambda: SimpleNamespace(cluster_id=cluster_id), heard_by_all=lambda: None)


@pytest.fixture
def services(tmp_path, monkeypatch):
    own = Directories(tmp_path / "config", tmp_path / "state", tmp_path / "cache", tmp_path / "data")
    monkeypatch.setattr(Services, "directories", own, raising=False)
    return Services


@pytest.fixture
def mutation():
    return Recorded()


@pytest.fixture
def journal(tmp_path):
    return Journal(tmp_path / "journal")


@pytest.fixture
def plan():
    items = (Item("a", "move", 1, 2), Item("b", "none"), Item("c", "move", 3, 4))
    return Plan("test.recorded", "move two things", "cluster-1", "test", items)
