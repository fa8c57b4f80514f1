"""Moving committed offsets on the real broker: what is refused before any change, and the way back."""

import base64
from types import SimpleNamespace

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as Librdkafka

from kops.cli.frame.session import Session
from kops.core.errors import GroupActive, StateMoved
from kops.core.models import CommittedOffset, TopicPartition
from kops.core.plan import plan_of_document
from kops.operations.offsets.move import MOVE
from support.command_line import in_time
from support.consumer_groups import STREAM_TIME_130, member, visitor
from support.programs import Record

pytestmark = pytest.mark.broker


@pytest.fixture
def orders(topic, cluster):
    """Three partitions: ten records in 0 and 1, none in 2."""
    name = topic("orders", partitions=3)
    cluster.produce(name, [Record(None, b"x", 1_000_000 + at, partition=partition) for partition in (0, 1) for at in range(10)])
    return name


@pytest.fixture
def group(unique, cluster, orders, groups):
    """A group at offset 5 of the partitions 0 and 1."""
    name = unique("g")
    cluster.commit(name, {(orders, 0): 5, (orders, 1): 5})
    yield name
    groups.delete([name])


def offsets(cluster, group):
    return {partition: offset for (_topic, partition), offset in cluster.committed(group).items()}


def test_a_move_is_planned_approved_verified_and_undone(kops, cluster, group, orders):
    refused = kops("offsets", "reset", group, "--topic", orders, "--to-earliest")
    assert refused.code == 5
    assert offsets(cluster, group) == {0: 5, 1: 5}
    done = kops("offsets", "reset", group, "--topic", orders, "--to-earliest", "--yes", "-o", "json").ok().json
    assert done["status"] == "done"
    assert {item["target"]: item["status"] for item in done["items"]} == {f"{orders}:{number}": "done" for number in range(3)}
    assert offsets(cluster, group) == {0: 0, 1: 0, 2: 0}
    kops("undo", done["journal_id"], "--yes").ok()
    assert offsets(cluster, group) == {0: 5, 1: 5}
    kops("undo", "last", "--yes").ok()
    assert offsets(cluster, group) == {0: 0, 1: 0, 2: 0}


def test_what_is_already_there_is_left_alone(kops, cluster, group, orders):
    same = kops("offsets", "seek", group, f"{orders}:0,1=5")
    assert (same.code, "nothing to do" in same.err) == (0, True)


def test_seek_is_exact(kops, cluster, group, orders):
    kops("offsets", "seek", group, f"{orders}:0=7", f"{orders}:1=+1", f"{orders}:2=end", "--yes").ok()
    assert offsets(cluster, group) == {0: 7, 1: 6, 2: 0}
    kops("offsets", "seek", group, f"{orders}:0-2=@1970-01-01T00:16:40.004", "--yes").ok()
    assert offsets(cluster, group) == {0: 4, 1: 4, 2: 0}


@pytest.mark.parametrize(
    ("position", "code", "says"),
    [
        (":0=11", 2, "past the log end"),
        (":0=-1", 2, "'-1' is not a valid position"),
        (":0=-2", 2, "'-2' is not a valid position"),
        (":1=+9", 2, "past the log end"),
        (":9=0", 5, "there is no partition"),
        ("x:0=0", 5, "there is no topic"),
        (":0", 2, "names no position"),
        (":0=1.5", 2, "is not a valid position"),
    ],
)
def test_a_position_that_cannot_be_is_refused_before_any_change(kops, cluster, group, orders, position, code, says):
    outcome = kops("offsets", "seek", group, f"{orders}:2=0", f"{orders}{position}", "--yes")
    assert (outcome.code, says in outcome.err) == (code, True), outcome.err
    assert offsets(cluster, group) == {0: 5, 1: 5}


def test_offsets_below_zero_are_refused(kops, cluster, group, orders):
    for offset in ("-1", "-2", "-1001"):
        outcome = kops("offsets", "reset", group, "--topic", orders, "--to-offset", offset, "--yes")
        assert outcome.code == 2, outcome.err
    assert offsets(cluster, group) == {0: 5, 1: 5}


def test_a_time_past_the_end_is_the_end_and_not_minus_one(kops, cluster, group, orders):
    plan = kops("offsets", "reset", group, "--topic", orders, "--to", "@2031-01-01", "-n", "-o", "json").ok().json
    assert [item["after"] for item in plan["items"]] == [10, 10, 0]
    assert plan["items"][0]["reason"] == "no record at or after 2031-01-01T00:00:00.000Z: log end"
    kops("offsets", "reset", group, "--topic", orders, "--to", "@2031-01-01", "--yes").ok()
    assert offsets(cluster, group) == {0: 10, 1: 10, 2: 0}


