"""A sandbox as a whole: create it, start it, stop it, and report its status."""

from __future__ import annotations

import base64
import shutil
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from kops.core.errors import UsageProblem
from kops.core.progress import SILENT, Progress
from kops.gateways.machine.jdk import Jdk
from kops.sandbox import brokers, parts, ports, registry, workers
from kops.sandbox.files import locked
from kops.sandbox.model import BROKERS, PLAINTEXT, SECURITY, STANDALONE, Node, Sandbox, Worker, load, save
from kops.sandbox.parts import CRASHED, RUNNING, STARTING, PartStatus, SandboxProcess
from kops.sandbox.settings import client_settings

DEGRADED = "degraded"
_WITHOUT_SCRAM = ("3.3.", "3.4.")
"""Versions whose data directory cannot be formatted with a SCRAM user."""


@dataclass(frozen=True)
class Status:
    """The current status of a sandbox.

    :param state: running (all parts), degraded (some), starting, crashed or stopped
    """

    sandbox: Sandbox
    state: str
    parts: tuple[PartStatus, ...]

    def of(self, kind: str) -> tuple[PartStatus, ...]:
        """Return the parts of a kind: broker, worker or registry."""
        return tuple(each for each in self.parts if each.part.kind == kind)


def make(directory: Path, *, name: str, kafka_version: str, brokers: int = 1, security: str = PLAINTEXT, racks: bool = False) -> Sandbox:
    """Describe a new sandbox, with free ports and a new cluster id, and save the description.

    :param directory: created if necessary
    :param brokers: 1 or 3
    :param racks: make each broker a rack, with two log directories
    :returns: the new one, or one that another process created in the meantime, which may differ
    :raises UsageProblem: for another number of brokers, or another security
    """
    if brokers not in BROKERS:
        raise UsageProblem(f"a sandbox has 1 or 3 brokers, not {brokers}")
    if security not in SECURITY:
        raise UsageProblem(f"the security of a sandbox is {', '.join(SECURITY)}, not {security}")
    if security != PLAINTEXT and kafka_version.startswith(_WITHOUT_SCRAM):
        raise UsageProblem(f"a sandbox of Kafka {kafka_version} cannot be {security}", hint="use version 3.5.0 or newer (KIP-900)")
    sandbox = Sandbox(directory, name, kafka_version, _new_cluster_id(), _pick_nodes(brokers), security, racks=racks)
    with _changing(sandbox):
        there = load(directory)
        if there is None:
            save(sandbox)
        return there or sandbox


@dataclass(frozen=True)
class Programs:
    """The programs that the parts of a sandbox run.

    :param kafka: jars of its Kafka version
    :param connect: jars of Connect of that version; empty without workers
    :param registry: the directory of the registry; None without one
    """

    jdk: Jdk
    kafka: Sequence[Path]
    connect: Sequence[Path] = ()
    registry: Path | None = None


def add(
    sandbox: Sandbox, *, connect_workers: int = 0, connect: str = "", registry: bool = False, plugin_path: Sequence[str] = ()
) -> Sandbox:
    """Add Connect workers and a registry to a sandbox, on free ports, and save that.

    :param connect_workers: minimum number
    :param connect: how the first ones run, ``distributed`` by default; it has no effect on those that there are
    :param plugin_path: directories of Connect plugin directories, added to the existing ones
    """
    with _changing(sandbox):
        there = load(sandbox.directory) or sandbox
        missing = max(0, connect_workers - len(there.workers))
        picked = ports.pick(missing + 1)
        added = tuple(Worker(len(there.workers) + at + 1, port) for at, port in enumerate(picked[:missing]))
        paths = tuple(dict.fromkeys([*there.plugin_path, *plugin_path]))
        port = there.registry_port or (picked[missing] if registry else 0)
        kind = there.connect if there.workers else connect or there.connect
        wider = replace(there, workers=(*there.workers, *added), registry_port=port, plugin_path=paths, connect=kind)
        if wider != there:
            save(wider)
    return wider


def up(sandbox: Sandbox, programs: Programs, *, progress: Progress = SILENT) -> None:
    """Start every part that is not running, the brokers first, and wait until all of them answer.

    :raises Refused: if a port is in use
    :raises OperationFailed: if a part ends instead of answering
    """
    with _changing(sandbox):
        others = [part for part in parts_of(sandbox)[len(sandbox.nodes) :] if not parts.runs(part)]
        parts.refuse_taken_ports(sandbox.title, others)
        _brokers_up(sandbox, jars=programs.kafka, jdk=programs.jdk, progress=progress)
        for part in others:
            progress.step(f"starting {part.name} of sandbox {sandbox.name} on 127.0.0.1:{part.port}")
        server, connect = registry_of(sandbox), connect_of(sandbox)
        if server and programs.registry:
            registry.launch(server, program=programs.registry, jdk=programs.jdk)
        if connect:
            workers.launch(connect, sandbox.workers, jars=programs.connect, jdk=programs.jdk)
            workers.wait_until_ready(connect, sandbox.workers)
        if server:
            registry.wait_until_ready(server)


