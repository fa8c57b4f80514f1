"""A sandbox as a whole: make it, bring it up, take it down, say how it is."""

from __future__ import annotations

import base64
import shutil
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from kops.core.errors import UsageProblem
from kops.gateways.jdk import Jdk
from kops.sandbox import brokers, ports
from kops.sandbox.brokers import CRASHED, RUNNING, STARTING, STOPPED, NodeStatus
from kops.sandbox.files import locked
from kops.sandbox.model import BROKERS, PLAINTEXT, SECURITY, Node, Sandbox, load, save

DEGRADED = "degraded"


@dataclass(frozen=True)
class Status:
    """A sandbox as it is now.

    :param state: running (all brokers), degraded (some), starting, crashed or stopped
    """

    sandbox: Sandbox
    state: str
    nodes: tuple[NodeStatus, ...]


def make(directory: Path, *, name: str, kafka_version: str, brokers: int = 1, security: str = PLAINTEXT) -> Sandbox:
    """Describe a new sandbox, with free ports and an id of its own, and save the description.

    :param directory: its folder, made when it is not there
    :param brokers: 1 or 3
    :returns: the new one, or the one that another process made in the meantime, which may be different
    :raises UsageProblem: on another number of brokers, or another security
    """
    if brokers not in BROKERS:
        raise UsageProblem(f"a sandbox has 1 or 3 brokers, not {brokers}")
    if security not in SECURITY:
        raise UsageProblem(f"the security of a sandbox is {' or '.join(SECURITY)}, not {security}")
    sandbox = Sandbox(directory, name, kafka_version, _new_cluster_id(), _pick_nodes(brokers), security)
    with _changing(sandbox):
        there = load(directory)
        if there is None:
            save(sandbox)
        return there or sandbox


def up(sandbox: Sandbox, *, jars: Sequence[Path], jdk: Jdk, tell: Callable[[str], None] | None = None) -> list[int]:
    """Start every broker that does not run, and wait until all of them answer.

    :param jars: of the Kafka version of this sandbox
    :param tell: takes a line of progress
    :returns: the ids of the brokers that were started
    :raises Refused: when a port is taken; nothing was started then
    :raises OperationFailed: when a broker ends instead of answering
    """
    tell = tell or _silent
    with _changing(sandbox):
        waiting = [node for node in sandbox.nodes if brokers.status(sandbox, node).state in (STOPPED, CRASHED)]
        brokers.refuse_taken_ports(sandbox, waiting)
        for node in waiting:
            tell(f"starting broker {node.id} of sandbox {sandbox.name} on 127.0.0.1:{node.port}")
            brokers.launch(sandbox, node, jars=jars, jdk=jdk)
        brokers.wait_until_ready(sandbox, sandbox.nodes)
    return [node.id for node in waiting]


def start(sandbox: Sandbox, node_id: int, *, jars: Sequence[Path], jdk: Jdk) -> None:
    """Start one broker and wait until it answers; the others must be enough for a quorum."""
    node = sandbox.node(node_id)
    with _changing(sandbox):
        brokers.launch(sandbox, node, jars=jars, jdk=jdk)
        brokers.wait_until_ready(sandbox, [node])


def stop(sandbox: Sandbox, node_id: int) -> bool:
    """Stop one broker gracefully; return False when it had to be killed."""
    with _changing(sandbox):
        return brokers.stop_node(sandbox, sandbox.node(node_id))


def kill(sandbox: Sandbox, node_id: int) -> None:
    """End one broker at once, as a crash would."""
    with _changing(sandbox):
        brokers.kill_node(sandbox, sandbox.node(node_id))


def down(sandbox: Sandbox, *, delete: bool = False) -> list[int]:
    """Stop all brokers, each by the process that was recorded for it, and keep the data unless it is to be deleted.

    :returns: the ids of the brokers that ran
    """
    with _changing(sandbox):
        ran = [node for node in sandbox.nodes if brokers.status(sandbox, node).pid is not None]
        with ThreadPoolExecutor(len(sandbox.nodes)) as pool:
            list(pool.map(lambda node: brokers.stop_node(sandbox, node), sandbox.nodes))
        if delete:
            shutil.rmtree(sandbox.directory)
    return [node.id for node in ran]


def status(sandbox: Sandbox) -> Status:
    """Say how a sandbox is."""
    nodes = tuple(brokers.status(sandbox, node) for node in sandbox.nodes)
    states = {node.state for node in nodes}
    if len(states) == 1:
        return Status(sandbox, states.pop(), nodes)
    return Status(sandbox, DEGRADED if RUNNING in states else STARTING if STARTING in states else CRASHED, nodes)


def move_ports(sandbox: Sandbox) -> Sandbox:
    """Give a stopped sandbox other free ports, and save that.

    :raises UsageProblem: while a broker runs
    """
    with _changing(sandbox):
        if any(brokers.status(sandbox, node).pid for node in sandbox.nodes):
            raise UsageProblem(f"sandbox {sandbox.name} runs, so its ports stay", hint="take it down first: kops sandbox down")
        moved = replace(sandbox, nodes=_pick_nodes(len(sandbox.nodes)), previous_servers=sandbox.bootstrap_servers)
        save(moved)
    return moved


def find(directory: Path) -> Sandbox | None:
    """Return the sandbox of a folder, None when there is none."""
    return load(directory)


def _changing(sandbox: Sandbox) -> AbstractContextManager[None]:
    return locked(sandbox.directory.parent / f".{sandbox.directory.name}.lock", what=f"sandbox {sandbox.name}")


def _pick_nodes(count: int) -> tuple[Node, ...]:
    picked = ports.pick(2 * count)
    return tuple(Node(index + 1, picked[2 * index], picked[2 * index + 1]) for index in range(count))


def _new_cluster_id() -> str:
    """Return an id as ``kafka-storage random-uuid`` makes it: 16 random bytes in URL-safe base 64, without a dash in front."""
    while True:
        made = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        if not made.startswith("-"):
            return made


def _silent(_line: str) -> None:
    """Tell nobody."""
