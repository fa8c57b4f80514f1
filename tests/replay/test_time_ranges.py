"""Ranges of time: what is sent, sent back and archived is every record of that time, as a plain consumer knows them."""

import pyarrow.dataset
import pytest
from confluent_kafka import Producer

from support.patience import HANG_SECONDS
from support.programs import Record

pytestmark = [pytest.mark.broker, pytest.mark.spark]

BASE = 1_760_000_000_000
OUT_OF_ORDER = (0, 100, 300, 200, 50, 400)
WANTED = f"@{BASE + 40}..@{BASE + 150}"


def scattered(partition=0, headers=()):
    return [Record(b"k%d" % after, b"%d" % after, BASE + after, headers, partition) for after in OUT_OF_ORDER]


def times(records):
    return sorted((record.partition, record.timestamp - BASE) for record in records)


def in_batches(servers, topic, timestamps, codec, each=7, partition=0):
    """Write records in compressed batches of several records."""
    for first in range(0, len(timestamps), each):
        producer = Producer({"bootstrap.servers": servers, "compression.type": codec, "linger.ms": 5000})
        for timestamp in timestamps[first : first + each]:
            producer.produce(topic, b"v%d" % timestamp, b"k%d" % timestamp, partition, timestamp=timestamp)
        assert producer.flush(HANG_SECONDS) == 0


@pytest.mark.parametrize(
    "how",
    [(), ("--guarantee", "at-least-once", "--partition-by", "key"), ("--set", "value=value"), ("--partition-by", "0")],
    ids=lambda how: " ".join(how) or "as they are",
)
def test_a_replay_sends_every_record_of_the_time_and_proves_that(scene, kops, how):
    source, target = scene.topic("source", 1), scene.topic("target", 1)
    scene.cluster.produce(source, scattered())
    done = kops("replay", "run", source, "--to", target, "--range", WANTED, *how, "--yes", "-o", "json").ok()
    assert times(scene.read(target)) == [(0, 50), (0, 100)]
    assert done.json["messages"][0].startswith("proven: 2 records were sent, all 2 that the range of time had when it was planned;")


def test_the_plan_counts_the_records_of_the_time(scene, kops):
    source, target = scene.topic("source"), scene.topic("target")
    scene.cluster.produce(source, [*scattered(), Record(b"k", b"v", BASE + 500, (), 1)])
    plan = kops("replay", "run", source, "--to", target, "--range", WANTED, "--dry-run", "-o", "json").ok().json
    assert plan["summary"].startswith(f"send 2 records of {source} ")
    assert any("6 offsets were checked" in note for note in plan["notes"])
    assert plan["arguments"]["preview"]["records"] == 2
    assert sorted(sample["timestamp_ms"] - BASE for sample in plan["arguments"]["preview"]["samples"]) == [50, 100]
    assert [(item["target"], item["action"]) for item in plan["items"]] == [(f"{source}:0", "send"), (f"{source}:1", "none")]


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_batches_that_are_partly_of_the_time_are_cut(scene, kops, codec):
    source, target = scene.topic("source", 1), scene.topic("target", 1)
    given = [BASE + (number * 37) % 101 for number in range(70)]
    in_batches(scene.cluster.servers, source, given, codec)
    kops("replay", "run", source, "--to", target, "--range", f"@{BASE + 20}..@{BASE + 60}", "--yes").ok()
    right = [record for record in scene.read(source) if BASE + 20 <= record.timestamp < BASE + 60]
    assert scene.read(target) == right
    assert 0 < len(right) < 70


def test_a_limit_counts_records_of_the_time(scene, kops):
    source, target = scene.topic("source", 1), scene.topic("target", 1)
    scene.cluster.produce(source, scattered())
    kops("replay", "run", source, "--to", target, "--range", f"@{BASE + 40}..@{BASE + 250}", "--limit", "2", "--yes").ok()
    assert times(scene.read(target)) == [(0, 100), (0, 200)]


def test_a_range_without_records_of_the_time_sends_nothing(scene, kops):
    source, target = scene.topic("source", 1), scene.topic("target", 1)
    scene.cluster.produce(source, scattered())
    plan = kops("replay", "run", source, "--to", target, "--range", f"@{BASE + 60}..@{BASE + 90}", "--dry-run", "-o", "json").ok().json
    assert "no records" in plan["summary"]


def test_dead_letters_of_a_time_are_sent_back_and_the_others_later(scene, kops):
    origin, queue = scene.topic("origin", 1), scene.topic("queue", 1)
    came = (("__streams.errors.topic", origin.encode()), ("__streams.errors.partition", b"0"), ("__streams.errors.message", b"late"))
    scene.cluster.produce(queue, scattered(headers=came))
    redrive = ("replay", "redrive", queue, "--to-topics", origin, "--yes")
    kops(*redrive, "--range", WANTED).ok()
    assert times(scene.read(origin)) == [(0, 50), (0, 100)]
    kops(*redrive).ok()
    assert times(scene.read(origin)) == [(0, after) for after in sorted(OUT_OF_ORDER)]


def test_an_archive_of_a_time_has_all_of_it_and_no_holes(scene, kops, tmp_path):
    source = scene.topic("source", 1)
    scene.cluster.produce(source, scattered())
    done = kops("replay", "archive", source, "--to", str(tmp_path / "archive"), "--range", WANTED).ok()
    rows = pyarrow.dataset.dataset(next((tmp_path / "archive" / "records").iterdir()), format="parquet").to_table().to_pylist()
    assert sorted((row["offset"], row["timestamp_ms"] - BASE) for row in rows) == [(1, 100), (2, 300), (3, 200), (4, 50)]
    assert "2 records of other times" in done.err
    kops("replay", "archive", source, "--to", str(tmp_path / "archive"), "--range", f"..@{BASE + 60}").ok()
    kops("replay", "archive", source, "--to", str(tmp_path / "archive")).ok()
    parts = [pyarrow.dataset.dataset(run, format="parquet").to_table().to_pylist() for run in (tmp_path / "archive" / "records").iterdir()]
    assert sorted(row["offset"] for rows in parts for row in rows) == [1, 2, 3, 4, 5]
