"""The brokers of a sandbox as processes: start, stop, kill one, and know which run."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kops.core.errors import KopsError, OperationFailed, Refused, TimedOut
from kops.gateways.jdk import Jdk
from kops.gateways.processes import ProcessIdentity, kill, start_detached, stop
from kops.sandbox import ports
from kops.sandbox.files import write_whole
from kops.sandbox.model import HOST, Node, Sandbox
from kops.sandbox.storage import prepare

RUNNING, STARTING, STOPPED, CRASHED = "running", "starting", "stopped", "crashed"

START_SECONDS = 120.0
STOP_SECONDS = 30.0
_POLL_SECONDS = 0.1
_ATTEMPT_SECONDS = 5.0
_LOG_TAIL = 5


@dataclass(frozen=True)
class NodeStatus:
    """One broker as it is now.

    :param state: running, starting (a process that does not listen yet), stopped, or crashed (ended unasked)
    :param pid: None when it does not run
    """

    node: Node
    state: str
    pid: int | None
    log: Path


def status(sandbox: Sandbox, node: Node) -> NodeStatus:
    """Tell whether a broker runs. A pid that now belongs to another process is not its own."""
    process = recorded(sandbox, node)
    state = STOPPED if process is None else CRASHED
    if process is not None and process.running:
        state = RUNNING if ports.answers(node.port) else STARTING
    alive = process is not None and state in (RUNNING, STARTING)
    return NodeStatus(node, state, process.pid if process and alive else None, sandbox.log_file(node))


def recorded(sandbox: Sandbox, node: Node) -> ProcessIdentity | None:
    """Return the process that was last started for a broker and not stopped since; it may be long gone."""
    try:
        return ProcessIdentity(**json.loads(_record(sandbox, node).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def launch(sandbox: Sandbox, node: Node, *, jars: Sequence[Path], jdk: Jdk) -> bool:
    """Start the process of a broker, detached from this one; do not wait until it answers.

    :returns: False when it runs already
    :raises Refused: when one of its ports is taken
    """
    process = recorded(sandbox, node)
    if process is not None and process.running:
        return False
    refuse_taken_ports(sandbox, [node])
    prepare(sandbox, node, jars=jars, jdk=jdk)
    folder = sandbox.folder(node)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("KOPS_", "KAFKA_")) and name != "CLASSPATH"}
    environment["LC_ALL"] = "C.UTF-8"  # Java takes file names in this encoding
    command = [str(jdk.java), f"@{folder / 'java.args'}", "kafka.Kafka", str(folder / "server.properties")]
    started = start_detached(command, log=folder / "console.log", directory=folder, environment=environment)
    write_whole(_record(sandbox, node), json.dumps({"pid": started.pid, "started": started.started}) + "\n")
    return True


def refuse_taken_ports(sandbox: Sandbox, nodes: Sequence[Node]) -> None:
    """Refuse to start brokers whose ports another process has.

    :raises Refused: naming the port and the broker
    """
    for node in nodes:
        for port in (node.port, node.controller_port):
            if not ports.is_free(port):
                raise Refused(
                    f"port {port} of broker {node.id} of sandbox {sandbox.name} is taken by another process",
                    hint=f"end it (ss -ltnp 'sport = :{port}' names it), or take other ports with --new-ports",
                    port=port,
                )


def wait_until_ready(sandbox: Sandbox, nodes: Sequence[Node], *, seconds: float = START_SECONDS) -> None:
    """Wait until these brokers answer a client, and are seen by each other.

    :raises OperationFailed: when one of them ended
    :raises TimedOut: when they do not answer in time
    """
    deadline = time.monotonic() + seconds
    wanted = {node.id for node in nodes}
    for node in nodes:
        while not (ports.answers(node.port) and wanted <= _seen_by(sandbox, node)):
            _raise_if_ended(sandbox, nodes)
            if time.monotonic() > deadline:
                log = sandbox.log_file(node)
                raise TimedOut(f"broker {node.id} of sandbox {sandbox.name} did not answer within {seconds:g} s", hint=f"its log is {log}")
            time.sleep(_POLL_SECONDS)


def _seen_by(sandbox: Sandbox, node: Node) -> set[int]:
    """Return the ids of the live brokers, as one of them tells it; empty when it does not answer."""
    from kops.gateways.kafka import Kafka

    connection = replace(sandbox.connection(timeout=_ATTEMPT_SECONDS), bootstrap_servers=(f"{HOST}:{node.port}",))
    try:
        return {broker.id for broker in Kafka(connection).cluster().brokers}
    except KopsError:
        return set()


def _raise_if_ended(sandbox: Sandbox, nodes: Sequence[Node]) -> None:
    for node in nodes:
        process = recorded(sandbox, node)
        if process is None or not process.running:
            tail = [line for name in ("server.log", "console.log") for line in _tail(sandbox.folder(node) / name)]
            said = next((line for line in tail if "ERROR" in line or "FATAL" in line or "Error" in line), tail[-1] if tail else "nothing")
            raise OperationFailed(
                f"broker {node.id} of sandbox {sandbox.name} ended while it started: {said}", hint=f"its log is {sandbox.log_file(node)}"
            )


def _tail(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_TAIL:]
    except OSError:
        return []


def stop_node(sandbox: Sandbox, node: Node, *, grace: float = STOP_SECONDS) -> bool:
    """Stop a broker: SIGTERM, and SIGKILL after the grace period in seconds.

    :returns: False when it had to be killed
    """
    process = recorded(sandbox, node)
    gracefully = stop(process, grace=grace) if process is not None else True
    _record(sandbox, node).unlink(missing_ok=True)
    return gracefully


def kill_node(sandbox: Sandbox, node: Node) -> None:
    """End a broker at once, as a crash would; its record stays, so its state is ``crashed``."""
    process = recorded(sandbox, node)
    if process is not None:
        kill(process)


def _record(sandbox: Sandbox, node: Node) -> Path:
    return sandbox.folder(node) / "process.json"
