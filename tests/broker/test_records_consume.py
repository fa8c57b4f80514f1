"""``kops records consume`` on real logs: ranges, gaps, transactions, filters, formats, and how it ends."""

import json
import signal

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewPartitions

from support.memory import peak_megabytes
from support.patience import HANG_SECONDS
from support.streams_apps import Cluster, wait_for

pytestmark = pytest.mark.broker

TIME = 1_700_000_000_000
HOUR = 3_600_000


@pytest.fixture
def consume(broker, run_kops):
    return lambda *arguments: run_kops("records", "consume", "-B", broker.bootstrap_servers, *arguments)


def produce(broker, topic, records, **settings):
    """Produce (partition, key, value, timestamp[, headers]); in a transaction when there is a transactional.id."""
    producer = Producer({**broker.client, "linger.ms": 5, **settings})
    if "transactional.id" in settings:
        producer.init_transactions(30)
        producer.begin_transaction()
    for partition, key, value, timestamp, *headers in records:
        producer.produce(topic, value, key, partition, timestamp=timestamp, headers=headers[0] if headers else None)
    assert producer.flush(HANG_SECONDS) == 0
    return producer


def numbered(count, partition=0, start=0):
    return [(partition, b"k%d" % n, b"v%d" % n, TIME + n * HOUR) for n in range(start, start + count)]


def objects(outcome):
    return [json.loads(line) for line in outcome.ok().out.splitlines()]


def offsets(outcome):
    return [(row["partition"], row["offset"]) for row in objects(outcome)]


def test_every_part_of_a_record_is_shown(consume, broker, topic):
    name = topic()
    headers = [("a", b"1"), ("a", None), ("raw", b"\xff")]
    produce(broker, name, [(0, b"k", "grüß\n".encode(), TIME, headers), (0, None, None, TIME), (0, b"", b"\x00", TIME)])
    first, second, third = objects(consume(name, "-o", "json"))
    assert first == {
        "topic": name,
        "partition": 0,
        "offset": 0,
        "timestamp": "2023-11-14T22:13:20.000Z",
        "timestamp_ms": TIME,
        "key": "k",
        "key_encoding": "text",
        "value": "grüß\n",
        "value_encoding": "text",
        "headers": [
            {"key": "a", "value": "1", "encoding": "text"},
            {"key": "a", "value": None, "encoding": None},
            {"key": "raw", "value": "/w==", "encoding": "base64"},
        ],
        "tombstone": False,
    }
    assert (second["key"], second["key_encoding"], second["value"], second["tombstone"]) == (None, None, None, True)
    assert (third["key"], third["value"], third["value_encoding"]) == ("", "AA==", "base64")


def test_the_newest_records_are_shown_by_default(consume, broker, topic):
    name = topic(partitions=3)
    produce(broker, name, [*numbered(20), *numbered(3, 1, 17)])
    found = consume(name, "-o", "json")
    newest = [(0, 13), (0, 14), (0, 15), (0, 16), (0, 17), (1, 0), (0, 18), (1, 1), (0, 19), (1, 2)]
    assert sorted(offsets(found)) == sorted(newest)
    times = [row["timestamp_ms"] for row in objects(found)]
    assert times == sorted(times)
    assert "the newest of 23 offsets" in found.err
    assert len(offsets(consume(name, "-o", "json", "--last", "2"))) == 2
    assert len(offsets(consume(name, "-o", "json", "--limit", "3"))) == 3
    assert offsets(consume(f"{name}:1", "-o", "json")) == [(1, 0), (1, 1), (1, 2)]
    assert offsets(consume(f"{name}:2", "-o", "json")) == []


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        ("start..end", range(5, 20)),
        ("0..8", range(5, 8)),
        ("10..12", range(10, 12)),
        ("18..99", range(18, 20)),
        ("30..", []),
        ("end", []),
        (f"@{TIME + 7 * HOUR}..@{TIME + 9 * HOUR}", range(7, 9)),
        (f"@{TIME + 7 * HOUR - 1}..9", range(7, 9)),
        ("@2023-11-15T12:13:20..", range(14, 20)),
        ("@1..@2", []),
        ("@now..", []),
        ("..@2023-11-15T05:13:20", range(5, 7)),
    ],
)
def test_ranges_select_records(consume, ranged, span, expected):
    found = consume(ranged, span, "-o", "json")
    assert [row["offset"] for row in objects(found)] == list(expected)
    if span == "0..8":
        assert f"{ranged}:0 begins at offset 5" in found.err


