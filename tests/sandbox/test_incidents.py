"""Incidents of a cluster of three brokers: the reason comes first, and the command that is shown repairs it."""

import shlex

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from support.streams_apps import Cluster, wait_for
from support.suggested import assert_taken

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module")
def three(own_brokers):
    return own_brokers(brokers=3)


@pytest.fixture
def diagnose(run_kops, three):
    def run(*names):
        findings = run_kops("diagnose", *names, "--sample", "0s", "-B", three.bootstrap_servers, "-o", "json").json["findings"]
        for finding in findings:
            assert not finding["summary"].startswith(finding["subject"])
            for command in finding["commands"]:
                assert_taken(command, three.bootstrap_servers)
        return findings

    return run


def partition(three, topic):
    admin, found = AdminClient(three.client), {}
    # The broker that is asked may not have read yet that the topic was created.
    wait_for("the partition", lambda: found.update(admin.list_topics(topic, timeout=60).topics[topic].partitions) or found)
    return found[0]


def produce(three, topic, count, acks="1"):
    producer = Producer({**three.client, "acks": acks, "message.timeout.ms": 60_000})
    for _ in range(count):
        producer.produce(topic, b"value", partition=0)
    assert producer.flush(60) == 0


def test_an_unclean_election_that_lost_what_a_group_had_read(three, run_kops, diagnose, unique):
    """The follower is behind when the leader dies, and may lead: what it lacks is gone, and the group's offset lies past the end."""
    topic, group = unique("ledger"), unique("g")
    new = NewTopic(topic, 1, replica_assignment=[[2, 3]], config={"unclean.leader.election.enable": "true", "min.insync.replicas": "1"})
    admin = AdminClient(three.client)
    admin.create_topics([new])[topic].result(60)
    wait_for("broker 2 to lead", lambda: partition(three, topic).leader == 2)
    wait_for("the follower to catch up", lambda: len(partition(three, topic).isrs) == 2)
    produce(three, topic, 30, acks="all")
    three.kill(3)
    wait_for("the follower to fall out", lambda: partition(three, topic).isrs == [2])
    produce(three, topic, 20)
    consumer = Consumer({**three.client, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False})
    consumer.subscribe([topic])
    seen = []
    wait_for("the records", lambda: seen.extend(consumer.consume(50, 1)) or len(seen) == 50)
    consumer.commit(asynchronous=False)
    consumer.close()
    three.kill(2)
    three.start(3)
    wait_for("broker 3 to lead", lambda: partition(three, topic).leader == 3)
    wait_for("the log to be cut", lambda: Cluster(three.bootstrap_servers).ends(topic)[0] == (0, 30))
    findings = diagnose(group)
    (lost,) = [finding for finding in findings if finding["check"] == "data_lost"]
    assert {finding["check"] for finding in findings[: findings.index(lost)]} <= {"broker_missing", "under_replicated"}, findings
    assert lost["severity"] == "critical"
    (place,) = lost["facts"]["places"]
    assert place == {"partition": f"{topic}:0", "committed": 50, "log_end": 30, "kept_until": 30}
    assert f"{topic}:0 ends at 30, and 50 was committed in leader epoch " in lost["summary"]
    assert ", led by broker 3): 30 to 49 are gone" in lost["summary"]
    assert "unclean.leader.election.enable=true lets a replica lead that lacks records" in lost["summary"]
    shown = run_kops("groups", "lag", group, "-B", three.bootstrap_servers)
    assert "1 committed past the end" in shown.out + shown.err
    produce(three, topic, 5)
    run_kops(*shlex.split(lost["commands"][0])[1:], "--yes").ok()
    assert "data_lost" not in {finding["check"] for finding in diagnose(group)}
    consumer = Consumer({**three.client, "group.id": group})
    (at,) = consumer.committed([TopicPartition(topic, 0)], 60)
    consumer.close()
    assert at.offset == 30  # so that it reads all that was written since
    three.start(2)


def test_a_topic_that_refuses_writes_accepts_them_after_the_command(three, run_kops, diagnose, unique):
    topic = unique("refusing")
    new = NewTopic(topic, 1, replica_assignment=[[1, 2]], config={"min.insync.replicas": "2"})
    admin = AdminClient(three.client)
    admin.create_topics([new])[topic].result(60)
    wait_for("two in-sync replicas", lambda: len(partition(three, topic).isrs) == 2)
    three.kill(2)
    wait_for("the partition to be reported", lambda: "under_min_isr" in {finding["check"] for finding in diagnose(topic)})
    wait_for("the broker to be missed", lambda: "broker_missing" in {finding["check"] for finding in diagnose(topic)})
    findings = diagnose(topic)
    assert (findings[0]["severity"], findings[0]["check"], findings[0]["subject"]) == ("critical", "broker_missing", "broker 2")
    (refused,) = [finding for finding in findings if finding["check"] == "under_min_isr"]
    assert refused["follows"] == ["broker 2"]
    run_kops(*shlex.split(refused["commands"][1])[1:], "--yes").ok()

    def written():
        producer = Producer({**three.client, "acks": "all", "message.timeout.ms": 10_000})
        errors = []
        producer.produce(topic, b"value", partition=0, on_delivery=lambda error, _: errors.append(error))
        producer.flush(30)
        return errors == [None]

    wait_for("the write", written)
    three.start(2)
