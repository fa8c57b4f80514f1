"""Share groups changed on a real broker; Apache's own tool reads what is there."""

import json
import re

import pytest
from confluent_kafka import AcknowledgeType, Producer, ShareConsumer

from support.consumer_groups import member
from support.json_keys import as_pinned
from support.kafka import needs_kafka
from support.streams_apps import wait_for

pytestmark = pytest.mark.broker

APACHE = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"


def starts(apache, group):
    """Return the start offsets that Apache's tool prints, by partition."""
    printed = apache.run("--describe", "--offsets", "--group", group, APACHE)
    return {int(part): int(start) for part, start in re.findall(rf"^{re.escape(group)}\s+\S+\s+(\d+)\s+(\d+)", printed, re.MULTILINE)}


def test_share_group_offsets_are_moved_deleted_and_restored(kops, broker, topic, group, apache, groups, tmp_path):
    name, producer = topic("t", partitions=1), Producer(broker.client)

    def started():
        producer.produce(name, b"v", partition=0)
        assert producer.flush(60) == 0
        return starts(apache, group)

    consumer = ShareConsumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    with member(broker.bootstrap_servers, group, name, consumer=consumer):
        wait_for("a start offset", started)
        active = kops("share-groups", "reset", group, "--to", "end", "--yes")
        assert (active.code, "stop its consumers" in active.err) == (5, True)
        plan = kops("groups", "remove-members", group, "--all", "--dry-run", "-o", "json").ok().json
        gone = kops("groups", "remove-members", group, "--all", "--confirm", group, "-o", "json").ok().json
        assert [one["target"] for one in gone["items"]] == [plan["items"][0]["target"]]
    wait_for("it to be empty", lambda: groups.describe([group])[group].state == "EMPTY")
    for _ in range(9):
        started()
    kops("share-groups", "reset", group, "--to", "0", "--yes").ok()
    (row,) = as_pinned("kops share-groups lag", kops("share-groups", "lag", group, "-o", "json").ok())
    assert (row["start_offset"], row["lag"], row["processed"]) == (0, row["log_end_offset"], 0)

    late = tmp_path / "late.json"
    kops("share-groups", "reset", group, "--to", "end", "--plan-out", late).ok()
    moved = kops("share-groups", "reset", group, "--topic", name, "--to", "4", "--yes", "-o", "json").ok().json
    assert starts(apache, group) == {0: 4}
    assert kops("apply", late, "--yes").code == 5
    kops("undo", moved["journal_id"], "--yes").ok()
    assert starts(apache, group) == {0: 0}
    kops("share-groups", "reset", group, "--to", "6", "--yes").ok()
    forgotten = kops("share-groups", "delete-offsets", group, "--topic", name, "--confirm", group, "-o", "json").ok().json
    assert starts(apache, group) == {}
    kops("undo", forgotten["journal_id"], "--yes").ok()
    assert starts(apache, group) == {0: 6}
    deleted = kops("share-groups", "delete", group, "--confirm", group, "-o", "json").ok().json
    assert group not in groups.ids()
    kops("undo", deleted["journal_id"], "--yes").ok()
    assert starts(apache, group) == {0: 6}


def test_records_that_were_processed_are_delivered_again_from_the_same_start_offset(kops, broker, topic, group, apache):
    """The first record is released, so the start offset stays where it is; a reset to it is a change all the same."""
    name, producer = topic("t", partitions=1), Producer(broker.client)
    kops("groups", "alter", group, "--config", "share.auto.offset.reset=earliest", "--yes").ok()
    for _ in range(9):
        producer.produce(name, b"v", partition=0)
    assert producer.flush(60) == 0
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "share.acknowledgement.mode": "explicit"}
    with ShareConsumer(settings) as consumer:
        consumer.subscribe([name])
        messages = []
        wait_for("the records", lambda: messages.extend(consumer.poll(1)) or messages)
        for message in messages:
            consumer.acknowledge(message, AcknowledgeType.ACCEPT if message.offset() else AcknowledgeType.RELEASE)
        consumer.commit_sync()
    (row,) = kops("share-groups", "lag", group, "-o", "json").ok().json
    processed = row["processed"]
    assert (row["start_offset"], processed > 0) == (0, True)
    (item,) = kops("share-groups", "reset", group, "--to", "0", "--dry-run", "-o", "json").ok().json["items"]
    reset = kops("share-groups", "reset", group, "--to", "0", "--yes", "-o", "json").ok().json
    assert (item["action"], item["reason"]) == ("repeat", f"delivers {processed} processed records again")
    assert starts(apache, group) == {0: 0}
    (row,) = kops("share-groups", "lag", group, "-o", "json").ok().json
    assert (row["lag"], row["processed"]) == (9, 0)
    (again,) = kops("share-groups", "reset", group, "--to", "0", "--dry-run", "-o", "json").ok().json["items"]
    assert again["action"] == "none"
    assert kops("undo", reset["journal_id"], "--yes").code == 5


@needs_kafka("4.4")
def test_dead_letters_of_a_share_group_are_written_only_where_no_warning_was_given(kops, broker, topic, group, unique):
    """KIP-1191: brokers leave out dead letters without an error where something about their topic is not as they want it."""
    name, lost, queue = topic("t", partitions=1), f"dlq.{unique('lost')}", f"dlq.{unique('q')}"
    kops("topics", "create", lost, "--yes").ok()
    kops("topics", "create", queue, "--config", "errors.deadletterqueue.group.enable=true", "--yes").ok()

    def set_up(target, *more):
        settings = (f"errors.deadletterqueue.topic.name={target}", *more)
        return kops("groups", "alter", group, *(word for one in settings for word in ("--config", one)), "--yes").ok().err

    def reject(count):
        settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "share.acknowledgement.mode": "explicit"}
        consumer, producer = ShareConsumer(settings), Producer(broker.client)
        consumer.subscribe([name])
        done = 0

        def some():
            nonlocal done
            producer.produce(name, b"v", key=b"k", partition=0)
            assert producer.flush(60) == 0
            for message in consumer.poll(1.0):
                consumer.acknowledge(message, AcknowledgeType.REJECT)
                done += 1
            consumer.commit_sync()
            return done >= count

        try:
            wait_for("records to reject", some)
        finally:
            consumer.close()

    def letters(queue):
        return [json.loads(line) for line in kops("records", "dead-letters", queue, "-o", "json").ok().out.splitlines()]

    copy = "errors.deadletterqueue.copy.record.enable=true"
    assert "do not create it" in set_up(f"{queue}-missing", copy)
    assert "whose names begin with dlq." in set_up(unique("other"), copy)
    assert "errors.deadletterqueue.group.enable=false: what the group gives up is written nowhere" in set_up(lost, copy)
    reject(1)
    assert "warning" not in set_up(queue, copy)
    reject(1)
    wait_for("dead letters", lambda: letters(queue))
    assert letters(lost) == []  # given up before those that are there
    assert {one["value"] for one in letters(queue)} == {"v"}
    assert "cannot send them back" in set_up(queue, "errors.deadletterqueue.copy.record.enable=false")
    for each in (lost, queue):
        kops("topics", "delete", each, "--confirm", each).ok()


@pytest.mark.parametrize("words", [("reset", "g"), ("reset", "g", "--to", "nowhere"), ("delete-offsets", "g"), ("delete",)])
def test_bad_requests_to_share_groups_are_usage_errors(kops, words):
    assert kops("share-groups", *words).code == 2
