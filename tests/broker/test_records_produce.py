"""``kops records produce``: what lies in the log afterwards, what is refused, and what the journal says."""

import json
import signal

import pytest

from kops.core.murmur2 import partition_for
from support.memory import peak_megabytes
from support.patience import HANG_SECONDS
from support.streams_apps import wait_for

pytestmark = pytest.mark.broker

TIME = 1_700_000_000_000


@pytest.fixture
def records(broker, run_kops):
    return lambda *arguments, **given: run_kops("records", *arguments, "-B", broker.bootstrap_servers, **given)


def held(cluster, topic):
    return [(record.partition, record.key, record.value) for record in cluster.read(topic)]


def test_lines_become_records_with_keys_nulls_and_headers(records, cluster, topic, run_kops):
    name = topic(partitions=3)
    flags = ("--key-separator", "\\t", "--null", "NULL", "--header", "h=1", "--header", "empty=", "--timestamp", f"@{TIME}")
    done = records("produce", name, *flags, input=b"a\t1\nb\tNULL\n\tempty key\nNULL\tno key\nb\xc3\xbc\t\xff\x00\n").ok()
    found = cluster.read(name)
    assert {(record.key, record.value) for record in found} == {
        (b"a", b"1"),
        (b"b", None),
        (b"", b"empty key"),
        (None, b"no key"),
        ("bü".encode(), b"\xff\x00"),
    }
    assert all(record.partition == partition_for(record.key, 3) for record in found if record.key is not None)
    assert {(record.timestamp, record.headers) for record in found} == {(TIME, (("h", b"1"), ("empty", b"")))}
    assert "5 records acknowledged; journal" in done.err
    assert "this cannot be undone" in done.err
    entry = run_kops("journal", "show", "last", "-o", "json").ok().json
    assert entry["plan"]["warnings"] == ["this cannot be undone"]
    taken = {item["target"]: item["value"] for item in entry["results"]}
    per_partition = {f"{name}:{p}": [r.offset for r in found if r.partition == p] for p in {r.partition for r in found}}
    assert taken == {
        target: {"records": len(offsets), "first_offset": min(offsets), "last_offset": max(offsets)}
        for target, offsets in per_partition.items()
    }
    refused = run_kops("undo", "last", "--yes", "-B", cluster.servers)
    assert (refused.code, "cannot be undone" in refused.err) == (5, True)


def test_flags_make_one_record(records, cluster, topic):
    name = topic(partitions=2)
    done = records("produce", name, "--key", "k", "--value", "hello", "--partition", "1", "-o", "json").ok()
    assert done.json | {"journal_id": ""} == {
        "version": 1,
        "status": "done",
        "items": [{"target": f"{name}:1", "status": "done", "value": {"records": 1, "first_offset": 0, "last_offset": 0}}],
        "errors": [],
        "journal_id": "",
    }
    records("produce", name, "--key", "k", "--tombstone", "--partition", "1").ok()
    records("produce", name, "--key", "7", "--key-format", "long", "--value", "", "--partition", "1").ok()
    assert held(cluster, name) == [(1, b"k", b"hello"), (1, b"k", None), (1, (7).to_bytes(8, "big"), b"")]


def test_files_are_produced_by_line_or_whole(records, cluster, topic, tmp_path):
    name = topic()
    (tmp_path / "one").write_bytes(b"1\n2\n")
    (tmp_path / "two").write_bytes(b"3")
    records("produce", name, "--file", tmp_path / "one", "--file", tmp_path / "two", "--key", "k").ok()
    records("produce", name, "--input", "whole", "--file", tmp_path / "one").ok()
    records("produce", name, input=b"").ok()
    assert [value for *_, value in held(cluster, name)] == [b"1", b"2", b"3", b"1\n2\n"]


def test_what_consume_writes_is_produced_the_same(records, cluster, topic):
    one, two, three = topic("one", partitions=4), topic("two", partitions=4), topic("three", partitions=2)
    lines = [
        {
            "key": "a",
            "value": "text\n",
            "timestamp_ms": TIME,
            "partition": 3,
            "headers": [{"key": "x", "value": "/w==", "encoding": "base64"}],
        },
        {"key": "AP8=", "key_encoding": "base64", "value": None, "timestamp_ms": TIME + 1, "partition": 0},
        {"key": None, "value": "", "timestamp_ms": TIME + 2, "partition": 0, "headers": {"n": None, "t": "1"}},
        {"key": 5, "key_encoding": "long", "value": {"a": [1.5, None]}, "timestamp_ms": TIME + 3, "partition": 1},
    ]
    records("produce", one, "--input", "json", input="\n".join(map(json.dumps, lines))).ok()
    written = records("consume", one, "start..", "-o", "json").ok()
    records("produce", two, "--input", "json", input=written.out).ok()
    assert cluster.read(two) == cluster.read(one)
    refused = records("produce", three, "--input", "json", input=written.out)
    assert "has no partition 3" in refused.err
    records("produce", three, "--input", "json", "--repartition", input=written.out).ok()
    keyed = {(record.key, record.value, record.timestamp) for record in cluster.read(three)}
    assert {(record.key, record.value, record.timestamp) for record in cluster.read(one)} <= keyed


