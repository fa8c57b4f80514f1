"""What ``kops topics`` leaves behind, read with Apache's own tools; and what it shows, beside what they show."""

import json
import time

import pytest
from confluent_kafka import Producer

from support.apache_tools import DELETE_RECORDS
from support.patience import HANG_SECONDS
from support.topics import body_of

pytestmark = pytest.mark.broker

MINUTE = 60_000


def fill(broker, topic, timestamps):
    """Write a record for each time, round robin over three partitions."""
    producer = Producer(broker.client)
    for number, timestamp in enumerate(timestamps):
        producer.produce(topic, key=b"k", value=b"x" * 50, partition=number % 3, timestamp=timestamp)
    assert producer.flush(HANG_SECONDS) == 0


def test_apache_shows_altered_settings_and_their_undo(topics, topic, apache, run_kops):
    one, two = topic(config={"segment.ms": "60000", "retention.ms": "5000"}), topic()
    changes = ("--config", "retention.ms=7200000", "--config", "cleanup.policy=delete, compact", "--delete-config", "segment.ms")
    done = topics("alter", one, two, *changes, "--yes", "-o", "json").ok().json
    assert {item["target"]: item["status"] for item in done["items"]} == {one: "done", two: "done"}
    for name in (one, two):
        assert apache.own_settings(name) == {"retention.ms": "7200000", "cleanup.policy": "delete,compact"}
    run_kops("undo", done["journal_id"], "--yes").ok()
    assert apache.own_settings(one) == {"segment.ms": "60000", "retention.ms": "5000"}
    assert apache.own_settings(two) == {}
    assert topics("alter", one, *changes[-2:], "--config", "retention.ms=5000", "--yes").ok()
    assert apache.own_settings(one) == {"retention.ms": "5000"}


def test_a_policy_that_is_empty_is_set_and_not_taken_away(topics, topic, apache):
    name = topic()
    topics("alter", name, "--config", "cleanup.policy=", "--yes").ok()
    assert apache.own_settings(name) == {"cleanup.policy": ""}


def test_apache_shows_added_partitions(topics, topic, apache):
    one, two = topic(), topic(partitions=3)
    result = topics("add-partitions", one, two, "--partitions", "3", "--yes", "-o", "json").ok().json
    assert [(item["target"], item["status"]) for item in result["items"]] == [(one, "done")]
    assert (apache.partitions(one), apache.partitions(two)) == (3, 3)


def test_offsets_are_those_of_apache(topics, topic, broker, apache):
    name, now = topic(partitions=3), int(time.time() * 1000)
    fill(broker, name, [now - minutes * MINUTE for minutes in range(30, 0, -1)])
    since = now - 10 * MINUTE - 1
    rows = topics("offsets", name, "--at", f"@{since}", "-o", "json").ok().json
    assert {row["partition"]: row["log_start_offset"] for row in rows} == apache.offsets(name, -2)
    assert {row["partition"]: row["log_end_offset"] for row in rows} == apache.offsets(name, -1)
    assert {row["partition"]: row["offset_at"] for row in rows} == apache.offsets(name, since)
    assert [row["offsets"] for row in rows] == [10, 10, 10]
    assert sum(row["offsets_since"] for row in rows) == 10
    late = topics("offsets", name, "--at", f"@{now + MINUTE}", "-o", "json").ok().json
    assert [(row["offset_at"], row["offsets_since"], row["note"]) for row in late] == [(None, 0, "no record since")] * 3


def test_truncating_leaves_what_apaches_tool_leaves(topics, topic, broker, apache, tmp_path):
    """Both tools, the same request on twins: the same log start offsets."""
    mine, theirs, now = topic("mine", partitions=3), topic("theirs", partitions=3), int(time.time() * 1000)
    times = [now - minutes * MINUTE for minutes in range(30, 0, -1)]
    fill(broker, mine, times)
    fill(broker, theirs, times)
    file = tmp_path / "offsets.json"
    wanted = [{"topic": theirs, "partition": 0, "offset": 4}, {"topic": theirs, "partition": 1, "offset": -1}]
    file.write_text(json.dumps({"partitions": wanted, "version": 1}), encoding="utf-8")
    assert "low_watermark: 4" in apache.run("--offset-json-file", str(file), DELETE_RECORDS)
    file.write_text(file.read_text(encoding="utf-8").replace(theirs, mine), encoding="utf-8")
    topics("truncate", "--offset-json-file", file, "--confirm", mine).ok()
    assert apache.offsets(mine, -2) == apache.offsets(theirs, -2) == {0: 4, 1: 10, 2: 0}
    since = now - 5 * MINUTE - 1
    at = apache.offsets(mine, since)
    result = topics("truncate", mine, "--to", f"@{since}", "--confirm", mine, "-o", "json").ok().json
    assert apache.offsets(mine, -2) == {0: at[0], 1: 10, 2: at[2]}
    assert {item["target"]: item.get("value") for item in result["items"]} == {f"{mine}:{number}": at[number] for number in (0, 2)}


def test_sizes_are_those_of_apache(topics, topic, broker, apache):
    name = topic(partitions=3)
    fill(broker, name, [int(time.time() * 1000)] * 9)
    body = body_of(topics, name)
    sizes = apache.sizes(name)
    assert {row["partition"]: row["size_bytes"] for row in body["replica_sizes"]} == sizes
    assert body["size_bytes"] == body["replicas_size_bytes"] == sum(sizes.values()) > 0
    assert "replica_sizes" not in topics("describe", name, "--brief", "-o", "json").ok().json[0]


def test_a_file_is_applied_and_taken_back(topics, topic, unique, apache, tmp_path, run_kops):
    prefix = unique("f")
    old, gone, new = topic(name=f"{prefix}-old", config={"segment.ms": "60000"}), topic(name=f"{prefix}-gone"), f"{prefix}-new"
    file = tmp_path / "topics.yaml"
    file.write_text(
        f"""
owns: [{prefix}-*]
---
name: {old}
partitions: 2
config: {{cleanup.policy: [compact, delete], retention.ms: 3600000, preallocate: false}}
---
name: {new}
partitions: 3
replication_factor: 1
config: {{retention.ms: 60000}}
""",
        encoding="utf-8",
    )
    assert topics("diff", file).code == 1
    arguments = ("apply", file, "--prune", "--reset-unmanaged")
    done = topics(*arguments, "--confirm", gone, "-o", "json").ok().json
    assert {item["target"]: item["status"] for item in done["items"]} == {new: "done", old: "done", gone: "done"}
    assert apache.own_settings(old) == {"cleanup.policy": "compact,delete", "retention.ms": "3600000", "preallocate": "false"}
    assert apache.own_settings(new) == {"retention.ms": "60000"}
    assert (apache.partitions(old), apache.partitions(new)) == (2, 3)
    assert gone not in apache.topics()
    again = topics(*arguments, "-o", "json").ok().json
    assert again["status"] == "unchanged"
    assert topics("diff", file, "--prune", "--reset-unmanaged").code == 0
    undone = run_kops("undo", done["journal_id"], "--confirm", new).ok()
    assert f"{old}: the partitions that were added stay" in undone.err
    assert apache.own_settings(old) == {"segment.ms": "60000"}
    assert {old, gone} <= apache.topics()
    assert new not in apache.topics()
