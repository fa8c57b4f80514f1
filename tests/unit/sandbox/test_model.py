import json
from pathlib import Path

import pytest

from kops.core.errors import ConfigError, UsageProblem
from kops.sandbox import brokers, cluster
from kops.sandbox.model import Node, Sandbox, load, save
from kops.sandbox.parts import java_options
from kops.sandbox.settings import client_settings, server_settings

ONE = Sandbox(Path("/data/x"), "x", "4.3.1", "id", (Node(1, 21001, 21002),))
THREE = Sandbox(Path("/data/x"), "x", "4.3.1", "id", (Node(1, 21001, 21002), Node(2, 21003, 21004), Node(3, 21005, 21006)), "sasl-ssl")


@pytest.mark.parametrize("sandbox", [ONE, THREE])
def test_description_round_trips(sandbox, tmp_path):
    moved = Sandbox(**{**sandbox.__dict__, "directory": tmp_path})
    save(moved)
    assert load(tmp_path) == moved


def test_empty_directory_has_no_sandbox(tmp_path):
    assert load(tmp_path / "nothing") is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 99}', '{"version": 1}', '{"version": 1, "nodes": [], "surprise": 1}'])
def test_damaged_description_names_file(tmp_path, text):
    (tmp_path / "sandbox.json").write_text(text)
    with pytest.raises(ConfigError, match=r"sandbox\.json"):
        load(tmp_path)


def test_performance_options_come_from_kafka_variable(monkeypatch):
    monkeypatch.setenv("KAFKA_JVM_PERFORMANCE_OPTS", "-XX:+UseSerialGC '-Dname=two words'")
    assert {"-XX:+UseSerialGC", "-Dname=two words"} <= set(java_options(brokers.part(ONE, ONE.nodes[0]), 512, []))


def test_one_broker_needs_no_replicas():
    settings = server_settings(ONE, ONE.nodes[0])
    factors = {name: value for name, value in settings.items() if name.endswith((".replication.factor", ".min.isr", ".insync.replicas"))}
    assert set(factors.values()) == {"1"}
    assert len(factors) == 7
    assert settings["auto.create.topics.enable"] == "false"


def test_three_brokers_replicate_everything_and_wait_for_two():
    settings = server_settings(THREE, THREE.nodes[1], password="p", store_password="s")
    assert {value for name, value in settings.items() if name.endswith(".replication.factor")} == {"3"}
    assert {value for name, value in settings.items() if name.endswith((".min.isr", ".insync.replicas"))} == {"2"}
    assert settings["listeners"] == "CLIENT://127.0.0.1:21003,CONTROLLER://127.0.0.1:21004"
    assert settings["controller.quorum.voters"] == "1@127.0.0.1:21002,2@127.0.0.1:21004,3@127.0.0.1:21006"


def test_plaintext_client_needs_only_brokers():
    assert client_settings(ONE) == {"bootstrap.servers": "127.0.0.1:21001"}


def test_context_refers_to_password_file():
    context = THREE.context()
    assert context["password_file"] == "/data/x/password"
    assert "password" not in context
    assert json.loads(json.dumps(context)) == context


@pytest.mark.parametrize(("brokers", "security"), [(2, "plaintext"), (0, "plaintext"), (1, "kerberos")])
def test_unsupported_sandboxes_are_rejected(tmp_path, brokers, security):
    with pytest.raises(UsageProblem):
        cluster.make(tmp_path / "x", name="x", kafka_version="4.3.1", brokers=brokers, security=security)
    assert not (tmp_path / "x").exists()
