"""Live members of every type of group while kops looks: none is joined, rebalanced or called dead.

Apache's own tool tells members, epochs and assignments before and after; the classic protocol has no epoch that it shows, so there the
consumer itself counts its rebalances.
"""

from __future__ import annotations

import contextlib
import subprocess
import threading

import pytest
from confluent_kafka import Consumer, ShareConsumer

from support.apache_tools import GROUPS
from support.consumer_groups import member
from support.patience import HANG_SECONDS
from support.programs import Program, Record
from support.streams import java_command
from support.streams_apps import running, wait_for

pytestmark = [pytest.mark.broker, pytest.mark.streams]

COUNT = Program("count", "long")


@pytest.fixture
def look(run_kops, broker):
    """Look at a group with everything that only looks, and try what must be refused; returns what ``describe`` says."""

    def run(name, *, offsets=True):
        def kops(*arguments):
            return run_kops(*arguments, "-B", broker.bootstrap_servers)

        kops("groups", "list").ok()
        described = kops("groups", "describe", name, "-o", "json").ok().json[0]
        if offsets:
            kops("groups", "lag", name, "--time", "--within", "1h").ok()
            kops("groups", "lag", name, "--isolation", "read_committed", "--watch=100ms", "--count", "3").ok()
            kops("offsets", "show", name).ok()
        for change in (
            ["groups", "delete", name, "--confirm", name],
            ["offsets", "reset", name, "--all-topics", "--to-earliest", "--yes"],
        ):
            refused = kops(*change)
            assert refused.code == 5, refused.err
        table = kops("groups", "describe", name).ok().out
        assert max(map(len, table.splitlines()[:2])) <= 120
        assert (described["state"], kops("groups", "describe", name, "-o", "json").ok().json[0]) == ("STABLE", described)
        return described

    return run


class Counting:
    """A consumer that counts how often it is given partitions, or loses some."""

    def __init__(self, servers, group, topic, protocol):
        config = {"bootstrap.servers": servers, "group.id": group, "client.id": "alice", "group.protocol": protocol}
        self._consumer = Consumer({**config, "auto.offset.reset": "earliest", "enable.auto.commit": False})
        self.rebalances = 0
        self._over = threading.Event()
        self._consumer.subscribe([topic], on_assign=self._count, on_revoke=self._count, on_lost=self._count)
        self._thread = threading.Thread(target=self._stay, daemon=True)

    def __enter__(self):
        self._thread.start()
        wait_for("partitions", lambda: self.rebalances)
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()
        self._consumer.close()

    def _count(self, *_):
        self.rebalances += 1

    def _stay(self):
        while not self._over.is_set():
            if message := self._consumer.poll(0.05):
                self._consumer.commit(message=message)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_live_consumers_are_described(broker, apache, look, group, topic, cluster, protocol):
    name = topic("t", partitions=3)
    cluster.produce(name, [Record(None, b"x", 1_000_000, partition=at % 3) for at in range(30)])
    tool = ["--describe", "--members", "--verbose", "--group", group, GROUPS]
    with Counting(broker.bootstrap_servers, group, name, protocol) as alive:
        before, counted = apache.run(*tool), alive.rebalances
        described = look(group)
        assert (alive.rebalances, apache.run(*tool)) == (counted, before)
    assert described["type"] == protocol
    (only,) = described["members"]
    assert (only["client_id"], only["assignment"]) == ("alice", [{"topic": name, "partition": at} for at in range(3)])


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_a_live_kafka_streams_application_is_described(broker, look, unique, cluster, tmp_path, protocol):
    program = COUNT.named(unique())
    group = program.application
    cluster.create_all({program.topic: 2, program.output: 1})
    try:
        cluster.produce(program.topic, [Record(b"k%d" % at, b'{"id":1}', 1_000_000 + at) for at in range(20)])
        with running(cluster.servers, program, tmp_path, "--config", f"group.protocol={protocol}") as application:
            application.wait_for("CAUGHT_UP")
            described = look(group)
            again = look(group)
            application.stop()
        assert described == again  # members, and the epochs of the streams protocol
        assert (described["type"], described["kafka_streams"], len(described["members"])) == (protocol, True, 1)
        if protocol == "streams":
            assert described["epoch"] > 0
            assert described["members"][0]["work"] == ["active 0_0", "active 0_1"]
            (part,) = described["subtopologies"]
            assert part["source_topics"] == [program.topic] or part["source_topics"] == (program.topic,)
            assert list(part["changelog_topics"]) == [program.changelog]
        else:
            assert described["members"][0]["assignment"] == [{"topic": program.topic, "partition": at} for at in range(2)]
    finally:
        with contextlib.suppress(Exception):
            cluster.admin.delete_consumer_groups([group])[group].result(HANG_SECONDS)
        cluster.delete_all([name for name in cluster.topics() if name.startswith((program.topic, program.output, f"{group}-"))])


def test_a_live_share_group_is_described(broker, look, topic, group, cluster, run_kops, groups):
    name = topic("s", partitions=2)
    consumer = ShareConsumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "client.id": "sharer"})

    def assigned():
        (described,) = run_kops("groups", "describe", group, "-o", "json", "-B", broker.bootstrap_servers).ok().json
        return [part for one in described["members"] for part in one["assignment"]]

    with member(broker.bootstrap_servers, group, name, consumer=consumer):
        wait_for("the share group", lambda: group in groups.ids())
        wait_for("its partitions", assigned)
        described = look(group, offsets=False)
        assert look(group, offsets=False) == described
    assert (described["type"], described["protocol"]) == ("share", "simple")
    (only,) = described["members"]
    assert (only["client_id"], only["assignment"]) == ("sharer", [{"topic": name, "partition": at} for at in range(2)])
    assert only["epoch"] > 0


def test_a_live_connect_worker_is_described(broker, look, group, cluster, tmp_path, jdk, groups):
    """A worker without connectors: what its assignment says is in tests/unit/gateways/kafka/groups/test_working.py."""
    settings = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": group,
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "offset.storage.topic": f"{group}-offsets",
        "config.storage.topic": f"{group}-configs",
        "status.storage.topic": f"{group}-status",
        "offset.storage.replication.factor": "1",
        "config.storage.replication.factor": "1",
        "status.storage.replication.factor": "1",
        "offset.storage.partitions": "1",
        "status.storage.partitions": "1",
        "listeners": "http://127.0.0.1:0",
    }
    properties = tmp_path / "worker.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
    command = [*java_command("org.apache.kafka.connect.cli.ConnectDistributed"), str(properties)]
    with (tmp_path / "worker.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    try:

        def stable():
            assert process.poll() is None, (tmp_path / "worker.log").read_text()[-2000:]
            return [one for one in groups.listed() if (one.group_id, one.type, one.state) == (group, "connect", "STABLE")]

        wait_for("the worker", stable)
        described = look(group, offsets=False)
        assert look(group, offsets=False) == described
        assert (described["type"], len(described["members"])) == ("connect", 1)
        assert described["members"][0]["client_id"]
    finally:
        process.kill()
        process.wait(HANG_SECONDS)
        cluster.delete_all(cluster.topics(f"{group}-"))
