"""What the fixtures start, and where: with testcontainers' own class, of which only Docker's part is played here."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from kops.gateways.machine.archives import REGISTRY_VERSION
from kops.gateways.machine.jars import KAFKA_VERSION
from kops.sandbox.model import Worker
from kops.sandbox.registry import RegistryServer
from kops.sandbox.workers import ConnectCluster
from support import containers, services

TESTS = Path(__file__).parents[2]
STARTS = re.compile(r"cluster\.(make|up)\(|\b(workers|servers|registries)\.launch\(|DockerContainer\(|zookeeper_kafka\(|QuorumPeerMain")
PLACES = {
    "support/services.py",
    "support/containers.py",
    "support/zookeeper_kafka.py",
    "support/tiered.py",  # with settings of its own
    "support/class_archive.py",  # before the tests, for their JVMs
    "spark/test_older_brokers.py",  # with settings of its own
    "broker/test_every_version.py",  # three of them, with an authorizer
    "unit/sandbox/test_model.py",
    "unit/project/test_services.py",
    "connect/test_rights_of_workers.py",
}


class Engine:
    """Docker's part: the containers that were started, what they log, and their ends."""

    def __init__(self):
        self.started, self.ended, self.log, self.status = [], [], b"Kafka Server started", "running"

    @property
    def start(self):
        def started(container):
            container._container = Inner(self)
            self.started.append(container)
            return container

        return started


class Inner:
    def __init__(self, engine):
        self.engine = engine

    @property
    def status(self):
        return self.engine.status

    def reload(self): ...

    def logs(self, stdout=True, stderr=True):
        return self.engine.log if stdout else b""

    def kill(self):
        self.engine.ended.append("killed")

    def remove(self, force, v):
        self.engine.ended.append("removed")


@pytest.fixture
def engine(monkeypatch):
    from testcontainers.core import container

    engine = Engine()
    monkeypatch.setattr(container, "DockerClient", lambda **_: SimpleNamespace(client=SimpleNamespace(close=lambda: None)))
    monkeypatch.setattr(container.DockerContainer, "start", engine.start)
    monkeypatch.setattr(containers, "is_healthy", lambda url: engine.status == "running")
    return engine


def test_kafka(engine):
    with containers.kafka((2001, 2002)) as servers:
        assert servers == "127.0.0.1:2001"
    (container,) = engine.started
    assert container.image == f"apache/kafka:{KAFKA_VERSION}"
    assert container._kwargs == {"network_mode": "host"}
    assert "127.0.0.1:2001" in container.env["KAFKA_ADVERTISED_LISTENERS"]
    assert "127.0.0.1:2002" in container.env["KAFKA_LISTENERS"]
    assert engine.ended == ["removed"]


def test_a_container_that_ends_before_it_answers_shows_its_log(engine):
    engine.status, engine.log = "exited", b"no space left"
    with pytest.raises(RuntimeError, match="is exited and does not answer:\nno space left"), containers.kafka((2001, 2002)):
        pass
    assert engine.ended == ["removed"]


def test_workers(engine, tmp_path):
    cluster = ConnectCluster("the tests", tmp_path, "g", {"bootstrap.servers": "b:1"}, (Worker(1, 2001), Worker(2, 2002)))
    running = containers.Workers(cluster, [Path("/files")])
    running.up()
    first, second = engine.started
    settings = tmp_path / "worker-2" / "worker.properties"
    assert second._command == ["/opt/kafka/bin/connect-distributed.sh", str(settings)]
    assert "127.0.0.1:2002" in settings.read_text()
    assert {path: mount["bind"] for path, mount in first.volumes.items()} == {str(tmp_path): str(tmp_path), "/files": "/files"}
    assert first._kwargs["network_mode"] == "host"
    assert re.fullmatch(r"\d+:\d+", first._kwargs["user"])
    running.kill(Worker(1, 2001))
    assert engine.ended == ["killed", "removed"]
    running.up()
    assert len(engine.started) == 3
    running.close()
    assert engine.ended == ["killed", *["removed"] * 3]


def test_a_registry(engine, tmp_path):
    with containers.registry(RegistryServer("the tests", tmp_path, 2001)) as url:
        assert url == "http://127.0.0.1:2001/apis/ccompat/v7"
    (container,) = engine.started
    assert (container.image, container.env["QUARKUS_HTTP_PORT"]) == (f"apicurio/apicurio-registry:{REGISTRY_VERSION}", "2001")


def test_containers_are_taken_when_they_are_wanted(engine, monkeypatch, tmp_path):
    def sandbox():
        raise LookupError("the sandbox")

    monkeypatch.setenv(services.CONTAINERS, "1")
    monkeypatch.setattr(services, "VERSION", KAFKA_VERSION)
    with services.shared_kafka(tmp_path, sandbox, sandbox):
        assert len(engine.started) == 1
    with services.schema_registry(tmp_path, None):
        assert len(engine.started) == 2
    cluster = ConnectCluster("the tests", tmp_path, "g", {}, (Worker(1, 2001),))
    with services.connect_workers(cluster, [], None, tmp_path):
        assert len(engine.started) == 3
    assert len(engine.ended) == 3
    monkeypatch.setattr(services, "VERSION", "3.9.1")
    with pytest.raises(LookupError), services.shared_kafka(tmp_path / "older", sandbox, sandbox):
        pass
    monkeypatch.setattr(services, "VERSION", KAFKA_VERSION)
    monkeypatch.delenv(services.CONTAINERS)
    with pytest.raises(LookupError), services.shared_kafka(tmp_path / "here", sandbox, sandbox):
        pass


def test_nothing_else_starts_them():
    found = {str(path.relative_to(TESTS)) for path in TESTS.rglob("*.py") if STARTS.search(path.read_text(encoding="utf-8"))}
    assert found == PLACES
