"""A real schema registry for tests: Apicurio, with Confluent's API, as the sandbox runs it."""

import pytest
import requests

from support.patience import HANG_SECONDS
from support.services import schema_registry


class Registry:
    """The registry's address, and what a test puts there."""

    def __init__(self, url: str) -> None:
        self.url = url

    def register(self, subject: str, schema: str, kind: str = "AVRO", references: list[dict[str, object]] | None = None) -> int:
        """Return the id that a schema gets."""
        body = {"schema": schema, "schemaType": kind, "references": references or []}
        answer = requests.post(f"{self.url}/subjects/{subject}/versions", json=body, timeout=HANG_SECONDS)
        assert answer.status_code == 200, answer.text
        return int(answer.json()["id"])


@pytest.fixture(scope="session")
def registry(jdk, tmp_path_factory):
    """A registry shared by the whole run: use subjects with names of your own."""
    with schema_registry(tmp_path_factory.mktemp("registry") / "registry", jdk) as url:
        yield Registry(url)
