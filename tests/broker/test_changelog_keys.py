"""``kops changelog`` on logs made for it: gaps, poison, other partitioners, aborted and open transactions, neighbours."""

import struct
import subprocess
import time

import pytest
from confluent_kafka import Producer

from kops.core.murmur2 import partition_for
from support.patience import HANG_SECONDS
from support.streams import Record, java_command
from support.streams_apps import Cluster, wait_for

pytestmark = pytest.mark.broker

COMPACTED = {"cleanup.policy": "compact"}
TIME = 1_700_000_000_000
AS_TEXT = ("--type", "key-value", "--key", "string", "--value", "string")


@pytest.fixture
def changelog(broker, run_kops):
    def run(verb, *arguments):
        return run_kops("changelog", verb, *arguments, "-B", broker.bootstrap_servers, "-o", "json")

    return run


def put(key, value, timestamp=TIME, partition=None, headers=()):
    return Record(key, value, timestamp, headers, partition)


def in_transaction(broker, topic, rows, *, end):
    producer = Producer({**broker.client, "transactional.id": f"{topic}-{end}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for key, value in rows:
        producer.produce(topic, value, key, partition=0, timestamp=TIME)
    producer.flush(HANG_SECONDS)
    if end != "open":
        getattr(producer, f"{end}_transaction")(30)
        Cluster(broker.bootstrap_servers).settle(topic)
    return producer


def test_one_key_is_read_from_its_own_partition(changelog, cluster, topic):
    name = topic(partitions=4, config=COMPACTED)
    keys = [f"k{n}".encode() for n in range(20)]
    cluster.produce(name, [put(key, b"old") for key in keys] + [put(key, b"new", TIME + 1) for key in keys])
    for key in keys[:3]:
        found = changelog("get", name, key.decode(), *AS_TEXT).ok()
        assert [(row["partition"], row["value"]) for row in found.json] == [(partition_for(key, 4), "new")]
    missing = changelog("get", name, "k99", *AS_TEXT)
    number = partition_for(b"k99", 4)
    end = cluster.ends(name)[number][1]
    assert missing.code == 1
    assert f"k99 is not in {name}, to which murmur2 of the key leads; partition {number} was read up to offset {end}" in missing.err
    assert "--all-partitions" in missing.err


def test_a_key_is_found_where_another_partitioner_put_it(changelog, cluster, topic):
    name = topic(partitions=3, config=COMPACTED)
    wrong = (partition_for(b"k", 3) + 1) % 3
    cluster.produce(name, [put(b"k", b"v", partition=wrong)])
    assert changelog("get", name, "k", *AS_TEXT).code == 1
    found = changelog("get", name, "k", *AS_TEXT, "--all-partitions").ok()
    assert [row["partition"] for row in found.json] == [wrong]
    assert f"k is in partition {wrong}; murmur2 of the key gives {partition_for(b'k', 3)}" in found.err
    assert changelog("get", f"{name}:{wrong}", "k", *AS_TEXT).ok().json == found.json
    assert changelog("stats", name, *AS_TEXT).ok().json["total"]["wrong_partition"] == 1


def test_a_deleted_key_is_not_there(changelog, cluster, topic):
    name = topic(config=COMPACTED)
    cluster.produce(name, [put(b"k", b"v"), put(b"k", None, TIME + 1), put(b"x", b"y")])
    found = changelog("get", name, "k", *AS_TEXT)
    assert found.code == 1
    assert "its last record, at offset 1 of partition 0 (2023-11-14T22:13:20.001Z), is a tombstone" in found.err
    history = changelog("history", name, "k", *AS_TEXT).ok()
    assert [(row["offset"], row["value"], row["tombstone"], row["missing_before"]) for row in history.json] == [
        (0, "v", False, 0),
        (1, None, True, 0),
    ]
    assert "nothing was compacted yet" in history.err


def test_history_says_where_offsets_have_no_record(changelog, cluster, topic, broker):
    name = topic()
    cluster.produce(name, [put(b"k", b"1", partition=0)])
    in_transaction(broker, name, [(b"k", b"2"), (b"x", b"2")], end="abort")
    in_transaction(broker, name, [(b"k", b"3")], end="commit")
    found = changelog("history", name, "k", *AS_TEXT).ok()
    assert [(row["offset"], row["value"], row["missing_before"]) for row in found.json] == [(0, "1", 0), (4, "3", 3)]
    assert f"4 of the 6 offsets of {name}:0 no longer have a record" in found.err
    everything = changelog("history", name, "k", *AS_TEXT, "--isolation", "read_uncommitted").ok()
    assert [row["value"] for row in everything.json] == ["1", "2", "3"]
    assert [row["value"] for row in changelog("history", name, "k", *AS_TEXT, "--limit", 1).ok().json] == ["3"]
    assert changelog("history", name, "nothing", *AS_TEXT).code == 1


def test_an_open_transaction_ends_the_reading_and_is_said(changelog, cluster, topic, broker):
    name = topic(config=COMPACTED)
    cluster.produce(name, [put(b"k", b"1")])
    producer = in_transaction(broker, name, [(b"k", b"2")], end="open")
    try:
        for verb, arguments in (("get", ["k"]), ("history", ["k"]), ("stats", [])):
            found = changelog(verb, name, *arguments, *AS_TEXT).ok()
            assert f"{name}:0 has an open transaction at offset 1" in found.err
        assert changelog("stats", name, *AS_TEXT).json["total"]["records"] == 1
        assert changelog("get", name, "k", *AS_TEXT, "--isolation", "read_uncommitted").ok().json[0]["value"] == "2"
    finally:
        producer.abort_transaction(30)


def test_history_shows_what_compaction_left(changelog, cluster, topic):
    name = topic(config={**COMPACTED, "segment.ms": "100", "min.cleanable.dirty.ratio": "0.001", "delete.retention.ms": "100"})
    now = int(time.time() * 1000)
    cluster.produce(name, [put(b"k", b"%d" % n, now - 60_000 + n) for n in range(50)])
    left = []

    def compacted():
        cluster.produce(name, [put(b"other", b"v", int(time.time() * 1000))])  # rolls the segment
        left[:] = [record for record in cluster.read(name) if record.key == b"k"]
        return len(left) < 50

    wait_for("the broker's cleaner to come by", compacted)
    found = changelog("history", name, "k", *AS_TEXT).ok()
    assert [row["offset"] for row in found.json] == [record.offset for record in left]
    assert found.json[0]["missing_before"] == left[0].offset
    assert "no longer have a record, by compaction" in found.err


def test_stats_equal_what_was_written(changelog, cluster, topic, broker):
    name = topic(partitions=2)
    good = [put(b"a", b"1", TIME + 5, 0), put(b"a", b"22", TIME + 1, 0), put(b"b", None, TIME, 0), put(b"c", b"x" * 99, TIME + 9, 1)]
    bad = [put(b"\xff", b"v", TIME, 1), put(b"d", b"\xfe", TIME, 1), put(b"d", b"\xfe\xfe", TIME, 1)]
    cluster.produce(name, [*good, *bad])
    keyless = Producer(broker.client)
    keyless.produce(name, b"no key", partition=1, timestamp=TIME)
    keyless.flush(HANG_SECONDS)
    found = changelog("stats", name, *AS_TEXT).ok()
    total = found.json["total"]
    expected = {"records": 8, "keys": 4, "tombstones": 1, "superseded": 2, "unkeyed": 1, "undecodable": 3, "missing": 0, "offsets": 8}
    assert {key: total[key] for key in expected} == expected
    assert (total["oldest_ms"], total["newest_ms"], total["key_bytes"]) == (TIME, TIME + 9, 7)
    assert found.json["largest_values"][0] == {"partition": 1, "offset": 0, "key": "c", "key_encoding": "text", "value_bytes": 99}
    assert [(one["partition"], one["offset"], one["part"]) for one in found.json["undecodable"]] == [
        (1, 1, "key"),
        (1, 2, "value"),
        (1, 3, "value"),
    ]
    assert f"3 undecodable; the first: the key of {name}:1 at offset 1: byte 0 of 1 is not UTF-8" in found.err
    assert sum(row["records"] for row in found.json["partitions"]) == 8
    wrong = [key for key, partition in ((b"a", 0), (b"c", 1), (b"\xff", 1), (b"d", 1)) if partition_for(key, 2) != partition]
    assert total["wrong_partition"] == len(wrong)


def test_an_undecodable_key_among_windows_is_reported(changelog, cluster, topic):
    name = topic(config={"cleanup.policy": "compact,delete", "retention.ms": "-1"})
    keys = [b"k" + struct.pack(">qi", TIME + n * 60_000, 0) for n in range(30)]
    cluster.produce(name, [put(key, struct.pack(">q", n), TIME + n * 60_000) for n, key in enumerate(keys)] + [put(b"poison", b"x")])
    found = changelog("inspect", name, "--value", "long")
    assert found.code == 1
    assert f"the key of {name}:0 at offset 30 is not of a window store: 6 bytes are too few" in found.err
    assert "read as window, a guess of " in found.err
    shown = changelog("inspect", name, "--value", "long", "--on-error", "skip").ok()
    assert [row["value"] for row in shown.json] == list(range(30))
    assert "undecodable and left out: 1 of 31" in shown.err
    assert [row["value"] for row in changelog("get", name, "k", "--window", f"@{TIME + 60_000}", "--value", "long").ok().json] == [1]
    stats = changelog("stats", name, "--value", "long").ok().json
    assert [(one["offset"], one["part"]) for one in stats["undecodable"]] == [(30, "key")]


def test_a_key_needs_its_format_where_keys_are_no_text(changelog, cluster, topic):
    name = topic(config=COMPACTED)
    cluster.produce(name, [put(struct.pack(">q", n), b"v") for n in range(300, 310)])
    found = changelog("get", name, "305")
    assert found.code == 2
    assert "the format of the keys is needed to find '305': keys shown as bytes (all have 8 bytes: --key long, or double?)" in found.err
    assert changelog("get", name, "305", "--key", "long").ok().json[0]["key"] == 305


def test_a_store_without_windows_has_none_to_choose_from(changelog, cluster, topic):
    name = topic(config=COMPACTED)
    cluster.produce(name, [put(b"k", b"v")])
    for verb, arguments in (("inspect", []), ("get", ["k"])):
        found = changelog(verb, name, *arguments, *AS_TEXT, "--window", "@-1h..")
        assert found.code == 2
        assert "the keys of a key-value store have no window" in found.err


def test_too_many_keys_for_this_process_are_refused(changelog, cluster, topic, monkeypatch):
    from kops.operations.changelog import stats, view

    name = topic(config=COMPACTED)
    cluster.produce(name, [put(b"%d" % n, b"v") for n in range(1000)])
    monkeypatch.setattr(view, "MOST_BYTES", 100_000)
    monkeypatch.setattr(stats, "MOST_BYTES", 100_000)
    monkeypatch.setattr(view, "ADVISABLE", 1000)
    for verb in ("inspect", "stats"):
        found = changelog(verb, name, *AS_TEXT)
        assert found.code == 5
        assert found.out == "" or "error" in found.out
        assert f"{name} does not fit in memory" in found.err
        assert f"{name} has up to 1,000 records to read; --spark is faster" in found.err
    assert len(changelog("inspect", name, *AS_TEXT, "--key-equals", "7").ok().json) == 1


def test_apache_counts_the_same(changelog, cluster, topic, broker):
    name = topic(partitions=2, config=COMPACTED)
    cluster.produce(name, [put(b"k%d" % (n % 7), None if n % 5 == 0 else b"v%d" % n) for n in range(100)])
    command = [*java_command("org.apache.kafka.tools.consumer.ConsoleConsumer"), "--bootstrap-server", broker.bootstrap_servers]
    command += ["--topic", name, "--from-beginning", "--max-messages", "100"]
    command += ["--formatter-property", "print.key=true", "--formatter-property", "null.literal=NULL"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=HANG_SECONDS, check=True).stdout
    lines = [line.split("\t") for line in said.splitlines()]
    last = dict(lines)
    total = changelog("stats", name, *AS_TEXT).ok().json["total"]
    assert total["records"] == len(lines)
    assert total["keys"] == sum(value != "NULL" for value in last.values())
    assert total["tombstones"] == sum(value == "NULL" for value in last.values())
    assert {row["key"]: row["value"] for row in changelog("inspect", name, *AS_TEXT).ok().json} == {
        k: v for k, v in last.items() if v != "NULL"
    }


def test_neighbours_are_not_mixed_up(changelog, cluster, unique):
    orders = unique("orders")
    topics = [
        f"{orders}-totals-changelog",
        f"{orders}-v2-totals-changelog",
        f"{orders}-v2-KSTREAM-AGGREGATE-STATE-STORE-0000000003-changelog",
    ]
    cluster.create_all(dict.fromkeys(topics, 1), COMPACTED)
    cluster.create_all({f"{orders}-in": 1})
    try:
        alone = changelog("list", orders).ok()
        assert {row["topic"] for row in alone.json} == set(topics)
        assert "it may be that application's, which has no group" in alone.err
        cluster.commit(f"{orders}-v2", {(f"{orders}-in", 0): 0})
        found = changelog("list", orders).ok()
        assert [(row["topic"], row["store"]) for row in found.json] == [(topics[0], "totals")]
        assert f"left out because they are of {orders}-v2: 2 topics" in found.err
        assert {row["topic"] for row in changelog("list", f"{orders}-v2").ok().json} == set(topics[1:])
        every = {row["topic"]: row["application"] for row in changelog("list", "--all").ok().json}
        assert every[topics[1]] == f"{orders}-v2"
        missing = changelog("list", unique("nothing"))
        assert missing.code == 1
        assert "there is no internal topic of an application" in missing.err
        with_store = changelog("inspect", orders)
        assert f"name a store of application {orders} too: totals" in with_store.err
    finally:
        cluster.delete_all([*topics, f"{orders}-in"])
        cluster.admin.delete_consumer_groups([f"{orders}-v2"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["get"], "and then the key"),
        (["get", "t"], "name either the changelog topic"),
        (["list"], "name one application, or say --all"),
        (["list", "x", "--all"], "name one application, or say --all"),
        (["inspect", "t", "--master", "local[1]"], "--master needs --spark"),
        (["inspect", "t", "--window", "1..2"], "has an offset, and takes times"),
        (["inspect", "t", "--window-size", "soon"], "is not a valid window size"),
        (["get", "t", "x", "--key", "long"], "'x' is not long"),
        (["stats", "t", "--type", "windowed"], "--type"),
    ],
)
def test_invalid_input_is_refused(changelog, arguments, message):
    found = changelog(*arguments)
    assert found.code == 2, found.err
    assert message in found.err
