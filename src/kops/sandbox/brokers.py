"""The brokers of a sandbox as processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kops.core.errors import KopsError
from kops.gateways.machine.jdk import Jdk
from kops.gateways.machine.processes import ProcessIdentity
from kops.sandbox import parts, ports
from kops.sandbox.model import HOST, Node, Sandbox
from kops.sandbox.parts import Part, PartStatus
from kops.sandbox.storage import prepare

_ATTEMPT_SECONDS = 5.0


def part(sandbox: Sandbox, node: Node) -> Part:
    return Part("broker", node.id, f"broker {node.id}", sandbox.folder(node), node.port, sandbox.log_file(node), node.controller_port)


def status(sandbox: Sandbox, node: Node) -> PartStatus:
    return parts.status(part(sandbox, node))


def launch(sandbox: Sandbox, node: Node, *, jars: Sequence[Path], jdk: Jdk) -> bool:
    """Start the process of a broker in the background, without waiting until it answers.

    :returns: False if it is already running
    :raises Refused: when one of its ports is in use
    """
    broker = part(sandbox, node)
    if parts.runs(broker):
        return False
    parts.refuse_taken_ports(sandbox.title, [broker])
    prepare(sandbox, node, jars=jars, jdk=jdk)
    parts.start(broker, [str(jdk.java), f"@{broker.folder / 'java.args'}", "kafka.Kafka", str(broker.folder / "server.properties")])
    return True


def recorded(sandbox: Sandbox, node: Node) -> ProcessIdentity | None:
    """Return the process that was last started for a broker and not stopped since; it may have ended."""
    return parts.recorded(part(sandbox, node))


def wait_until_ready(sandbox: Sandbox, nodes: Sequence[Node], *, seconds: float = parts.START_SECONDS) -> None:
    """Wait until these brokers answer clients and see each other.

    :raises OperationFailed: when one of them ended
    :raises TimedOut: when they do not answer in time
    """
    wanted = {node.id for node in nodes}

    def ready(broker: Part) -> bool:
        return ports.answers(broker.port) and wanted <= _seen_by(sandbox, broker.port)

    parts.wait_until(sandbox.title, [part(sandbox, node) for node in nodes], ready, seconds=seconds)


def _seen_by(sandbox: Sandbox, port: int) -> set[int]:
    """Return the ids of the live brokers according to one of them; empty if it does not answer."""
    from kops.gateways.kafka import Kafka

    connection = replace(sandbox.connection(timeout=_ATTEMPT_SECONDS), bootstrap_servers=(f"{HOST}:{port}",))
    try:
        return {broker.id for broker in Kafka(connection).cluster().brokers}
    except KopsError:
        return set()
