"""The rebuild where Spark is elsewhere: a standalone cluster, and Spark Connect; both from PySpark's own jars.

Their Python tasks run without an installed kops: what they import of it went along.
"""

import json
import struct
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from support.isolation import FOR_SHORT_RUNS
from support.patience import HANG_SECONDS
from support.programs import Record
from support.streams_apps import Cluster, without_offsets

pytestmark = [pytest.mark.spark, pytest.mark.broker]

PARTITIONS, MORE_PARTITIONS, KEYS, RECORDS = 3, 5, 40, 900


def commit(admin, group, commits):
    """Commit offsets; a broker that has just started has no coordinator yet."""
    deadline = time.monotonic() + HANG_SECONDS
    while True:
        answer = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, commits)])[group].result(HANG_SECONDS)
        errors = [partition.error for partition in answer.topic_partitions if partition.error]
        if not errors:
            return
        assert time.monotonic() < deadline, errors
        time.sleep(0.2)


@pytest.fixture
def application(broker, unique):
    """An application that summed longs, and lost its changelog: its name and the expected sums."""
    name = unique()
    topics = [f"{name}-in", f"{name}-totals-changelog"]
    admin = AdminClient(broker.client)
    for future in admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in topics]).values():
        future.result(HANG_SECONDS)
    records = [(b"k%d" % (at % KEYS), at, 1_700_000_000_000 + at) for at in range(RECORDS)]
    places, sums = sent(broker, topics[0], records), {}
    for key, number, timestamp in records:
        total, _ = sums.get((places[key], key), (0, 0))
        sums[places[key], key] = (total + number, timestamp)
    counts = Counter(places[key] for key, _, _ in records)
    commit(admin, name, [TopicPartition(topics[0], number, counts[number]) for number in range(PARTITIONS)])
    yield name, sums
    for future in admin.delete_topics(topics).values():
        future.result(HANG_SECONDS)


def sent(broker, topic, records):
    """Send records (key, number, timestamp) as Java's producer does; return the partition of each key."""
    places = {}
    producer = Producer({**broker.client, "partitioner": "murmur2_random"})
    for key, number, timestamp in records:
        producer.produce(
            topic,
            struct.pack(">q", number),
            key,
            timestamp=timestamp,
            on_delivery=lambda _error, message: places.__setitem__(message.key(), message.partition()),
        )
    producer.flush(HANG_SECONDS)
    return places


def read(broker, topic, partitions=PARTITIONS):
    consumer = Consumer({**broker.client, "group.id": "reader", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    found, left = {}, sum(consumer.get_watermark_offsets(TopicPartition(topic, number))[1] for number in range(partitions))
    for message in consumer.consume(left, 30):
        found[message.partition(), message.key()] = (struct.unpack(">q", message.value())[0], message.timestamp()[1])
    consumer.close()
    return found


@pytest.fixture
def rebuilt(application, broker, home, kops_process, tmp_path, python_without_kops):
    """Rebuild with the Spark of an address, compare with what the application had, and return how to run other verbs on its state file."""

    def run(spark: str, *options: str) -> Callable[..., tuple[int, str, str]]:
        name, sums = application
        config = home / "config" / "kops" / "config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(
            f'[contexts.here]\nbootstrap_servers = ["{broker.bootstrap_servers}"]\n'
            f'[contexts.here.spark]\nmaster = "{spark}"\nstaging_directory = "{tmp_path / "staging"}"\n'
            '[contexts.here.spark.conf]\n"spark.driver.host" = "127.0.0.1"\n"spark.executor.memory" = "600m"\n'
            f'"spark.executor.extraJavaOptions" = "{FOR_SHORT_RUNS}"\n'
            '"spark.sql.shuffle.partitions" = "3"\n'
            f'"spark.pyspark.python" = "{python_without_kops}"\n'
        )
        store = {"from": {"topic": f"{name}-in", "key": "string", "value": "long"}, "aggregate": {"sum": "value", "as": "long"}}
        file = tmp_path / "state.yaml"
        file.write_text(json.dumps({"application": name, "stores": {"totals": store}}), encoding="utf-8")

        def kops(verb, *arguments):
            process = kops_process("state", verb, file, *arguments, *options, "-c", "here", "-o", "json")
            out, err = process.communicate(timeout=HANG_SECONDS)
            return process.returncode, out, err

        code, out, err = kops("rebuild", "--yes")
        assert code == 0, err
        assert json.loads(out)["status"] == "done"
        assert read(broker, f"{name}-totals-changelog") == sums
        return kops

    return run


@pytest.fixture
def replayed(application, broker, kops_process):
    """Replay what the application read by the Spark of the context ``here``, and return what other clients see of source and target."""
    cluster, made = Cluster(broker.bootstrap_servers), []

    def run(target: str, *options: str) -> tuple[list[Record], list[Record]]:
        source = f"{application[0]}-in"
        made.append(cluster.create(f"{application[0]}-{target}", PARTITIONS))
        process = kops_process("replay", "run", source, "--to", made[-1], *options, "--yes", "-c", "here")
        _, err = process.communicate(timeout=HANG_SECONDS)
        assert process.returncode == 0, err
        assert f"proven: {RECORDS} records" in err
        return without_offsets(cluster.read(source)), without_offsets(cluster.read(made[-1]))

    yield run
    cluster.delete_all(made)


def test_two_workers_compute_and_write(spark_cluster, rebuilt, replayed):
    rebuilt(spark_cluster)
    source, copied = replayed("copied")
    assert copied == source
    source, changed = replayed("changed", "--value", "long", "--where", "value >= 0", "--set", "value=value + 1")
    assert changed == [replace(record, value=struct.pack(">q", struct.unpack(">q", record.value)[0] + 1)) for record in source]


def test_a_spark_connect_server_computes_writes_and_moves(connect_server, rebuilt, replayed, application, broker):
    kops = rebuilt("local[1]", "--remote", connect_server)
    source, copied = replayed("copied", "--remote", connect_server)
    assert copied == source
    assert kops("verify")[0] == 0  # a cluster would start its executors again for that
    name, sums = application
    code, _, err = kops("repartition", "--partitions", str(MORE_PARTITIONS), "--grow-inputs", "--yes", "--confirm", name)
    assert code == 0, err
    places = sent(
        broker, f"{name}-in", [(b"k%d" % number, 0, 1_800_000_000_000) for number in range(KEYS)]
    )  # where a producer sends them now
    moved = {(places[key], key): found for (_, key), found in sums.items()}
    assert read(broker, f"{name}-totals-changelog", MORE_PARTITIONS) == moved