def test_topics_have_to_be_named_or_all_be_meant(kops, group, orders):
    assert kops("offsets", "reset", group, "--to-earliest", "--yes").code == 2
    assert kops("offsets", "reset", group, "--to-earliest", "--all-topics", "--topic", orders, "--yes").code == 2
    assert kops("offsets", "reset", group, "--to-earliest", "--to-latest", "--topic", orders, "--yes").code == 2
    assert kops("offsets", "reset", group, "--topic", orders, "--yes").code == 2
    assert kops("offsets", "reset", "--topic", orders, "--to-earliest").code == 2
    assert kops("offsets", "reset", group, "--topic", orders, "--to-earliest", "--execute", "--dry-run").code == 2


def test_a_group_that_does_not_exist_is_made_only_on_request(kops, cluster, group, orders, groups):
    new = f"{group}x"
    refused = kops("offsets", "reset", new, "--topic", orders, "--to-latest", "--yes")
    assert refused.code == 5
    assert f"did you mean {group}?" in refused.err
    assert new not in groups.ids()
    kops("offsets", "reset", new, "--topic", orders, "--to-latest", "--new-group", "--yes").ok()
    assert offsets(cluster, new) == {0: 10, 1: 10, 2: 0}
    kops("undo", "last", "--yes").ok()
    assert new not in groups.ids()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_reset_refuses_an_active_group(kops, cluster, broker, group, orders, protocol):
    with member(broker.bootstrap_servers, group, orders, group_protocol=protocol):
        for command in (["reset", group, "--topic", orders, "--to-earliest"], ["seek", group, f"{orders}:0=1"]):
            outcome = kops("offsets", *command, "--yes")
            assert outcome.code == 5
            assert f"group {group} has 1 member (STABLE)" in outcome.err
        assert offsets(cluster, group) == {0: 5, 1: 5}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_move_is_refused_when_a_member_joined_since_the_plan(kops, cluster, broker, group, orders, tmp_path, protocol):
    file = tmp_path / "plan.json"
    kops("offsets", "reset", group, "--topic", orders, "--to-earliest", "--plan-out", file).ok()
    with member(broker.bootstrap_servers, group, orders, group_protocol=protocol):
        outcome = kops("apply", file, "--yes")
        assert outcome.code == 5
        assert "has 1 member" in outcome.err
    assert offsets(cluster, group) == {0: 5, 1: 5}
    kops("apply", file, "--yes").ok()
    assert offsets(cluster, group) == {0: 0, 1: 0, 2: 0}


@pytest.mark.parametrize("metadata", ["", STREAM_TIME_130])
def test_a_member_that_joins_after_the_check_is_refused_by_the_broker(kops, cluster, broker, groups, group, orders, metadata):
    groups.commit(group, {TopicPartition(orders, 0): CommittedOffset(5, metadata)})
    body = kops("offsets", "seek", group, f"{orders}:0=8", "-n", "-o", "json").ok().json
    with (
        member(broker.bootstrap_servers, group, orders),
        Session({"bootstrap_server": broker.bootstrap_servers}) as session,
        session.permit.granted(),
        pytest.raises(GroupActive),
    ):
        list(MOVE.apply(session, MOVE.typed(plan_of_document(body))))
    assert offsets(cluster, group) == {0: 5, 1: 5}


def test_a_move_is_refused_when_offsets_moved_since_the_plan(kops, cluster, group, orders, tmp_path):
    file = tmp_path / "plan.json"
    kops("offsets", "seek", group, f"{orders}:0=0", "--plan-out", file).ok()
    cluster.commit(group, {(orders, 0): 6})
    outcome = kops("apply", file, "--yes")
    assert (outcome.code, f"group {group} changed since the plan was made" in outcome.err) == (5, True)
    assert offsets(cluster, group) == {0: 6, 1: 5}


def test_other_partitions_may_move_between_plan_and_apply(kops, cluster, group, orders, tmp_path):
    file = tmp_path / "plan.json"
    kops("offsets", "seek", group, f"{orders}:0=0", "--plan-out", file).ok()
    cluster.commit(group, {(orders, 1): 6})
    kops("apply", file, "--yes").ok()
    assert offsets(cluster, group) == {0: 0, 1: 6}


