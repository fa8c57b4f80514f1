"""``kops topics`` alter, add-partitions and truncate: what they refuse, warn of, and compare before they change anything."""

import base64
import time

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as At
from confluent_kafka.admin import ConfigResource, NewPartitions, NewTopic, ResourceType

from support.consumer_groups import member
from support.patience import HANG_SECONDS
from support.topics import commit, produce

pytestmark = pytest.mark.broker

MINUTE = 60_000


def old_records(broker, topic, count=10):
    """Write records that are an hour old, in partition 0."""
    producer, hour_ago = Producer(broker.client), int(time.time() * 1000) - 60 * MINUTE
    for number in range(count):
        producer.produce(topic, key=b"k", value=b"v", partition=0, timestamp=hour_ago + number)
    assert producer.flush(HANG_SECONDS) == 0


def own(admin, topic):
    resource = ConfigResource(ResourceType.TOPIC, topic)
    found = admin.describe_configs([resource])[resource].result(HANG_SECONDS)
    return {name: entry.value for name, entry in found.items() if entry.source == 1}


@pytest.fixture
def group(unique, admin):
    name = unique("g")
    yield name
    if name in {found.group_id for found in admin.list_consumer_groups().result(HANG_SECONDS).valid}:
        admin.delete_consumer_groups([name])[name].result(HANG_SECONDS)


@pytest.mark.parametrize(
    "arguments",
    [
        ("alter", "t"),
        ("alter", "--config", "retention.ms=5"),
        ("alter", "t", "--config", "retenton.ms=5"),
        ("alter", "t", "--config", "retention.ms=7x"),
        ("alter", "t", "--config", "retention.ms"),
        ("alter", "t", "--delete-config", "retenton.ms"),
        ("alter", "t", "--delete-config", "retention.ms", "--config", "retention.ms=5"),
        ("add-partitions", "t"),
        ("add-partitions", "t", "--partitions", "0"),
        ("truncate", "t"),
        ("truncate", "t", "--to", "start"),
        ("truncate", "t", "--to", "yesterday"),
        ("truncate", "t:x", "--to", "5"),
        ("offsets", "t", "--at", "yesterday"),
    ],
)
def test_what_is_wrong_by_itself_is_refused_without_any_broker(run_kops, arguments):
    refused = run_kops("topics", *arguments, "-B", "127.0.0.1:1")
    assert refused.code == 2, refused.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("alter", "--config", "retention.ms=5"),
        ("add-partitions", "--partitions", "9"),
        ("truncate", "--to", "end"),
        ("offsets",),
    ],
)
def test_names_that_do_not_exist_and_patterns_that_match_nothing(topics, topic, unique, arguments):
    name = topic()
    verb, *options = arguments
    missing = topics(verb, f"{name}x", *options)
    assert missing.code == 1
    assert f"did you mean {name}?" in missing.err
    pattern = f"{unique()}-*"
    for named in ([pattern], ["--topic", pattern]):
        nothing = topics(verb, *named, *options).ok()
        assert verb == "truncate" or f"no topic matches {pattern}" in nothing.err
        assert verb != "truncate" or "no records go" in nothing.err
    assert topics(verb, "(", *options, "--regex").code == 2


def test_globs_and_expressions_choose_topics(topics, topic, unique, admin):
    prefix = unique("g")
    names = [topic(name=f"{prefix}-{end}") for end in "abc"]
    topics("alter", f"{prefix}-[ab]", "--config", "segment.ms=60000", "--yes").ok()
    topics("alter", f"{prefix}-.*c", "--regex", "--config", "segment.ms=70000", "--yes").ok()
    assert [own(admin, name)["segment.ms"] for name in names] == ["60000", "60000", "70000"]
    topics("add-partitions", f"{prefix}-*", "--partitions", "2", "--yes").ok()
    counted = topics("offsets", f"{prefix}-[bc]:1", names[0], "--by", "topic", "-o", "json").ok().json
    assert [(row["topic"], row["partitions"], row["offsets"]) for row in counted] == [(names[0], 2, 0), (names[1], 1, 0), (names[2], 1, 0)]
    assert topics("offsets", f"{prefix}-*:2").code == 1  # not all of them have it


