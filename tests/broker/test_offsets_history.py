"""Where a group stood: decoded from the log as Apache's formatter does, and the way back there."""

import json
import subprocess
import time

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Librdkafka

from kops.config.connection import Connection
from kops.core.models import CommittedOffset, TopicPartition
from kops.core.times import parse_time, time_text
from kops.formats.groups.consumer_offsets import partition_of_group
from kops.gateways.kafka import Kafka
from support.consumer_groups import member
from support.patience import HANG_SECONDS
from support.programs import Record
from support.streams import java_command

pytestmark = pytest.mark.broker

OFFSETS = "__consumer_offsets"


@pytest.fixture
def orders(topic, cluster):
    """Two partitions with ten records each."""
    name = topic("orders", partitions=2)
    cluster.produce(name, [Record(None, b"x", 1_000_000, partition=partition) for partition in (0, 1) for _ in range(10)])
    return name


def history(kops, group, *arguments):
    return kops("offsets", "history", group, *arguments, "-o", "json").ok().json


def apaches_view(servers, partition, first, last):
    """What Apache's console consumer prints of a range of ``__consumer_offsets``, by its formatter of offsets."""
    tool = java_command("org.apache.kafka.tools.consumer.ConsoleConsumer")
    place = ["--topic", OFFSETS, "--partition", str(partition), "--offset", str(first), "--max-messages", str(last - first + 1)]
    formatter = ["--formatter", "org.apache.kafka.tools.consumer.OffsetsMessageFormatter", "--timeout-ms", "10000"]
    command = [*tool, "--bootstrap-server", servers, *place, *formatter]
    text = subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS, check=False).stdout
    decoder, at, found = json.JSONDecoder(), 0, []
    while (at := text.find("{", at)) >= 0:  # it writes one object behind the other
        record, at = decoder.raw_decode(text, at)
        found.append(record)
    return found


def test_commits_are_those_that_apaches_formatter_shows(kops, broker, cluster, groups, group, orders):
    zero = TopicPartition(orders, 0)
    cluster.commit(group, {(orders, 0): 1, (orders, 1): 2})
    groups.commit(group, {zero: CommittedOffset(3, "ünïcode text", 4)})
    with Kafka(Connection((broker.bootstrap_servers,))).client.consumer({"group.id": group, "enable.auto.commit": False}) as consumer:
        consumer.commit(offsets=[Librdkafka(orders, 1, 6)], asynchronous=False)
    groups.delete_offsets(group, [zero])
    rows = history(kops, group)
    partition = partition_of_group(group, cluster.topics(OFFSETS)[OFFSETS])
    shown = apaches_view(broker.bootstrap_servers, partition, rows[0]["log_offset"], rows[-1]["log_offset"])
    expected = []
    for record in (record for record in shown if record["key"]["data"].get("group") == group):
        value = (record["value"] or {}).get("data")
        expected.append(
            {
                "topic": record["key"]["data"]["topic"],
                "partition": record["key"]["data"]["partition"],
                "event": "commit" if value else "deleted",
                "offset": value["offset"] if value else None,
                "leader_epoch": (None if value["leaderEpoch"] == -1 else value["leaderEpoch"]) if value else None,
                "metadata": value["metadata"] if value else None,
                "time": time_text(value["commitTimestamp"]) if value else None,
            }
        )
    assert len(expected) == 5
    assert [row.pop("moved") for row in rows] == [None, None, 2, 4, None]
    assert [{**row, "time": row["time"] if row["event"] == "commit" else None} for row in rows] == [
        {**want, "log_offset": row["log_offset"]} for want, row in zip(expected, rows, strict=True)
    ]


def test_a_group_is_moved_back_to_where_it_stood(kops, cluster, groups, group, orders):
    cluster.commit(group, {(orders, 0): 1})
    time.sleep(0.02)
    cluster.commit(group, {(orders, 0): 5, (orders, 1): 7})
    time.sleep(0.02)
    cluster.commit(group, {(orders, 0): 9, (orders, 1): 9})
    rows = history(kops, group)
    places = [(row["partition"], row["offset"]) for row in rows]
    assert [places[0], *sorted(places[1:3]), *sorted(places[3:])] == [(0, 1), (0, 5), (1, 7), (0, 9), (1, 9)]  # a commit has no order
    first, second = rows[0]["time"], max(row["time"] for row in rows[1:3])
    at = history(kops, group, "--at", f"@{second}")
    assert sorted((row["partition"], row["offset"], row["note"]) for row in at) == [(0, 5, ""), (1, 7, "")]
    early = history(kops, group, "--at", first, "--topic", f"{orders}:1")
    assert [(row["offset"], row["note"]) for row in early] == [(None, "no longer known")]

    plan = kops("offsets", "reset", group, "--all-topics", "--to-history", first, "-n", "-o", "json").ok().json
    assert [(item["action"], item["after"]) for item in plan["items"]] == [("move", 1), ("none", 9)]
    assert plan["items"][0]["reason"] == f"committed {first}"
    assert plan["items"][1]["reason"] == f"where it stood at {first} is no longer known"
    kops("offsets", "reset", group, "--topic", orders, "--to-history", f"@{second}", "--yes").ok()
    assert cluster.committed(group) == {(orders, 0): 5, (orders, 1): 7}
    assert sorted((row["partition"], row["offset"]) for row in history(kops, group)[-2:]) == [(0, 5), (1, 7)]
    kops("undo", "last", "--yes").ok()
    assert cluster.committed(group) == {(orders, 0): 9, (orders, 1): 9}


