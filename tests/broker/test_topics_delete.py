"""``kops topics delete`` and undo, against a real broker."""

import time

import pytest
from confluent_kafka import Consumer

from support.patience import HANG_SECONDS
from support.topics import body_of, commit, produce

pytestmark = pytest.mark.broker


def test_delete_needs_the_name(topics, topic, broker, admin):
    name = topic()
    produce(broker, name)
    for wrong in (("--yes",), ("--confirm", "orders"), ()):
        refused = topics("delete", name, *wrong)
        assert refused.code == 5
        assert "nothing was changed" in refused.err
    assert name in admin.list_topics(timeout=HANG_SECONDS).topics
    done = topics("delete", name, "--confirm", name).ok()
    assert "with 3 records" in done.err
    assert name not in admin.list_topics(timeout=HANG_SECONDS).topics


def test_delete_of_several_needs_their_number(topics, topic, unique, admin):
    prefix = unique("glob")
    names = [topic(name=f"{prefix}-{number}") for number in range(3)]
    refused = topics("delete", f"{prefix}-*", "--yes")
    assert refused.code == 5
    assert "--confirm '3 topics'" in refused.err
    assert all(name in refused.err for name in names)
    assert topics("delete", f"{prefix}-.*", "--regex", "--confirm", "2 topics").code == 5
    result = topics("delete", f"{prefix}-.*", "--regex", "--confirm", "3 topics", "-o", "json").ok().json
    assert [item["target"] for item in result["items"]] == names
    assert not set(names) & set(admin.list_topics(timeout=HANG_SECONDS).topics)
    assert topics("delete", f"{prefix}-*", "--confirm", "3 topics").code == 0  # nothing left to do


def test_delete_says_who_uses_the_topic(topics, topic, broker, unique, admin):
    group = unique("app")
    name = topic(name=f"{group}-totals-changelog")
    produce(broker, name)
    commit(broker, name, group)
    warnings = topics("delete", name, "--dry-run", "-o", "json").ok().json["warnings"]
    assert any(f"internal topic of the Kafka Streams application {group}" in warning for warning in warnings)
    assert any(f"committed offsets of group {group}" in warning for warning in warnings)
    reader = Consumer({**broker.client, "group.id": group, "auto.offset.reset": "earliest"})
    try:
        reader.subscribe([name])
        deadline = time.monotonic() + HANG_SECONDS
        while reader.poll(0.2) is None:
            assert time.monotonic() < deadline
        warnings = topics("delete", name, "--dry-run", "-o", "json").ok().json["warnings"]
        assert any(f"being read by group {group}" in warning for warning in warnings)
    finally:
        reader.close()
    admin.delete_consumer_groups([group])[group].result(HANG_SECONDS)


def test_deleting_what_is_not_there_and_what_is_never_deleted(topics, unique):
    missing = topics("delete", unique(), "--confirm", "x")
    assert missing.code == 1
    assert "there is no topic" in missing.err
    assert topics("delete", unique(), "--if-exists").code == 0
    assert topics("delete", "__consumer_offsets", "--confirm", "__consumer_offsets").code == 5


def test_a_topic_recreated_since_the_plan_is_not_deleted(topics, topic, run_kops, tmp_path, admin):
    name, plan = topic(), tmp_path / "plan.json"
    topics("delete", name, "--plan-out", plan).ok()
    topics("delete", name, "--confirm", name).ok()
    topics("create", name, "--yes").ok()
    refused = run_kops("apply", plan, "--confirm", name)
    assert refused.code == 5
    assert "recreated" in refused.err
    assert name in admin.list_topics(timeout=HANG_SECONDS).topics


def test_undo_of_create_deletes_only_that_topic_and_only_when_it_is_named(topics, unique, run_kops, broker, admin):
    name = unique()
    entry = topics("create", name, "--yes", "-o", "json").ok().json["journal_id"]
    produce(broker, name)
    refused = run_kops("undo", entry, "--confirm", name)
    assert (refused.code, f"{name} has 3 more records" in refused.err, "--accept-loss" in refused.err) == (5, True, True)
    refused = run_kops("undo", entry, "--yes", "--accept-loss")
    assert (refused.code, "with 3 records" in refused.err, f"lost by this: {name} has 3 more records" in refused.err) == (5, True, True)
    topics("delete", name, "--confirm", name).ok()
    gone = run_kops("undo", entry, "--confirm", name)
    assert gone.code == 5
    assert "do not exist, so there is nothing to undo" in gone.err
    topics("create", name, "--yes").ok()
    other = run_kops("undo", entry, "--confirm", name)
    assert other.code == 5
    assert "created again since" in other.err
    run_kops("undo", "last", "--confirm", name).ok()
    assert name not in admin.list_topics(timeout=HANG_SECONDS).topics


def test_undo_of_delete_makes_it_again_and_says_that_records_are_lost(topics, topic, run_kops, broker):
    name = topic(partitions=3, config={"cleanup.policy": "compact", "segment.ms": "60000"})
    produce(broker, name)
    old = body_of(topics, name)
    topics("delete", name, "--confirm", name).ok()
    done = run_kops("undo", "last", "--yes").ok()
    assert f"the records that were deleted do not come back: {name} (3)" in done.err
    new = body_of(topics, name)
    assert new["topic_id"] != old["topic_id"]
    assert new["settings"] == old["settings"]
    assert len(new["partitions"]) == 3
