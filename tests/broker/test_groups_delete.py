"""``kops groups delete`` on a real broker: only empty groups, by the name typed, and undo gives them back where they stood."""

import pytest
from confluent_kafka import ShareConsumer

from kops.core.models import CommittedOffset, TopicPartition
from support.consumer_groups import member
from support.programs import Program, Record
from support.streams_apps import running, wait_for

pytestmark = pytest.mark.broker


def ids(groups, prefix):
    return [group_id for group_id in groups.ids() if group_id.startswith(prefix)]


def test_undo_makes_the_groups_again_with_offsets_epochs_and_metadata(kops, groups, group, topic):
    one, two = topic("one", partitions=3), topic("two")
    first = {
        TopicPartition(one, 0): CommittedOffset(3, "some metadata", 4),
        TopicPartition(one, 2): CommittedOffset(0),
        TopicPartition(two, 0): CommittedOffset(9),
    }
    second = {TopicPartition(two, 0): CommittedOffset(1)}
    for name, offsets in ((f"{group}-1", first), (f"{group}-2", second)):
        wait_for("the commit", lambda name=name, offsets=offsets: set(groups.commit(name, offsets).values()) == {None})
    deleted = kops("groups", "delete", f"{group}-*", "--confirm", "2 groups", "-o", "json").ok().json
    assert [(item["target"], item["status"]) for item in deleted["items"]] == [(f"{group}-1", "done"), (f"{group}-2", "done")]
    assert ids(groups, group) == []
    assert groups.committed([f"{group}-1", f"{group}-2"]) == {f"{group}-1": {}, f"{group}-2": {}}
    kops("undo", deleted["journal_id"], "--yes").ok()
    assert groups.committed([f"{group}-1", f"{group}-2"]) == {f"{group}-1": first, f"{group}-2": second}
    again = kops("undo", deleted["journal_id"], "--yes")
    assert again.code != 0


def test_the_name_is_typed_and_a_dry_run_deletes_nothing(kops, groups, group, topic, cluster):
    cluster.commit(group, {(topic("t"), 0): 5})
    plan = kops("groups", "delete", group, "--dry-run", "-o", "json").ok().json
    assert (plan["operation"], plan["severity"], plan["confirm"]) == ("groups.delete", "severe", group)
    assert plan["items"][0]["before"]["committed"] == 1
    for approval in ((), ("--yes",), ("--confirm", "another")):
        refused = kops("groups", "delete", group, *approval)
        assert refused.code == 5
    assert ids(groups, group) == [group]
    typo = kops("groups", "delete", f"{group}x", "--confirm", f"{group}x")
    assert (typo.code, f"there is no group {group}x" in typo.err) == (1, True)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_with_members_is_left_alone(kops, broker, groups, group, topic, cluster, protocol):
    name = topic("t")
    cluster.commit(f"{group}-idle", {(name, 0): 5})
    with member(broker.bootstrap_servers, f"{group}-live", name, group_protocol=protocol):
        refused = kops("groups", "delete", f"{group}-live", "--confirm", f"{group}-live")
        assert refused.code == 5
        assert "has 1 member" in refused.err
        by_glob = kops("groups", "delete", f"{group}-*", "--confirm", f"{group}-idle", "-o", "json").ok()
        assert "has members" in kops("groups", "delete", f"{group}-*", "-n").ok().out
        assert [(item["target"], item["status"]) for item in by_glob.json["items"]] == [(f"{group}-idle", "done")]
        assert ids(groups, group) == [f"{group}-live"]


def test_a_share_group_is_not_deleted(kops, broker, groups, topic, group):
    consumer = ShareConsumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    with member(broker.bootstrap_servers, group, topic("s"), consumer=consumer):
        wait_for("the share group", lambda: group in groups.ids())
        refused = kops("groups", "delete", group, "--confirm", group)
    assert refused.code == 5
    assert "kops share-groups delete" in refused.err
    assert group in groups.ids()


def test_a_plan_is_refused_when_the_group_has_moved_on(kops, groups, group, topic, cluster, tmp_path):
    name, plan = topic("t", partitions=2), tmp_path / "plan.json"
    cluster.commit(group, {(name, 0): 5})
    for moved in ({(name, 0): 6}, {(name, 1): 1}):
        plan.unlink(missing_ok=True)
        kops("groups", "delete", group, "--plan-out", plan).ok()
        cluster.commit(group, moved)
        refused = kops("apply", plan, "--confirm", group)
        assert refused.code == 5
        assert "changed since the plan was made" in refused.err
    plan.unlink()
    kops("groups", "delete", group, "--plan-out", plan).ok()
    kops("apply", plan, "--confirm", group).ok()
    assert ids(groups, group) == []
    gone = kops("apply", plan, "--confirm", group)
    assert (gone.code, "no longer exists" in gone.err) == (5, True)


def test_undo_does_not_touch_a_group_that_was_joined_meanwhile(kops, broker, groups, group, topic, cluster):
    name = topic("t")
    cluster.commit(group, {(name, 0): 5})
    deleted = kops("groups", "delete", group, "--confirm", group, "-o", "json").ok().json
    with member(broker.bootstrap_servers, group, name):
        refused = kops("undo", deleted["journal_id"], "--yes")
        assert refused.code == 5
        assert "member" in refused.err
    assert groups.committed([group])[group] == {}


@pytest.mark.streams
@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_a_kafka_streams_application_goes_on_after_undo(kops, broker, groups, cluster, unique, tmp_path, protocol):
    """Its group is made again as a plain one; when the application starts it takes that over, and processes nothing twice."""
    program = Program("count", "long").named(unique())
    group = program.application
    cluster.create_all({program.topic: 2, program.output: 1})
    try:
        cluster.produce(program.topic, [Record(b"k%d" % at, b'{"id":1}', 1_000_000 + at) for at in range(20)])
        with running(cluster.servers, program, tmp_path, "--config", f"group.protocol={protocol}") as application:
            application.wait_for("CAUGHT_UP")
            application.stop()
        wait_for(f"{group} to empty", lambda: groups.describe([group])[group].state == "EMPTY")
        before = groups.committed([group])[group]
        deleted = kops("groups", "delete", group, "--confirm", group, "-o", "json").ok()
        assert "Kafka Streams application" in deleted.err
        assert ids(groups, group) == []
        kops("undo", deleted.json["journal_id"], "--yes").ok()
        assert groups.committed([group])[group] == before
        with running(cluster.servers, program, tmp_path, "--config", f"group.protocol={protocol}") as application:
            application.wait_for("CAUGHT_UP")
            assert groups.describe([group])[group].type == protocol
            application.stop()
        assert len(cluster.read(program.output)) == 20
    finally:
        groups.delete([group])
        cluster.delete_all([name for name in cluster.topics() if name.startswith((program.topic, program.output, f"{group}-"))])
