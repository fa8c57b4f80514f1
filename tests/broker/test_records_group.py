"""``records consume --group``, the one reading that commits, and ``records peek``, which joins nothing."""

import json
import signal

import pytest
from confluent_kafka import Consumer, Producer

from support.patience import HANG_SECONDS
from support.streams_apps import wait_for

pytestmark = pytest.mark.broker


@pytest.fixture
def records(broker, run_kops):
    return lambda *arguments: run_kops("records", *arguments, "-B", broker.bootstrap_servers)


@pytest.fixture
def group(cluster, unique):
    name = unique("g")
    yield name
    gone = cluster.admin.delete_consumer_groups([name], request_timeout=HANG_SECONDS)[name]
    gone.exception(HANG_SECONDS)


def produce(broker, topic, values, partition=0, **settings):
    producer = Producer({**broker.client, **settings})
    if settings:
        producer.init_transactions(30)
        producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, b"k", partition)
    assert producer.flush(HANG_SECONDS) == 0
    return producer


def values(count, start=0):
    return [b"v%d" % n for n in range(start, start + count)]


def test_it_goes_on_where_the_group_is_and_can_be_taken_back(records, broker, cluster, topic, group, run_kops):
    name = topic()
    produce(broker, name, values(10))
    first = records("consume", name, "--group", group, "--limit", "4", "--raw").ok()
    assert first.out == "v0\nv1\nv2\nv3\n"
    assert f"joining group {group}: what is read of {name} is committed" in first.err
    assert f"committed for {group}: {name}:0 to 4; journal" in first.err
    assert cluster.committed(group) == {(name, 0): 4}
    assert records("consume", name, "--group", group, "--filter", "value=v6", "--raw").ok().out == "v6\n"
    assert cluster.committed(group) == {(name, 0): 10}, "what a filter passes over is read too"
    assert records("consume", name, "--group", group, "-o", "json").ok().out == ""
    produce(broker, name, values(2, 10))
    assert records("consume", name, "--group", group, "--format", "%o ").ok().out == "10 11 "
    entries = run_kops("journal", "list", "-o", "json").ok().json
    assert [entry["operation"] for entry in entries] == ["records.consume"] * 4
    run_kops("undo", entries[0]["id"], "--yes", "-B", broker.bootstrap_servers).ok()
    assert cluster.committed(group) == {(name, 0): 10}
    refused = run_kops("undo", entries[3]["id"], "--yes", "-B", broker.bootstrap_servers)
    assert (refused.code, "moved on since" in refused.err) == (5, True), "the second and third went on from there"
    run_kops("undo", entries[3]["id"], "--yes", "--accept-loss", "-B", broker.bootstrap_servers).ok()
    assert cluster.committed(group) == {}, "it had no commit before the first"


def test_markers_at_the_end_are_passed_and_open_transactions_are_not(records, broker, cluster, topic, group, unique):
    name = topic(partitions=2)
    produce(broker, name, values(3), **{"transactional.id": unique()}).commit_transaction(30)
    cluster.settle(name)
    assert len(records("consume", name, "--group", group, "--raw").ok().out.splitlines()) == 3
    assert cluster.committed(group) == {(name, 0): 4}
    opened = produce(broker, name, values(2, 3), **{"transactional.id": unique()})
    assert records("consume", name, "--group", group, "--raw").ok().out == ""
    assert cluster.committed(group) == {(name, 0): 4}
    opened.commit_transaction(30)
    cluster.settle(name)
    assert records("consume", name, "--group", group, "--raw").ok().out == "v3\nv4\n"


def test_a_group_with_members_is_refused(records, broker, cluster, topic, group):
    name = topic()
    produce(broker, name, values(1))
    consumer = Consumer({**broker.client, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False})
    consumer.subscribe([name])
    wait_for("the member", lambda: consumer.poll(0.2) and consumer.assignment())
    try:
        refused = records("consume", name, "--group", group)
        assert refused.code == 5
        assert "joining it would take partitions from them" in refused.err
        assert refused.out == ""
        peeked = records("peek", group)
        assert (peeked.code, "shows no committed offsets" in peeked.err) == (1, True)
        assert consumer.assignment()
    finally:
        consumer.close()


def test_ctrl_c_commits_what_was_written(broker, cluster, topic, group, kops_process):
    name = topic()
    produce(broker, name, values(3))
    process = kops_process("records", "consume", name, "--group", group, "--follow", "--raw", "-B", broker.bootstrap_servers)
    assert [process.stdout.readline() for _ in range(3)] == ["v0\n", "v1\n", "v2\n"]
    produce(broker, name, values(1, 3))
    assert process.stdout.readline() == "v3\n"  # so that what came before has been noted as written; this one perhaps not yet
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=HANG_SECONDS)
    assert (process.returncode, out) == (130, "")
    assert "4 records, interrupted" in err
    assert cluster.committed(group)[name, 0] in (3, 4)


def test_a_reader_that_goes_commits_no_more_than_it_took(broker, cluster, topic, group, kops_process):
    name = topic()
    produce(broker, name, [b"x" * 5_000] * 2_000)
    process = kops_process("records", "consume", name, "--group", group, "--raw", "-B", broker.bootstrap_servers)
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(HANG_SECONDS) == 1
    assert cluster.committed(group).get((name, 0), 0) < 2_000
    assert process.stderr.read().splitlines() == [f"joining group {group}: what is read of {name} is committed"]


