"""Incidents whose first sign has an innocent reading: what ``kops diagnose`` names first is the reason, and its command repairs it."""

import contextlib
import json
import shlex
import signal
import subprocess
import sys
import threading
import time

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

from kops.gateways.kafka import Kafka
from kops.operations.diagnose.checks import every_check
from kops.sandbox import brokers
from support.consumer_groups import member
from support.patience import HANG_SECONDS
from support.programs import Record
from support.streams_apps import Cluster, wait_for
from support.suggested import assert_taken

pytestmark = pytest.mark.broker

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
SHORT = {
    "group.min.session.timeout.ms": "1000",
    "log.retention.check.interval.ms": "500",
    "log.message.timestamp.after.max.ms": str(800 * DAY),
}

FINDS = {name for check in every_check() for name in check.finds}


def diagnosed(run_kops, servers, *arguments, sample="300ms"):
    body = run_kops("diagnose", *arguments, "--sample", sample, "-B", servers, "-o", "json").json
    for finding in body["findings"]:
        assert not finding["summary"].startswith(finding["subject"])
        assert finding["check"] in FINDS
        for command in finding["commands"]:
            assert_taken(command, servers)
    return body


@pytest.fixture
def diagnose(run_kops, broker):
    return lambda *arguments, **more: diagnosed(run_kops, broker.bootstrap_servers, *arguments, **more)


@pytest.fixture(scope="module")
def attentive(own_brokers):
    """A broker that looks for what has expired twice a second, accepts any date, and forgets dead members after a second."""
    with pytest.MonkeyPatch.context() as patch:
        plain = brokers.server_settings
        patch.setattr(brokers, "server_settings", lambda *at, **options: plain(*at, **options) | SHORT)
        yield own_brokers()


def aged(count, age_ms, partition=0, size=0):
    then = int(time.time() * 1000) - age_ms
    return [Record(b"key", (b"%d" % number).ljust(size, b"."), then + number, partition=partition) for number in range(count)]


def test_records_dated_ahead_keep_their_segment_and_are_not_about_to_be_deleted(run_kops, attentive, unique):
    """The judge is the broker: it deletes the topic without such a record, and leaves the other one alone."""
    cluster, group = Cluster(attentive.bootstrap_servers), unique("g")
    ahead, plain = unique("ahead"), unique("plain")
    for name in (ahead, plain):
        cluster.create(name, 1, {"retention.ms": "-1"})
        cluster.produce(name, [*aged(200, 5 * HOUR), *(aged(1, -365 * DAY) if name == ahead else [])])
    cluster.commit(group, {(ahead, 0): 0})
    run_kops("topics", "alter", ahead, plain, "--config", f"retention.ms={2 * HOUR}", "--yes", "-B", attentive.bootstrap_servers).ok()
    wait_for("the broker to delete what has expired", lambda: cluster.ends(plain)[0][0] == 200)
    assert cluster.ends(ahead)[0] == (0, 201)
    with member(attentive.bootstrap_servers, group, ahead):
        findings = diagnosed(run_kops, attentive.bootstrap_servers, group)["findings"]
    first = findings[0]
    assert (first["check"], first["subject"], first["facts"]["first"]) == ("future_timestamps", f"topic {ahead}", {f"{ahead}:0": 200})
    year = time.gmtime(time.time() + 365 * 86400).tm_year
    assert f"dated ahead up to {year}-" in first["summary"]
    assert "expiring_unread" not in {finding["check"] for finding in findings}
    peek, alter = first["commands"]
    shown = run_kops(*shlex.split(peek)[1:], "-o", "json").ok().out
    assert [json.loads(line)["offset"] for line in shown.splitlines()] == [200]
    run_kops(*shlex.split(alter)[1:], "--yes").ok()
    errors = []
    producer = Producer(attentive.client)
    producer.produce(ahead, b"x", timestamp=int(time.time() * 1000) + 365 * DAY, on_delivery=lambda error, _: errors.append(error))
    producer.flush(HANG_SECONDS)
    assert [error.name() for error in errors] == ["INVALID_TIMESTAMP"]


