"""What tasks stage of whole partitions, against what Spark SQL's way stages, which is held against the real Kafka Streams elsewhere."""

import random
import struct
from dataclasses import dataclass, replace

import pytest
from confluent_kafka import Producer

from kops.config.connection import Connection
from kops.config.java import java_settings
from kops.config.librdkafka import librdkafka_settings
from kops.core.statefile import parse_state_file
from kops.spark.columns.whole_partitions import FallBack, reason_against_tasks, stage_whole_partitions
from kops.spark.job import Job
from kops.spark.reading.batch_source import BatchSource
from kops.spark.reading.ranges import TopicRange
from kops.spark.reading.source import KafkaSource
from kops.spark.staging.stage import read_stage
from kops.spark.stores import jobs
from kops.spark.stores.jobs import stage_difference
from support.patience import HANG_SECONDS

pytestmark = [pytest.mark.spark, pytest.mark.broker]

PARTITIONS = 3
START = 1_700_000_000_000
HOPPING = {"size": "1s", "advance": "300ms", "grace": "150ms", "retention": "5s"}
STORES = {
    "sum": {"aggregate": {"sum": "value", "as": "long"}},
    "table": {},
    "tumbling-count": {"type": "window", "window": {"size": "1s", "grace": "0s", "retention": "1h"}, "aggregate": {"count": True}},
    "hopping-last": {"type": "window", "window": HOPPING, "aggregate": {"last": "value", "as": "long"}},
}


@dataclass(frozen=True)
class Topic:
    """A topic with what it holds.

    :param ranges: of its partitions, the first offsets left out
    """

    name: str
    ranges: dict[int, tuple[int, int]]


@pytest.fixture(scope="module")
def kafka(spark, broker):
    connection = Connection((broker.bootstrap_servers,))
    return KafkaSource(spark, java_settings(connection), BatchSource(spark, librdkafka_settings(connection)))


@pytest.fixture(scope="module")
def topics(broker):
    """Make topics of records: (partition, key, value, timestamp, headers)."""
    from support.streams_apps import Cluster

    cluster, made = Cluster(broker.bootstrap_servers), []

    def make(records, skip=0):
        name = f"whole-{random.randrange(10**9)}"
        made.append(name)
        cluster.create(name, PARTITIONS, {"retention.ms": "-1"})
        producer = Producer(broker.client)
        for partition, key, value, timestamp, headers in records:
            producer.produce(name, value, key, partition=partition, timestamp=timestamp, headers=headers)
        assert producer.flush(HANG_SECONDS) == 0
        ends = {number: bounds[:2] for number, bounds in cluster.ends(name).items()}
        return Topic(name, {number: (min(start + skip, end), end) for number, (start, end) in ends.items()})

    yield make
    for name in made:
        cluster.delete(name)


@pytest.fixture(scope="module")
def source(topics):
    """Longs with null keys and values, that wrap around, and times that go back and forth; the last partition has none."""
    rng = random.Random(6)
    records = []
    for at in range(1500):
        key = None if rng.random() < 0.03 else b"k%d" % rng.randrange(20)
        value = struct.pack(">q", rng.choice([rng.randrange(-50, 50), 2**62, -(2**63)]))
        records.append((at % 2, key, value, START + at * 10 - rng.choice([0, 0, 149, 150, 151, 999, 1000, 1001, 1150, 3000]), None))
    return topics(records, skip=3)


def job_of(source, changelog, **store):
    body = {"from": {"topic": source.name, "key": "string", "value": "long"}, **store}
    file = parse_state_file("state.yaml", {"application": "a", "streams": {"version": "4.3"}, "stores": {"s": body}})
    held = TopicRange(changelog.name, changelog.ranges) if changelog else TopicRange("none", {})
    return Job(file, file.stores[0], TopicRange(source.name, source.ranges), held, PARTITIONS)


def rows_of(spark, path):
    return sorted(map(str, read_stage(spark, path).collect()))


def both(kafka, job, tmp_path):
    """Return the rows that both ways stage, and what they count."""
    one, other = str(tmp_path / "tasks"), str(tmp_path / "spark")
    assert reason_against_tasks(kafka.batches, job, one) is None
    staged, seen = stage_whole_partitions(kafka.batches, job, one)
    counts = stage_difference(replace(kafka, batches=None), job, other)
    rows = rows_of(kafka.session, one)
    assert rows == rows_of(kafka.session, other)
    assert (seen.read, seen.dropped, seen.keys, seen.noted) == (counts.read, counts.dropped, counts.keys, counts.noted)
    assert staged == counts.staged
    return rows, counts