def test_protected_contexts_ask_and_read_only_contexts_refuse(run_kops, broker, cluster, topic, group):
    name = topic()
    produce(broker, name, values(1))
    for context, flag in (("guarded", "--protected"), ("looking", "--read-only")):
        run_kops("context", "add", context, "--bootstrap-servers", broker.bootstrap_servers, flag).ok()
    refused = run_kops("records", "consume", name, "--group", group, "-c", "looking")
    assert (refused.code, "is read-only" in refused.err) == (5, True)
    asked = run_kops("records", "consume", name, "--group", group, "-c", "guarded")
    assert (asked.code, "--confirm guarded" in asked.err) == (5, True)
    assert cluster.committed(group) == {}
    assert run_kops("records", "consume", name, "--group", group, "-c", "guarded", "--confirm", "guarded", "--raw").ok().out == "v0\n"
    assert run_kops("records", "consume", name, "-c", "looking", "--raw").ok().out == "v0\n"


def test_some_partitions_of_a_topic_are_no_groups(records, topic, group):
    refused = records("consume", f"{topic()}:0", "--group", group)
    assert (refused.code, "a group reads whole topics" in refused.err) == (2, True)


def test_peek_shows_the_records_around_the_committed_offsets(records, broker, cluster, topic, group):
    name = topic(partitions=4)
    for partition in range(3):
        produce(broker, name, values(10), partition)
    cluster.trim(name, {2: 6})
    cluster.commit(group, {(name, 0): 5, (name, 1): 10, (name, 2): 2, (name, 3): 7})
    rows = records("peek", group, "--before", "2", "--after", "2", "-o", "json").ok()
    assert [(row["partition"], row["offset"], row["position"]) for row in rows.json] == [
        (0, 3, "before"),
        (0, 4, "before"),
        (0, 5, "next"),
        (0, 6, "after"),
        (1, 8, "before"),
        (1, 9, "before"),
        (2, 6, "next"),
        (2, 7, "after"),
    ]
    assert rows.json[0] | {"timestamp": 0, "timestamp_ms": 0} == {
        "group": group,
        "committed": 5,
        "position": "before",
        "topic": name,
        "partition": 0,
        "offset": 3,
        "timestamp": 0,
        "timestamp_ms": 0,
        "key": "k",
        "key_encoding": "text",
        "value": "v3",
        "value_encoding": "text",
        "headers": [],
        "tombstone": False,
    }
    assert f"{name}:1: at the end, offset 10: nothing to read" in rows.err
    assert f"{name}:2: committed 2, and the log begins at 6" in rows.err
    assert f"{name}:3: committed 7 past the end" in rows.err
    table = records("peek", group, "--topic", f"{name}:0", "--before", "1", "--after", "1").ok().out.splitlines()
    assert [line.split()[:3] for line in table] == [["NEXT", "P", "OFFSET"], ["0", "4", table[1].split()[2]], [">", "0", "5"]]
    assert cluster.committed(group) == {(name, 0): 5, (name, 1): 10, (name, 2): 2, (name, 3): 7}


def test_peek_over_gaps_and_at_a_poison_pill(records, broker, cluster, topic, group, unique):
    name = topic()
    produce(broker, name, [b"1"])
    produce(broker, name, values(30), **{"transactional.id": unique()}).abort_transaction(30)
    cluster.settle(name)
    produce(broker, name, [b"poison", b"3"])
    cluster.commit(group, {(name, 0): 1})
    found = records("peek", group, "--value", "json", "-o", "json").ok()
    assert [(row["offset"], row["position"], row["value"], row["value_encoding"]) for row in found.json] == [
        (0, "before", 1, "json"),
        (32, "next", "poison", "text"),
        (33, "after", 3, "json"),
    ]
    assert f"the value of {name}:0 at offset 32 is not json" in found.err
    assert json.dumps(cluster.committed(group)[name, 0]) == "1"


def test_peek_refuses_a_group_that_does_not_exist(records, unique):
    missing = records("peek", unique("nobody"))
    assert (missing.code, "no such group" in missing.err or "there is no group" in missing.err) == (1, True)


def test_a_value_that_is_nested_without_end_is_passed_and_committed(records, broker, cluster, topic, group):
    name = topic()
    produce(broker, name, [b'"first"', b"[" * 700 + b"]" * 700, b'{"a":' * 300 + b"1" + b"}" * 300, b'"last"'])
    stopped = records("consume", name, "--group", group, "--value", "json", "-o", "json")
    assert (stopped.code, [json.loads(line)["value"] for line in stopped.out.splitlines()]) == (1, ["first"])
    assert f"the value of {name}:0 at offset 1 is not json: nested deeper than 200 levels" in stopped.err
    passed = records("consume", name, "--group", group, "--value", "json", "-o", "json", "--on-error", "skip").ok()
    assert [json.loads(line)["value"] for line in passed.out.splitlines()][-1:] == ["last"]
    assert cluster.committed(group) == {(name, 0): 4}


def test_a_killed_reader_is_taken_back(records, broker, cluster, topic, group, kops_process, run_kops):
    name = topic()
    produce(broker, name, values(10))
    cluster.commit(group, {(name, 0): 5})
    soon = ("-X", "session.timeout.ms=6000")
    process = kops_process("records", "consume", name, "--group", group, "--follow", "-B", broker.bootstrap_servers, *soon)
    wait_for("the reader to commit", lambda: cluster.committed(group) == {(name, 0): 10} or process.poll() is not None)
    process.kill()
    process.communicate(timeout=HANG_SECONDS)
    entry = run_kops("journal", "list", "-o", "json").ok().json[0]
    assert (entry["operation"], entry["status"]) == ("records.consume", "crashed")
    wait_for("the group to be empty", lambda: run_kops("undo", entry["id"], "--yes", "-B", broker.bootstrap_servers).code == 0)
    assert cluster.committed(group) == {(name, 0): 5}
