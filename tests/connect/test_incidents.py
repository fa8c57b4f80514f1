"""Connectors whose topics are missing, on real workers: what ``kops diagnose`` names first, and the command that repairs it."""

import shlex

import pytest

from support.connect import FILE_SINK, FILE_SOURCE
from support.suggested import assert_taken

pytestmark = pytest.mark.broker


@pytest.fixture
def diagnose(kops, connect_workers):
    def run(name):
        findings = kops.other("diagnose", name, "--sample", "0s", "-o", "json").json["findings"]
        for finding in findings:
            assert not finding["summary"].startswith(finding["subject"])
            for command in finding["commands"]:
                assert_taken(command, connect_workers.bootstrap_servers)
        return findings

    return run


@pytest.fixture
def cluster(broker):
    from support.streams_apps import Cluster

    return Cluster(broker.bootstrap_servers)


@pytest.fixture
def absent(unique, cluster):
    """The name of a topic that does not exist; deleted afterwards."""
    names = []

    def name(prefix):
        names.append(unique(prefix))
        return names[-1]

    yield name
    if made := [one for one in names if one in cluster.topics(one)]:
        cluster.delete_all(made)


def test_a_source_whose_topic_does_not_exist(diagnose, kops, connectors, absent, unique, tmp_path, until, cluster):
    name, missing = unique("source"), absent("lines")
    (tmp_path / "in.txt").write_text("one\ntwo\n")
    connectors(name, {"connector.class": FILE_SOURCE, "file": str(tmp_path / "in.txt"), "topic": missing, "tasks.max": "1"})
    first = diagnose(name)[0]
    assert (first["severity"], first["check"], first["subject"]) == ("critical", "connector_topic_missing", f"connector {name}")
    assert first["summary"].startswith(f"{missing} does not exist, and neither the brokers nor Connect create it")
    kops.other(*shlex.split(first["commands"][0])[1:], "--yes").ok()
    until("the lines", lambda: len(cluster.read(missing)) == 2)
    assert diagnose(name) == []


def test_topics_of_another_cluster_are_not_missing_here(kops, connectors, absent, unique, tmp_path, cluster):
    name = unique("elsewhere")
    config = {"connector.class": "FileStreamSink", "file": str(tmp_path / "out.txt"), "topics": absent("lines")}
    connectors(name, {**config, "consumer.override.bootstrap.servers": "127.0.0.1:1"})
    done = kops.other("diagnose", name)
    assert "does not exist" not in done.out, done.out
    assert f"topics of connector {name}: consumer.override.bootstrap.servers leads to another Kafka cluster" in done.out


def test_a_sink_whose_topic_does_not_exist(diagnose, kops, connectors, absent, unique, tmp_path, until):
    name, missing = unique("sink"), absent("orders")
    connectors(name, {"connector.class": FILE_SINK, "file": str(tmp_path / "out.txt"), "topics": missing, "tasks.max": "1"})
    first = diagnose(name)[0]
    assert (first["severity"], first["check"], first["facts"]["topics"]) == ("critical", "connector_topic_missing", [missing])
    kops.other(*shlex.split(first["commands"][0])[1:], "--yes").ok()
    assert "connector_topic_missing" not in {finding["check"] for finding in diagnose(name)}


def test_a_sink_whose_dead_letter_topic_cannot_be_created(
    diagnose, kops, connect_workers, connectors, absent, topic, unique, tmp_path, until
):
    name, source, missing = unique("sink"), topic("shipments"), absent("shipments-dlq")
    settings = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": missing}
    connectors.made.append(name)
    config = {"connector.class": FILE_SINK, "file": str(tmp_path / "out.txt"), "topics": source, "tasks.max": "1", **settings}
    connect_workers.ask("PUT", f"/connectors/{name}/config", config)

    until("it to be there", lambda: bool(kops.other("connect", "status", name, "-o", "json").out))

    def failed():
        return [finding for finding in diagnose(name) if finding["check"] == "tasks_failed"]

    until("its task to fail", failed)
    first, second = diagnose(name)[:2]
    assert (first["severity"], first["check"]) == ("critical", "dead_letter_topic_missing")
    assert first["summary"] == (
        f"its dead letter topic {missing} does not exist, and cannot be created with 3 replicas on 1 broker"
        " (errors.deadletterqueue.topic.replication.factor)"
    )
    assert (second["check"], second["follows"]) == ("tasks_failed", [f"connector {name}"])
    assert missing in second["summary"]
    assert "replication factor" in second["summary"]
    create, restart = first["commands"][:2]
    assert "--replication-factor 1" in create
    kops.other(*shlex.split(create)[1:], "--yes").ok()
    kops.other(*shlex.split(restart)[1:], "--yes").ok()
    until("it to work", lambda: diagnose(name) == [])
