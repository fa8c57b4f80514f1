"""``kops sandbox`` as its users run it."""

import json
import os
import signal
import socket
import subprocess
import sys

import pytest

from kops.config.load import read_config
from kops.config.paths import directories
from kops.gateways.machine.processes import start_time
from kops.sandbox.model import load
from kops.sandbox.ports import is_free
from support.patience import HANG_SECONDS
from support.streams_apps import wait_for

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("sandboxes")]


def produce(servers: str, topic: str, value: bytes) -> None:
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, 1)])[topic].result(HANG_SECONDS)
    producer = Producer({"bootstrap.servers": servers})
    producer.produce(topic, value)
    assert producer.flush(HANG_SECONDS) == 0


def values(servers: str, topic: str) -> list[bytes]:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": servers, "group.id": "reader", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found = []
    while not (message := consumer.poll(HANG_SECONDS)).error():
        found.append(message.value())
    consumer.close()
    return found


def contexts():
    return read_config(directories(os.environ))


def test_up_down_and_up_again_keeps_ports_data_and_context(run_kops):
    first = run_kops("sandbox", "up", "-o", "json").ok().json
    assert (first["state"], first["connect_url"], first["registry_url"]) == ("running", None, None)
    assert [broker["state"] for broker in first["brokers"]] == ["running"]
    assert contexts().contexts["sandbox"] == {"bootstrap_servers": [first["bootstrap_servers"]]}
    assert contexts().current == "sandbox"
    produce(first["bootstrap_servers"], "orders", b"one")

    assert run_kops("sandbox", "up", "-o", "json").ok().json == first
    file = directories(os.environ).config_file
    file.write_text(file.read_text() + "protected = true\n")  # what the user adds to the context stays

    assert "sandbox sandbox is stopped" in run_kops("sandbox", "down").ok().err
    assert start_time(first["brokers"][0]["pid"]) is None
    stopped = run_kops("sandbox", "status", "-o", "json")
    assert (stopped.code, stopped.json["state"], stopped.json["brokers"][0]["pid"]) == (1, "stopped", None)
    assert "was stopped already" in run_kops("sandbox", "down").ok().err

    again = run_kops("sandbox", "up", "-o", "json").ok().json
    assert (again["bootstrap_servers"], again["cluster_id"]) == (first["bootstrap_servers"], first["cluster_id"])
    assert contexts().contexts["sandbox"]["protected"] is True
    assert values(again["bootstrap_servers"], "orders") == [b"one"]
    assert "Kafka Server started" in run_kops("sandbox", "logs", "--lines", "5000").ok().out


def test_up_refuses_other_settings_and_delete_removes_everything(run_kops, sandboxes):
    up = run_kops("sandbox", "up", "-o", "json").ok().json
    for option, value in (("--brokers", "3"), ("--security", "sasl-ssl"), ("--kafka-version", "4.0.0")):
        refused = run_kops("sandbox", "up", option, value)
        assert (refused.code, "and cannot have" in refused.err) == (2, True)
    run_kops("sandbox", "up", "--brokers", "1", "--security", "plaintext").ok()

    gone = run_kops("sandbox", "down", "--delete", "-o", "json").ok()
    assert gone.json == {"name": "sandbox", "state": "deleted", "stopped_brokers": [1]}
    assert start_time(up["brokers"][0]["pid"]) is None
    assert not (sandboxes / "sandbox").exists()
    assert "sandbox" not in contexts().contexts
    missing = run_kops("sandbox", "status")
    assert (missing.code, missing.out) == (1, "")
    assert "there is no sandbox named sandbox" in missing.err
    assert "kops sandbox up" in missing.err


def test_two_sandboxes_run_side_by_side(run_kops):
    one, two = (run_kops("sandbox", "up", "--name", name, "-o", "json").ok().json for name in ("one", "two"))
    assert one["bootstrap_servers"] != two["bootstrap_servers"]
    assert (set(contexts().contexts), contexts().current) == ({"one", "two"}, "one")
    run_kops("sandbox", "down", "--name", "one", "--delete").ok()
    assert run_kops("sandbox", "status", "--name", "two", "-o", "json").ok().json == two
    assert "existing: two; create it: kops sandbox up --name one" in run_kops("sandbox", "status", "--name", "one").err


