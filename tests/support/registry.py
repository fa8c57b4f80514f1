"""A real schema registry for tests: Apicurio, with Confluent's API, as the sandbox runs it."""

import os
from pathlib import Path

import pytest
import requests

from kops.core.errors import MissingRequirement
from kops.gateways.machine.archives import registry_folder
from kops.sandbox import parts
from kops.sandbox import registry as servers
from kops.sandbox.ports import pick


class Registry:
    """The registry's address, and what a test puts there."""

    def __init__(self, url: str) -> None:
        self.url = url

    def register(self, subject: str, schema: str, kind: str = "AVRO", references: list[dict[str, object]] | None = None) -> int:
        """Return the id that a schema gets."""
        body = {"schema": schema, "schemaType": kind, "references": references or []}
        answer = requests.post(f"{self.url}/subjects/{subject}/versions", json=body, timeout=30)
        assert answer.status_code == 200, answer.text
        return int(answer.json()["id"])


@pytest.fixture(scope="session")
def registry(jdk, tmp_path_factory):
    """A registry shared by the whole run: use subjects with names of your own."""
    try:
        program = registry_folder(Path(os.environ["KOPS_CACHE_DIR"]))
    except MissingRequirement as missing:
        pytest.skip(str(missing))
    (port,) = pick(1)
    server = servers.RegistryServer("the tests", tmp_path_factory.mktemp("registry") / "registry", port)
    try:
        servers.launch(server, program=program, jdk=jdk)
        servers.wait_until_ready(server)
        yield Registry(server.url)
    finally:
        parts.kill_at_once(server.part)
