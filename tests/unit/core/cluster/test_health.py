"""What is called unhealthy, and how bad."""

import pytest

from kops.core.cluster.health import cluster_findings
from kops.core.cluster.models import METADATA_VERSIONS, LogDir, Quorum, QuorumReplica, RegisteredBroker, release_of
from kops.core.cluster.observed import ObservedCluster, partition_trouble
from kops.core.findings import Severity
from kops.core.models import Broker, Partition, Setting, Topic, TopicPartition


def broker(number):
    return Broker(number, "host", 9000 + number)


def settings(**values):
    return {name.replace("_", "."): Setting(name.replace("_", "."), value, "topic") for name, value in values.items()}


def seen(partitions, *, live=(1, 2, 3), minimum="2", topic="orders", **more):
    """A cluster with one topic: partitions as (leader, replicas, in sync)."""
    parts = tuple(Partition(number, *each) for number, each in enumerate(partitions))
    known = {topic: settings(min_insync_replicas=minimum)}
    return ObservedCluster((Topic(topic, parts),), tuple(map(broker, live)), settings=known, **more)


def found(observed):
    return {(finding.severity.word, finding.check): finding for finding in cluster_findings(observed)}


GOOD = (1, (1, 2, 3), (1, 2, 3))


def test_nothing_is_said_about_a_healthy_cluster():
    assert found(seen([GOOD, (2, (2, 3, 1), (3, 1, 2))])) == {}


def test_a_partition_without_a_leader():
    observed = seen([GOOD, (None, (3, 2), (3,))], live=(1, 2))
    finding = found(observed)["critical", "offline_partitions"]
    assert finding.subject == "orders:1"
    assert finding.summary == (
        "1 partition is without a leader: nothing can be read or written; broker 3 can lead without loss, once started"
    )
    assert finding.facts["partitions"] == ["orders:1"]
    assert "under_min_isr" not in {check for _, check in found(observed)}  # it is worse than that


def test_brokers_that_kept_everything_are_named():
    """KIP-966: none in sync, and yet two that have all acknowledged records."""
    observed = seen([(None, (1, 2, 3), ())], live=(1,), eligible={TopicPartition("orders", 0): (2, 3)})
    finding = found(observed)["critical", "offline_partitions"]
    assert finding.summary.endswith("brokers 2, 3 can lead without loss, once started")
    assert finding.facts["eligible_leaders"] == {"orders:0": [2, 3]}


@pytest.mark.parametrize(
    ("in_sync", "minimum", "expected"),
    [
        ((1, 2), "1", {("warning", "under_replicated"), ("note", "min_isr_1")}),
        ((1, 2), "2", {("warning", "under_replicated"), ("warning", "at_min_isr")}),
        ((1,), "2", {("warning", "under_replicated"), ("critical", "under_min_isr")}),
        ((1, 2, 3), "3", {("note", "min_isr_equals_replicas")}),
        ((1, 2, 3), "4", {("critical", "min_isr_above_replicas")}),
    ],
)
def test_replicas_that_are_missing(in_sync, minimum, expected):
    assert set(found(seen([(1, (1, 2, 3), in_sync)], minimum=minimum))) == expected


def test_a_replica_that_is_only_being_added_is_not_missed():
    moving = seen([(1, (1, 2, 3), (1, 2))], minimum="1", adding={TopicPartition("orders", 0): frozenset({3})})
    assert partition_trouble(moving).under_replicated == ()
    lagging = seen([(1, (1, 2, 3), (1,))], minimum="1", adding={TopicPartition("orders", 0): frozenset({3})})
    assert partition_trouble(lagging).under_replicated == (TopicPartition("orders", 0),)


def test_the_repair_of_a_minimum_that_cannot_be_met():
    finding = found(seen([GOOD], minimum="4"))["critical", "min_isr_above_replicas"]
    assert finding.commands == ("kops topics alter orders --config min.insync.replicas=2",)


def test_topics_whose_settings_are_not_known_are_only_judged_by_their_replicas():
    observed = ObservedCluster((Topic("orders", (Partition(0, 1, (1, 2), (1,)),)),), (broker(1), broker(2)))
    assert set(found(observed)) == {("warning", "under_replicated")}


