"""Ranges of time: every record of that time and no other, wherever it stands, as a plain consumer sees them."""

import json
import random
from contextlib import closing

import pytest
from confluent_kafka import Producer

from kops.config.librdkafka import librdkafka_settings
from kops.core.times import Times
from kops.formats.batches.columns import decode
from kops.formats.batches.header import Producer as BatchProducer
from kops.formats.batches.header import batches_of
from kops.gateways.wire.batch_consumer import BatchConsumer
from kops.operations.records import consume
from kops.spark.replay.jobs import Job, PartitionRange
from kops.spark.replay.slices import Destinations
from kops.spark.replay.tasks import TimeSearch, slices_of
from support.patience import HANG_SECONDS
from support.programs import Record
from support.streams_apps import wait_for

pytestmark = pytest.mark.broker

BASE = 1_760_000_000_000
OUT_OF_ORDER = (0, 100, 300, 200, 50, 400)


@pytest.fixture
def scattered(topic, cluster):
    """A topic with a timestamp that belongs to the range standing after a later one."""
    name = topic()
    cluster.produce(name, [Record(b"k", b"%d" % after, BASE + after, (), 0) for after in OUT_OF_ORDER])
    return name


def span(first, end):
    return f"@{BASE + first}..@{BASE + end}"


def seen(outcome):
    return [json.loads(line)["timestamp_ms"] - BASE for line in outcome.ok().out.splitlines()]


@pytest.mark.parametrize(
    ("wanted", "right"),
    [
        (span(40, 150), [100, 50]),
        (span(40, 60), [50]),
        (span(150, 250), [200]),
        (span(60, 90), []),
        (f"@{BASE + 150}..", [300, 200, 400]),
        (f"..@{BASE + 60}", [0, 50]),
        (f"2..@{BASE + 210}", [200, 50]),
        (f"@{BASE + 40}..4", [100, 300, 200]),
    ],
)
def test_a_range_of_time_has_every_record_of_that_time(kops, scattered, wanted, right):
    outcome = kops("records", "consume", scattered, wanted, "-o", "json")
    assert seen(outcome) == sorted(right)


def test_dead_letters_of_a_time_are_all_shown(kops, scattered):
    rows = kops("records", "dead-letters", scattered, "--range", span(40, 150), "-o", "json").ok().out.splitlines()
    assert [json.loads(row)["offset"] for row in rows] == [4, 1]
    counted = kops("records", "dead-letters", scattered, "--range", span(40, 150), "--count", "-o", "json").ok().json
    assert [row["count"] for row in counted] == [2]


def test_a_range_of_time_is_shown_in_the_order_of_time(kops, topic, cluster):
    name = topic(partitions=3)
    cluster.produce(name, [Record(b"k", b"v", BASE + number, (), number % 3) for number in range(300)])
    assert seen(kops("records", "consume", name, span(100, 250), "-o", "json")) == list(range(100, 250))
    assert seen(kops("records", "consume", name, span(100, 250), "--limit", "5", "-o", "json")) == list(range(100, 105))
    lines = kops("records", "consume", name, span(100, 250), "--format", "%T\n").ok().out.splitlines()
    assert [int(line) - BASE for line in lines] == list(range(100, 250))


def test_the_last_record_of_each_key_is_that_of_the_log_not_of_time(kops, scattered):
    assert seen(kops("records", "consume", scattered, span(40, 150), "--latest", "-o", "json")) == [50]


def test_what_is_too_much_to_be_sorted_comes_as_it_is_with_a_word(kops, topic, cluster, monkeypatch):
    monkeypatch.setattr(consume, "MOST_SORTED", 20)
    name = topic(partitions=2)
    cluster.produce(name, [Record(b"k", b"v", BASE + number, (), number % 2) for number in range(100)])
    outcome = kops("records", "consume", name, span(0, 100), "-o", "json")
    assert sorted(seen(outcome)) == list(range(100))
    assert "not in the order of time: more than 20 records" in outcome.err


SPREAD, PARTITIONS = 200, 2
KINDS = {
    "CreateTime": {},
    "LogAppendTime": {"message.timestamp.type": "LogAppendTime"},
    "transactions": {},
    "compacted": {"cleanup.policy": "compact", "segment.ms": "1000", "min.cleanable.dirty.ratio": "0", "min.compaction.lag.ms": "0"},
}


