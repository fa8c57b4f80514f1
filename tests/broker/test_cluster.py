"""``kops cluster`` beside what Apache's tools say of the same broker."""

import json
import re

import pytest
from confluent_kafka import Producer

from kops.core.cluster import health
from kops.core.cluster.models import METADATA_VERSIONS, LogDir
from kops.gateways.machine.jars import KAFKA_VERSION
from support.apache_tools import LOG_DIRS
from support.kafka import needs_kafka
from support.patience import HANG_SECONDS
from support.services import VERSION
from support.streams_apps import wait_for
from support.suggested import assert_taken

pytestmark = pytest.mark.broker

FEATURES = "org.apache.kafka.tools.FeatureCommand"
QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"


@needs_kafka("4.0")  # Apache's tool prints other columns of older brokers
def test_features_are_those_of_apache(kops, apache):
    features = kops("cluster", "describe", "-o", "json").ok().json["features"]
    printed = re.findall(
        r"Feature: (\S+)\s+SupportedMinVersion: (\S+)\s+SupportedMaxVersion: (\S+)\s+FinalizedVersionLevel: (\S+)",
        apache.run("describe", FEATURES),
    )
    assert printed
    by_name = {feature["name"]: feature for feature in features}
    assert by_name.keys() == {name for name, *_ in printed}
    for name, least, most, level in printed:
        found = by_name[name]
        if name == "metadata.version":
            assert found["release"] == level
        else:
            assert [str(found[key]) for key in ("supported_min", "supported_max", "finalized_level")] == [least, most, level]


def test_a_version_is_that_of_the_broker_or_an_older_one_that_is_said_to_be_so(kops):
    """Of the newest that is known nothing says that there is no newer one which supports as much."""
    body, line = kops("cluster", "describe", "-o", "json").ok().json, ".".join(VERSION.split(".")[:2])
    levels = next((feature["supported_max"] for feature in body["features"] if feature["name"] == "metadata.version"), None)
    for known in (body, *body["brokers"]):
        assert known["kafka_version_at_least"] == line
        assert known["kafka_version"] == (None if VERSION == KAFKA_VERSION or levels is None else line)
    if VERSION == KAFKA_VERSION:
        assert levels == len(METADATA_VERSIONS)
        assert f", Kafka {line} or newer, metadata version {METADATA_VERSIONS[-1]}" in kops("cluster", "describe").ok().out


def test_the_disk_of_this_machine_is_no_finding_however_full_it_is():
    """Tests with real brokers expect no findings of what they have not made."""
    assert not list(health._disks([LogDir(1, "/data", total_bytes=1000, usable_bytes=1)]))


@needs_kafka("4.0")
def test_the_quorum_is_that_of_apache(kops, apache):
    body = kops("cluster", "describe", "-o", "json").ok().json
    printed = dict(re.findall(r"^(\w+):\s+(.*)$", apache.run("describe", "--status", QUORUM), re.MULTILINE))
    assert body["cluster_id"] == printed["ClusterId"]
    assert str(body["controller"]["id"]) == printed["LeaderId"]
    assert str(body["quorum"]["leader_epoch"]) == printed["LeaderEpoch"]
    assert body["quorum"]["high_watermark"] <= int(printed["HighWatermark"])
    voters = {voter["id"]: voter["endpoints"] for voter in json.loads(printed["CurrentVoters"])}
    assert {voter["id"]: [f"CONTROLLER://{voter['endpoint']}"] for voter in body["quorum"]["voters"]} == voters
    assert body["controller"]["endpoint"] == body["quorum"]["voters"][0]["endpoint"]


def test_sizes_are_those_of_apache(kops, apache, topic, broker):
    name = topic(partitions=2)
    producer = Producer(broker.client)
    for number in range(1000):
        producer.produce(name, value=b"x" * 100, partition=number % 2)
    assert producer.flush(HANG_SECONDS) == 0

    def both():
        printed = apache.run("--describe", LOG_DIRS)
        body = json.loads(next(line for line in printed.splitlines() if line.startswith("{")))
        theirs = {
            (one["broker"], log_dir["logDir"]): (sum(part["size"] for part in log_dir["partitions"]), len(log_dir["partitions"]))
            for one in body["brokers"]
            for log_dir in one["logDirs"]
        }
        ours = {
            (one["id"], log_dir["path"]): (log_dir["size_bytes"], log_dir["replicas"])
            for one in kops("cluster", "brokers", "-o", "json").ok().json
            for log_dir in one["log_dirs"]
        }
        return ours == theirs and sum(size for size, _ in ours.values()) > 100_000

    wait_for("the same sizes, while others write and delete", both)


