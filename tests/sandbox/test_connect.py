"""``kops sandbox up --connect --registry``: real workers and a real registry, with their data, until they are deleted."""

import os

import pytest
import requests

from kops.config.load import read_config
from kops.config.paths import directories
from kops.gateways.machine.processes import start_time
from support.json_keys import SANDBOX_KEYS, keys_of
from support.patience import HANG_SECONDS
from support.streams_apps import wait_for

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("sandboxes")]


@pytest.fixture(autouse=True)
def fetched(jdk):
    """The programs, from the cache; the test is left out where they cannot be fetched."""
    from pathlib import Path

    from kops.core.errors import MissingRequirement
    from kops.gateways.machine.archives import registry_folder
    from kops.gateways.machine.jars import connect_set, jars_of

    try:
        jars_of(connect_set(), Path(os.environ["KOPS_CACHE_DIR"]))
        registry_folder(Path(os.environ["KOPS_CACHE_DIR"]))
    except MissingRequirement as missing:
        pytest.skip(str(missing))


def test_connect_and_a_registry_come_and_go_with_the_sandbox(run_kops, sandboxes, tmp_path):
    made = run_kops("sandbox", "up", "--connect", "--registry", "-o", "json").ok()
    assert keys_of(made.out) == SANDBOX_KEYS
    up = made.json
    (worker,) = up["workers"]
    assert (up["state"], worker["state"], up["registry"]["state"]) == ("running", "running", "running")
    context = read_config(directories(os.environ)).contexts["sandbox"]
    assert (context["connect_urls"], context["registry_url"]) == ([up["connect_url"]], up["registry_url"])
    registered = requests.post(f"{up['registry_url']}/subjects/x-value/versions", json={"schema": '"string"'}, timeout=HANG_SECONDS)
    assert registered.status_code == 200

    (tmp_path / "in.txt").write_text("one\n")
    (tmp_path / "out.yaml").write_text(
        f"name: out\nconnector.class: FileStreamSink\ntopics: lines\nfile: {tmp_path / 'out.txt'}\n---\n"
        f"name: in\nconnector.class: FileStreamSource\ntopic: lines\nfile: {tmp_path / 'in.txt'}\n"
    )
    run_kops("topics", "create", "lines", "--yes").ok()
    run_kops("connect", "apply", tmp_path / "out.yaml", "--yes").ok()
    wait_for("the first line", lambda: (tmp_path / "out.txt").exists() and (tmp_path / "out.txt").read_text() == "one\n")
    assert "Kafka Connect" in run_kops("sandbox", "logs", "--worker", "1", "--lines", "5000").ok().out
    assert run_kops("sandbox", "logs", "--worker", "2").code == 2

    gone = [each["pid"] for each in (*up["brokers"], *up["workers"], up["registry"])]
    run_kops("sandbox", "down").ok()
    assert [start_time(pid) for pid in gone] == [None] * 3
    stopped = run_kops("sandbox", "status", "-o", "json").json
    assert (stopped["state"], stopped["workers"][0]["state"], stopped["registry"]["pid"]) == ("stopped", "stopped", None)

    again = run_kops("sandbox", "up", "-o", "json").ok().json  # with all that it has
    assert (again["connect_urls"], again["registry_url"]) == (up["connect_urls"], up["registry_url"])
    assert requests.get(f"{up['registry_url']}/subjects", timeout=HANG_SECONDS).json() == ["x-value"]
    assert run_kops("connect", "list", "-o", "name").ok().out.split() == ["in", "out"]
    with (tmp_path / "in.txt").open("a") as file:
        file.write("two\n")
    wait_for("both lines", lambda: (tmp_path / "out.txt").read_text() == "one\ntwo\n")

    run_kops("sandbox", "down", "--delete").ok()
    assert not (sandboxes / "sandbox").exists()
    assert [start_time(each["pid"]) for each in (*again["workers"], again["registry"])] == [None] * 2


def test_a_standalone_worker(run_kops, tmp_path):
    up = run_kops("sandbox", "up", "--connect", "standalone", "-o", "json").ok().json
    assert (up["state"], up["connect"], len(up["workers"])) == ("running", "standalone", 1)
    assert any(line.split() == ["connect", "standalone"] for line in run_kops("sandbox", "status").ok().out.splitlines())
    source, file = tmp_path / "in.txt", tmp_path / "lines.properties"
    source.write_text("one\ntwo\n")
    file.write_text(f"name=lines\nconnector.class=FileStreamSource\nfile={source}\ntopic=lines\n")

    def read():
        return run_kops("records", "consume", "lines", "start..", "-o", "json").ok().out.splitlines()

    run_kops("connect", "apply", file, "--create-topics", "--yes").ok()
    wait_for("two records", lambda: len(read()) == 2)
    wait_for("the offset", lambda: run_kops("connect", "offsets", "show", "lines", "-o", "json").json)
    assert requests.get(f"{up['connect_url']}/admin/loggers", timeout=HANG_SECONDS).status_code == 200

    for options in (("--connect",), ("--connect", "distributed"), ("--workers", "2")):
        assert run_kops("sandbox", "up", *options).code == 2
    run_kops("sandbox", "down").ok()
    assert run_kops("sandbox", "status", "-o", "json").json["workers"][0]["state"] == "stopped"
    again = run_kops("sandbox", "up", "-o", "json").ok().json
    assert (again["connect"], again["connect_urls"]) == ("standalone", up["connect_urls"])
    assert run_kops("connect", "list", "-o", "name").ok().out == ""  # it kept no connector
    with source.open("a") as lines:
        lines.write("three\n")
    run_kops("connect", "apply", file, "--yes").ok()
    wait_for("three records", lambda: len(read()) == 3)  # and its offsets
