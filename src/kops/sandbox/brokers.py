"""The brokers of a sandbox: their files, and their processes."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kops.config.durable import write_whole
from kops.core.errors import KopsError, OperationFailed
from kops.gateways.machine.jdk import Jdk
from kops.sandbox import parts, ports
from kops.sandbox.files import argument_lines, property_lines
from kops.sandbox.model import HOST, SASL_MECHANISM, USERNAME, Node, Sandbox
from kops.sandbox.parts import SandboxProcess
from kops.sandbox.settings import LOG4J2, client_settings, server_settings
from kops.sandbox.tls import make_certificates

_ATTEMPT_SECONDS = 5.0


def part(sandbox: Sandbox, node: Node) -> SandboxProcess:
    return SandboxProcess(
        "broker", node.id, f"broker {node.id}", sandbox.folder(node), node.port, sandbox.log_file(node), node.controller_port
    )


def launch(sandbox: Sandbox, node: Node, *, jars: Sequence[Path], jdk: Jdk) -> None:
    """Start the process of a broker in the background unless it is running, without waiting until it answers.

    :raises Refused: if one of its ports is in use
    """
    broker = part(sandbox, node)
    if parts.runs(broker):
        return
    parts.refuse_taken_ports(sandbox.title, [broker])
    prepare(sandbox, node, jars=jars, jdk=jdk)
    parts.start(broker, [str(jdk.java), f"@{broker.folder / 'java.args'}", "kafka.Kafka", str(broker.folder / "server.properties")])


def wait_until_ready(sandbox: Sandbox, nodes: Sequence[Node]) -> None:
    """Wait until these brokers answer clients and see each other.

    :raises OperationFailed: if one of them ended
    :raises TimedOut: if they do not answer in time
    """
    wanted = {node.id for node in nodes}

    def ready(broker: SandboxProcess) -> bool:
        return ports.answers(broker.port) and wanted <= _seen_by(sandbox, broker.port)

    parts.wait_until(sandbox.title, [part(sandbox, node) for node in nodes], ready)


def _seen_by(sandbox: Sandbox, port: int) -> set[int]:
    """Return the ids of the live brokers according to one of them; empty if it does not answer."""
    from kops.gateways.kafka import Kafka

    connection = replace(sandbox.connection(timeout=_ATTEMPT_SECONDS), bootstrap_servers=(f"{HOST}:{port}",))
    try:
        return {broker.id for broker in Kafka(connection).cluster().brokers}
    except KopsError:
        return set()


def prepare(sandbox: Sandbox, node: Node, *, jars: Sequence[Path], jdk: Jdk) -> None:
    """Write the settings of one broker, and format its data directory the first time.

    :raises OperationFailed: if Kafka's StorageTool or the JDK's keytool fails
    """
    password = store_password = ""
    if sandbox.secured:
        make_certificates(sandbox.directory / "tls", jdk)
        if not sandbox.password_file.exists():
            write_whole(sandbox.password_file, secrets.token_urlsafe(24) + "\n")
        password = sandbox.password_file.read_text(encoding="utf-8").strip()
        store_password = (sandbox.directory / "tls" / "store-password").read_text(encoding="utf-8").strip()
    folder = sandbox.folder(node)
    settings = server_settings(sandbox, node, password=password, store_password=store_password)
    write_whole(folder / "server.properties", property_lines(settings))
    write_whole(folder / "log4j2.xml", LOG4J2)
    write_whole(folder / "java.args", argument_lines(parts.java_options(part(sandbox, node), sandbox.heap_megabytes, jars)))
    write_whole(sandbox.directory / "client.properties", property_lines(client_settings(sandbox, password)))
    if not (folder / "data" / "meta.properties").exists():
        _format(sandbox, node, jdk, password)


def _format(sandbox: Sandbox, node: Node, jdk: Jdk, password: str) -> None:
    """Format the data directory with Kafka's own tool; the password is in a private file, not on the command line."""
    folder = sandbox.folder(node)
    arguments = ["kafka.tools.StorageTool", "format", "--config", str(folder / "server.properties")]
    arguments += ["--cluster-id", sandbox.cluster_id, "--ignore-formatted"]
    if sandbox.secured:
        arguments += ["--add-scram", f"{SASL_MECHANISM}=[name={USERNAME},password={password}]"]
    file = folder / "format.args"
    write_whole(file, (folder / "java.args").read_text(encoding="utf-8") + argument_lines(arguments))
    try:
        done = subprocess.run([jdk.java, f"@{file}"], capture_output=True, text=True, check=False)
    finally:
        file.unlink()
    if done.returncode:
        said = (done.stdout + done.stderr).replace(password, "***") if password else done.stdout + done.stderr
        raise OperationFailed(f"the data directory of broker {node.id} cannot be formatted: {said.strip()}")
