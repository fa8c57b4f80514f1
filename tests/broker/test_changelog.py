"""``kops changelog inspect`` on real changelogs, and on topics that are none."""

import json
import struct

import pytest
from confluent_kafka import Producer

from kops.core.murmur2 import partition_for
from support.patience import HANG_SECONDS
from support.streams import Program, Record, compacted_view
from support.streams_apps import run_to_the_end

pytestmark = pytest.mark.broker

COMPACTED = {"cleanup.policy": "compact"}
TIME = 1_700_000_000_000


@pytest.fixture
def inspect(broker, run_kops):
    return lambda *arguments: run_kops("changelog", "inspect", "-B", broker.bootstrap_servers, *arguments)


def put(key, value, timestamp=TIME, partition=0, headers=()):
    return Record(key, value, timestamp, headers, partition)


def double(value):
    return struct.pack(">d", value)


@pytest.mark.streams
def test_changelogs_of_a_real_application_are_read(inspect, cluster, unique, tmp_path):
    program = Program("concat_or_delete", "string", value="string").named(unique("app"))
    try:
        cluster.create(program.topic, 3)
        cluster.create(program.output)
        inputs = [(f"schlüssel-{n % 5}", "delete" if n == 13 else f"v{n}", TIME - n * 1000) for n in range(14)]
        cluster.produce(program.topic, [Record(key.encode(), value.encode(), at) for key, value, at in inputs])
        run_to_the_end(cluster.servers, program, tmp_path)
        log = cluster.read(program.changelog)
        expected = {
            (entry.partition, key.decode(), entry.value.decode(), entry.timestamp, False) for key, entry in compacted_view(log).items()
        }
        found = inspect("--application", program.application, "--store", program.store, "-o", "json").ok()
        assert {(row["partition"], row["key"], row["value"], row["timestamp_ms"], row["tombstone"]) for row in found.json} == expected
        assert "murmur2" not in found.err
        assert found.json == inspect(program.changelog, "-o", "json").ok().json
        wrong = inspect("--application", program.application, "--store", "totel")
        assert wrong.code == 1
        assert f"stores of {program.application} with a changelog: totals" in wrong.err
    finally:
        cluster.delete(*cluster.topics(program.application.removesuffix("-app")))


def test_rows_are_the_last_record_of_each_key(inspect, cluster, topic):
    name = topic(config=COMPACTED)
    cluster.produce(
        name,
        [
            put(b"laptop", double(2000), TIME + 9),
            put(b"phone", double(800), TIME + 1, headers=(("v", b"\x03"), ("text", b"yes"), ("none", None))),
            put(b"mouse", double(20)),
            put(b"mouse", None, TIME + 5),
            put(b"laptop", double(4000), TIME + 7),
        ],
    )
    found = inspect(name, "--value", "double", "--tombstones", "-o", "json").ok()
    common = {"topic": name, "partition": 0}
    assert found.json == [
        {**common, "offset": 1, "timestamp": "2023-11-14T22:13:20.001Z", "timestamp_ms": TIME + 1, "key": "phone", "value": 800.0}
        | {
            "headers": [
                {"key": "v", "value": "Aw==", "encoding": "base64"},
                {"key": "text", "value": "yes", "encoding": "text"},
                {"key": "none", "value": None, "encoding": None},
            ],
            "tombstone": False,
        },
        {**common, "offset": 3, "timestamp": "2023-11-14T22:13:20.005Z", "timestamp_ms": TIME + 5, "key": "mouse", "value": None}
        | {"headers": [], "tombstone": True},
        {**common, "offset": 4, "timestamp": "2023-11-14T22:13:20.007Z", "timestamp_ms": TIME + 7, "key": "laptop", "value": 4000.0}
        | {"headers": [], "tombstone": False},
    ]
    assert f"{name}: 5 records read, 2 keys, 1 tombstone" in found.err


def test_a_table_fits_eighty_columns(inspect, cluster, topic):
    name = topic(config=COMPACTED)
    cluster.produce(name, [put(b"laptop", double(6000)), put(b"tv", None), put(b"two\nlines\x1b[31m", double(1))])
    found = inspect(name, "--key", "string", "--value", "double", "--tombstones").ok()
    assert [line.split() for line in found.out.splitlines()] == [
        ["P", "OFFSET", "TIMESTAMP", "KEY", "VALUE"],
        ["0", "0", "2023-11-14T22:13:20.000Z", "laptop", "6000.0"],
        ["0", "1", "2023-11-14T22:13:20.000Z", "tv", "(tombstone)"],
        ["0", "2", "2023-11-14T22:13:20.000Z", "two\\nlines\\x1b[31m", "1.0"],
    ]
    assert max(map(len, found.out.splitlines())) < 80
    assert inspect(name, "--key", "string", "--value", "double", "-q").err == ""
    assert inspect(name, "--key", "string", "--value", "double", "-q", "-o", "name").out.splitlines()[0] == "laptop"


def test_a_listing_is_narrowed_by_options(inspect, cluster, topic):
    name = topic(partitions=3, config=COMPACTED)
    cluster.produce(name, [put(b"%d" % n, b"v%d" % n, partition=n % 3) for n in range(30)])

    def keys(*arguments):
        return [row["key"] for row in inspect(*arguments, "-o", "json").ok().json]

    assert keys(f"{name}:1") == [str(n) for n in range(1, 30, 3)]
    assert len(keys(f"{name}:0,2")) == 20
    assert keys(f"{name}:0-1", "--limit", 2) == ["0", "3"]
    assert keys(name, "--key-equals", "17") == ["17"]
    assert keys(name, "--key-equals", "99") == []
    assert "the first 2 shown" in inspect(name, "--limit", 2).ok().err