@pytest.fixture(scope="module")
def ranged(broker):
    """Twenty records, an hour apart, the first five deleted."""
    import uuid

    cluster = Cluster(broker.bootstrap_servers)
    name = cluster.create(f"ranged-{uuid.uuid4().hex[:8]}")
    produce(broker, name, numbered(20))
    cluster.trim(name, {0: 5})
    yield name
    cluster.delete_all([name])


def test_gaps_of_transactions_and_an_end_of_nothing_but_markers(consume, broker, topic, unique):
    name = topic(partitions=2)
    produce(broker, name, numbered(3), **{"transactional.id": unique()}).commit_transaction(30)
    produce(broker, name, numbered(40, 0, 3), **{"transactional.id": unique()}).abort_transaction(30)
    Cluster(broker.bootstrap_servers).settle(name)
    committed = consume(name, "start..", "-o", "json")
    assert [row["offset"] for row in objects(committed)] == [0, 1, 2]
    assert [row["offset"] for row in objects(consume(name, "-o", "json", "--last", "2"))] == [1, 2], "behind forty aborted ones"
    assert len(objects(consume(name, "start..", "-o", "json", "--isolation", "read_uncommitted"))) == 43


def test_an_open_transaction_is_told_of(consume, broker, topic, unique):
    name = topic()
    produce(broker, name, numbered(3))
    opened = produce(broker, name, numbered(2, 0, 3), **{"transactional.id": unique()})
    for arguments in ((), ("start..",)):
        found = consume(name, *arguments, "-o", "json")
        assert len(objects(found)) == 3
        assert f"{name}:0 has an open transaction at offset 3: nothing from there on is shown" in found.err
    opened.abort_transaction(30)


def test_only_the_last_record_of_each_key_is_shown(consume, broker, topic):
    name = topic(partitions=2)
    produce(
        broker, name, [(0, b"a", b"1", TIME), (0, b"b", b"5", TIME), (0, b"a", b"2", TIME), (1, b"c", b"3", TIME), (1, b"c", None, TIME)]
    )
    produce(broker, name, [(0, None, b"no key", TIME)])
    found = consume(name, "--latest", "-o", "json")
    assert [(row["key"], row["value"]) for row in objects(found)] == [("b", "5"), ("a", "2")]
    assert "their key is deleted: 1" in found.err
    assert "they have no key: 1" in found.err
    with_tombstones = consume(name, "--latest", "--tombstones", "--format", "%k=%S\n").ok().out
    assert sorted(with_tombstones.splitlines()) == ["a=1", "b=1", "c=-1"]
    assert consume(name, "--latest", "--filter", "value>3", "--raw").ok().out == "5\n"


def test_filters_search_all_unless_a_range_says_less(consume, broker, topic):
    name = topic(partitions=2)
    produce(broker, name, [(n % 2, b"k%d" % n, b'{"n":%d}' % n, TIME, [("even", b"yes")] if n % 2 == 0 else []) for n in range(100)])
    found = consume(name, "--filter", "value.n<3", "-o", "json")
    assert sorted(row["value"] for row in objects(found)) == ['{"n":0}', '{"n":1}', '{"n":2}']
    assert "searching all of" in found.err
    assert consume(name, "--last", "10", "--filter", "value.n<3", "--raw").ok().out == ""
    both = consume(name, "--filter", "header.even=yes", "--filter", "key~^k9", "--format", "%k ").ok().out
    assert sorted(both.split()) == ["k90", "k92", "k94", "k96", "k98"]
    assert len(consume(name, "--filter", "header.even=null", "--limit", "4", "--raw").ok().out.splitlines()) == 4


