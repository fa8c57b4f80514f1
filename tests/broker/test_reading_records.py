"""Frozen ranges end exactly where they should, whatever lies in the log."""

from dataclasses import replace

import pytest
from confluent_kafka import Producer

from kops.core.errors import KopsError, NotFound, OperationFailed, TimedOut, Unreachable
from kops.core.models import TopicPartition
from kops.core.records.models import OffsetRange, Record
from kops.gateways.kafka import Kafka
from support.patience import HANG_SECONDS
from support.streams_apps import Cluster

pytestmark = pytest.mark.broker


@pytest.fixture
def kafka(broker):
    return Kafka(broker.connection)


def produce(servers, topic, numbers, partition=0, **settings):
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, **settings})
    transactional = "transactional.id" in settings
    if transactional:
        producer.init_transactions(30)
        producer.begin_transaction()
    for number in numbers:
        producer.produce(topic, b"v%d" % number, b"k%d" % number, partition, timestamp=1_700_000_000_000 + number)
    producer.flush(HANG_SECONDS)
    return producer


def read(kafka, topic, start, end, partition=0, **how):
    reader = kafka.records.read({TopicPartition(topic, partition): OffsetRange(start, end)}, **how)
    return [record for batch in reader for record in batch], reader


def whole(kafka, topic):
    bounds = kafka.offsets.bounds(kafka.offsets.partitions_of([topic])[topic])
    return {partition: OffsetRange(found.log_start_offset, found.log_end_offset) for partition, found in bounds.items()}


def test_a_record_has_all_its_parts(kafka, broker, topic):
    name = topic()
    producer = Producer(broker.client)
    producer.produce(name, None, b"", 0, timestamp=1, headers=[("a", b"\x01"), ("a", None)])
    producer.produce(name, b"", None, 0, timestamp=1_700_000_000_000)
    producer.flush(HANG_SECONDS)
    records, reader = read(kafka, name, 0, 2)
    assert records == [
        Record(name, 0, 0, 1, b"", None, (("a", b"\x01"), ("a", None))),
        Record(name, 0, 1, 1_700_000_000_000, None, b""),
    ]
    assert (reader.records, reader.done, reader.total, reader.stable_until) == (2, 2, 2, {})


def test_the_time_of_the_broker_is_told_apart(kafka, broker, topic):
    name = topic(config={"message.timestamp.type": "LogAppendTime"})
    produce(broker.bootstrap_servers, name, range(1))
    (record,), _ = read(kafka, name, 0, 1)
    assert record.log_append_time
    assert record.timestamp > 1_700_000_000_000


def test_a_range_is_read_without_what_follows(kafka, broker, topic):
    name = topic(partitions=2)
    produce(broker.bootstrap_servers, name, range(100))
    produce(broker.bootstrap_servers, name, range(100), partition=1)
    wanted = {TopicPartition(name, 0): OffsetRange(10, 50), TopicPartition(name, 1): OffsetRange(99, 100)}
    records = [record for batch in kafka.records.read(wanted) for record in batch]
    assert [record.offset for record in records if record.partition == 0] == list(range(10, 50))
    assert [(record.offset, record.key) for record in records if record.partition == 1] == [(99, b"k99")]


def test_an_empty_range_asks_nothing(kafka, topic):
    records, reader = read(kafka, topic(), 0, 0)
    assert (records, reader.total) == ([], 0)


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_markers_never_and_aborted_records_only_uncommitted_are_read(kafka, broker, topic, unique, isolation):
    name = topic()
    produce(broker.bootstrap_servers, name, range(10), **{"transactional.id": unique()}).commit_transaction(30)
    produce(broker.bootstrap_servers, name, range(10, 20), **{"transactional.id": unique()}).abort_transaction(30)
    produce(broker.bootstrap_servers, name, range(20, 30), **{"transactional.id": unique()}).commit_transaction(30)
    Cluster(broker.bootstrap_servers).settle(name)
    (wanted,) = whole(kafka, name).values()
    assert wanted == OffsetRange(0, 33)
    records, reader = read(kafka, name, 0, 33, isolation=isolation)
    seen = [number for number in range(30) if isolation == "read_uncommitted" or not 10 <= number < 20]
    assert [record.key for record in records] == [b"k%d" % number for number in seen]
    assert (reader.done, reader.stable_until) == (33, {})


def test_a_range_of_only_aborted_records_is_empty(kafka, broker, topic, unique):
    name = topic()
    produce(broker.bootstrap_servers, name, range(10), **{"transactional.id": unique()}).abort_transaction(30)
    Cluster(broker.bootstrap_servers).settle(name)
    produce(broker.bootstrap_servers, name, range(10, 12))
    assert read(kafka, name, 2, 8)[0] == []
    assert [record.offset for record in read(kafka, name, 0, 12)[0]] == [11]


