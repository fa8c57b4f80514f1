"""Two real Connect workers for tests, beside the broker that all tests share."""

import contextlib
import json
import os
import uuid
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from kops.config.jaas import format_jaas
from kops.core.errors import MissingRequirement
from kops.gateways.connect.plugins import FILE_STREAM, plugin_folder
from kops.gateways.machine.jars import connect_set, jars_of
from kops.sandbox import workers
from kops.sandbox.model import Worker
from kops.sandbox.ports import pick
from support import services
from support.lanes import TAKEN
from support.patience import HANG_SECONDS
from support.streams_apps import wait_for

PLUGINS = (FILE_STREAM,)
"""What the workers have; a Maven coordinate more is fetched the first time."""
CONVERTER = "io.apicurio:apicurio-registry-utils-converter:2.6.8.Final"
FOR_DATABASES = ("io.debezium:debezium-connector-postgres:3.6.0.Final", "io.debezium:debezium-connector-jdbc:3.6.0.Final", CONVERTER)
"""What they have as well where a test needs ``database_plugins`` among those of this run; in lanes, these are not known before the end."""
CONVERTERS = ("AvroConverter", "ExtJsonConverter", "SerdeBasedConverter")
"""Those of ``CONVERTER``, whose jar has no manifest of them."""
FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
FILE_SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"


@dataclass(frozen=True)
class ConnectWorkers:
    """A Connect cluster that all tests share: make connectors with names of your own, and delete them.

    String converters; ``${file:PATH:KEY}`` and ``${env:NAME}`` are resolved.

    :param without: why they have no plugins for databases
    """

    cluster: workers.ConnectCluster
    running: services.ConnectWorkers
    bootstrap_servers: str
    without: str = ""

    @property
    def urls(self) -> tuple[str, ...]:
        return tuple(f"http://127.0.0.1:{worker.port}" for worker in self.cluster.workers)

    @property
    def url(self) -> str:
        return self.urls[0]

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Ask a worker that answers, past kops; 409 is asked again."""
        answers = []

        def answered() -> bool:
            for url in self.urls:
                with contextlib.suppress(requests.ConnectionError):
                    answers.append(requests.request(method, f"{url}{path}", json=body, timeout=HANG_SECONDS))
                    return answers[-1].status_code not in (409, 500)
            return False

        wait_for(f"{method} {path}", answered)
        assert answers[-1].status_code < 400, answers[-1].text
        return json.loads(answers[-1].text or "null")

    def states(self, name: str) -> list[str]:
        """Return the states of a connector and of its tasks."""
        with contextlib.suppress(AssertionError):
            status = self.ask("GET", f"/connectors/{name}/status")
            return [status["connector"]["state"], *(task["state"] for task in status["tasks"])]
        return []

    def create(self, name: str, config: dict[str, str], tasks: int = 1) -> None:
        """Make a connector past kops, and wait until it and its tasks run."""
        self.ask("PUT", f"/connectors/{name}/config", config)
        wait_for(f"{name} to run", lambda: self.states(name) == ["RUNNING"] * (1 + tasks))

    def worker_of(self, name: str, task: int = 0) -> Worker:
        """Return the worker that runs a task."""
        place = self.ask("GET", f"/connectors/{name}/status")["tasks"][task]["worker_id"]
        return next(worker for worker in self.cluster.workers if place.endswith(f":{worker.port}"))

    def kill(self, worker: Worker) -> None:
        """End a worker at once (SIGKILL)."""
        self.running.kill(worker)

    def up(self) -> None:
        """Start the workers that do not run, and wait until they answer."""
        self.running.up()


def secured_worker(own, folder: Path, group: str, username: str, password: str, **settings: str) -> workers.ConnectCluster:
    """Describe one worker that logs in at a secured cluster, with plugins for files."""
    plugin = plugin_folder(Path(os.environ["KOPS_CACHE_DIR"]), FILE_STREAM)
    (plugins := folder / "plugins").mkdir(exist_ok=True)
    if not (there := plugins / plugin.name).exists():
        there.symlink_to(plugin)
    login = {"username": username, "password": password}
    client = {
        "bootstrap.servers": own.bootstrap_servers,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": format_jaas("org.apache.kafka.common.security.scram.ScramLoginModule", login),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(own.sandbox.ca_file),
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    (port,) = pick(1)
    return workers.ConnectCluster("the tests", folder / group, group, client, (Worker(1, port),), (str(plugins),))


def name_converters(folder: Path) -> None:
    """Put beside the jar of ``CONVERTER`` what Kafka's ``connect-plugin-path sync-manifests`` would: no worker then looks for them."""
    with zipfile.ZipFile(folder / "connect-plugin-path-shim-1.0.0.jar", "w") as jar:
        names = "".join(f"io.apicurio.registry.utils.converter.{name}\n" for name in CONVERTERS)
        jar.writestr("META-INF/services/org.apache.kafka.connect.storage.Converter", names)


@pytest.fixture(scope="session")
def connect_workers(request, broker, jdk, tmp_path_factory):
    """Two Connect workers shared by the whole run."""
    cache, folder = Path(os.environ["KOPS_CACHE_DIR"]), tmp_path_factory.mktemp("connect")
    try:
        jars = jars_of(connect_set(), cache)
        plugins = [plugin_folder(cache, coordinate) for coordinate in PLUGINS]
    except MissingRequirement as missing:
        pytest.skip(str(missing))
    without = ""
    later = TAKEN in os.environ  # a lane may come to the tests of databases
    if later or any("database_plugins" in item.fixturenames for item in request.session.items):
        try:
            plugins += [plugin_folder(cache, coordinate) for coordinate in FOR_DATABASES]
        except MissingRequirement as missing:
            without = str(missing)
    (folder / "plugins").mkdir()
    for plugin in plugins:
        (folder / "plugins" / plugin.name).symlink_to(plugin)
    numbered = tuple(Worker(number + 1, port) for number, port in enumerate(pick(2)))
    group = f"connect-tests-{uuid.uuid4().hex[:8]}"
    client = {"bootstrap.servers": broker.bootstrap_servers}
    cluster = workers.ConnectCluster("the tests", folder, group, client, numbered, (str(folder / "plugins"),))
    try:
        with services.connect_workers(cluster, jars, jdk, tmp_path_factory.getbasetemp()) as running:
            yield ConnectWorkers(cluster, running, broker.bootstrap_servers, without)
    finally:
        _delete_topics(broker, [f"{group}-{name}" for name in ("configs", "offsets", "status")])


@pytest.fixture
def database_plugins(connect_workers):
    """Leave the test out where the workers have no plugins for databases."""
    if connect_workers.without:
        pytest.skip(connect_workers.without)


def _delete_topics(broker, names: list[str]) -> None:
    from confluent_kafka.admin import AdminClient

    for gone in AdminClient(broker.client).delete_topics(names, operation_timeout=HANG_SECONDS).values():
        with contextlib.suppress(Exception):  # a worker that never came up made none
            gone.result(HANG_SECONDS)


@pytest.fixture
def connectors(connect_workers):
    """Make connectors that are gone after the test: ``connectors(name, config)``."""
    made: list[str] = []

    def create(name: str, config: dict[str, str], tasks: int = 1) -> str:
        made.append(name)
        connect_workers.create(name, config, tasks)
        return name

    create.made = made
    yield create
    for name in made:
        with contextlib.suppress(AssertionError):
            connect_workers.ask("DELETE", f"/connectors/{name}")
