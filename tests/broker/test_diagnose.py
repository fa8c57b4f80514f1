"""``kops diagnose`` on a real broker: what it finds of groups in trouble, without touching them."""

import time
from datetime import timedelta

import pytest
from confluent_kafka import Producer

from kops.cli.frame.session import Session
from kops.config.connection import Connection
from kops.gateways.kafka import Kafka
from support.connect_answers import connect_worker
from support.consumer_groups import member
from support.patience import HANG_SECONDS
from support.programs import Record
from support.streams_apps import wait_for
from support.suggested import assert_taken

pytestmark = pytest.mark.broker

HOUR = 3_600_000


@pytest.fixture
def filled(cluster, topic):
    """Make a topic whose records are ``age_ms`` old, ten in each of two partitions."""

    def make(age_ms=HOUR, **options):
        name = topic("t", partitions=2, **options)
        wait_for("the topic", lambda: name in cluster.topics(name))
        then = int(time.time() * 1000) - age_ms
        cluster.produce(name, [Record(b"key", f"value {number}".encode(), then + number, partition=number % 2) for number in range(20)])
        return name

    return make


@pytest.fixture
def diagnose(run_kops, broker):
    """Run ``kops diagnose`` and return its JSON; every command that it suggests is one."""

    def run(*arguments, code=None):
        done = run_kops("diagnose", *arguments, "-B", broker.bootstrap_servers, "-o", "json")
        assert code in (None, done.code), done.err
        for found in done.json["findings"]:
            assert found["severity"] in ("critical", "warning", "note")
            for command in found["commands"]:
                assert_taken(command)
        return done.json

    return run


def about(body, group):
    """The findings about a group, by check."""
    return {found["check"]: found for found in body["findings"] if found["subject"] == f"group {group}"}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_stuck_partition_is_reported_with_its_next_record(diagnose, broker, group, filled, cluster, protocol, monkeypatch):
    name = filled()
    cluster.commit(group, {(name, 0): 3, (name, 1): 10})
    now = Session.now
    monkeypatch.setattr(Session, "now", lambda self: now(self) + timedelta(minutes=6))  # the commit is that old, and there is no other
    with member(broker.bootstrap_servers, group, name, client_id="app", group_protocol=protocol):
        before = cluster.admin.describe_consumer_groups([group])[group].result(HANG_SECONDS)
        body = diagnose(group, "--sample", "500ms", code=1)
        after = cluster.admin.describe_consumer_groups([group])[group].result(HANG_SECONDS)
    assert [one.member_id for one in after.members] == [one.member_id for one in before.members]
    assert set(body) == {"cluster_id", "at", "whole_cluster", "groups", "topics", "looked_at", "findings", "not_checked", "left_out"}
    assert {name: body["looked_at"][name] for name in ("groups", "connectors")} == {"groups": 1, "connectors": None}
    assert sorted(left["check"] for left in body["left_out"]) == ["tasks of connectors", "topics of connectors"]
    assert (body["whole_cluster"], body["groups"], body["topics"], body["not_checked"]) == (False, [group], [], [])
    found = about(body, group)["stuck_partitions"]
    assert set(found) == {"severity", "check", "subject", "summary", "commands", "facts", "follows"}
    assert found["severity"] == "critical"
    assert found["facts"]["partitions"] == [f"{name}:0"]
    assert found["facts"]["lag"] == 7
    assert found["facts"]["time_lag_ms"] > 0.9 * HOUR
    (record,) = found["facts"]["records"]
    assert (record["client_id"], record["offset"], record["key"], record["value"]) == ("app", 3, "key", "value 6")
    assert found["summary"].endswith("; it is at offset 3 (key key, value value 6)")
    assert found["commands"][0] == f"kops records peek {group} --topic {name}:0 -B {broker.bootstrap_servers}"


def test_a_group_that_works_is_left_alone(diagnose, broker, group, filled, cluster):
    name = filled(age_ms=0)
    cluster.commit(group, {(name, 0): 10, (name, 1): 10})
    with member(broker.bootstrap_servers, group, name):
        assert about(diagnose(group), group) == {}