def test_records_that_share_a_segment_with_young_ones_are_not_about_to_be_deleted(run_kops, attentive, unique):
    cluster, group, name = Cluster(attentive.bootstrap_servers), unique("g"), unique("shared")
    other = unique("alone")
    for topic in (name, other):
        cluster.create(topic, 1, {"retention.ms": "-1"})
        cluster.produce(topic, aged(50, 5 * HOUR))
    cluster.produce(name, aged(5, 0))
    cluster.commit(group, {(name, 0): 0})
    run_kops("topics", "alter", name, other, "--config", f"retention.ms={2 * HOUR}", "--yes", "-B", attentive.bootstrap_servers).ok()
    wait_for("the broker to delete what has expired", lambda: cluster.ends(other)[0][0] == 50)
    assert cluster.ends(name)[0] == (0, 55)
    checks = {finding["check"] for finding in diagnosed(run_kops, attentive.bootstrap_servers, group)["findings"]}
    assert "expiring_unread" not in checks
    assert "no_members" in checks


def test_a_consumer_held_back_by_a_quota_is_throttled_and_not_stuck(run_kops, diagnose, broker, cluster, group, unique, topic):
    """It commits all the time, but more rarely than the two looks are apart."""
    name, client = topic("slow", partitions=1), unique("reader")
    producer = Producer({**broker.client, "batch.num.messages": 2})  # brokers send whole batches, and count them against the quota
    for record in aged(300, 10 * MINUTE, size=1000):
        producer.produce(name, record.value, partition=0, timestamp=record.timestamp)
    assert producer.flush(HANG_SECONDS) == 0
    cluster.commit(group, {(name, 0): 0})
    cluster.slow_down(client, 5_000, "consumer_byte_rate")
    with reading(broker, group, name, client):
        wait_for("some commits", lambda: cluster.committed(group)[name, 0] > 30, HANG_SECONDS)
        findings = diagnose(group)["findings"]
        first = findings[0]
        assert (first["check"], first["subject"], first["facts"]["client_id"]) == ("throttled", f"group {group}", client)
        assert (first["facts"]["quota"], first["facts"]["entity"]) == (5000.0, {"client-id": client})
        assert f"client id {client} may read 4.9 KiB a second from each broker (consumer_byte_rate, client-id {client})" in first["summary"]
        (behind,) = [finding for finding in findings if finding["check"] in ("falling_behind", "behind", "catching_up")]
        assert behind["follows"] == [f"group {group}"]
        assert not {"not_progressing", "stuck_partitions"} & {finding["check"] for finding in findings}
    run_kops(*shlex.split(first["commands"][0])[1:], "--yes").ok()
    with reading(broker, group, name, client):
        wait_for("the end", lambda: cluster.committed(group)[name, 0] == 300, HANG_SECONDS)
        assert diagnose(group)["findings"] == []


