"""A real PostgreSQL for tests, as the example of prices starts it, and a database of it for one test."""

import importlib.util
import os
import shutil
import subprocess
import tempfile
import uuid
from pathlib import Path

import pytest

from support.examples import EXAMPLES
from support.patience import HANG_SECONDS

FOLDER = EXAMPLES / "prices" / "postgresql"


class Server:
    """A server, and its programs."""

    def __init__(self, variables: dict[str, str], programs: Path) -> None:
        self.variables = variables
        self._psql = [str(programs / "psql"), "-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1"]

    def sql(self, database: str, *options: str) -> list[list[str]]:
        """Run psql; return the rows, all values as texts."""
        environment = {**os.environ, **self.variables, "PGDATABASE": database}
        done = subprocess.run([*self._psql, *options], env=environment, capture_output=True, text=True, timeout=HANG_SECONDS, check=False)
        assert done.returncode == 0, done.stderr
        return [line.split("\t") for line in done.stdout.splitlines()]


class Database:
    """A database of the server."""

    def __init__(self, server: Server, name: str) -> None:
        self.server = server
        self.name = name
        self.variables = {**server.variables, "PGDATABASE": name, "JDBC_URL": server.variables["JDBC_URL"].rsplit("/", 1)[0] + f"/{name}"}

    def sql(self, text: str) -> list[list[str]]:
        """Run statements; return the rows of the last, all values as texts."""
        return self.server.sql(self.name, "-c", text)

    def run_file(self, file: Path) -> None:
        """Run the statements of a file."""
        self.server.sql(self.name, "-f", str(file))


@pytest.fixture(scope="session")
def postgresql_server():
    """A PostgreSQL shared by the whole run."""
    spec = importlib.util.spec_from_file_location("example_postgresql", FOLDER / "postgresql.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = Path(tempfile.mkdtemp(prefix="kops-postgresql-"))  # not pytest's own, which only its owner may enter: PostgreSQL refuses root
    try:
        yield Server(module.up(folder), module.programs(folder))
    except ModuleNotFoundError as missing:
        pytest.skip(str(missing))
    finally:
        if (folder / "shop.properties").exists():
            module.down(folder)
        shutil.rmtree(folder)


@pytest.fixture
def database(postgresql_server):
    """An empty database for one test."""
    name = f"test_{uuid.uuid4().hex[:8]}"
    postgresql_server.sql("postgres", "-c", f"create database {name}")
    return Database(postgresql_server, name)  # it goes with the server
