"""A real standalone worker: what distributed workers can, from properties files, with offsets in a file."""

import json
import os
from pathlib import Path

import pytest
import requests

from kops.core.errors import MissingRequirement
from kops.gateways.connect.plugins import FILE_STREAM, plugin_folder
from kops.gateways.machine.jars import connect_set, jars_of
from kops.sandbox.model import Worker
from kops.sandbox.parts import end
from kops.sandbox.ports import pick
from kops.sandbox.workers import ConnectCluster, launch, wait_until_ready
from support.connect import FILE_SOURCE

pytestmark = pytest.mark.broker


@pytest.fixture
def standalone(broker, jdk, tmp_path):
    """A standalone worker as the sandbox starts it: ``start()``, ``stop()``, ``url``."""
    cache = Path(os.environ["KOPS_CACHE_DIR"])
    try:
        jars, plugin = jars_of(connect_set(), cache), plugin_folder(cache, FILE_STREAM)
    except MissingRequirement as missing:
        pytest.skip(str(missing))
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / plugin.name).symlink_to(plugin)
    worker, client = Worker(1, pick(1)[0]), {"bootstrap.servers": broker.bootstrap_servers}
    cluster = ConnectCluster("the tests", tmp_path, "", client, (worker,), (str(tmp_path / "plugins"),), standalone=True)

    class Standalone:
        url = f"http://127.0.0.1:{worker.port}"

        def start(self):
            launch(cluster, cluster.workers, jars=jars, jdk=jdk)
            wait_until_ready(cluster, cluster.workers)

        def stop(self):
            end(cluster.part(worker))

    made = Standalone()
    made.start()
    yield made
    made.stop()


def test_a_standalone_worker_is_worked_with_alike(run_kops, broker, standalone, monkeypatch, topic, unique, tmp_path, until):
    monkeypatch.setenv("KOPS_CONNECT_URLS", standalone.url)

    def kops(*arguments):
        return run_kops(*arguments, "-B", broker.bootstrap_servers)

    name, lines, source = unique("lines"), topic("lines", partitions=1), tmp_path / "in.txt"
    source.write_text("one\ntwo\n")
    file = tmp_path / "lines.properties"
    file.write_text(f"name={name}\nconnector.class={FILE_SOURCE}\nfile={source}\ntopic={lines}\ntasks.max=1\n")
    assert kops("connect", "validate", file, "-o", "json").ok().json == []
    kops("connect", "apply", file, "--yes").ok()
    assert kops("connect", "diff", file).code == 0

    def position():
        return [row["offset"] for row in kops("connect", "offsets", "show", name, "-o", "json").ok().json]

    until("its offset to be stored", lambda: position() == [{"position": 8}])
    place = ("--partition", json.dumps({"filename": str(source)}), "--offset", json.dumps({"position": 4}))
    kops("connect", "offsets", "alter", name, *place, "--yes").ok()
    until("the second line to be read again", lambda: len(kops("records", "consume", lines, "start..").ok().out.split()) >= 3)
    kops("connect", "stop", name, "--yes").ok()
    assert kops("connect", "status", name, "-o", "json").ok().json[0]["state"] == "STOPPED"
    kops("undo", "last", "--yes").ok()
    kops("connect", "restart", name, "--yes").ok()
    kops("connect", "delete", name, "--confirm", name).ok()
    kops("undo", "last", "--yes").ok()
    assert requests.get(f"{standalone.url}/connectors", timeout=30).json() == [name]
    until("its offset to be stored again", lambda: position() == [{"position": 8}])
    before = len(kops("records", "consume", lines, "start..", "-o", "json").ok().out.splitlines())
    standalone.stop()
    standalone.start()
    assert kops("connect", "list", "-o", "name").ok().out == ""  # no connector that was made by a request outlives the worker
    with source.open("a") as more:
        more.write("three\n")
    kops("connect", "apply", file, "--yes").ok()
    until("the third line alone to be read", lambda: position() == [{"position": 14}])
    assert len(kops("records", "consume", lines, "start..", "-o", "json").ok().out.splitlines()) == before + 1