def test_the_plan_shows_what_changes_and_what_goes(topics, topic, broker, group, admin):
    name = topic(config={"retention.ms": "86400000"})
    old_records(broker, name)
    commit(broker, name, group, offset=4)
    plan = topics("alter", name, "--config", "retention.ms=1800000", "--dry-run", "-o", "json").ok().json
    assert plan["items"][0]["before"] == {"settings": {"retention.ms": "86400000"}, "sources": {"retention.ms": "topic"}}
    assert plan["items"][0]["after"] == {"settings": {"retention.ms": "1800000"}, "sources": {"retention.ms": "topic"}}
    assert f"{name}: up to 10 of 10 records are older than retention.ms 1800000 (30m): they are deleted for good soon" in plan["warnings"]
    assert f"group {group} has yet to read 6 of the records to be deleted from {name}" in plan["warnings"]
    assert own(admin, name) == {"retention.ms": "86400000"}
    longer = topics("alter", name, "--config", "retention.ms=172800000", "--dry-run", "-o", "json").ok().json
    assert longer["warnings"] == []
    compact = topics("alter", name, "--config", "cleanup.policy=compact", "--dry-run", "-o", "json").ok().json
    assert any("all without a key, for good" in warning for warning in compact["warnings"])
    small = topics("alter", name, "--config", "retention.bytes=100", "--dry-run", "-o", "json").ok().json
    assert any("1 of 1 partitions hold more than retention.bytes 100 (100 B)" in warning for warning in small["warnings"])


def test_a_change_is_refused_when_topics_changed_since_the_plan(topics, topic, run_kops, tmp_path, admin):
    name, plan = topic(), tmp_path / "plan.json"
    topics("alter", name, "--config", "segment.ms=60000", "--plan-out", plan).ok()
    topics("alter", name, "--config", "retention.ms=90000", "--yes").ok()  # another setting: not in the way
    topics("alter", name, "--config", "segment.ms=70000", "--yes").ok()
    refused = run_kops("apply", plan, "--yes")
    assert refused.code == 5
    assert "changed since the plan was made" in refused.err
    assert own(admin, name) == {"segment.ms": "70000", "retention.ms": "90000"}


def test_undo_says_what_was_changed_since(topics, topic, run_kops, admin):
    name = topic()
    done = topics("alter", name, "--config", "segment.ms=60000", "--yes", "-o", "json").ok().json
    topics("alter", name, "--config", "segment.ms=70000", "--yes").ok()
    refused = run_kops("undo", done["journal_id"], "--yes")
    assert (refused.code, f"{name} was changed since: segment.ms=70000" in refused.err) == (5, True)
    assert own(admin, name) == {"segment.ms": "70000"}
    undone = run_kops("undo", done["journal_id"], "--yes", "--accept-loss").ok()
    assert f"lost by this: {name} was changed since" in undone.err
    assert own(admin, name) == {}


def test_what_the_broker_refuses_is_refused_before_anything_is_changed(topics, topic, admin):
    one, two = topic(), topic()
    refused = topics("alter", one, two, "--config", "segment.ms=60000", "--config", "quux.zzz=1", "--yes")
    assert refused.code == 2
    assert own(admin, one) == own(admin, two) == {}


def test_partitions_are_never_taken_away(topics, topic, run_kops):
    name = topic(partitions=3, config={"cleanup.policy": "compact"})
    refused = topics("add-partitions", name, "--partitions", "2", "--yes")
    assert refused.code == 5
    assert f"{name} has 3 partitions, and Kafka cannot remove any" in refused.err
    done = topics("add-partitions", name, "--partitions", "4", "--yes", "-o", "json").ok()
    assert "records of a key go to another partition" in done.err
    assert "compacted: the last value of a key in its old partition stays" in done.err
    undo = run_kops("undo", done.json["journal_id"], "--yes")
    assert undo.code == 5
    assert f"Kafka cannot remove partitions from {name}" in undo.err


