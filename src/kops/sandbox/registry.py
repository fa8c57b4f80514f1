"""A schema registry as a process: Apicurio with Confluent's API, its data in a file in its own directory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kops.config.durable import write_whole
from kops.gateways.machine.jdk import FOR_A_SHORT_RUN, Jdk
from kops.gateways.machine.listening import is_healthy
from kops.sandbox import parts
from kops.sandbox.files import argument_lines
from kops.sandbox.model import HOST
from kops.sandbox.parts import SandboxProcess


@dataclass(frozen=True)
class RegistryServer:
    """A local schema registry.

    :param owner: what it is part of, for people: ``sandbox demo``
    :param folder: its files
    """

    owner: str
    folder: Path
    port: int

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/apis/ccompat/v7"

    @property
    def part(self) -> SandboxProcess:
        return SandboxProcess("registry", 1, "registry", self.folder, self.port, self.folder / "console.log")


def launch(registry: RegistryServer, *, program: Path, jdk: Jdk) -> None:
    """Start the registry unless it is running, without waiting until it answers.

    :param program: the directory that it was unpacked into
    :raises Refused: if its port is in use
    """
    part = registry.part
    if parts.runs(part):
        return
    parts.refuse_taken_ports(registry.owner, [part])
    (runner,) = program.glob("*-runner.jar")
    options = [
        "-Xmx384m",
        *FOR_A_SHORT_RUN,
        f"-Dquarkus.http.port={registry.port}",
        f"-Dquarkus.http.host={HOST}",
        "-Dquarkus.log.level=WARN",
        "-Dapicurio.storage.kind=sql",
        "-Dapicurio.storage.sql.kind=h2",
        f"-Dapicurio.datasource.url=jdbc:h2:file:{registry.folder / 'data'}",
        "-jar",
        str(runner),
    ]
    write_whole(registry.folder / "java.args", argument_lines(options))
    parts.start(part, [str(jdk.java), f"@{registry.folder / 'java.args'}"])


def wait_until_ready(registry: RegistryServer) -> None:
    """Wait until the registry answers.

    :raises OperationFailed: if it ended
    :raises TimedOut: if it does not answer in time
    """
    parts.wait_until(registry.owner, [registry.part], lambda _: is_healthy(f"{registry.url}/subjects"))