def test_jumps_are_only_the_commits_that_tools_made(kops, cluster, groups, group, orders):
    zero = TopicPartition(orders, 0)
    for offset in (1, 2, 3):
        groups.commit(group, {zero: CommittedOffset(offset, "", 0)})
    time.sleep(0.02)
    cluster.commit(group, {(orders, 0): 9})
    rows = history(kops, group, "--jumps")
    assert [(row["offset"], row["moved"], row["event"]) for row in rows] == [(9, 6, "commit")]
    assert [row["offset"] for row in history(kops, group, "--since", rows[0]["time"])] == [9]
    assert history(kops, group, "--jumps", "--since", "@now") == []
    groups.delete_offsets(group, [zero])
    assert [row["event"] for row in history(kops, group, "--jumps")] == ["commit", "deleted"]
    assert kops("offsets", "history", group, "--jumps", "--at", "@now").code == 2


def test_offsets_that_were_deleted_are_in_the_history(kops, cluster, groups, group, orders):
    cluster.commit(group, {(orders, 0): 5, (orders, 1): 7})
    stood = max(row["time"] for row in history(kops, group))
    time.sleep(0.02)
    kops("offsets", "delete", group, "--topic", f"{orders}:0", "--confirm", group).ok()
    rows = history(kops, group, "--topic", f"{orders}:0")
    assert [(row["event"], row["offset"]) for row in rows] == [("commit", 5), ("deleted", None)]
    now = history(kops, group, "--at", rows[-1]["time"])
    assert [(row["offset"], row["note"]) for row in now] == [(None, "deleted or expired"), (7, "")]
    kops("offsets", "reset", group, "--all-topics", "--to-history", stood, "--yes").ok()
    assert cluster.committed(group) == {(orders, 0): 5, (orders, 1): 7}
    groups.delete([group])
    kops("offsets", "reset", group, "--all-topics", "--to-history", stood, "--new-group", "--yes").ok()
    assert cluster.committed(group) == {(orders, 0): 5, (orders, 1): 7}


def test_many_groups_go_back_by_one_plan(kops, cluster, group, orders):
    names = [f"{group}-a", f"{group}-b"]
    for offset, name in enumerate(names, start=3):
        cluster.commit(name, {(orders, 0): offset, (orders, 1): offset})
    stood = max(row["time"] for name in names for row in history(kops, name))
    time.sleep(0.02)
    for name in names:
        cluster.commit(name, {(orders, 0): 8})
    kops("offsets", "reset", f"{group}-*", "--topic", f"{orders[:-3]}*:0", "--to-history", stood, "--yes").ok()
    assert [cluster.committed(name)[orders, 0] for name in names] == [3, 4]


def test_commits_of_transactions_count_once_they_are_committed(kops, broker, cluster, group, orders, unique):
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": unique("tx")})
    producer.init_transactions(30)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    for offset, end in ((3, producer.commit_transaction), (4, producer.abort_transaction)):
        producer.begin_transaction()
        producer.send_offsets_to_transaction([Librdkafka(orders, 0, offset)], consumer.consumer_group_metadata(), 30)
        end(30)
    consumer.close()
    assert [row["offset"] for row in history(kops, group)] == [3]


def test_an_unknown_group_and_a_time_before_everything_are_refused(kops, cluster, group, orders):
    unknown = kops("offsets", "history", f"{group}-none")
    assert (unknown.code, "has no commits of a group" in unknown.err) == (1, True)
    cluster.commit(group, {(orders, 0): 5})
    known = kops("offsets", "history", group).ok()
    assert "is compacted" in known.err
    refused = kops("offsets", "reset", group, "--all-topics", "--to-history", "@-1h", "--yes")
    assert (refused.code, "is not known" in refused.err) == (5, True)
    assert kops("offsets", "history", group, "--at", "yesterday").code == 2


def test_the_keys_of_json_are_a_contract(kops, cluster, group, orders):
    cluster.commit(group, {(orders, 0): 5})
    every = ["time", "topic", "partition", "event", "offset", "moved", "leader_epoch", "metadata", "log_offset"]
    assert [list(row) for row in history(kops, group)] == [every]
    assert [list(row) for row in history(kops, group, "--at", "@now")] == [["topic", "partition", "at", "offset", "committed", "note"]]
    shown = kops("offsets", "show", group, "-o", "json").ok().json
    assert [list(row) for row in shown] == [["topic", "partition", "offset", "leader_epoch", "metadata", "stream_time"]]
    plan = kops("offsets", "reset", f"{group}*", "--all-topics", "--to-latest", "-n", "-o", "json").ok().json
    assert plan["operation"] == "offsets.move"
    assert plan["items"] == [{"target": f"{group} {orders}:0", "action": "move", "before": 5, "after": 10, "reason": "log end"}]
    (moves,) = plan["arguments"]["moves"]
    assert moves == {
        "group": group,
        "state": "EMPTY",
        "topics": [
            {"topic": orders, "partitions": [0], "before": {"offsets": [5]}, "after": {"offsets": [10]}, "reasons": ["log end"]},
        ],
    }


def test_a_group_with_members_is_looked_at_but_not_moved(kops, broker, cluster, group, orders):
    cluster.commit(group, {(orders, 0): 5})
    stood = history(kops, group)[0]["time"]
    assert parse_time(f"@{stood}", None) > 0
    with member(broker.bootstrap_servers, group, orders):
        assert len(history(kops, group)) == 1
        assert kops("offsets", "reset", group, "--all-topics", "--to-history", stood, "--yes").code == 5
