"""What tasks add up by themselves, against Spark SQL's way, which is held against the real Kafka Streams elsewhere."""

import random
import struct
from dataclasses import replace

import pytest
from confluent_kafka import Producer

from kops.config.connection import Connection
from kops.config.java import java_settings
from kops.config.librdkafka import librdkafka_settings
from kops.core.statefile import parse_state_file
from kops.spark.columns.partial_aggregates import can_aggregate_in_tasks
from kops.spark.columns.partial_windows import can_aggregate_windows_in_tasks
from kops.spark.job import Job
from kops.spark.reading.batch_source import BatchSource
from kops.spark.reading.ranges import TopicRange
from kops.spark.reading.source import KafkaSource
from kops.spark.stores.jobs import VIEWS
from kops.spark.stores.streams import partial_aggregates_view
from kops.spark.stores.windows_view import partial_windows_view
from support.patience import HANG_SECONDS

pytestmark = [pytest.mark.spark, pytest.mark.broker]

PARTITIONS = 2
START = 1_700_000_000_000
KINDS = (
    {"count": True},
    {"sum": "value", "as": "long"},
    {"min": "value", "as": "long"},
    {"max": "value", "as": "long"},
    {"last": "value", "as": "long"},
    {"first": "value", "as": "long"},
)
NAMES = [next(iter(kind)) for kind in KINDS]
WINDOWS = (
    {"size": "1s", "grace": "0s"},
    {"size": "1s", "advance": "300ms", "grace": "150ms", "retention": "1m"},
    {"size": "900ms", "advance": "300ms", "grace": "2s", "retention": "20s"},
)


@pytest.fixture(scope="module")
def kafka(spark, broker):
    connection = Connection((broker.bootstrap_servers,))
    return KafkaSource(spark, java_settings(connection), BatchSource(spark, librdkafka_settings(connection)))


@pytest.fixture(scope="module")
def topic(broker):
    """A topic of longs with null keys and values, large numbers that wrap around, and times that go back and forth."""
    from support.streams_apps import Cluster

    name, cluster = f"added-up-{random.randrange(10**9)}", Cluster(broker.bootstrap_servers)
    cluster.create(name, PARTITIONS, {"retention.ms": "-1"})
    producer, rng = Producer(broker.client), random.Random(5)
    for at in range(3000):
        key = None if rng.random() < 0.03 else b"k%d" % rng.randrange(40)
        value = None if rng.random() < 0.05 else struct.pack(">q", rng.choice([rng.randrange(-50, 50), 2**62, -(2**63)]))
        time = START + at * 10 - rng.choice([0, 0, 0, 1, 149, 150, 151, 999, 1000, 1001, 1150, 1151, 3000])
        producer.produce(name, value, key, partition=rng.randrange(PARTITIONS), timestamp=time)
        producer.poll(0)
    assert producer.flush(HANG_SECONDS) == 0
    yield name, {number: bounds[:2] for number, bounds in cluster.ends(name).items()}
    cluster.delete(name)


def job_of(topic, **store):
    name, ranges = topic
    body = {"from": {"topic": name, "key": "string", "value": "long"}, **store}
    file = parse_state_file("state.yaml", {"application": "a", "streams": {"version": "4.3"}, "stores": {"s": body}})
    return Job(file, file.stores[0], TopicRange(name, ranges), TopicRange("none", {}), PARTITIONS)


def shown(view):
    rows = {(row.partition, bytes(row.key), row.value and bytes(row.value), row.timestamp, row.doubt) for row in view.rows.collect()}
    seen = view.seen()
    view.done()
    return rows, replace(seen, noted=dict(seen.noted), latest=None)  # tasks that read batches note it for themselves


@pytest.mark.parametrize("store", [*({"aggregate": kind} for kind in KINDS), {}], ids=[*NAMES, "table"])
def test_stores_of_keys(kafka, topic, store):
    job = job_of(topic, **store)
    assert can_aggregate_in_tasks(job.store)
    rows, seen = shown(partial_aggregates_view(kafka.batches, job))
    assert (rows, seen) == shown(VIEWS[job.store.type](kafka, job))
    assert len(rows) > 40


@pytest.mark.parametrize(
    ("windows", "aggregate"),
    [(0, "count"), (1, "sum"), (1, "max"), (2, "count"), (2, "min")],
    ids=["tumbling-count", "hopping-sum", "hopping-max", "expiring-count", "expiring-min"],
)
def test_windows(kafka, topic, aggregate, windows):
    windows, aggregate = WINDOWS[windows], KINDS[NAMES.index(aggregate)]
    job = job_of(topic, type="window", window=windows, aggregate=aggregate)
    assert can_aggregate_windows_in_tasks(job.store)
    rows, seen = shown(partial_windows_view(kafka, kafka.batches, job))
    assert (rows, seen) == shown(VIEWS[job.store.type](kafka, job))
    assert len(rows) > 30
    assert seen.noted["late"] > 0


def test_a_record_of_another_format_is_left_to_the_slower_way(kafka, topic):
    job = job_of(topic, aggregate={"count": True})
    other = replace(job, store=replace(job.store, source=replace(job.store.source, value=replace(job.store.source.value, name="int"))))
    view = partial_aggregates_view(kafka.batches, other)
    view.rows.count()
    assert view.seen().void


def test_what_needs_sql_is_left_to_sql(topic):
    assert can_aggregate_windows_in_tasks(job_of(topic, aggregate={"last": "value", "as": "long"}, type="window", window=WINDOWS[0]).store)
    for store in ({"where": "value > 1"}, {"key_by": "value", "key_as": "long"}):
        assert not can_aggregate_in_tasks(job_of(topic, aggregate={"count": True}, **store).store)
    assert not can_aggregate_windows_in_tasks(
        job_of(topic, type="window", window=WINDOWS[0], aggregate={"last": "value + 1", "as": "long"}).store
    )