def test_a_broken_line_ends_it_and_says_what_was_sent(records, cluster, topic, run_kops):
    name = topic()
    broken = records("produce", name, "--input", "json", input='{"value": "a"}\n{"key": "b"}\n{"value": "c"}\n')
    assert broken.code == 6
    assert "line 2: it has no value; the record before it was sent" in broken.err
    assert held(cluster, name) == [(0, None, b"a")]
    assert run_kops("journal", "show", "last", "-o", "json").ok().json["status"] == "partial"
    first = records("produce", name, "--input", "json", input="nonsense")
    assert (first.code, "line 1 is not JSON" in first.err) == (2, True)
    assert len(held(cluster, name)) == 1


def test_refused_records_are_named_and_the_others_arrive(records, cluster, topic):
    name = topic(config={"max.message.bytes": "2000"})
    done = records("produce", name, "-o", "json", input=b"small\n" + b"x" * 5_000 + b"\nalso small\n")
    assert done.code == 6
    assert done.json["status"] == "partial"
    (error,) = done.json["errors"]
    assert error["message"].startswith("line 2: ")
    assert error["refused"] == 1
    assert [value for *_, value in held(cluster, name)] == [b"small", b"also small"]
    old = records("produce", name, "--value", "x", "--timestamp", "@0")
    assert (old.code, "the time 1970-01-01T00:00:00.000Z cannot be sent" in old.err) == (1, True)


def test_dry_run_counts_and_sends_nothing(records, cluster, topic, run_kops):
    name = topic(partitions=3)
    found = records("produce", name, "--key-separator", ":", "--null", "-", "--dry-run", "-o", "json", input=b"a:1\na:-\n-:2\n").ok()
    at = partition_for(b"a", 3)
    assert found.json == [
        {"topic": name, "partition": at, "records": 2, "tombstones": 1},
        {"topic": name, "partition": None, "records": 1, "tombstones": 0},
    ]
    assert held(cluster, name) == []
    assert run_kops("journal", "list", "-o", "json").ok().json == []


def test_protected_contexts_ask_and_read_only_contexts_refuse(run_kops, broker, cluster, topic):
    name = topic()
    for context, flag in (("guarded", "--protected"), ("looking", "--read-only")):
        run_kops("context", "add", context, "--bootstrap-servers", broker.bootstrap_servers, flag).ok()
    refused = run_kops("records", "produce", name, "-c", "looking", input=b"x")
    assert (refused.code, "is read-only" in refused.err) == (5, True)
    asked = run_kops("records", "produce", name, "-c", "guarded", input=b"x")
    assert (asked.code, "--confirm guarded" in asked.err) == (5, True)
    assert held(cluster, name) == []
    run_kops("records", "produce", name, "-c", "guarded", "--confirm", "guarded", input=b"x").ok()
    assert held(cluster, name) == [(0, None, b"x")]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["t", "--value", "a", "--tombstone"], 2, "are mutually exclusive"),
        (["t", "--value", "a", "--file", "x"], 2, "are the whole input"),
        (["t", "--key", "a", "--key-separator", ":"], 2, "leave --key out"),
        (["t", "--header", "a"], 2, "has no value"),
        (["t", "--timestamp", "yesterday"], 2, "is not a valid time"),
        (["t", "--file", "/no/such/file"], 2, "cannot read /no/such/file"),
        (["t", "--value", "x", "--value-format", "long"], 2, "is not long"),
        (["no-such-topic", "--value", "a"], 1, "no-such-topic"),
        (["__consumer_offsets", "--value", "a"], 5, "belongs to the brokers"),
    ],
)
def test_mistakes_in_options_are_named(records, arguments, code, said):
    outcome = records("produce", *arguments)
    assert (outcome.code, said in outcome.err) == (code, True), outcome.err


def test_a_partition_that_does_not_exist_is_refused(records, cluster, topic):
    name = topic(partitions=2)
    refused = records("produce", name, "--value", "x", "--partition", "2")
    assert (refused.code, f"{name} has no partition 2" in refused.err) == (2, True)
    assert held(cluster, name) == []


