"""Groups of every type on the real broker: what is listed, described and how far behind; a typo is not a DEAD group."""

from dataclasses import replace

import pytest
from confluent_kafka import ShareConsumer

from kops.config.connection import Connection
from kops.core.errors import GroupActive, NotFound
from kops.core.models import CommittedOffset, TopicPartition
from kops.gateways.kafka import Kafka
from kops.gateways.kafka.topics import Topics
from support.consumer_groups import member
from support.patience import HANG_SECONDS
from support.programs import Record
from support.streams_apps import wait_for

pytestmark = pytest.mark.broker


@pytest.fixture
def share_member(broker, topic, group):
    """A live share group; returns its name."""
    consumer = ShareConsumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": f"{group}-share"})
    with member(broker.bootstrap_servers, f"{group}-share", topic("s"), consumer=consumer):
        kafka = Kafka(Connection((broker.bootstrap_servers,)))

        def listed():
            return [one for one in kafka.groups.listed() if one.group_id == f"{group}-share" and one.state == "STABLE"]

        wait_for("the share group", listed)
        yield f"{group}-share"


def test_groups_of_every_type_are_listed(kops, broker, topic, group, cluster, share_member):
    name = topic("t")
    cluster.commit(f"{group}-simple", {(name, 0): 0})
    with (
        member(broker.bootstrap_servers, f"{group}-classic", name),
        member(broker.bootstrap_servers, f"{group}-consumer", name, group_protocol="consumer"),
    ):
        listed = kops("groups", "list", f"{group}*", "-o", "json").ok().json
        only = kops("groups", "list", f"{group}*", "--state", "stable", "--type", "consumer", "-o", "name").ok().out
        by_regex = kops("groups", "list", f"{group}-c.*", "--regex", "-o", "name").ok().out
    assert listed == [
        {"group": f"{group}-classic", "type": "classic", "state": "STABLE"},
        {"group": f"{group}-consumer", "type": "consumer", "state": "STABLE"},
        {"group": share_member, "type": "share", "state": "STABLE"},
        {"group": f"{group}-simple", "type": "classic", "state": "EMPTY"},
    ]
    assert only == f"{group}-consumer\n"
    assert by_regex == f"{group}-classic\n{group}-consumer\n"


def test_groups_that_the_client_library_cannot_see_are_named_as_such(kops, topic, group, cluster, share_member, monkeypatch):
    """As with a PKCS12 key store, which only confluent-kafka can use: it sees neither type nor state of a share group."""
    for module in ("groups", "working"):
        monkeypatch.setattr(f"kops.gateways.kafka.groups.{module}.can_express", lambda connection: False)
    cluster.commit(f"{group}-simple", {(topic("t"), 0): 0})
    listed = kops("groups", "list", f"{group}*", "-o", "json").ok()
    rows = {row["group"]: row for row in listed.json}
    assert rows[f"{group}-simple"] == {"group": f"{group}-simple", "type": "classic", "state": "EMPTY"}
    assert rows[share_member]["state"] == "UNKNOWN"
    assert f"only the names are known of: {share_member} (" in listed.err
    described = kops("groups", "describe", share_member)
    assert "unknown" in described.ok().out
    assert f"the members of {share_member} are not known" in described.err
    deleted = kops("groups", "delete", share_member, "--confirm", share_member)
    assert deleted.code == 5


def test_members_and_their_partitions_are_described(kops, broker, group, topic):
    name = topic("t", partitions=3)
    with (
        member(broker.bootstrap_servers, group, name, client_id="alice"),
        member(broker.bootstrap_servers, f"{group}-new", name, group_protocol="consumer", client_id="bob"),
    ):
        classic, consumer = kops("groups", "describe", f"{group}*", "-o", "json").ok().json
        table = kops("groups", "describe", group).ok().out
    everything = [{"topic": name, "partition": number} for number in range(3)]
    assert (classic["group"], classic["state"], classic["type"], classic["protocol"]) == (group, "STABLE", "classic", "range")
    assert [(one["client_id"], one["assignment"]) for one in classic["members"]] == [("alice", everything)]
    assert (consumer["group"], consumer["state"], consumer["type"]) == (f"{group}-new", "STABLE", "consumer")
    assert [(one["client_id"], one["assignment"]) for one in consumer["members"]] == [("bob", everything)]
    assert not classic["kafka_streams"]
    assert f"{name}:0-2" in table


