"""Kafka, Connect workers and a registry in containers: Apache's and Apicurio's own images, through testcontainers, on Linux.

They use this machine's network, and see its files below their own paths: settings of the sandbox's processes hold for them too.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kops.config.durable import write_whole
from kops.gateways.machine.archives import REGISTRY_VERSION
from kops.gateways.machine.jars import KAFKA_VERSION
from kops.gateways.machine.listening import is_healthy
from kops.sandbox.files import property_lines
from kops.sandbox.model import HOST, Node, Sandbox, Worker
from kops.sandbox.registry import RegistryServer
from kops.sandbox.settings import server_settings
from kops.sandbox.workers import HEAP_MEGABYTES, ConnectCluster, worker_settings
from support.patience import HANG_SECONDS

KAFKA_IMAGE = f"apache/kafka:{KAFKA_VERSION}"
REGISTRY_IMAGE = f"apicurio/apicurio-registry:{REGISTRY_VERSION}"
Ready = Callable[[Any], bool]
"""Tells of a container whether what runs in it answers."""


def start(image: str, environment: Mapping[str, str], *, command: Sequence[str] = (), files: Iterable[Path] = ()) -> Any:
    """Start a container.

    :param command: in place of the image's own; it then runs as this process's user, whose files it reads and writes
    :param files: folders that it sees
    :return: testcontainers' ``DockerContainer``
    """
    from testcontainers.core.container import DockerContainer

    user = {"user": f"{os.getuid()}:{os.getgid()}"} if command else {}
    container = DockerContainer(image).with_envs(**environment).with_kwargs(network_mode="host", **user)
    if command:
        container.with_command(list(command))
    for folder in files:
        container.with_volume_mapping(folder, str(folder), "rw")
    return container.start()


def wait_until(container: Any, ready: Ready) -> None:
    """Wait until what runs in a container answers.

    :raises RuntimeError: with its log, when it ends before, or does not answer in time
    """
    deadline = time.monotonic() + HANG_SECONDS
    while not ready(container):
        inner = container.get_wrapped_container()
        inner.reload()
        if inner.status == "exited" or time.monotonic() > deadline:
            raise RuntimeError(f"{container.image} is {inner.status} and does not answer:\n{log_of(container)[-3000:]}")
        time.sleep(0.2)


def log_of(container: Any) -> str:
    return b"".join(container.get_logs()).decode(errors="replace")


@contextlib.contextmanager
def kafka(ports: Sequence[int]) -> Iterator[str]:
    """Run a broker; yields its bootstrap servers.

    :param ports: its own, and its controller's
    """
    node = Node(1, *ports)
    settings = server_settings(Sandbox(Path("/tmp/kops"), "container", KAFKA_VERSION, "", (node,)), node)
    container = start(KAFKA_IMAGE, {f"KAFKA_{name.upper().replace('.', '_')}": value for name, value in settings.items()})
    try:
        wait_until(container, lambda each: "Kafka Server started" in log_of(each))
        yield f"{HOST}:{node.port}"
    finally:
        container.stop()


class Workers:
    """Workers of a Connect cluster, each in a container.

    :param files: folders that the workers and their connectors use, besides the cluster's own
    """

    def __init__(self, cluster: ConnectCluster, files: Iterable[Path]) -> None:
        self._cluster = cluster
        self._files = [cluster.directory, *files]
        self._running: dict[int, Any] = {}

    def up(self) -> None:
        """Start those that do not run, and wait until they answer."""
        started = [worker for worker in self._cluster.workers if worker.id not in self._running]
        for worker in started:
            folder = self._cluster.part(worker).folder
            write_whole(folder / "worker.properties", property_lines(worker_settings(self._cluster, worker)))
            environment = {"KAFKA_HEAP_OPTS": f"-Xmx{HEAP_MEGABYTES}m", "LOG_DIR": str(folder)}
            command = ["/opt/kafka/bin/connect-distributed.sh", str(folder / "worker.properties")]
            self._running[worker.id] = start(KAFKA_IMAGE, environment, command=command, files=self._files)
        for worker in started:
            wait_until(self._running[worker.id], lambda _, port=worker.port: is_healthy(f"http://{HOST}:{port}/health"))

    def kill(self, worker: Worker) -> None:
        """End a worker at once (SIGKILL)."""
        container = self._running.pop(worker.id)
        container.get_wrapped_container().kill()
        container.stop()

    def close(self) -> None:
        for container in self._running.values():
            container.stop()


@contextlib.contextmanager
def registry(server: RegistryServer) -> Iterator[str]:
    """Run a registry; yields the address of its Confluent API."""
    environment = {"QUARKUS_HTTP_PORT": str(server.port), "QUARKUS_HTTP_HOST": HOST, "QUARKUS_LOG_LEVEL": "WARN"}
    container = start(REGISTRY_IMAGE, environment)
    try:
        wait_until(container, lambda _: is_healthy(f"{server.url}/subjects"))
        yield server.url
    finally:
        container.stop()