def test_unsafe_settings_are_notes():
    topic = Topic("t", (Partition(0, 1, (1,), (1,)),))
    unclean = {"t": settings(unclean_leader_election_enable="true", min_insync_replicas="1")}
    both = found(ObservedCluster((topic,), (broker(1), broker(2)), settings=unclean))
    assert set(both) == {("note", "unclean_leader_election"), ("note", "single_replica")}
    assert both["note", "unclean_leader_election"].commands == ("kops topics alter t --config unclean.leader.election.enable=false",)
    alone = found(ObservedCluster((topic,), (broker(1),), settings=unclean))
    assert set(alone) == {("note", "unclean_leader_election")}  # one broker cannot keep copies


def test_brokers_that_are_down():
    registered = (
        RegisteredBroker(1, "a", 1, None, fenced=False),
        RegisteredBroker(2, "b", 2, None, fenced=True),
        RegisteredBroker(9, "i", 9, None, fenced=True),
    )
    observed = seen([(1, (1, 2, 4), (1,))], live=(1,), minimum="1", registered=registered)
    missing = {finding.subject: finding for finding in cluster_findings(observed) if finding.check == "broker_missing"}
    assert missing["broker 2"].summary == "not in service at b:2; it has 1 replica"
    assert missing["broker 4"].summary == "not in service; it has 1 replica"  # known from its replicas alone
    assert missing["broker 9"].severity is Severity.NOTE  # nothing lies on it


def voter(number, silent=0, heard=True):
    return QuorumReplica(number, 100, 1_000_000 - silent if heard else None, 1_000_000 - silent if heard else None)


@pytest.mark.parametrize(
    ("voters", "expected"),
    [
        ([voter(1), voter(2), voter(3)], None),
        ([voter(1), voter(2, silent=9_000), voter(3)], None),
        ([voter(1), voter(2, silent=11_000), voter(3)], "1 of 3 is silent: one more, and there is no controller"),
        ([voter(1), voter(2), voter(3, heard=False)], "1 of 3 is silent: one more, and there is no controller"),
        (
            [voter(1), voter(2, silent=11_000), *(voter(number) for number in (3, 4, 5))],
            "1 of 5 is silent: 1 more may go",
        ),
        ([voter(1)], None),
    ],
)
def test_controllers_that_are_silent(voters, expected):
    findings = found(seen([GOOD], quorum=Quorum(1, 3, 100, tuple(voters))))
    assert (findings["warning", "controller_silent"].summary if expected else findings or None) == expected


def test_no_controller():
    assert set(found(seen([GOOD], quorum=Quorum(None, 3, 100, (voter(1),))))) == {("critical", "no_controller")}


def test_disks():
    dirs = (
        LogDir(1, "/a", problem="disk error"),
        LogDir(1, "/b", total_bytes=1000, usable_bytes=99),
        LogDir(1, "/c", total_bytes=1000, usable_bytes=100),
        LogDir(1, "/d"),
    )
    findings = found(seen([GOOD], log_dirs=dirs))
    assert set(findings) == {("critical", "log_dir_offline"), ("warning", "disk_nearly_full")}
    assert findings["warning", "disk_nearly_full"].summary.startswith("the volume of /b has 9.9% left")


def test_leaders_that_are_elsewhere():
    at_home = [(1, (1, 2, 3), (1, 2, 3))] * 9
    away = (2, (1, 2, 3), (1, 2, 3))
    assert found(seen([*at_home, away])) == {}  # a tenth, as Kafka itself lets it be
    finding = found(seen([*at_home[:8], away, away]))["note", "leader_skew"]
    assert finding.facts == {"broker": 1, "preferred": 10, "led_elsewhere": 2}
    assert found(seen([away], live=(2, 3))).keys() == {("warning", "broker_missing")}  # its broker is down: that is why


def test_brokers_of_different_releases():
    older, newer = release_of(29, "4.2"), release_of(30, "4.3")
    finding = found(seen([GOOD], versions={1: older, 2: newer, 3: newer}))["note", "mixed_versions"]
    assert "(4.2: 1; 4.3: 2, 3)" in finding.summary
    newest = len(METADATA_VERSIONS)
    finding = found(seen([GOOD], versions={1: release_of(newest, "4.3"), 2: release_of(newest + 1, "4.3")}))["note", "mixed_versions"]
    assert "or newer: 1" in finding.summary
    assert f"or newer, metadata.version up to {newest + 1}: 2" in finding.summary
    assert found(seen([GOOD], versions={1: newer, 2: newer, 3: newer})) == {}