def test_a_typo_is_not_a_dead_group(kops, groups, group, topic, cluster):
    cluster.commit(group, {(topic("t"), 0): 0})
    seen = cluster.admin.describe_consumer_groups([f"{group}x"])[f"{group}x"].result(HANG_SECONDS)
    assert seen.state.name == "DEAD"  # what the client says, and what kops must not believe
    with pytest.raises(NotFound, match="there is no group"):
        groups.describe([f"{group}x"])
    for command in (["groups", "describe"], ["groups", "lag"], ["offsets", "show"]):
        outcome = kops(*command, f"{group}x")
        assert outcome.code == 1
        assert f"there is no group {group}x" in outcome.err


def test_a_live_share_group_is_not_a_dead_group(kops, groups, cluster, share_member, topic):
    seen = cluster.admin.describe_consumer_groups([share_member])[share_member].result(HANG_SECONDS)
    assert (seen.state.name, seen.type.name) == ("DEAD", "CLASSIC")
    found = groups.describe([share_member])[share_member]
    assert (found.state, found.type) == ("STABLE", "share")
    described = kops("groups", "describe", share_member, "-o", "json").ok().json
    assert (described[0]["state"], described[0]["type"]) == ("STABLE", "share")
    lag = kops("groups", "lag", share_member)
    assert lag.code == 5
    assert "it has no committed offsets" in lag.err
    by_glob = kops("groups", "lag", f"{share_member}*").ok()
    assert f"without committed offsets, and left out: {share_member} (share)" in by_glob.err
    reset = kops("offsets", "reset", share_member, "--topic", topic("o"), "--to-earliest", "--new-group", "--yes")
    assert reset.code == 5
    assert "share group" in reset.err


def test_lag_of_each_kind_of_partition(kops, group, topic, cluster):
    name = topic("t", partitions=4)
    cluster.produce(name, [Record(None, b"x", 1000, partition=partition) for partition in range(3) for _ in range(10)])
    cluster.trim(name, {1: 6})
    cluster.commit(group, {(name, 0): 4, (name, 1): 2, (name, 2): 13, (name, 3): 0})
    rows = kops("groups", "lag", group, "-o", "json").ok().json
    shown = [(row["partition"], row["committed"], row["log_start_offset"], row["log_end_offset"], row["lag"], row["note"]) for row in rows]
    assert shown == [
        (0, 4, 0, 10, 6, ""),
        (1, 2, 6, 10, 4, "4 below the log start"),
        (2, 13, 0, 10, 0, "committed 3 past the end"),
        (3, 0, 0, 0, 0, ""),
    ]
    (by_group,) = kops("groups", "lag", group, "--by", "group", "-o", "json").ok().json
    assert (by_group["group"], by_group["lag"], by_group["partitions"], by_group["largest_lag"]) == (group, 10, 4, 6)
    (by_topic,) = kops("groups", "lag", group, "--by", "topic", "-o", "json").ok().json
    assert (by_topic["topic"], by_topic["lag"], by_topic["groups"]) == (name, 10, 1)
    assert "1 group, 4 partitions: lag 10" in kops("groups", "lag", group).ok().err
    for every in (["--all-groups"], ["--all-groups", "--regex"]):
        assert group in kops("groups", "lag", *every, "--by", "group", "-o", "name").out.splitlines()


def test_a_group_that_no_broker_lists_while_its_coordinator_moves(kops, group, topic, cluster, monkeypatch):
    cluster.commit(group, {(topic("t"), 0): 0})
    with monkeypatch.context() as patch:
        patch.setattr("kops.gateways.kafka.groups.groups.Groups.listed", lambda self, **_: [])
        assert [row["group"] for row in kops("groups", "lag", group, "-o", "json").ok().json] == [group]
        assert f"there is no group {group}x" in kops("groups", "lag", group, f"{group}x").err


def test_groups_without_a_coordinator_are_not_passed_over_in_silence(kops, group, topic, cluster, monkeypatch):
    name = topic("t")
    cluster.commit(group, {(name, 0): 0})
    existing = Topics.existing

    def leaderless(self, names):
        found = existing(self, names)
        return {
            name: replace(one, partitions=(replace(one.partitions[0], leader=None), *one.partitions[1:])) for name, one in found.items()
        }

    with monkeypatch.context() as patch:
        patch.setattr(Topics, "existing", leaderless)
        for command in (["groups", "list", f"{group}*"], ["groups", "lag", f"{group}*"]):
            partial = kops(*command, "-o", "json")
            assert (partial.code, [row["group"] for row in partial.json]) == (6, [group])
            assert "groups are missing: 1 of " in partial.err
        planned = kops("offsets", "reset", f"{group}*", "--all-topics", "--to-earliest", "-n", "-o", "json").ok().json
        assert "groups are missing: 1 of " in planned["warnings"][0]
        assert kops("groups", "lag", group, "-o", "json").ok().err == "1 group, 1 partition: lag 0\n"