def test_leaders_and_replicas_are_counted_per_broker(kops, topic, admin):
    name = topic(partitions=3)
    wait_for("the topic", lambda: name in admin.list_topics(timeout=HANG_SECONDS).topics)

    def counted():
        metadata = admin.list_topics(timeout=HANG_SECONDS)
        parts = [part for found in metadata.topics.values() for part in found.partitions.values()]
        rows = kops("cluster", "brokers", "-o", "json").ok().json
        return all(
            row["leaders"] == sum(part.leader == row["id"] for part in parts)
            and row["replicas"] == sum(row["id"] in part.replicas for part in parts)
            for row in rows
        )

    wait_for("the same counts, while others make and delete topics", counted)


def test_json_keys_are_stable(kops):
    described = kops("cluster", "describe", "-o", "json").ok().json
    assert set(described) == {
        *("cluster_id", "controller", "kafka_version", "kafka_version_at_least", "metadata_version", "quorum", "features", "brokers"),
        "not_known",
    }
    assert described["not_known"] == []
    assert set(described["quorum"]) == {"leader", "leader_epoch", "high_watermark", "voters", "observers"}
    assert set(described["quorum"]["voters"][0]) == {"id", "endpoint", "log_end_offset", "lag", "lag_ms", "last_fetch", "last_caught_up"}
    assert set(described["features"][0]) == {"name", "finalized_level", "supported_min", "supported_max", "release"}
    assert set(described["brokers"][0]) == {"id", "host", "port", "rack", "in_service", "kafka_version", "kafka_version_at_least"}
    health = kops("cluster", "health", "-o", "json").json
    assert set(health) == {
        *("cluster_id", "healthy", "brokers", "topics", "partitions", "offline", "under_replicated", "under_min_isr", "at_min_isr"),
        *("leader_not_preferred", "findings", "not_checked"),
    }
    (row, *_) = kops("cluster", "brokers", "-o", "json").ok().json
    assert set(row) == {
        *("id", "host", "port", "rack", "in_service", "leaders", "preferred_leaders", "replicas", "out_of_sync_replicas"),
        *("size_bytes", "offline_log_dirs", "log_dirs"),
    }
    assert set(row["log_dirs"][0]) == {"path", "replicas", "future_replicas", "size_bytes", "total_bytes", "usable_bytes", "problem"}


def test_tables_fit_eighty_columns(kops, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    described = kops("cluster", "describe").ok().out
    assert "ROLE" in described
    assert "metadata.version" in described
    brokers = kops("cluster", "brokers").ok().out
    assert "PREFERRED" in brokers
    assert "LOG DIRECTORY" in brokers
    assert all(len(line) <= 80 for line in described.splitlines())
    assert kops("cluster", "brokers", "-o", "csv").ok().out.startswith("id,host,port,rack,in_service,leaders,")


def test_a_minimum_that_cannot_be_met_makes_the_probe_fail(kops, topic, broker):
    name = topic(config={"min.insync.replicas": "2"})
    wait_for("the topic", lambda: name in kops("cluster", "health", "-o", "json").out)
    done = kops("cluster", "health", "-o", "json")
    assert (done.code, done.json["healthy"]) == (1, False)
    finding = next(found for found in done.json["findings"] if found["check"] == "min_isr_above_replicas")
    assert finding["severity"] == "critical"
    assert f"{name}:0" in finding["facts"]["partitions"]
    assert finding["commands"][0].startswith("kops topics alter ")
    for found in done.json["findings"]:
        for command in found["commands"]:
            assert command.endswith(f" -B {broker.bootstrap_servers}")
            assert_taken(command)


def test_what_counts_as_unhealthy_may_be_chosen(kops, topic):
    name = topic(config={"unclean.leader.election.enable": "true"})

    def noted():
        findings = kops("cluster", "health", "-o", "json").json["findings"]
        return any(found["check"] == "unclean_leader_election" and name in found["facts"]["topics"] for found in findings)

    wait_for("the note", noted)
    assert kops("cluster", "health", "--fail-on", "note").code == 1


def test_an_unreachable_cluster_is_exit_3(run_kops):
    for verb in ("describe", "health", "brokers"):
        assert run_kops("cluster", verb, "-B", "127.0.0.1:1").code == 3


def test_what_could_not_be_looked_at_is_said(kops, monkeypatch):
    """A connection that the second client cannot express: a PKCS12 key store, an OAuth token endpoint."""
    monkeypatch.setattr("kops.gateways.kafka.admin.can_express", lambda _: False)
    described = kops("cluster", "describe", "-o", "json")
    assert described.code == 6
    assert (described.json["quorum"], described.json["features"]) == (None, [])
    assert {gap["check"] for gap in described.json["not_known"]} >= {"quorum", "features"}
    assert described.json["brokers"][0]["in_service"]
    health = kops("cluster", "health", "--fail-on", "critical")
    assert health.code in (1, 6)  # 1 where another test made a topic that is unhealthy
    assert health.err.count("warning: not known: ") == 1  # one reason, said once
    assert "healthy" in health.out
