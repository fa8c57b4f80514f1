"""A sandbox: what it is, where its files are, and how to connect to it.

Its directory holds everything: ``sandbox.json`` (this description), ``tls/`` and ``password`` if it is secured, and per
broker ``broker-N`` with its settings, its log, its data, and ``process.json`` while it runs; the same per Connect worker in
``worker-N`` and for the registry in ``registry``. Connect keeps its data in topics of the brokers; a standalone worker keeps offsets in
a file.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from kops.config.connection import Connection
from kops.config.durable import write_whole
from kops.config.files import is_absent, read_json
from kops.config.secrets import from_file
from kops.core.errors import ConfigError

PLAINTEXT, SASL_SSL, ACL = "plaintext", "sasl-ssl", "acl"
SECURITY = (PLAINTEXT, SASL_SSL, ACL)
BROKERS = (1, 3)
HOST = "127.0.0.1"
SASL_MECHANISM = "SCRAM-SHA-512"
USERNAME = "kops"
DISTRIBUTED, STANDALONE = "distributed", "standalone"
CONNECT = (DISTRIBUTED, STANDALONE)
_VERSION = 1


@dataclass(frozen=True)
class Node:
    """One broker, which is also a controller.

    :param port: where clients connect
    :param controller_port: where the controllers talk to each other
    """

    id: int
    port: int
    controller_port: int


@dataclass(frozen=True)
class Worker:
    """One worker of Kafka Connect.

    :param port: of its REST interface
    """

    id: int
    port: int


@dataclass(frozen=True)
class Sandbox:
    """A Kafka cluster of this machine, running or not.

    :param security: ``plaintext``; ``sasl-ssl``: SCRAM-SHA-512 over TLS, with a certificate authority of its own; ``acl``: that, with an
        authorizer, whose super user is the user of the context
    :param heap_megabytes: maximum heap of one broker
    :param previous_servers: its bootstrap servers before it moved to new ports
    :param workers: of Kafka Connect
    :param plugin_path: directories of Connect plugin directories
    :param registry_port: of the schema registry; 0 without one
    :param connect: how its workers run: ``distributed``, or ``standalone``, which is one worker
    :param racks: whether each broker is a rack, and has two log directories
    """

    directory: Path
    name: str
    kafka_version: str
    cluster_id: str
    nodes: tuple[Node, ...]
    security: str = PLAINTEXT
    heap_megabytes: int = 512
    previous_servers: str = ""
    workers: tuple[Worker, ...] = ()
    plugin_path: tuple[str, ...] = ()
    registry_port: int = 0
    connect: str = DISTRIBUTED
    racks: bool = False

    @property
    def title(self) -> str:
        """How to refer to it in a sentence."""
        return f"sandbox {self.name}"

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{HOST}:{node.port}" for node in self.nodes)

    @property
    def connect_urls(self) -> tuple[str, ...]:
        return tuple(f"http://{HOST}:{worker.port}" for worker in self.workers)

    @property
    def registry_url(self) -> str | None:
        """The address of the registry's Confluent API; None if there is no registry."""
        return f"http://{HOST}:{self.registry_port}/apis/ccompat/v7" if self.registry_port else None

    @property
    def secured(self) -> bool:
        """Whether clients need TLS and a password."""
        return self.security != PLAINTEXT

    @property
    def ca_file(self) -> Path:
        """The PEM file of the sandbox's own certificate authority."""
        return self.directory / "tls" / "ca.pem"

    @property
    def password_file(self) -> Path:
        """The file that holds the SCRAM password."""
        return self.directory / "password"

    def folder(self, node: Node) -> Path:
        return self.directory / f"broker-{node.id}"

    def log_file(self, node: Node) -> Path:
        return self.folder(node) / "server.log"

    def context(self) -> dict[str, Any]:
        """Return the context of the configuration file that connects to this sandbox."""
        table: dict[str, Any] = {"bootstrap_servers": self.bootstrap_servers.split(",")}
        if self.secured:
            table |= {"security_protocol": "SASL_SSL", "sasl_mechanism": SASL_MECHANISM, "username": USERNAME}
            table |= {"password_file": str(self.password_file), "ca_file": str(self.ca_file)}
        if self.workers:
            table["connect_urls"] = list(self.connect_urls)
        if self.registry_url:
            table["registry_url"] = self.registry_url
        return table

    def connection(self, *, timeout: float = 30.0) -> Connection:
        """Return the connection to this sandbox.

        :param timeout: of one request, in seconds
        """
        plain = Connection(
            tuple(self.bootstrap_servers.split(",")),
            name=self.name,
            connect_urls=self.connect_urls,
            registry_url=self.registry_url,
            timeout=timeout,
        )
        if not self.secured:
            return plain
        return replace(
            plain,
            security_protocol="SASL_SSL",
            sasl_mechanism=SASL_MECHANISM,
            username=USERNAME,
            password=from_file(self.password_file),
            ca_file=str(self.ca_file),
        )


def save(sandbox: Sandbox) -> None:
    body = {"version": _VERSION, **asdict(sandbox)}
    del body["directory"]
    write_whole(sandbox.directory / "sandbox.json", json.dumps(body, indent=2) + "\n")


def load(directory: Path) -> Sandbox | None:
    """Read the sandbox of a directory; None if there is none.

    :raises ConfigError: if its description cannot be read
    """
    file = directory / "sandbox.json"
    try:
        body = read_json(file)
    except ConfigError as error:
        if is_absent(error):
            return None
        raise
    if isinstance(body, dict) and body.pop("version", None) != _VERSION:
        raise ConfigError(f"{file} was written by another version of kops", hint=f"delete {directory}")
    try:
        nodes = tuple(Node(**node) for node in body.pop("nodes"))
        workers = tuple(Worker(**worker) for worker in body.pop("workers", ()))
        plugin_path = tuple(body.pop("plugin_path", ()))
        return Sandbox(directory=directory, nodes=nodes, workers=workers, plugin_path=plugin_path, **body)
    except (ValueError, KeyError, TypeError, AttributeError) as broken:
        raise ConfigError(f"{file} cannot be read: {broken}", hint=f"stop its brokers, then delete {directory}") from broken