def test_concurrent_up_starts_one_sandbox_that_outlives_shells(run_kops, kops_process):
    both = [kops_process("sandbox", "up", "-o", "json", start_new_session=True) for _ in range(2)]
    first, second = (json.loads(each.communicate(timeout=HANG_SECONDS)[0]) for each in both)
    assert first["state"] == "running"
    assert first == second
    for shell in both:
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
            with pytest.raises(ProcessLookupError):  # nothing is left in the group that a terminal would signal
                os.killpg(shell.pid, number)
    assert run_kops("sandbox", "status", "-o", "json").ok().json == first


def test_a_stale_pid_is_never_touched(run_kops, sandboxes):
    up = run_kops("sandbox", "up", "-o", "json").ok().json
    os.kill(up["brokers"][0]["pid"], signal.SIGKILL)
    (node,) = load(sandboxes / "sandbox").nodes
    wait_for("its ports to be free", lambda: is_free(node.port) and is_free(node.controller_port))
    record = sandboxes / "sandbox" / "broker-1" / "process.json"
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as bystander:
        record.write_text(json.dumps({"pid": bystander.pid, "started": json.loads(record.read_text())["started"]}))
        crashed = run_kops("sandbox", "status", "-o", "json")
        assert (crashed.code, crashed.json["state"], crashed.json["brokers"][0]["pid"]) == (1, "crashed", None)
        again = run_kops("sandbox", "up", "-o", "json").ok().json
        assert again["brokers"][0]["pid"] != bystander.pid
        record.write_text(json.dumps({"pid": bystander.pid, "started": "another"}) + "\n")
        run_kops("sandbox", "down").ok()
        assert bystander.poll() is None
        bystander.communicate(b"\n")
    os.kill(again["brokers"][0]["pid"], signal.SIGKILL)


def test_port_in_use_is_named_and_new_ports_are_possible(run_kops):
    up = run_kops("sandbox", "up", "-o", "json").ok().json
    run_kops("sandbox", "down").ok()
    port = up["brokers"][0]["port"]
    with socket.socket() as thief:
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        thief.bind(("127.0.0.1", port))
        thief.listen()
        refused = run_kops("sandbox", "up")
        assert refused.code == 5
        assert f"port {port} of broker 1 of sandbox sandbox is in use by another process" in refused.err
        assert "--new-ports" in refused.err
        moved = run_kops("sandbox", "up", "--new-ports", "-o", "json").ok().json
    assert moved["brokers"][0]["port"] != port
    assert moved["cluster_id"] == up["cluster_id"]
    assert contexts().contexts["sandbox"]["bootstrap_servers"] == [moved["bootstrap_servers"]]
    running = run_kops("sandbox", "up", "--new-ports")
    assert (running.code, "is running, so its ports cannot change" in running.err) == (2, True)


def test_a_context_of_another_cluster_is_not_replaced(run_kops, sandboxes):
    file = directories(os.environ).config_file
    file.parent.mkdir(parents=True)
    file.write_text('[contexts.sandbox]\nbootstrap_servers = ["prod:9092"]\n')
    refused = run_kops("sandbox", "up")
    assert (refused.code, "belongs to another cluster" in refused.err) == (5, True)
    assert contexts().contexts["sandbox"] == {"bootstrap_servers": ["prod:9092"]}
    assert not (sandboxes / "sandbox").exists()


@pytest.mark.parametrize("name", ["../x", "a b", ""])
def test_invalid_sandbox_name_is_refused(run_kops, name):
    refused = run_kops("sandbox", "up", "--name", name)
    assert (refused.code, "cannot be the name of a context" in refused.err) == (2, True)


def test_logs_follow_until_interrupted_and_show_why_broker_failed(run_kops, kops_process, sandboxes, tmp_path):
    run_kops("sandbox", "up").ok()
    shown = tmp_path / "shown"
    with shown.open("w") as out:
        following = kops_process("sandbox", "logs", "--follow", stdout=out)
        wait_for("the broker to start", lambda: "Kafka Server started" in shown.read_text())
        assert "SIGTERM" not in shown.read_text()
        run_kops("sandbox", "down").ok()
        wait_for("the broker to stop", lambda: "SIGTERM" in shown.read_text())
        following.send_signal(signal.SIGINT)
        assert following.wait(HANG_SECONDS) == 130
    (sandboxes / "sandbox" / "broker-1" / "data" / "meta.properties").write_text("version=1\ncluster.id=another\nnode.id=7\n")
    failed = run_kops("sandbox", "up")
    assert failed.code == 1
    assert "broker 1 of sandbox sandbox ended with exit code 1 while starting" in failed.err
    assert "server.log" in failed.err
