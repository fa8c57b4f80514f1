"""Workers of Kafka Connect as processes, for any Kafka: a local distributed Connect cluster, or one standalone worker."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kops.config.durable import write_whole
from kops.gateways.machine.jdk import FOR_A_SHORT_RUN, Jdk
from kops.gateways.machine.listening import is_healthy
from kops.sandbox import parts
from kops.sandbox.files import argument_lines, property_lines
from kops.sandbox.model import HOST, Worker
from kops.sandbox.parts import SandboxProcess
from kops.sandbox.settings import log4j2

HEAP_MEGABYTES = 384
_MANIFESTS = re.compile(r"connect-(file|mirror)-\d.*|debezium-connector-[a-z0-9]+-([3-9]|\d\d)\..*")
"""Plugin directories, as kops names them, whose releases have manifests (KIP-898)."""
_OF_CLIENTS = ("", "producer.", "consumer.", "admin.")
_QUIET = (
    "org.apache.kafka.connect.runtime.WorkerConfig",
    "org.apache.kafka.connect.runtime.isolation",
    "org.apache.kafka.common.utils",
    "org.apache.kafka.clients",
    "org.apache.kafka.connect.runtime.rest.RestServer",
    "org.eclipse.jetty",
)


@dataclass(frozen=True)
class ConnectCluster:
    """Workers that share one group and its topics, or one standalone worker.

    :param owner: what they are part of, for people: ``sandbox demo``
    :param directory: gets a directory per worker
    :param group: their group id; the topics with configurations, offsets and states are named after it
    :param client: properties of a Java client to reach Kafka
    :param replicas: of those topics
    :param plugin_path: directories of plugin directories
    """

    owner: str
    directory: Path
    group: str
    client: Mapping[str, str]
    workers: tuple[Worker, ...]
    plugin_path: tuple[str, ...] = ()
    replicas: int = 1
    standalone: bool = False

    def part(self, worker: Worker) -> SandboxProcess:
        folder = self.directory / f"worker-{worker.id}"
        return SandboxProcess("worker", worker.id, f"worker {worker.id}", folder, worker.port, folder / "connect.log")

    @property
    def parts(self) -> tuple[SandboxProcess, ...]:
        return tuple(self.part(worker) for worker in self.workers)


def worker_settings(cluster: ConnectCluster, worker: Worker) -> dict[str, str]:
    """Return the properties of one worker.

    Timeouts suit a single machine: a killed worker's tasks restart after seconds, with Connect's defaults after minutes.
    """
    settings = {
        "listeners": f"http://{HOST}:{worker.port}",
        "rest.advertised.host.name": HOST,
        "rest.advertised.port": str(worker.port),
        "plugin.path": ",".join(cluster.plugin_path),
        "plugin.discovery": discovery(cluster.plugin_path),
        "config.providers": "file,env,directory",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
        "config.providers.directory.class": "org.apache.kafka.common.config.provider.DirectoryConfigProvider",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "offset.flush.interval.ms": "1000",
    }
    clients = {f"{prefix}{name}": value for prefix in _OF_CLIENTS for name, value in cluster.client.items()}
    if cluster.standalone:
        return settings | {"offset.storage.file.filename": str(cluster.part(worker).folder / "offsets")} | clients
    return settings | _group_settings(cluster) | clients


def _group_settings(cluster: ConnectCluster) -> dict[str, str]:
    replicas = str(cluster.replicas)
    return {
        "group.id": cluster.group,
        "config.storage.topic": f"{cluster.group}-configs",
        "offset.storage.topic": f"{cluster.group}-offsets",
        "offset.storage.partitions": "5",
        "status.storage.topic": f"{cluster.group}-status",
        "status.storage.partitions": "2",
        "config.storage.replication.factor": replicas,
        "offset.storage.replication.factor": replicas,
        "status.storage.replication.factor": replicas,
        "scheduled.rebalance.max.delay.ms": "1000",
        "heartbeat.interval.ms": "1000",
        "session.timeout.ms": "6000",
    }


def discovery(plugin_path: Iterable[str]) -> str:
    """Return the plugin discovery mode: by manifests if all plugins have them, otherwise by scanning classes as well.

    Scanning takes 12 of the 20 CPU seconds that a worker with a few large plugins needs to start. A jar that Kafka's ``connect-plugin-path
    sync-manifests`` added to a plugin contains all its manifests (``ManifestWorkspace``).
    """
    plugins = [each for path in map(Path, plugin_path) if path.is_dir() for each in path.iterdir() if not each.name.startswith(".")]
    whole = all(_MANIFESTS.fullmatch(each.name) or any(each.glob("connect-plugin-path-shim-*.jar")) for each in plugins)
    return "service_load" if whole else "hybrid_warn"


def launch(cluster: ConnectCluster, workers: Iterable[Worker], *, jars: Sequence[Path], jdk: Jdk) -> None:
    """Start the workers that are not running, without waiting until they answer.

    :raises Refused: if a port is in use
    """
    waiting = [worker for worker in workers if not parts.runs(cluster.part(worker))]
    parts.refuse_taken_ports(cluster.owner, [cluster.part(worker) for worker in waiting])
    for worker in waiting:
        part = cluster.part(worker)
        write_whole(part.folder / "worker.properties", property_lines(worker_settings(cluster, worker)))
        write_whole(part.folder / "log4j2.xml", log4j2(*_QUIET))
        options = [*FOR_A_SHORT_RUN, *parts.java_options(part, HEAP_MEGABYTES, jars)]
        write_whole(part.folder / "java.args", argument_lines(options))
        main = f"org.apache.kafka.connect.cli.Connect{'Standalone' if cluster.standalone else 'Distributed'}"
        parts.start(part, [str(jdk.java), f"@{part.folder / 'java.args'}", main, str(part.folder / "worker.properties")])


def wait_until_ready(cluster: ConnectCluster, workers: Iterable[Worker]) -> None:
    """Wait until workers have joined their group and read its topics (KIP-1017).

    :raises OperationFailed: if one of them ended
    :raises TimedOut: if one is not ready in time
    """
    parts.wait_until(
        cluster.owner, [cluster.part(worker) for worker in workers], lambda part: is_healthy(f"http://{HOST}:{part.port}/health")
    )