def test_formats_decode_and_undecodable_records_are_named(consume, broker, topic):
    name = topic()
    produce(broker, name, [(0, b"a", (7).to_bytes(8, "big"), TIME), (0, b"b", b"poison", TIME), (0, b"c", (9).to_bytes(8, "big"), TIME)])
    broken = consume(name, "start..", "--value", "long", "-o", "json")
    assert broken.code == 1
    assert [json.loads(line)["value"] for line in broken.out.splitlines()] == [7], "what came before is shown"
    assert f"the value of {name}:0 at offset 1 is not long" in broken.err
    skipped = consume(name, "start..", "--value", "long", "--on-error", "skip", "-o", "json")
    assert [(row["value"], row["value_encoding"]) for row in objects(skipped)] == [(7, "long"), (9, "long")]
    assert "undecodable and left out: 1" in skipped.err
    assert consume(name, "start..", "--value", "long", "--on-error", "skip", "--format", "%k=%s/%S ").ok().out == "a=7/8 c=9/8 "
    assert consume(name, "start..", "--raw", "-q").ok().err == ""


def test_raw_bytes_are_untouched(broker, topic, kops_process):
    name = topic()
    values = [bytes([n % 256, 0, 255, 10, 13]) for n in range(3_000)]
    produce(broker, name, [*((0, None, value, TIME) for value in values), (0, b"k", None, TIME)])
    process = kops_process("records", "consume", name, "start..", "--raw", "-B", broker.bootstrap_servers, text=False)
    out, _ = process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == 0
    assert out == b"".join(value + b"\n" for value in values) + b"\n", "a tombstone is an empty line"


def test_table_and_csv_show_the_same_records(consume, broker, topic):
    name = topic()
    produce(broker, name, [(0, b"key", b"two\nlines\tand", TIME), (0, b"k", None, TIME, [("h", b"1")])])
    table = consume(name).ok().out.splitlines()
    assert table[0].split() == ["P", "OFFSET", "TIMESTAMP", "KEY", "HEADERS", "VALUE"]
    assert table[1].endswith("two\\nlines\\tand")
    assert table[2].split() == ["0", "1", "2023-11-14T22:13:20.000Z", "k", "h=1", "(tombstone)"]
    assert consume(name, "-o", "csv").ok().out.startswith("topic,partition,offset,timestamp,timestamp_ms,key,")
    assert consume(name, "-o", "name").ok().out == "key\nk\n"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["t", "5..3"], 2, "ends before it begins"),
        (["t", "5..9", "--range", "1..2"], 2, "name the range once"),
        (["t", "5..9", "--last", "3"], 2, "are mutually exclusive"),
        (["t", "5..9", "--follow"], 2, "--follow never ends"),
        (["t", "--latest", "--follow"], 2, "cannot be combined"),
        (["t", "--tombstones"], 2, "belongs to --latest"),
        (["t", "--filter", "price>1"], 2, "is not a valid filter"),
        (["t", "--raw", "--format", "%s"], 2, "are mutually exclusive"),
        (["t", "--raw", "-o", "json"], 2, "cannot be combined with"),
        (["t", "--format", "%x"], 2, "is not a field of a record"),
        (["t", "--value", "lnog"], 2, "did you mean long?"),
        (["t:x"], 2, "is not a partition"),
        (["no-such-topic"], 1, "there is no topic no-such-topic"),
        (["t", "--group", "g", "--last", "3"], 2, "takes no range"),
    ],
)
def test_mistakes_in_options_are_named(consume, arguments, code, said):
    outcome = consume(*arguments)
    assert (outcome.code, said in outcome.err) == (code, True), outcome.err
    assert outcome.out == ""


