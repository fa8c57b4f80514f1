"""A real standalone worker: what distributed workers can, from properties files, with offsets in a file."""

import json
import os
import subprocess

import pytest
import requests

from kops.core.errors import MissingRequirement
from kops.gateways.connect.plugins import FILE_STREAM, plugin_folder
from kops.gateways.machine.jars import class_path, connect_set, jars_of
from kops.sandbox.files import property_lines
from kops.sandbox.ports import pick
from support.connect import FILE_SOURCE

pytestmark = pytest.mark.broker


@pytest.fixture
def standalone(broker, jdk, tmp_path, until):
    """Start a standalone worker; return its address."""
    from pathlib import Path

    cache = Path(os.environ["KOPS_CACHE_DIR"])
    try:
        jars, plugin = jars_of(connect_set(), cache), plugin_folder(cache, FILE_STREAM)
    except MissingRequirement as missing:
        pytest.skip(str(missing))
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / plugin.name).symlink_to(plugin)
    url = f"http://127.0.0.1:{pick(1)[0]}"
    converter = "org.apache.kafka.connect.storage.StringConverter"
    settings = {
        "bootstrap.servers": broker.bootstrap_servers,
        "listeners": url,
        "plugin.path": str(tmp_path / "plugins"),
        "plugin.discovery": "service_load",
        "key.converter": converter,
        "value.converter": converter,
        "offset.storage.file.filename": str(tmp_path / "offsets"),
        "offset.flush.interval.ms": "500",
    }
    (tmp_path / "worker.properties").write_text(property_lines(settings))
    main = "org.apache.kafka.connect.cli.ConnectStandalone"
    command = [jdk.java, "-Xmx384m", "-cp", class_path(jars), main, tmp_path / "worker.properties"]
    with (tmp_path / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:

        def answers() -> bool:
            assert process.poll() is None, (tmp_path / "log").read_text()[-2000:]
            try:
                return requests.get(f"{url}/connectors", timeout=10).status_code == 200
            except requests.ConnectionError:
                return False

        try:
            until("the worker to answer", answers)
            yield url
        finally:
            process.terminate()


def test_a_standalone_worker_is_worked_with_alike(run_kops, broker, standalone, monkeypatch, topic, unique, tmp_path, until):
    monkeypatch.setenv("KOPS_CONNECT_URLS", standalone)

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
    assert requests.get(f"{standalone}/connectors", timeout=30).json() == [name]