class Writer:
    """Writes batches of random size, compression and timestamps, each to one partition."""

    def __init__(self, client, name, rng, transactional):
        self.rng, self.name, self.transactional = rng, name, transactional
        codecs = ("none", "gzip", "snappy", "lz4", "zstd")
        ids = [{"transactional.id": f"{name}-{codec}"} if transactional else {} for codec in codecs]
        self.producers = [
            Producer({**client, "compression.type": codec, "linger.ms": 5000, **one}) for codec, one in zip(codecs, ids, strict=True)
        ]
        for producer in self.producers if transactional else ():
            producer.init_transactions(60)

    def write(self, batches, since=BASE):
        for _ in range(batches):
            producer, partition = self.rng.choice(self.producers), self.rng.randrange(PARTITIONS)
            if self.transactional:
                producer.begin_transaction()
            for _ in range(self.rng.choice((1, 2, 5, 40))):
                key, value = b"k%d" % self.rng.randrange(30), b"v" * self.rng.randrange(60)
                producer.produce(self.name, value, key, partition, timestamp=since + self.rng.randrange(SPREAD))
            assert producer.flush(HANG_SECONDS) == 0
            if self.transactional:
                producer.commit_transaction(60) if self.rng.random() < 0.6 else producer.abort_transaction(60)


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_in_the_log_a_range_of_time_is_a_filter(kops, broker, cluster, topic, eager_cleaner, kind):
    rng = random.Random(kind)
    name = topic(partitions=PARTITIONS, config=KINDS[kind])
    writer = Writer(broker.client, name, rng, kind == "transactions")
    if kind == "compacted":
        for turn in range(4):  # each begins a new segment, as its times are an hour later
            writer.write(12, BASE + turn * 3_600_000)
    else:
        writer.write(50)
    cluster.settle(name)
    if kind == "compacted":
        before = sum(end - start for start, end in cluster.ends(name).values())
        wait_for("the compaction", lambda: len(cluster.read(name)) < before - 30)
        cluster.set_config(name, cleanup_policy="delete", retention_ms="-1")
    everything = cluster.read(name)
    for times in random_times(rng, sorted({record.timestamp for record in everything})):
        right = [record for record in everything if times.include(record.timestamp)]
        text = f"{'' if times.first is None else f'@{times.first}'}..{'' if times.end is None else f'@{times.end}'}"
        lines = kops("records", "consume", name, text, "-o", "json").ok().out.splitlines()
        found = sorted((row["partition"], row["offset"]) for row in map(json.loads, lines))
        assert found == [(record.partition, record.offset) for record in right]
        for partition, (start, end) in cluster.ends(name).items():
            compare_tasks(broker, name, PartitionRange(partition, start, end), times, everything)


def random_times(rng, there):
    yield from (Times(there[0], there[-1]), Times(there[0] + 1), Times(None, there[-1]))
    for _ in range(3):
        yield Times(*sorted(rng.choice(there) + rng.randrange(2) for _ in range(2)))


def compare_tasks(broker, name, part, times, everything):
    """Compare what Spark's tasks find and send with what a plain consumer reads."""
    settings = librdkafka_settings(broker.connection)
    here = [record for record in everything if record.partition == part.partition]
    inside = [record for record in here if times.include(record.timestamp)]
    window = TimeSearch(name, settings, part, times)()
    assert (window.inside, window.looked) == (len(inside), part.end - part.start)
    if inside:
        between = [record for record in here if inside[0].offset <= record.offset <= inside[-1].offset]
        assert (window.start, window.end, window.others) == (inside[0].offset, inside[-1].offset + 1, len(between) - len(inside))
    for by_key in (False, True):
        sent = []
        destinations = Destinations("target", {"target": 1}, by_key=by_key)
        job = Job(name, settings, settings, "test", "target", destinations, times=times)
        with closing(BatchConsumer(name, settings, read_committed=True)) as source:
            for payload in (one for each in slices_of(source, job, part, part.start) for one in each.payloads()):
                data = payload.encode(BatchProducer(1, 0, 0))
                columns = decode(data, batches_of(data))
                sent += zip(columns.keys().to_pylist(), columns.values().to_pylist(), columns.timestamps.tolist(), strict=True)
        assert sent == [(record.key, record.value, record.timestamp) for record in inside]
