"""What leaves this machine and where from: redirects, logins, repositories; and what a closed pipe means."""

import os
import subprocess
import sys
import traceback
from concurrent.futures import Future
from dataclasses import replace
from types import SimpleNamespace

import pytest

from kops.config.connection import Connection
from kops.config.layers import SourcedValue
from kops.config.validate import build
from kops.core.errors import ConfigError, OperationFailed, StateMoved
from kops.gateways.connect import Connect
from kops.gateways.kafka import Kafka
from kops.gateways.machine import maven
from kops.gateways.registry.client import SchemaRegistry
from kops.operations.connect import change
from kops.operations.sandbox import manage as sandbox
from support.faulty_connect import Answer, faulty_worker
from support.patience import HANG_SECONDS

__all__ = ["faulty_worker"]


def test_a_registry_that_points_elsewhere_is_not_followed(faulty_worker):
    """A followed DELETE comes back as a GET: what is still there would be taken for deleted."""
    there = faulty_worker(Answer(200, {"subject": "s"}))
    here = faulty_worker(Answer(302, None, {"Location": there.url.replace("//", "//me:secret@") + "/subjects/s?token=x"}))
    registry = SchemaRegistry(Connection(("b:1",), registry_url=here.url))
    for method in ("GET", "POST", "DELETE"):
        with pytest.raises(OperationFailed, match="points to http") as refused:
            registry.ask(method, "/subjects/s", "subject s")
        assert "secret" not in refused.value.message
        assert "token" not in refused.value.message
    assert there.asked == []


def test_no_login_of_a_netrc_is_sent(faulty_worker, tmp_path, monkeypatch):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    registry, worker = faulty_worker(Answer(200, [])), faulty_worker(Answer(200, {}))
    SchemaRegistry(Connection(("b:1",), registry_url=registry.url)).ask("GET", "/subjects", "subjects", shape=[str])
    Connect(Connection(("b:1",), connect_urls=(worker.url,)), lambda _: None).connectors()
    assert [name for one in (*registry.headers, *worker.headers) for name in one if name.lower() == "authorization"] == []


@pytest.mark.parametrize(
    ("url", "warned"), [("http://registry:8081", True), ("https://registry:8081", False), ("http://localhost:8081", False)]
)
def test_a_login_over_plain_http_is_warned_of(url, warned):
    layer = {
        "bootstrap_servers": SourcedValue(("b:1",), "t"),
        "registry_url": SourcedValue(url, "t"),
        "registry_username": SourcedValue("me", "t"),
    }
    warnings = build(layer, "prod", {}).warnings
    assert any("unencrypted" in warning for warning in warnings) is warned


def test_a_connector_is_created_and_never_overwritten(faulty_worker):
    worker = faulty_worker(Answer(409, {"error_code": 409, "message": "Connector c already exists"}))
    services = SimpleNamespace(connect=Connect(Connection(("b:1",), connect_urls=(worker.url,)), lambda _: None))
    step = change.Step("c", change.CREATE, "", "RUNNING", (), None, None)
    with pytest.raises(StateMoved, match="already exists"):
        change._run_step(services, step, {"a": "b"})
    assert worker.asked == ["POST /connectors"]
    assert worker.bodies == [{"name": "c", "config": {"a": "b", "name": "c"}}]
    worker = faulty_worker(Answer(200, {}))
    services.connect = Connect(Connection(("b:1",), connect_urls=(worker.url,)), lambda _: None)
    change._run_step(services, replace(step, action=change.CHANGE), {"a": "b"})
    assert worker.asked == ["PUT /connectors/c/config"]


@pytest.mark.parametrize("name", ["../other", "a/b", "..", "", "/etc"])
def test_the_name_of_a_sandbox_leads_nowhere_else(tmp_path, name):
    services = SimpleNamespace(directories=SimpleNamespace(data=tmp_path))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "sandbox.json").write_text("{}")
    for use in (sandbox.take_down, sandbox.describe, sandbox.existing, sandbox.folder):
        with pytest.raises(ConfigError, match="name"):
            use(services, name)
    assert sandbox.folder(services, "mine") == tmp_path / "sandbox" / "mine"


def test_a_repository_keeps_its_login(tmp_path, monkeypatch):
    said = []
    progress = SimpleNamespace(step=said.append, advance=lambda *_: None)
    monkeypatch.setenv("KOPS_MAVEN_REPOSITORY", "http://me:secret@mirror.invalid/maven/")
    with maven.Repository(tmp_path, progress) as repository:
        for fetch in (repository.fetch, repository.fetch_alone, lambda place: repository.fetch_all({place: None})):
            with pytest.raises(Exception, match=r"^a-1\.pom cannot be fetched from http://mirror\.invalid/maven/: ") as failed:
                fetch("g/a/1/a-1.pom")
            assert "secret" not in "".join(traceback.format_exception(failed.value))
    assert [text for text in said if "unencrypted" in text and "secret" not in text] == said != []
    said.clear()
    for safe in ("https://mirror/", "http://localhost:8080/", "http://me:x@127.0.0.1/"):
        monkeypatch.setenv("KOPS_MAVEN_REPOSITORY", safe)
        with maven.Repository(tmp_path, progress):
            assert said == []


def test_a_cluster_without_an_id_has_one_that_the_journal_can_hold():
    found = SimpleNamespace(cluster_id=None, nodes=(), controller=None)
    kafka, answer = Kafka(Connection(("b:1",))), Future()
    answer.set_result(found)
    kafka.client.__dict__["admin"] = SimpleNamespace(describe_cluster=lambda **_: answer, poll=lambda _: 0)
    assert kafka.cluster().cluster_id == "unknown"


PROGRAM = """
import sys
from kops.cli.frame import main as it
def broken(*_, **__):
    raise BrokenPipeError(32, "Broken pipe")
it.cli.main = broken
sys.exit(it.main(["topics", "list"]))
"""


@pytest.mark.parametrize("reads", [True, False])
def test_a_pipe_that_breaks_elsewhere_is_an_error(reads):
    """Only a reader of kops' own output that has gone ends it without a word."""
    mine, theirs = os.pipe()
    if not reads:
        os.close(mine)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], stdout=theirs, stderr=subprocess.PIPE, text=True, check=False, timeout=HANG_SECONDS
    )
    os.close(theirs)
    if reads:
        os.close(mine)
    assert done.returncode == 1
    assert ("BrokenPipeError" in done.stderr) is reads