def _brokers_up(sandbox: Sandbox, *, jars: Sequence[Path], jdk: Jdk, progress: Progress) -> None:
    waiting = [node for node in sandbox.nodes if not parts.runs(brokers.part(sandbox, node))]
    parts.refuse_taken_ports(sandbox.title, [brokers.part(sandbox, node) for node in waiting])
    for node in waiting:
        progress.step(f"starting broker {node.id} of sandbox {sandbox.name} on 127.0.0.1:{node.port}")
        brokers.launch(sandbox, node, jars=jars, jdk=jdk)
    brokers.wait_until_ready(sandbox, sandbox.nodes)


def connect_of(sandbox: Sandbox) -> workers.ConnectCluster | None:
    if not sandbox.workers:
        return None
    password = sandbox.password_file.read_text(encoding="utf-8").strip() if sandbox.password_file.exists() else ""
    client = client_settings(sandbox, password)
    name, replicas = f"{sandbox.name}-connect", len(sandbox.nodes)
    return workers.ConnectCluster(
        sandbox.title,
        sandbox.directory,
        name,
        client,
        sandbox.workers,
        sandbox.plugin_path,
        replicas,
        standalone=sandbox.connect == STANDALONE,
    )


def registry_of(sandbox: Sandbox) -> registry.RegistryServer | None:
    if not sandbox.registry_port:
        return None
    return registry.RegistryServer(sandbox.title, sandbox.directory / "registry", sandbox.registry_port)


def parts_of(sandbox: Sandbox) -> tuple[SandboxProcess, ...]:
    """Return all parts of a sandbox: brokers, workers, registry."""
    connect, server = connect_of(sandbox), registry_of(sandbox)
    found = [brokers.part(sandbox, node) for node in sandbox.nodes]
    return (*found, *(connect.parts if connect else ()), *([server.part] if server else ()))


def down(sandbox: Sandbox, *, delete: bool = False) -> None:
    """Stop all parts, each identified by its recorded process, and keep the data unless ``delete`` is set.

    Parts that need the brokers are stopped first.
    """
    with _changing(sandbox):
        every = parts_of(sandbox)
        with ThreadPoolExecutor(len(every)) as pool:
            list(pool.map(parts.end, every[len(sandbox.nodes) :]))
            list(pool.map(parts.end, every[: len(sandbox.nodes)]))
        if delete:
            shutil.rmtree(sandbox.directory)


def status(sandbox: Sandbox) -> Status:
    found = tuple(map(parts.status, parts_of(sandbox)))
    states = {each.state for each in found}
    if len(states) == 1:
        return Status(sandbox, states.pop(), found)
    return Status(sandbox, DEGRADED if RUNNING in states else STARTING if STARTING in states else CRASHED, found)


def move_ports(sandbox: Sandbox) -> Sandbox:
    """Move a stopped sandbox to other free ports, and save that.

    :raises UsageProblem: while a part runs
    """
    with _changing(sandbox):
        if any(each.pid for each in status(sandbox).parts):
            raise UsageProblem(f"sandbox {sandbox.name} is running, so its ports cannot change", hint="stop it first: kops sandbox down")
        picked = ports.pick(len(sandbox.workers) + 1)
        moved = replace(
            sandbox,
            nodes=_pick_nodes(len(sandbox.nodes)),
            previous_servers=sandbox.bootstrap_servers,
            workers=tuple(Worker(worker.id, port) for worker, port in zip(sandbox.workers, picked, strict=False)),
            registry_port=picked[-1] if sandbox.registry_port else 0,
        )
        save(moved)
    return moved


def _changing(sandbox: Sandbox) -> AbstractContextManager[None]:
    return locked(sandbox.directory.parent / f".{sandbox.directory.name}.lock", what=sandbox.title)


def _pick_nodes(count: int) -> tuple[Node, ...]:
    picked = ports.pick(2 * count)
    return tuple(Node(index + 1, picked[2 * index], picked[2 * index + 1]) for index in range(count))


def _new_cluster_id() -> str:
    """Return an id as ``kafka-storage random-uuid`` does: 16 random bytes in URL-safe Base64, without a leading dash."""
    while True:
        made = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        if not made.startswith("-"):
            return made