def test_formats_that_are_not_named_are_told(inspect, cluster, topic):
    name = topic(config=COMPACTED)
    cluster.produce(name, [put("größe".encode(), double(0.1)), put(b"plain", double(2))])
    found = inspect(name, "-o", "json").ok()
    assert "keys shown as string" in found.err
    assert "values shown as bytes (all have 8 bytes: --value long, or double?)" in found.err
    assert [(row["key"], row["value"], row["value_encoding"]) for row in found.json] == [
        ("größe", "P7mZmZmZmZo=", "base64"),
        ("plain", "QAAAAAAAAAA=", "base64"),
    ]
    assert "base64:P7mZmZmZmZo=" in inspect(name).ok().out


def test_numbers_that_json_lacks_are_text(inspect, cluster, topic):
    name = topic(config=COMPACTED)
    cluster.produce(name, [put(b"a", double(float("nan"))), put(b"b", double(float("-inf")))])
    found = inspect(name, "--value", "double", "-o", "json").ok()
    assert [row["value"] for row in found.json] == ["NaN", "-Infinity"]
    json.loads(found.out, parse_constant=pytest.fail)


def test_an_undecodable_record_is_named_or_passed_over(inspect, cluster, topic):
    name = topic(config=COMPACTED)
    cluster.produce(name, [put(b"good", double(1)), put(b"bad", b"oops"), put(b"worse", b"!")])
    failed = inspect(name, "--value", "double")
    assert failed.code == 1
    assert f"the value of {name}:0 at offset 1 is not double: a double has 8 bytes, this has 4" in failed.err
    assert failed.out == ""
    skipped = inspect(name, "--value", "double", "--on-error", "skip", "-o", "json").ok()
    assert [row["key"] for row in skipped.json] == ["good"]
    assert "undecodable and left out: 2 of 3; the first: " in skipped.err


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"cleanup.policy": "delete"}, "is not compacted"),
        ({"cleanup.policy": "compact,delete"}, "windowed and session stores"),
        ({"cleanup.policy": "compact", "min.compaction.lag.ms": "60000"}, "versioned stores"),
        ({"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime"}, "has the wrong timestamps"),
    ],
)
def test_odd_topics_are_told(inspect, cluster, topic, config, sentence):
    name = topic(config=config)
    cluster.produce(name, [put(b"k", b"v")])
    assert sentence in inspect(name).ok().err


def test_null_keys_are_counted(inspect, cluster, topic):
    name = topic()
    cluster.produce(name, [put(None, b"v"), put(None, b"w"), put(b"", b"x")])
    found = inspect(name, "-o", "json").ok()
    assert [row["key"] for row in found.json] == [""]
    assert "have no key: 2 records" in found.err


def test_misplaced_keys_are_counted(inspect, cluster, topic):
    name = topic(partitions=2, config=COMPACTED)
    keys = [b"k%d" % n for n in range(20)]
    records = [put(key, b"v", partition=partition_for(key, 2)) for key in keys]
    cluster.produce(name, [*records, put(keys[3], b"v", partition=1 - partition_for(keys[3], 2))])
    assert "keys in another partition than murmur2 of the key gives: 1 of 21;" in inspect(name).ok().err


def test_each_of_many_keys_is_listed_once(inspect, broker, topic):
    name = topic(partitions=2, config=COMPACTED)
    producer = Producer({**broker.client, "partitioner": "murmur2_random", "linger.ms": 20})
    for number in range(60_000):
        producer.produce(name, b"%d" % number, b"key-%d" % (number % 30_000))
    assert producer.flush(HANG_SECONDS) == 0
    found = inspect(name, "-o", "csv").ok()
    lines = found.out.splitlines()
    assert lines[0] == "topic,partition,offset,timestamp,timestamp_ms,key,value,headers,tombstone"
    assert len(lines) == 30_001
    assert "60,000 records read, 30,000 keys, 0 tombstones" in found.err
    assert "murmur2" not in found.err


def test_an_empty_topic_has_no_rows(inspect, topic):
    found = inspect(topic(config=COMPACTED), "-o", "json").ok()
    assert found.json == []
    assert "0 records read, 0 keys" in found.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["no-such-topic"], 1, "there is no topic no-such-topic"),
        ([], 2, "name either the changelog topic, or the application and its store"),
        (["--application", "x"], 2, "name either"),
        (["t", "--store", "x"], 2, "name either"),
        (["t:x"], 2, "'x' in 't:x' is not a partition"),
        (["t:3-1"], 2, "is not a partition or range of partitions"),
        (["t:"], 2, "is not a partition or range of partitions"),
        (["t", "--key", "strng"], 2, "did you mean string?"),
        (["t", "--key", "long", "--key-equals", "abc"], 2, "'abc' is not long"),
        (["--application", "no-such-app", "--store", "s"], 1, "no changelog begins with no-such-app-"),
    ],
)
def test_invalid_input_is_refused(inspect, arguments, code, message):
    found = inspect(*arguments)
    assert found.code == code, found.err
    assert message in found.err


def test_a_partition_that_does_not_exist_is_refused(inspect, topic):
    found = inspect(f"{topic(partitions=2)}:2")
    assert found.code == 2
    assert "it has 2: 0 to 1" in found.err