def test_a_move_is_refused_when_the_log_was_trimmed_since_the_plan(kops, cluster, group, orders, tmp_path):
    file = tmp_path / "plan.json"
    kops("offsets", "seek", group, f"{orders}:0=1", "--plan-out", file).ok()
    cluster.trim(orders, {0: 3})
    outcome = kops("apply", file, "--yes")
    assert (outcome.code, "no longer has offset 1, it has 3 to 10" in outcome.err) == (5, True)
    assert offsets(cluster, group) == {0: 5, 1: 5}


def test_a_move_is_refused_when_the_group_vanished_since_the_plan(kops, groups, group, orders, tmp_path):
    file = tmp_path / "plan.json"
    kops("offsets", "seek", group, f"{orders}:0=1", "--plan-out", file).ok()
    groups.delete([group])
    assert kops("apply", file, "--yes").code == 5
    assert group not in groups.ids()


def test_wait_empty_waits_until_members_have_left(kops, cluster, broker, group, orders):
    with member(broker.bootstrap_servers, group, orders):
        outcome = kops("offsets", "seek", group, f"{orders}:0=1", "--wait-empty", "300ms", "--yes")
        assert (outcome.code, "after 0.3 s of waiting" in outcome.err) == (5, True)
    with visitor(broker.bootstrap_servers, group, orders):
        kops("offsets", "seek", group, f"{orders}:0=1", "--wait-empty", "30s", "--yes").ok()
    assert offsets(cluster, group) == {0: 1, 1: 5}


def test_a_plan_counts_only_offsets_that_the_log_has(kops, cluster, group, orders):
    cluster.commit(group, {(orders, 0): 500, (orders, 1): 2})
    cluster.trim(orders, {1: 6})
    plan = kops("offsets", "reset", group, "--all-topics", "--to-offset", "8", "--dry-run", "-o", "json").ok().json
    assert "skips 2 unread offsets, reads 2 offsets again" in plan["notes"], "of the log 0 to 10, and of 6 to 10"
    kops("offsets", "reset", group, "--all-topics", "--to-latest", "--yes").ok()
    back = kops("undo", "last", "--dry-run", "-o", "json").ok().json
    assert [item["after"] for item in back["items"]] == [500, 2]
    assert back["notes"] == ["reads 4 offsets again"]


def test_an_undo_waits_until_members_have_left(kops, cluster, broker, group, orders):
    kops("offsets", "seek", group, f"{orders}:0=1", "--yes").ok()
    with member(broker.bootstrap_servers, group, orders):
        refused = kops("undo", "last", "--yes")
        assert (refused.code, "--wait-empty 60s waits" in refused.err) == (5, True)
        late = kops("undo", "last", "--wait-empty", "300ms", "--yes")
        assert (late.code, "of waiting" in late.err) == (5, True)
    with visitor(broker.bootstrap_servers, group, orders):
        kops("undo", "last", "--wait-empty", "30s", "--yes").ok()
    assert offsets(cluster, group) == {0: 5, 1: 5}


def test_metadata_of_kafka_streams_goes_along_forward_and_is_dropped_backward(kops, groups, group, orders):
    zero, one = TopicPartition(orders, 0), TopicPartition(orders, 1)
    before = {zero: CommittedOffset(5, STREAM_TIME_130, 2), one: CommittedOffset(5, STREAM_TIME_130, 2)}
    groups.commit(group, before)
    done = kops("offsets", "seek", group, f"{orders}:0=6", f"{orders}:1=4", "--yes").ok()
    assert "Kafka Streams application" in done.err
    assert groups.committed([group])[group] == {zero: CommittedOffset(6, STREAM_TIME_130), one: CommittedOffset(4)}
    shown = kops("offsets", "show", group, "--topic", f"{orders}:0", "-o", "json").ok().json
    assert [(row["partition"], row["offset"], row["stream_time"]) for row in shown] == [(0, 6, "1970-01-01T00:00:00.130Z")]
    kops("undo", "last", "--yes").ok()
    assert groups.committed([group])[group] == before


def test_other_metadata_is_dropped_and_comes_back_with_undo(kops, groups, group, orders):
    partition = TopicPartition(orders, 0)
    groups.commit(group, {partition: CommittedOffset(5, base64.b64encode(b"\x09 of another client").decode())})
    before = groups.committed([group])[group]
    kops("offsets", "seek", group, f"{orders}:0=6", "--yes").ok()
    assert groups.committed([group])[group][partition] == CommittedOffset(6)
    kops("undo", "last", "--yes").ok()
    assert groups.committed([group])[group] == before