def test_a_group_without_consumers_is_reported(diagnose, group, filled, cluster):
    name = filled()
    cluster.commit(group, {(name, 0): 3})
    spelt = [diagnose("--group", group, code=1), diagnose("--topic", name, code=1)]
    by_group, by_topic, by_glob = (diagnose(one, code=1) for one in (group, name, f"{group[:-2]}*"))
    for body in (by_group, by_topic, by_glob, *spelt):
        assert about(body, group)["no_members"]["facts"]["lag"] == 7
    assert (by_topic["groups"], by_topic["topics"]) == ([group], [name])
    assert about(diagnose(f"{group}", "--regex", code=1), group).keys() == {"no_members"}


def test_more_partitions_than_can_be_read_are_reported_as_such(diagnose, group, filled, cluster, monkeypatch):
    monkeypatch.setattr("kops.operations.diagnose.looks.MOST_PLACES", 1)
    name = filled()
    cluster.commit(group, {(name, 0): 3, (name, 1): 2})
    body = diagnose(group, code=1)
    assert about(body, group)["no_members"]["facts"]["partitions"] == [f"{name}:1"]  # the one with most to read
    (gap,) = body["not_checked"]
    assert gap["check"] == "lag in time"
    assert "of 2 places where groups have something to read, the 1 with most" in gap["error"]["message"]


def test_unread_records_that_will_be_deleted_are_reported(diagnose, group, filled, cluster):
    name = filled(config={"retention.ms": str(HOUR + 600_000)})
    cluster.commit(group, {(name, 0): 3, (name, 1): 10})
    found = about(diagnose(group, code=1), group)["expiring_unread"]
    assert (found["severity"], found["facts"]["at_risk"], found["facts"]["partitions"]) == ("critical", 7, [f"{name}:0"])
    assert f"--config retention.ms={26 * HOUR} " in found["commands"][0]
    assert "expiring_unread" not in about(diagnose(group, "--within", "1m"), group)


def test_offsets_outside_the_log_are_reported(diagnose, broker, group, filled, cluster):
    name = filled(age_ms=0)
    cluster.trim(name, {1: 6})
    cluster.commit(group, {(name, 0): 15, (name, 1): 2})
    with member(broker.bootstrap_servers, group, name):
        found = about(diagnose(group, code=1), group)
    assert found["data_lost"]["facts"]["places"] == [{"partition": f"{name}:0", "committed": 15, "log_end": 10, "kept_until": 10}]
    assert (found["deleted_unread"]["facts"]["partitions"], found["deleted_unread"]["facts"]["lost"]) == ([f"{name}:1"], 4)
    abandoned = about(diagnose(group), group)  # nobody is left
    assert abandoned["abandoned"]["severity"] == "note"


def test_a_transaction_that_holds_readers_back_is_reported(diagnose, broker, filled, unique, monkeypatch):
    name = filled(age_ms=0)
    producer = Producer({**broker.client, "transactional.id": unique("tx"), "transaction.timeout.ms": 120_000})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(name, b"open", partition=1)
    assert producer.flush(HANG_SECONDS) == 0
    try:
        (young,) = diagnose(name, code=0)["findings"]
        assert (young["severity"], young["check"], young["subject"]) == ("note", "open_transaction", f"{name}:1")  # that is how they work
        now = Session.now
        monkeypatch.setattr(Session, "now", lambda self: now(self) + timedelta(minutes=5))
        (found,) = diagnose(name, code=1)["findings"]
    finally:
        producer.abort_transaction(30)
    assert (found["severity"], found["check"], found["subject"]) == ("warning", "open_transaction", f"{name}:1")
    assert found["facts"]["start_offset"] == 10
    assert 300_000 <= found["facts"]["age_ms"] < 400_000


def test_the_whole_cluster_is_examined_without_a_group(diagnose, group, filled, cluster):
    name = filled()
    cluster.commit(group, {(name, 0): 3})
    body = diagnose("--sample", "0s")
    assert body["whole_cluster"]
    assert group in body["groups"]
    assert "no_members" in about(body, group)
    order = ["critical", "warning", "note"]
    for found in body["findings"]:
        assert not found["summary"].startswith(found["subject"])
    assert [found["severity"] for found in body["findings"]] == sorted((one["severity"] for one in body["findings"]), key=order.index)