def streams_commit(broker, topic, group):
    """Commit as Kafka Streams does: with its version and a stream time as metadata."""
    consumer = Consumer({**broker.client, "group.id": group})
    metadata = base64.b64encode(bytes([2]) + (1_700_000_000_000).to_bytes(8, "big")).decode()
    consumer.commit(offsets=[At(topic, 0, 1, metadata=metadata)], asynchronous=False)
    consumer.close()


def test_topics_of_kafka_streams_do_not_grow_by_accident(topics, topic, broker, group, admin):
    read, changelog, plain = topic("in"), topic(name=f"{group}-totals-changelog", config={"cleanup.policy": "compact"}), topic("plain")
    for name in (read, plain):
        produce(broker, name)
    streams_commit(broker, read, group)
    for name, use in ((read, f"is read by the Kafka Streams application {group}"), (changelog, "is an internal topic of")):
        refused = topics("add-partitions", name, "--partitions", "2", "--yes")
        assert refused.code == 5
        assert f"{name} {use}" in refused.err
        assert "--allow-streams" in refused.err
    topics("add-partitions", plain, "--partitions", "2", "--yes").ok()
    allowed = topics("add-partitions", read, changelog, "--partitions", "2", "--yes", "--allow-streams").ok()
    assert "it has to be reset" in allowed.err
    assert {len(admin.list_topics(name, timeout=HANG_SECONDS).topics[name].partitions) for name in (read, changelog)} == {2}


def test_a_group_of_another_name_is_no_kafka_streams(topics, topic, broker, group, admin):
    """A changelog of ``orders-v2`` does not make ``orders`` an application; nor do commits without metadata."""
    topic(name=f"{group}-v2-totals-changelog")
    name, other = topic("in"), topic("other")
    for one, reader in ((name, group), (other, f"{group}-v2")):
        produce(broker, one)
        commit(broker, one, reader)
    plan = topics("add-partitions", name, "--partitions", "2", "--dry-run").ok()
    assert f"{name} is read by group {group}: what starts at the log end" in plan.err
    refused = topics("add-partitions", other, "--partitions", "2", "--dry-run")
    assert f"application {group}-v2," in refused.err
    admin.delete_consumer_groups([f"{group}-v2"])[f"{group}-v2"].result(HANG_SECONDS)


@pytest.mark.parametrize("verb", [("truncate", "--to", "end"), ("add-partitions", "--partitions", "99")])
def test_the_brokers_own_topics_are_refused(topics, topic, broker, group, verb):
    commit(broker, topic(), group, offset=0)  # makes __consumer_offsets
    refused = topics(verb[0], "__consumer_offsets", *verb[1:])
    assert refused.code == 5
    assert "belongs to the brokers" in refused.err


def test_truncating_clamps_and_says_who_still_needs_what_goes(topics, topic, broker, group, run_kops):
    name = topic(partitions=2)
    old_records(broker, name)
    commit(broker, name, group, offset=4)
    plan = topics("truncate", name, "--to", "99", "--dry-run", "-o", "json").ok().json
    assert [(item["target"], item["action"], item["before"], item["after"], item["reason"]) for item in plan["items"]] == [
        (f"{name}:0", "truncate", 0, 10, "10 of 10 go; 99 is past the log end: clamped"),
        (f"{name}:1", "none", 0, 0, "nothing goes; 99 is past the log end: clamped"),
    ]
    assert plan["warnings"] == ["this cannot be undone", f"group {group} has yet to read 6 of the records to be deleted from {name}"]
    assert (plan["severity"], plan["confirm"]) == ("severe", name)
    assert topics("truncate", name, "--to", "7", "--yes").code == 5
    with member(broker.bootstrap_servers, group, name):
        done = topics("truncate", f"{name}:0", "--to", "7", "--confirm", name, "-o", "json").ok()
        assert f"{name} is being read by group {group}" in done.err
    assert [(item["status"], item["value"]) for item in done.json["items"]] == [("done", 7)]
    lower = topics("truncate", name, "--to", "3", "--confirm", name, "-o", "json").ok()
    assert lower.json["status"] == "unchanged"
    undo = run_kops("undo", done.json["journal_id"], "--yes")
    assert undo.code == 5
    assert "cannot be undone" in undo.err