@contextlib.contextmanager
def reading(broker, group, name, client):
    """Read and commit what each poll brings, until the block ends."""
    limits = {"fetch.max.bytes": 5000, "max.partition.fetch.bytes": 5000, "queued.min.messages": 1, "message.max.bytes": 4000}
    settings = {**broker.client, "group.id": group, "client.id": client, "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    done = threading.Event()

    def read():
        consumer = Consumer({**settings, **limits})
        consumer.subscribe([name])
        while not done.is_set():
            if consumer.consume(2, 0.5):
                consumer.commit(asynchronous=False)
        consumer.close()

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_a_consumer_that_crashed_three_times_on_a_young_record_is_in_a_crash_loop(diagnose, broker, cluster, group, topic, groups):
    from kops.core.models import CommittedOffset
    from kops.core.models import TopicPartition as Place

    name = topic("young", partitions=2)
    cluster.produce(name, aged(5, 10 * MINUTE))
    groups.commit(group, {Place(name, 0): CommittedOffset(5, "", 0)})
    cluster.produce(name, aged(1, 0))
    for _crash in range(2):
        with member(broker.bootstrap_servers, group, name):
            pass
    assert "crash_loop" not in {finding["check"] for finding in diagnose(group)["findings"]}
    with member(broker.bootstrap_servers, group, name):
        pass
    first = diagnose(group)["findings"][0]
    assert (first["severity"], first["check"]) == ("critical", "crash_loop")
    assert first["commands"][1].startswith(f"kops offsets seek {group} {name}:0=skip:1 --wait-empty 1m")


def test_a_rollout_of_three_members_is_no_crash_loop(diagnose, broker, cluster, group, topic):
    """Each leaves once, while a record is waiting: a new release, and not a crash."""
    name = topic("rolled", partitions=3)
    cluster.produce(name, aged(5, 10 * MINUTE))
    cluster.commit(group, {(name, 0): 5, (name, 1): 0, (name, 2): 0})
    with contextlib.ExitStack() as old, contextlib.ExitStack() as new:
        for _ in range(3):
            old.enter_context(member(broker.bootstrap_servers, group, name))
        cluster.produce(name, aged(1, 0))
        for _ in range(3):
            new.enter_context(member(broker.bootstrap_servers, group, name))
        old.close()
        assert "crash_loop" not in {finding["check"] for finding in diagnose(group)["findings"]}


CRASHING = """
import os, sys
from confluent_kafka import Consumer, Producer
consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": sys.argv[2], "enable.auto.commit": False, "session.timeout.ms": 6000})
assigned = []
consumer.subscribe([sys.argv[3]], on_assign=lambda *_: assigned.append(1))
while not assigned:
    consumer.poll(0.1)
print("assigned", flush=True)
os.kill(os.getpid(), 9)
"""


def test_members_that_die_without_leaving_are_waited_for(run_kops, diagnose, broker, cluster, group, topic, groups):
    """Each of them counts as a member for its session timeout: the command, once the consumer is stopped, waits for longer."""
    from kops.core.models import CommittedOffset
    from kops.core.models import TopicPartition as Place

    name = topic("dying")
    cluster.produce(name, aged(9, 10 * MINUTE))
    groups.commit(group, {Place(name, 0): CommittedOffset(3, "", 0)})

    def die():
        program = [sys.executable, "-c", CRASHING, broker.bootstrap_servers, group, name]
        assert subprocess.run(program, stdout=subprocess.PIPE, timeout=HANG_SECONDS, check=False).returncode == -signal.SIGKILL

    for _crash in range(5):
        die()
    first = diagnose(group)["findings"][0]
    assert (first["severity"], first["check"]) == ("critical", "crash_loop")
    assert "members that die without leaving count for 6s more, so it is never without members: stop the consumer" in first["summary"]
    skip = shlex.split(first["commands"][1])
    assert skip[-4:] == ["--wait-empty", "1m", "-B", broker.bootstrap_servers]
    run_kops(*skip[1:], "--yes").ok()
    assert cluster.committed(group)[name, 0] == 4


def test_what_a_share_group_has_not_processed_is_reported(diagnose, broker, cluster, topic, group):
    from confluent_kafka import ShareConsumer

    name = topic("shared")
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.GROUP, group, incremental_configs=[entry])
    cluster.admin.incremental_alter_configs([resource])[resource].result(30)
    consumer = ShareConsumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    cluster.produce(name, aged(1, HOUR))
    got = []
    consumer.subscribe([name])
    wait_for("the first record", lambda: got.extend(consumer.poll(0.2) or []) or got)
    consumer.close()
    cluster.produce(name, aged(500, HOUR))

    kafka = Kafka(broker.connection)
    wait_for("it to have no members", lambda: kafka.groups.describe([group])[group].state == "EMPTY")
    kafka.close()
    body = diagnose(group, sample="0s")
    (finding,) = body["findings"]
    assert (finding["severity"], finding["check"], finding["subject"]) == ("warning", "no_members", f"group {group}")
    assert finding["facts"]["lag"] in (500, 501)
    assert (body["groups"], body["looked_at"]["groups"]) == ([group], 1)
    assert {"subject": "group", "check": "share group offsets", "count": 1} in body["looked_at"]["checks"]