def test_the_exit_code_follows_the_findings(run_kops, broker, group, filled, cluster):
    name = filled(age_ms=0)
    cluster.commit(group, {(name, 0): 10, (name, 1): 10})
    servers = ("-B", broker.bootstrap_servers)
    assert run_kops("diagnose", group, "-o", "csv", *servers).ok().out == "severity,check,subject,summary,commands\n"
    quiet = run_kops("diagnose", group, *servers).ok()
    head, looked, *others = quiet.out.splitlines()
    assert head.endswith(": nothing found in what was looked at")
    assert looked.startswith("looked at: 1 group (")
    assert looked.endswith("), commits of the last 1d")
    assert others[0].startswith("not looked at: topics of connectors, tasks of connectors: no address of Connect is known")
    assert others[-1].startswith("kops cannot look at: logs and metrics")
    unread = run_kops("diagnose", group, "--history", "0s", "-o", "json", *servers).ok().json
    assert {left["check"] for left in unread["left_out"]} == {
        *("tasks of connectors", "topics of connectors"),
        *("past commits of groups", "crash loops"),
    }
    unknown = run_kops("diagnose", f"{group}x", *servers)
    assert (unknown.code, unknown.out) == (1, "")
    assert f"there is no group and no topic {group}x\nhint: did you mean {group}" in unknown.err
    assert run_kops("diagnose", "-B", "127.0.0.1:1").code == 3
    assert run_kops("diagnose", "--within", "soon", *servers).code == 2
    cluster.commit(group, {(name, 0): 15})
    assert run_kops("diagnose", group, *servers).code == 1
    assert run_kops("diagnose", group, "--fail-on", "critical", *servers).code == 1
    assert run_kops("diagnose", group, "-o", "name", *servers).out == f"group {group}\n"


def test_failed_connectors_are_reported(diagnose, run_kops, broker, topic, cluster, monkeypatch):
    name = topic()
    wait_for("the topic", lambda: name in cluster.topics(name))
    trace = "org.apache.kafka.connect.errors.ConnectException: Exiting\nCaused by: java.sql.SQLException: no such column"
    status = {
        "name": "sink",
        "type": "sink",
        "connector": {"state": "RUNNING", "worker_id": "w:1"},
        "tasks": [{"id": 0, "state": "FAILED", "worker_id": "w:1", "trace": trace}, {"id": 1, "state": "RUNNING", "worker_id": "w:1"}],
    }
    other = {"status": {**status, "name": "other"}, "info": {"config": {"topics": "elsewhere"}}}
    with connect_worker({"sink": {"status": status, "info": {"config": {"topics": name}}}, "other": other}) as url:
        monkeypatch.setenv("KOPS_CONNECT_URLS", url)
        (found,) = diagnose(name, code=1)["findings"]
        both = {found["subject"] for found in diagnose("--sample", "0s", code=1)["findings"] if found["check"] == "tasks_failed"}
    assert (found["check"], found["subject"]) == ("tasks_failed", "connector sink")
    assert found["summary"].startswith("1 of 2 tasks failed: java.sql.SQLException: no such column")
    assert both == {"connector sink", "connector other"}
    monkeypatch.setenv("KOPS_CONNECT_URLS", "http://127.0.0.1:1")
    body = diagnose(name, code=6)  # nothing found, and Connect could not be asked
    shown = run_kops("diagnose", name, "-B", broker.bootstrap_servers)
    assert (shown.code, "nothing found in what was looked at" in shown.out, "\nnot looked at: connect: " in shown.out) == (6, True, True)
    assert [gap["check"] for gap in body["not_checked"]] == ["connect"]


def test_a_share_group_has_no_lag_and_is_no_trouble(diagnose, broker, topic, group):
    from confluent_kafka import ShareConsumer

    consumer = ShareConsumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    with member(broker.bootstrap_servers, group, topic("s"), consumer=consumer):
        kafka = Kafka(Connection((broker.bootstrap_servers,)))
        wait_for("the share group's partitions", lambda: kafka.groups.share_offsets([group]).get(group))
        assert about(diagnose(group, code=0), group) == {}