def stale(kafka, job, path):
    """Return records of a changelog that is right in part, from a stage that made it whole."""
    rng, records = random.Random(3), []
    for row in sorted(read_stage(kafka.session, path).collect(), key=lambda row: (row.partition, bytes(row.key))):
        key, value = bytes(row.key), row.after_value and bytes(row.after_value)
        record = (row.partition, key, value, row.after_timestamp, None)
        other = (row.partition, key, b"12345678", row.after_timestamp, None)
        wrong = rng.choice(["no", "no", "value", "time", "headers", "missing", "place", "deleted", "twice"])
        kinds = {
            "no": [record],
            "value": [other],
            "time": [(*record[:3], row.after_timestamp - 1, None)],
            "headers": [(*record[:4], [("a", b"b")])],
            "missing": [],
            "place": [((row.partition + 1) % PARTITIONS, *record[1:])],
            "deleted": [record, (*record[:2], None, row.after_timestamp + 7, None)],
            "twice": [other, record],
        }
        records += kinds[wrong]
    ahead = struct.pack(">qi", START + 19_000, 0)
    return [*records, (0, b"short", b"x", START, None), (1, None, b"x", START, None), (1, b"k1" + ahead, b"12345678", START, None)]


@pytest.mark.parametrize("name", STORES)
def test_tasks_stage_what_spark_does(kafka, topics, source, name, tmp_path):
    empty = job_of(source, None, **STORES[name])
    rows, _ = both(kafka, empty, tmp_path / "first")
    assert len(rows) >= 40
    changelog = topics(stale(kafka, empty, str(tmp_path / "first" / "tasks")))
    rows, counts = both(kafka, job_of(source, changelog, **STORES[name]), tmp_path / "second")
    actions = {action for found in counts.staged.actions.values() for action, count in found.items() if count}
    assert actions >= {"added", "changed", "removed"}
    if "window" in STORES[name]:
        assert counts.noted["late"] > 0
        assert (counts.noted["uncovered"] > 0) == ("tumbling" in name)
    if "hopping" in name:
        assert counts.noted["expired"] > 0
        assert counts.noted["hidden"] > 0


def test_what_tasks_cannot_judge_is_left_to_spark(kafka, topics, tmp_path):
    good = [(0, b"k%d" % at, struct.pack(">q", at), START + at, None) for at in range(4)]
    window = {"type": "window", "window": HOPPING}
    for record, store in (
        ((1, b"k", b"short", START, None), {"aggregate": {"sum": "value", "as": "long"}}),
        ((0, b"k1", None, START, None), {**window, "aggregate": {"last": "value", "as": "long"}}),
    ):
        job = job_of(topics([*good, record]), None, **store)
        assert reason_against_tasks(kafka.batches, job, str(tmp_path)) is None
        assert stage_whole_partitions(kafka.batches, job, str(tmp_path / "stage")) is FallBack.UNFIT


@pytest.mark.parametrize("name", ["sum", "hopping-last"])
def test_spark_merges_what_tasks_reduced_when_keys_outgrow_a_task(kafka, source, name, tmp_path, monkeypatch):
    job = job_of(source, None, **STORES[name])
    rows, counts = both(kafka, job, tmp_path)
    monkeypatch.setattr(jobs, "stage_whole_partitions", lambda *_: FallBack.LARGE)
    monkeypatch.setattr(jobs, "VIEWS", {})
    merged = stage_difference(kafka, job, str(tmp_path / "merged"))
    assert rows_of(kafka.session, str(tmp_path / "merged")) == rows
    assert (merged.read, merged.dropped, merged.keys) == (counts.read, counts.dropped, counts.keys)


def test_nothing_read_is_nothing_staged(kafka, topics, tmp_path):
    nothing = topics([])
    staged, seen = stage_whole_partitions(kafka.batches, job_of(nothing, nothing), str(tmp_path / "stage"))
    assert (staged.contents, seen.read, seen.keys) == ({}, 0, 0)
    assert rows_of(kafka.session, str(tmp_path / "stage")) == []