def test_a_partition_that_does_not_exist_is_refused(consume, topic):
    assert "there is no partition" in consume(f"{topic()}:4").err


def test_following_ends_with_ctrl_c(broker, topic, kops_process):
    name = topic(partitions=2)
    produce(broker, name, numbered(3))
    process = kops_process("records", "consume", name, "--follow", "--last", "1", "--format", "%p:%o %s\\n", "-B", broker.bootstrap_servers)
    assert process.stdout.readline() == "0:2 v2\n"
    produce(broker, name, numbered(1, 1, 7))
    assert process.stdout.readline() == "1:0 v7\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=HANG_SECONDS)
    assert (process.returncode, out) == (130, "")
    assert f"{name}: 2 records, interrupted" in err
    assert "Traceback" not in err


def test_following_ends_at_a_limit(broker, topic, kops_process):
    name = topic()
    produce(broker, name, numbered(3))
    process = kops_process("records", "consume", name, "1..", "--follow", "--limit", "3", "-o", "json", "-B", broker.bootstrap_servers)
    assert [json.loads(process.stdout.readline())["offset"] for _ in range(2)] == [1, 2]
    produce(broker, name, numbered(2, 0, 3))
    out, _ = process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == 0
    assert [json.loads(line)["offset"] for line in out.splitlines()] == [3]


def test_following_includes_new_partitions(broker, topic, kops_process):
    name, cluster = topic(), Cluster(broker.bootstrap_servers)
    produce(broker, name, numbered(1))
    process = kops_process("records", "consume", name, "--follow", "--format", "%p:%o %s\\n", "-B", broker.bootstrap_servers)
    assert process.stdout.readline() == "0:0 v0\n"
    cluster.admin.create_partitions([NewPartitions(name, 3)])[name].result(HANG_SECONDS)
    wait_for("the new partitions", lambda: cluster.topics(name) == {name: 3})
    produce(broker, name, numbered(1, 2, 7))
    assert process.stdout.readline() == "2:0 v7\n"


def test_sigterm_ends_it_too(broker, topic, kops_process):
    name = topic()
    produce(broker, name, numbered(1))
    process = kops_process("records", "consume", name, "--follow", "--raw", "-B", broker.bootstrap_servers)
    assert process.stdout.readline() == "v0\n"
    process.send_signal(signal.SIGTERM)
    assert "interrupted" in process.communicate(timeout=HANG_SECONDS)[1]
    assert process.returncode == 143


def test_a_reader_that_goes_ends_it_quietly(broker, topic, kops_process):
    name = topic()
    produce(broker, name, [(0, None, bytes(1000), TIME)] * 5_000)
    process = kops_process("records", "consume", name, "start..", "--raw", "-B", broker.bootstrap_servers, text=False)
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(HANG_SECONDS) == 1


def test_nothing_is_joined_or_committed(consume, broker, topic):
    name, cluster = topic(), Cluster(broker.bootstrap_servers)
    produce(broker, name, numbered(5))

    def groups():
        listed = cluster.admin.list_consumer_groups(request_timeout=HANG_SECONDS).result(HANG_SECONDS).valid
        return {group.group_id for group in listed if group.group_id.startswith("kops-reader")}

    for arguments in ((), ("start..",), ("--latest",), ("start..", "--raw")):
        consume(name, *arguments, "-o", "table").ok()
    wait_for("no group of kops", lambda: not groups())


def test_memory_does_not_grow_with_the_topic(broker, topic):
    peaks = []
    for count in (100_000, 500_000):
        name = topic("size")
        produce(broker, name, ((0, b"k", b"x" * 200, TIME) for _ in range(count)), **{"queue.buffering.max.messages": 500_000})
        peaks.append(peak_megabytes("records", "consume", name, "start..", "--raw", "-q", "-B", broker.bootstrap_servers))
    assert peaks[1] < peaks[0] + 70, f"{peaks} MB: to hold all would take 80 MB more for the values alone"