def test_assigned_partitions_without_a_commit_have_no_lag(kops, broker, group, topic, cluster):
    name = topic("t", partitions=2)
    cluster.produce(name, [Record(None, b"x", 1000, partition=1)])
    cluster.commit(group, {(name, 1): 0})
    with member(broker.bootstrap_servers, group, name, client_id="carol"):
        rows = kops("groups", "lag", group, "-o", "json").ok().json
    assert [(row["partition"], row["committed"], row["lag"], row["note"], row["client_id"]) for row in rows] == [
        (0, None, None, "no commit yet", "carol"),
        (1, 0, 1, "", "carol"),
    ]


def test_a_deleted_topic_spoils_only_its_own_rows(kops, group, topic, cluster, unique):
    gone, stays = unique("gone"), topic("t")
    cluster.create(gone)
    cluster.commit(f"{group}-1", {(stays, 0): 0})
    cluster.commit(f"{group}-2", {(stays, 0): 0, (gone, 0): 0})
    cluster.delete(gone)
    rows = kops("groups", "lag", f"{group}*", "-o", "json").ok().json
    by_topic = {(row["group"], row["topic"]): (row["lag"], row["note"]) for row in rows}
    assert by_topic.pop((f"{group}-2", gone), (None, "no longer exists")) == (None, "no longer exists")
    assert by_topic == {(f"{group}-1", stays): (0, ""), (f"{group}-2", stays): (0, "")}


def test_the_broker_refuses_commits_for_members_that_nobody_saw(broker, groups, group, topic):
    name = topic("t")
    for protocol in ("classic", "consumer"):
        group_id = f"{group}-{protocol}"
        with member(broker.bootstrap_servers, group_id, name, group_protocol=protocol):
            for metadata in ("", "some"):  # by either client
                outcome = groups.commit(group_id, {TopicPartition(name, 0): CommittedOffset(0, metadata)})
                assert isinstance(outcome[TopicPartition(name, 0)], GroupActive)


def test_errors_of_single_partitions_are_told(groups, group, topic):
    name = topic("t")
    for metadata in ("", "some"):
        offsets = {TopicPartition(name, 0): CommittedOffset(0, metadata), TopicPartition(name, 7): CommittedOffset(0, metadata)}
        outcome = groups.commit(group, offsets)
        assert outcome[TopicPartition(name, 0)] is None
        assert isinstance(outcome[TopicPartition(name, 7)], NotFound)


@pytest.mark.parametrize("metadata", ["AgAAAAAAAACC", "ünïcode 世界", "x" * 4000, "trailing\n", "nul\0inside", "", " "])
def test_metadata_is_kept_to_the_letter(groups, group, topic, metadata):
    """confluent-kafka adds a NUL when it writes, and reads on past the end."""
    partition = TopicPartition(topic("t"), 0)
    assert groups.commit(group, {partition: CommittedOffset(0, metadata, 3)}) == {partition: None}
    assert groups.committed([group])[group] == {partition: CommittedOffset(0, metadata, 3)}


def test_metadata_that_is_not_utf_8_becomes_readable_at_the_broker(groups, group, topic, broker, monkeypatch):
    """The broker keeps texts, not bytes: what is not UTF-8 is replaced as it comes in, so what it answers always is."""
    from kafka.protocol.consumer import OffsetCommitRequest

    partition, marker = TopicPartition(topic("t"), 0), "QQQQ"
    encode = OffsetCommitRequest.encode
    monkeypatch.setattr(
        OffsetCommitRequest, "encode", lambda *arguments, **options: encode(*arguments, **options).replace(b"QQQQ", b"\xff\xfe\x80A")
    )
    assert groups.commit(group, {partition: CommittedOffset(0, marker)}) == {partition: None}
    assert groups.committed([group])[group][partition].metadata == "\ufffd\ufffd\ufffdA"
