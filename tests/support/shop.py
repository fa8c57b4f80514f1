"""The example of prices on a real PostgreSQL, with names of its own: a database, topics, connectors, an application."""

import json
import os
import re
import subprocess
import uuid
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from kops.config.paths import directories
from kops.gateways.connect.plugins import plugin_folder
from kops.gateways.machine.jars import KAFKA_VERSION, class_path, jars_of, kafka_set
from support.connect import CONVERTER
from support.examples import EXAMPLES
from support.patience import HANG_SECONDS
from support.postgresql import FOLDER, Database
from support.streams import compiled, java_with
from support.streams_apps import Cluster, wait_for

EXPECTED = "select item, sum(price::float8) from prices group by item order by item"
HELD = "select item, total from totals order by item"


class Shop:
    """One copy of it.

    :ivar prefix: before all of its names; without a hyphen, which a replication slot may not have
    """

    def __init__(self, database: Database, cluster: Cluster, registry_url: str, run_kops, folder: Path) -> None:
        self.prefix = f"t{uuid.uuid4().hex[:6]}_"
        self.database, self.cluster, self.folder, self._kops = database, cluster, folder, run_kops
        self.registry_url = registry_url.replace("/ccompat/v7", "/registry/v2")
        self.source, self.sink = (f"{self.prefix}shop-{name}" for name in ("source", "sink"))
        self.prices, self.totals = f"{self.prefix}shop.public.prices", f"{self.prefix}shop-totals"
        self.application, self.state = f"{self.prefix}shop-app", folder / "state"
        self.changelog = f"{self.application}-totals-changelog"
        lines = {**database.variables, "REGISTRY_URL": self.registry_url}.items()
        (folder / "shop.properties").write_text("".join(f"{name}={value}\n" for name, value in lines))
        self.topics_file, self.connectors_file, self.state_file = (self._named(name) for name in ("topics", "connectors", "state"))

    def _named(self, name: str) -> Path:
        """Write a file of the example with this copy's names."""
        text = (FOLDER / f"{name}.yaml").read_text().replace("/tmp/shop/shop.properties", str(self.folder / "shop.properties"))
        file = self.folder / f"{name}.yaml"
        file.write_text(re.sub(r"(?<![/\w])shop\b(?!\.properties)", f"{self.prefix}shop", text))
        return file

    def kops(self, *arguments):
        """Run kops on the cluster."""
        return self._kops(*arguments, "-B", self.cluster.servers)

    def apply(self, *names: str) -> None:
        """Create the topics, and these connectors."""
        self.kops("topics", "apply", self.topics_file, "--yes").ok()
        declared = [each for each in yaml.safe_load_all(self.connectors_file.read_text()) if each["name"] in names]
        file = self.folder / "some.yaml"
        file.write_text(yaml.safe_dump_all(declared))
        self.kops("connect", "apply", file, "--yes").ok()

    def lag(self) -> int | None:
        """Return how far the sink is from the ends of its partitions."""
        lags = [row["lag"] for row in self.kops("connect", "offsets", "show", self.sink, "-o", "json").ok().json]
        return sum(lags) if lags else None

    def expected(self) -> list[list[str]]:
        """Return what PostgreSQL makes of the rows by itself."""
        return self.database.sql(EXPECTED)

    def held(self) -> list[list[str]]:
        """Return what came back from Kafka."""
        return self.database.sql(HELD)

    def wait_for_totals(self) -> None:
        """Wait until what came back is what PostgreSQL makes of the rows."""
        expected = self.expected()
        try:
            wait_for("the totals to come back", lambda: self.held() == expected)
        except TimeoutError as late:
            raise AssertionError(f"{self.held()} came back, and not {expected}") from late

    def rows(self) -> list[tuple]:
        """Return id, item and price of every record of the source, as kops shows them; of a row that was deleted its id alone."""
        shown = self.kops("records", "consume", self.prices, "start..", "--key", "avro", "--value", "avro", "-o", "json").ok()
        found = [json.loads(line) for line in shown.out.splitlines()]
        return [(row["key"]["id"], *((row["value"] or {}).get(name) for name in ("item", "price"))) for row in found]

    @contextmanager
    def running(self, guarantee="at_least_once"):
        """Run the application, in a process of its own as the README does; closed at the end."""
        cache = directories(os.environ).cache
        jars = [*jars_of(kafka_set(), cache), *plugin_folder(cache, CONVERTER).rglob("*.jar")]
        classes = compiled(FOLDER / "ShopApplication.java", KAFKA_VERSION, jars, [EXAMPLES / "common" / "Example.java"])
        log = self.folder / "application.log"
        command = [*java_with(class_path([*jars, classes])), "ShopApplication", self.cluster.servers, str(self.state)]
        command += ["--prefix", self.prefix, "--config", "group.protocol=classic", "--config", f"processing.guarantee={guarantee}"]
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, "REGISTRY_URL": self.registry_url})
        try:

            def ready() -> bool:
                assert process.poll() is None, log.read_text(errors="replace")
                return "READY" in log.read_text(errors="replace").splitlines()

            wait_for(f"the application to be READY ({log})", ready)
            yield
            process.terminate()
            assert process.wait(HANG_SECONDS) == 0, log.read_text(errors="replace")
        finally:
            process.kill()
            process.wait(HANG_SECONDS)


@pytest.fixture
def shop(database, connect_workers, database_plugins, registry, run_kops, tmp_path, monkeypatch):
    """A copy of the example, with its database filled; topics and connectors are the test's to make, and are deleted."""
    monkeypatch.setenv("KOPS_CONNECT_URLS", ",".join(connect_workers.urls))
    monkeypatch.setenv("KOPS_REGISTRY_URL", registry.url)
    made = Shop(database, Cluster(connect_workers.bootstrap_servers), registry.url, run_kops, tmp_path)
    database.run_file(FOLDER / "prices.sql")
    yield made
    for name in connect_workers.ask("GET", "/connectors"):
        if name.startswith(made.prefix):
            connect_workers.ask("DELETE", f"/connectors/{name}")
    made.cluster.delete_all(made.cluster.topics(made.prefix))
