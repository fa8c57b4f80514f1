"""The one place from which the fixtures get Kafka, Connect workers and a schema registry: kops' own sandbox, or containers.

``KOPS_TEST_CONTAINERS=1`` takes containers (``support/containers.py``), which needs Docker on Linux. ``KOPS_TEST_KAFKA_VERSION`` names the
version of the brokers, 2.8.2 (with ZooKeeper) or one from 3.3.0 on: another one than kops is tested with runs in the sandbox. There too
run brokers that tests secure, freeze or kill (``own_kafkas``): those are processes, as an operator has them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from kops.config.connection import Connection
from kops.core.errors import MissingRequirement
from kops.gateways.machine.archives import registry_folder
from kops.gateways.machine.jars import KAFKA_VERSION
from kops.gateways.machine.jdk import Jdk
from kops.sandbox import brokers, cluster, parts, workers
from kops.sandbox import registry as registries
from kops.sandbox.model import Sandbox, Worker
from kops.sandbox.ports import pick
from support import containers
from support.zookeeper_kafka import OLDEST, zookeeper_kafka

VERSION = os.environ.get("KOPS_TEST_KAFKA_VERSION") or KAFKA_VERSION
CONTAINERS = "KOPS_TEST_CONTAINERS"


def in_containers() -> bool:
    """Return whether what tests share runs in containers."""
    return os.environ.get(CONTAINERS) == "1" and VERSION == KAFKA_VERSION


def cache() -> Path:
    return Path(os.environ["KOPS_CACHE_DIR"])


@contextlib.contextmanager
def shared_kafka(folder: Path, jars: Callable[[], list[Path]], jdk: Callable[[], Jdk]) -> Iterator[str]:
    """Run a Kafka of one broker; yields its bootstrap servers.

    :param jars: returns those of brokers of ``VERSION``
    """
    if in_containers():
        with containers.kafka(pick(2)) as servers:
            yield servers
    elif VERSION == OLDEST:
        with zookeeper_kafka(folder, cache(), jdk()) as servers:
            yield servers
    else:
        with _sandbox(OwnBroker(cluster.make(folder, name="shared", kafka_version=VERSION), jars(), jdk())) as own:
            yield own.bootstrap_servers


@dataclass(frozen=True)
class OwnBroker:
    """A sandbox that one test has for itself, and may break."""

    sandbox: Sandbox
    jars: list[Path]
    jdk: Jdk

    @property
    def bootstrap_servers(self) -> str:
        return self.sandbox.bootstrap_servers

    @property
    def connection(self) -> Connection:
        return self.sandbox.connection()

    @property
    def client(self) -> dict[str, str]:
        """The settings of a confluent-kafka client, security included."""
        from kops.config.librdkafka import librdkafka_settings

        return dict(librdkafka_settings(self.connection))

    def part(self, node_id: int = 1) -> parts.SandboxProcess:
        """Return one broker as a part of the sandbox."""
        return brokers.part(self.sandbox, self.sandbox.nodes[node_id - 1])

    def up(self) -> None:
        """Start every broker that does not run, and wait until all answer."""
        cluster.up(self.sandbox, cluster.Programs(self.jdk, self.jars))

    def start(self, node_id: int = 1) -> None:
        """Start one broker and wait until it answers."""
        node = self.sandbox.nodes[node_id - 1]
        brokers.launch(self.sandbox, node, jars=self.jars, jdk=self.jdk)
        brokers.wait_until_ready(self.sandbox, [node])

    def stop(self, node_id: int = 1) -> None:
        """Stop one broker gracefully."""
        parts.end(self.part(node_id))

    def kill(self, node_id: int = 1) -> None:
        """End one broker at once (SIGKILL)."""
        parts.kill_at_once(self.part(node_id))


@contextlib.contextmanager
def _sandbox(own: OwnBroker, *, kill: bool = False) -> Iterator[OwnBroker]:
    """Bring a sandbox up, and delete it.

    :param kill: its brokers are killed in the end: whether they stop gracefully is proven elsewhere, and takes its time
    """
    try:
        own.up()
        yield own
    finally:
        for node in own.sandbox.nodes if kill else ():
            own.kill(node.id)
        cluster.down(own.sandbox, delete=True)


@contextlib.contextmanager
def own_kafkas(version: str, jars: list[Path], jdk: Jdk, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., OwnBroker]]:
    """Yield what starts Kafkas of a version, which end with it: ``start(brokers=3, security="sasl-ssl")``."""
    with contextlib.ExitStack() as stack:

        def start(*, brokers: int = 1, security: str = "plaintext", racks: bool = False) -> OwnBroker:
            folder = tmp_path_factory.mktemp("kafka") / "own"
            made = cluster.make(folder, name="own", kafka_version=version, brokers=brokers, security=security, racks=racks)
            return stack.enter_context(_sandbox(OwnBroker(made, jars, jdk), kill=True))

        yield start


class ConnectWorkers(Protocol):
    """Workers of a Connect cluster."""

    def up(self) -> None:
        """Start those that do not run, and wait until they answer."""

    def kill(self, worker: Worker) -> None:
        """End a worker at once (SIGKILL)."""

    def close(self) -> None:
        """End them all at once."""


@dataclass(frozen=True)
class WorkerProcesses:
    """Workers as the sandbox runs them."""

    cluster: workers.ConnectCluster
    jars: list[Path]
    jdk: Jdk

    def up(self) -> None:
        workers.launch(self.cluster, self.cluster.workers, jars=self.jars, jdk=self.jdk)
        workers.wait_until_ready(self.cluster, self.cluster.workers)

    def kill(self, worker: Worker) -> None:
        parts.kill_at_once(self.cluster.part(worker))

    def close(self) -> None:
        for part in self.cluster.parts:
            parts.kill_at_once(part)


@contextlib.contextmanager
def connect_workers(described: workers.ConnectCluster, jars: list[Path], jdk: Jdk, files: Path) -> Iterator[ConnectWorkers]:
    """Run the workers of a Connect cluster.

    :param files: the folder of all files that tests give to connectors
    """
    made: Any = containers.Workers(described, [files, cache()]) if in_containers() else WorkerProcesses(described, jars, jdk)
    try:
        made.up()
        yield made
    finally:
        made.close()


@contextlib.contextmanager
def schema_registry(folder: Path, jdk: Jdk) -> Iterator[str]:
    """Run a registry; yields the address of its Confluent API. The test is left out where its program cannot be fetched."""
    server = registries.RegistryServer("the tests", folder, *pick(1))
    if in_containers():
        with containers.registry(server) as url:
            yield url
        return
    try:
        program = registry_folder(cache())
    except MissingRequirement as missing:
        pytest.skip(str(missing))
    try:
        registries.launch(server, program=program, jdk=jdk)
        registries.wait_until_ready(server)
        yield server.url
    finally:
        parts.kill_at_once(server.part)