def test_an_open_transaction_ends_the_reading_and_is_told(kafka, broker, topic, unique):
    name = topic()
    produce(broker.bootstrap_servers, name, range(5))
    opened = produce(broker.bootstrap_servers, name, range(5, 9), **{"transactional.id": unique()})
    records, reader = read(kafka, name, 0, 9)
    assert [record.offset for record in records] == list(range(5))
    assert reader.stable_until == {TopicPartition(name, 0): 5}
    records, reader = read(kafka, name, 0, 9, isolation="read_uncommitted")
    assert [record.offset for record in records] == list(range(9))
    assert reader.stable_until == {}
    opened.abort_transaction(30)


def test_records_that_are_gone_are_an_error(kafka, broker, topic):
    name = topic()
    produce(broker.bootstrap_servers, name, range(10))
    Cluster(broker.bootstrap_servers).trim(name, {0: 5})
    with pytest.raises(OperationFailed, match=f"{name}:0 at offset 2: its records are gone"):
        read(kafka, name, 2, 10)
    assert [record.offset for record in read(kafka, name, 5, 10)[0]] == list(range(5, 10))


def test_an_end_that_never_comes_says_how_far_it_got(broker, topic):
    name = topic()
    produce(broker.bootstrap_servers, name, range(10))
    with pytest.raises(TimedOut, match=f"got to offset 10 of 12 of {name}:0"):
        read(Kafka(replace(broker.connection, timeout=5.0)), name, 0, 12)


def test_no_group_is_left(kafka, broker, topic):
    name = topic()
    produce(broker.bootstrap_servers, name, range(10))
    read(kafka, name, 0, 10)
    listed = kafka.client.wait(kafka.client.admin.list_consumer_groups(request_timeout=HANG_SECONDS), "list groups")
    assert not [group for group in listed.valid if group.group_id.startswith("kops-reader")]


def test_every_record_of_many_partitions_is_read_once(kafka, broker, topic):
    name = topic(partitions=20)
    for partition in range(0, 20, 2):
        produce(broker.bootstrap_servers, name, range(2_000), partition=partition)
    seen = {partition: [] for partition in range(20)}
    reader = kafka.records.read(whole(kafka, name))
    for batch in reader:
        for record in batch:
            seen[record.partition].append(record.offset)
    assert seen == {partition: [] if partition % 2 else list(range(2_000)) for partition in range(20)}
    assert reader.records == reader.done == reader.total == 20_000


def test_a_topic_that_does_not_exist_is_an_error(broker, topic):
    name = topic()
    with pytest.raises((NotFound, OperationFailed, TimedOut)) as caught:
        read(Kafka(replace(broker.connection, timeout=2.0)), f"{name}-gone", 0, 5)
    assert f"{name}-gone:0" in caught.value.message


def test_reading_outlives_a_broker_that_comes_back_and_not_one_that_stays_away(own_broker):
    own = own_broker()
    kafka = Kafka(own.connection)
    Cluster(own.bootstrap_servers).create("big")
    producer = Producer({**own.client, "queue.buffering.max.messages": 100_000, "linger.ms": 20})
    for number in range(60_000):
        producer.produce("big", bytes(1_500), b"%d" % number, 0)
    assert producer.flush(HANG_SECONDS) == 0
    reader = kafka.records.read({TopicPartition("big", 0): OffsetRange(0, 60_000)})
    batches = iter(reader)
    offsets = [record.offset for record in next(batches)]
    own.kill()
    own.start()
    offsets += [record.offset for batch in batches for record in batch]
    assert offsets == list(range(60_000))
    own.kill()
    with pytest.raises(KopsError) as caught:
        read(Kafka(replace(own.connection, timeout=3.0)), "big", 0, 60_000)
    assert isinstance(caught.value, (Unreachable, TimedOut))


def test_following_outlives_a_broker_that_comes_back_and_not_one_that_stays_away(own_broker):
    own = own_broker()
    Cluster(own.bootstrap_servers).create("followed")
    produce(own.bootstrap_servers, "followed", range(3))
    kafka = Kafka(replace(own.connection, timeout=4.0))
    batches = kafka.records.follow({TopicPartition("followed", 0): 1})

    def keys(count):
        found = []
        while len(found) < count:
            found += [record.key for record in next(batches)]
        return found

    assert keys(2) == [b"k1", b"k2"]
    own.kill()
    for _ in range(10):
        assert next(batches) == []
    own.start()
    produce(own.bootstrap_servers, "followed", range(3, 5))
    assert keys(2) == [b"k3", b"k4"]
    for _ in range(60):  # longer than the time limit: nobody produces, which is not an error
        assert next(batches) == []
    own.kill()
    with pytest.raises((Unreachable, TimedOut)):
        for _ in range(600):
            next(batches)
    batches.close()