def test_a_named_share_group_that_has_fetched_nothing_is_not_found_healthy(run_kops, broker, group, unique):
    from confluent_kafka import ShareConsumer

    consumer = ShareConsumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    consumer.subscribe([unique("absent")])
    wait_for("the group", lambda: consumer.poll(0.2) or group in run_kops("groups", "list", "-B", broker.bootstrap_servers).out)
    consumer.close()
    shown = run_kops("diagnose", group, "--sample", "0s", "-B", broker.bootstrap_servers)
    assert (shown.code, f"lag of group {group}" in shown.out, "no start offset yet" in shown.out) == (6, True, True), shown.out


def test_a_consumer_that_commits_nothing_may_keep_its_offsets_elsewhere(diagnose, broker, cluster, group, topic, monkeypatch):
    from datetime import timedelta

    from kops.cli.frame.session import Session

    name = topic("elsewhere", partitions=2)
    cluster.produce(name, [*aged(5, HOUR), *aged(5, HOUR, partition=1)])
    cluster.commit(group, {(name, 0): 0, (name, 1): 0})
    now = Session.now
    with member(broker.bootstrap_servers, group, name):
        soon = diagnose(group)["findings"][0]
        assert (soon["check"], soon["severity"]) == ("falling_behind", "warning")  # its commit is seconds old
        monkeypatch.setattr(Session, "now", lambda self: now(self) + timedelta(minutes=10))
        first = diagnose(group)["findings"][0]
    assert (first["check"], first["severity"]) == ("not_progressing", "critical")
    assert "; no commit for 10m" in first["summary"]


def test_dead_letters_that_arrive_are_reported(diagnose, cluster, topic, unique):
    name = topic(name=f"{unique('orders')}.DLT")
    cluster.produce(name, [*aged(3, 2 * HOUR), *aged(2, 0)])
    (finding,) = diagnose(name)["findings"]
    assert (finding["severity"], finding["check"]) == ("warning", "dead_letters")
    assert finding["summary"] == "by its name a dead letter topic: 5 records in the last 24 h, 2 in the last 10 minutes"
    assert (finding["facts"]["last_24_hours"], finding["facts"]["last_10_minutes"]) == (5, 2)


def test_a_named_group_that_no_check_looks_at_is_not_found_healthy(run_kops, broker, connect_workers):
    """The workers of Connect are a group without offsets."""
    done = run_kops("diagnose", connect_workers.cluster.group, "-B", broker.bootstrap_servers)
    assert (done.code, "no check looks at groups of type connect" in done.out) == (6, True), done.out


def test_a_named_group_that_has_never_committed_is_not_found_healthy(run_kops, broker, cluster, group, topic, unique):
    """Whoever keeps offsets elsewhere, is throttled from the start, or dies on its first record commits nothing: its lag is not known."""
    name, client = topic("uncommitted", partitions=2), unique("reader")
    cluster.produce(name, aged(5, HOUR))
    cluster.slow_down(client, 5_000, "consumer_byte_rate")
    with member(broker.bootstrap_servers, group, name, client_id=client):
        done = run_kops("diagnose", group, "-B", broker.bootstrap_servers)
        assert (done.code, f"not looked at: lag of group {group}: no commit yet for {name}:0\n" in done.out) == (6, True), done.out
        assert f"client id {client} may read 4.9 KiB a second" in " ".join(done.out.split()), done.out
        by_topic = run_kops("diagnose", name, "-B", broker.bootstrap_servers)
        assert f"lag of group {group}: no commit yet for {name}:0" in by_topic.out, by_topic.out
    done = run_kops("diagnose", group, "-B", broker.bootstrap_servers)
    assert (done.code, f"lag of group {group}: no commit" in done.out) == (6, True), done.out


def test_the_checks_are_listed(run_kops):
    rows = run_kops("diagnose", "--checks", "-o", "json").ok().json
    assert {row["subject"] for row in rows} == {"cluster", "topic", "group", "connector"}
    assert len({(row["subject"], row["check"]) for row in rows}) == len(rows)
    assert "throttled" in {name for row in rows for name in row["finds"]}
    assert "quotas" in run_kops("diagnose", "--checks").ok().out