def test_undo_says_what_would_be_lost(kops, cluster, group, orders):
    kops("offsets", "seek", group, f"{orders}:0=1", "--yes").ok()
    cluster.commit(group, {(orders, 0): 3})
    refused = kops("undo", "last", "--yes")
    assert (refused.code, "would lose" in refused.err, "--accept-loss" in refused.err) == (5, True, True)
    assert offsets(cluster, group) == {0: 3, 1: 5}
    undone = kops("undo", "last", "--yes", "--accept-loss").ok()
    assert f"lost by this: {orders}:0 of group {group} moved on since" in undone.err
    assert offsets(cluster, group) == {0: 5, 1: 5}


def test_an_interrupted_move_is_finished_or_refused(broker, kops, cluster, group, orders):
    body = kops("offsets", "seek", group, f"{orders}:0=1", f"{orders}:1=2", "-n", "-o", "json").ok().json
    plan = MOVE.typed(plan_of_document(body))
    with Session({"bootstrap_server": broker.bootstrap_servers}) as session:
        cluster.commit(group, {(orders, 0): 1})
        assert [item.target for item in MOVE.resume(session, plan).changes] == [f"{orders}:1"]
        cluster.commit(group, {(orders, 1): 9})
        with pytest.raises(StateMoved, match=f"{orders}:1 of group {group} moved on"):
            MOVE.resume(session, plan)


def test_a_commit_that_did_not_happen_is_a_failure(kops, cluster, group, orders, monkeypatch):
    from kops.gateways.kafka.groups.committed import CommittedOffsets

    monkeypatch.setattr(CommittedOffsets, "begin_commit", lambda self, group_id, offsets: SimpleNamespace(errors=dict))
    outcome = kops("offsets", "seek", group, f"{orders}:0=1", "--yes", "-o", "json")
    assert (outcome.code, outcome.json["status"]) == (1, "failed")
    assert outcome.json["errors"][0]["code"] == "verification_failed"
    assert offsets(cluster, group) == {0: 5, 1: 5}


def test_one_partition_that_fails_does_not_hide_the_others(kops, cluster, group, orders, monkeypatch):
    from kops.core.errors import OperationFailed
    from kops.gateways.kafka.groups.committed import CommittedOffsets

    commit = CommittedOffsets.begin_commit

    def partly(self, group_id, wanted):
        ((topic, pairs),) = wanted.items()
        done = commit(self, group_id, {topic: [(partition, offset) for partition, offset in pairs if partition]})
        return SimpleNamespace(errors=lambda: {TopicPartition(topic, 0): OperationFailed("the broker says no"), **done.errors()})

    with monkeypatch.context() as patch:
        patch.setattr(CommittedOffsets, "begin_commit", partly)
        outcome = kops("offsets", "seek", group, f"{orders}:0=1", f"{orders}:1=2", "--yes", "-o", "json")
    assert (outcome.code, outcome.json["status"]) == (6, "partial")
    assert [error["target"] for error in outcome.json["errors"]] == [f"{orders}:0"]
    assert offsets(cluster, group) == {0: 5, 1: 2}
    kops("undo", "last", "--yes").ok()
    assert offsets(cluster, group) == {0: 5, 1: 5}


def test_a_deleted_topic_does_not_stop_the_others(kops, cluster, group, orders, unique):
    gone = unique("gone")
    cluster.create(gone)
    cluster.produce(gone, [Record(None, b"x", 1, partition=0)])
    cluster.commit(group, {(gone, 0): 1})
    cluster.delete(gone)
    plan = kops("offsets", "reset", group, "--all-topics", "--to-earliest", "-n", "-o", "json").ok().json
    items = {item["target"]: (item["action"], item["reason"]) for item in plan["items"]}
    assert items.pop(f"{gone}:0", ("none", "no longer exists")) == ("none", "no longer exists")
    assert items == {f"{orders}:0": ("move", "log start"), f"{orders}:1": ("move", "log start")}


def test_offsets_of_an_open_transaction_are_waited_for(kops, broker, cluster, group, orders, unique):
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": unique("tx")})
    producer.init_transactions(30)
    producer.begin_transaction()
    from confluent_kafka import Consumer

    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    producer.send_offsets_to_transaction([Librdkafka(orders, 0, 9)], consumer.consumer_group_metadata(), 30)
    consumer.close()
    outcome = in_time(lambda seconds: kops("offsets", "seek", group, f"{orders}:0=1", "--yes", "--timeout", seconds))
    assert (outcome.code, "an open transaction has offsets" in outcome.err) == (5, True)
    assert offsets(cluster, group) == {0: 5, 1: 5}
    producer.commit_transaction(30)
    kops("offsets", "seek", group, f"{orders}:0=1", "--yes").ok()
    assert offsets(cluster, group) == {0: 1, 1: 5}