def test_truncating_several_topics_needs_their_number(topics, topic, broker, unique):
    prefix = unique("t")
    names = [topic(name=f"{prefix}-{end}") for end in "ab"]
    for name in names:
        produce(broker, name)
    assert topics("truncate", f"{prefix}-*", "--to", "end", "--confirm", names[0]).code == 5
    topics("truncate", f"{prefix}-*", "--to", "end", "--confirm", "2 topics").ok()
    rows = topics("offsets", f"{prefix}-*", "-o", "json").ok().json
    assert [(row["log_start_offset"], row["log_end_offset"]) for row in rows] == [(3, 3), (3, 3)]


def test_a_topic_that_is_only_compacted_is_refused_as_the_broker_would(topics, topic, broker, admin):
    name, both = topic(config={"cleanup.policy": "compact"}), topic(config={"cleanup.policy": "compact,delete"})
    for one in (name, both):
        produce(broker, one)
    refused = topics("truncate", name, "--to", "end", "--confirm", name)
    assert refused.code == 5
    assert "only where the policy has delete" in refused.err
    by_broker = next(iter(admin.delete_records([At(name, 0, 1)]).values())).exception(HANG_SECONDS)
    assert by_broker.args[0].name() == "POLICY_VIOLATION"
    topics("truncate", both, "--to", "end", "--confirm", both).ok()


def test_a_truncation_is_refused_when_a_group_went_back_or_the_topic_is_another(topics, topic, broker, group, run_kops, tmp_path, admin):
    name, plan = topic(), tmp_path / "plan.json"
    old_records(broker, name)
    commit(broker, name, group, offset=8)
    topics("truncate", name, "--to", "9", "--plan-out", plan).ok()
    commit(broker, name, group, offset=2)
    refused = run_kops("apply", plan, "--confirm", name)
    assert refused.code == 5
    assert f"group {group} moved back since the plan was made, and needs more of the records to be deleted" in refused.err
    commit(broker, name, group, offset=10)
    admin.delete_topics([name])[name].result(HANG_SECONDS)
    deadline = time.monotonic() + HANG_SECONDS
    while name in admin.list_topics(timeout=HANG_SECONDS).topics and time.monotonic() < deadline:
        time.sleep(0.05)
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(HANG_SECONDS)
    refused = run_kops("apply", plan, "--confirm", name)
    assert refused.code == 5
    assert "recreated" in refused.err


def test_growing_twice_from_one_plan_is_refused(topics, topic, run_kops, tmp_path, admin):
    name, plan = topic(), tmp_path / "plan.json"
    topics("add-partitions", name, "--partitions", "3", "--plan-out", plan).ok()
    admin.create_partitions([NewPartitions(name, 2)], operation_timeout=HANG_SECONDS)[name].result(HANG_SECONDS)
    assert run_kops("apply", plan, "--yes").code == 5


def test_describe_shows_sizes_compaction_and_readers(topics, topic, broker, group):
    name = topic(config={"cleanup.policy": "compact"})
    produce(broker, name)
    commit(broker, name, group)
    text = topics("describe", name).ok().out
    assert "SIZE" in text
    assert "min.cleanable.dirty.ratio" in text
    assert group in text
    body = topics("describe", name, "-o", "json").ok().json[0]
    assert body["readers"] == [{"group": group, "committed": True, "active": False}]
    assert {setting["name"] for setting in body["compaction"]} >= {"cleanup.policy", "delete.retention.ms", "min.compaction.lag.ms"}
    assert body["replica_sizes"][0]["size_bytes"] > 0
    assert body["streams_application"] is None
    brief = topics("describe", name, "--brief").ok().out
    assert "SIZE" not in brief
    assert group not in brief