def test_partitioners_place_keys_as_other_clients_do(records, cluster, topic):
    name = topic(partitions=5)
    keys = [f"key-{n}" for n in range(40)]
    text = "".join(f"{key}:v\n" for key in keys)
    for partitioner in ("murmur2", "crc32"):
        records("produce", name, "--key-separator", ":", "--partitioner", partitioner, "--acks", "1", input=text).ok()
    import zlib

    java = sorted((partition_for(key.encode(), 5), key) for key in keys)
    librdkafka = sorted((zlib.crc32(key.encode()) % 5, key) for key in keys)
    assert sorted((p, key.decode()) for p, key, _ in held(cluster, name)) == sorted(java + librdkafka)


def test_ctrl_c_says_what_was_sent(broker, cluster, topic, kops_process):
    import subprocess

    name = topic()
    process = kops_process("records", "produce", name, "-B", broker.bootstrap_servers, stdin=subprocess.PIPE)
    process.stdin.write("a\nb\n")
    process.stdin.flush()
    wait_for("the records", lambda: len(held(cluster, name)) == 2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == 130, err
    assert "interrupted; the 2 records before that were sent" in err
    assert "2 records acknowledged; journal" in err


def test_memory_stays_flat_and_many_arrive(broker, cluster, topic, tmp_path):
    name, lines, peaks = topic(partitions=2), tmp_path / "lines", []
    for count in (50_000, 400_000):
        lines.write_bytes((b"k:" + b"x" * 150 + b"\n") * count)
        peaks.append(peak_megabytes("records", "produce", name, "--key-separator", ":", "--file", lines, "-B", broker.bootstrap_servers))
    assert sum(high - low for low, high in cluster.ends(name).values()) == 450_000
    assert peaks[1] < peaks[0] + 100, f"{peaks} MB"


def test_numbers_names_and_times_of_json_survive_a_round_trip(records, cluster, topic):
    name, copy = topic(), topic()
    values = [
        b'{"a":12345678901234567.89}',
        b'{"a":12345678901234568.12}',
        b'{"a":12345678901234568}',
        b'{"a":1e400,"b":1.50,"c":-0}',
        b'{"a":98765432109876543210}',
        b'{"a":1,"b":2,"a":3}',
    ]
    lines = b"".join(b'{"value": %s, "timestamp": "2026-11-20T14:05:00.%03dZ"}\n' % (value, at) for at, value in enumerate(values))
    records("produce", name, "--input", "json", input=lines).ok()
    assert [(record.value, record.timestamp) for record in cluster.read(name)] == [
        (value, 1_795_183_500_000 + at) for at, value in enumerate(values)
    ]
    read = records("consume", name, "start..", "--value", "json", "-o", "json").ok().out
    records("produce", copy, "--input", "json", input=read.encode()).ok()
    assert [(record.value, record.timestamp) for record in cluster.read(copy)] == [
        (record.value, record.timestamp) for record in cluster.read(name)
    ]
    for condition, offset in (
        ("value.a=12345678901234567.89", 0),
        ("value.a>1e399", 3),
        ("value.a=98765432109876543210", 4),
        ("value.a=1", 5),
    ):
        for form in ((), ("--value", "json")):
            found = records("consume", name, "start..", "--filter", condition, *form, "-o", "json").ok().out
            assert [json.loads(line)["offset"] for line in found.splitlines()] == [offset], condition
    assert "1e400" in records("consume", name, "start..", "--value", "json", "-o", "yaml").ok().out
    assert "12345678901234567.89" in records("consume", name, "start..", "--value", "json").ok().out


def test_an_unknown_field_is_no_record(records, cluster, topic):
    name = topic()
    refused = records("produce", name, "--input", "json", input=b'{"value": "a", "timestmap": "2026-11-20T14:05:00.000Z"}\n')
    assert (refused.code, list(cluster.read(name))) == (2, [])
    assert "line 1: it has the field timestmap" in refused.err
    assert "did you mean timestamp?" in refused.err


def test_a_topic_that_appends_its_own_times_takes_none(records, cluster, topic):
    name = topic(config={"message.timestamp.type": "LogAppendTime"})
    for arguments, line in ((("--timestamp", f"@{TIME}"), b"a\n"), (("--input", "json"), b'{"value": "a", "timestamp_ms": 5}\n')):
        for dry in ((), ("--dry-run",)):
            refused = records("produce", name, *arguments, *dry, input=line)
            assert refused.code == 5, refused.err
            assert "message.timestamp.type=LogAppendTime: the record would get the time of its appending" in refused.err
    assert list(cluster.read(name)) == []
    partly = records("produce", name, "--input", "json", input=b'{"value": "a"}\n{"value": "b", "timestamp_ms": 5}\n')
    assert partly.code == 6, partly.err
    assert "line 2" in partly.err
    assert "the record before it was sent" in partly.err
    assert [record.value for record in cluster.read(name)] == [b"a"]
