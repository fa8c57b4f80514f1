"""Whole record batches: what they hold for other clients, and what happens when the broker does not want or answer them."""

import random
import threading
import time

import pyarrow
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kops.config.librdkafka import librdkafka_settings
from kops.formats.batches.encode import columns_of, encode, split
from kops.formats.batches.header import Producer as Identity
from kops.gateways.wire import batch_producer
from kops.gateways.wire.batch_producer import BatchProducer, write_batches
from kops.gateways.wire.connections import can_connect
from kops.gateways.wire.librdkafka_writer import LibrdkafkaWriter
from kops.sandbox import brokers
from support.patience import HANG_SECONDS

PARTITIONS = 3


def table_of(rows):
    """Return (partition, key, value, timestamp) rows as an Arrow table."""
    kinds = (pyarrow.int32(), pyarrow.binary(), pyarrow.binary(), pyarrow.int64())
    names = ("partition", "key", "value", "timestamp")
    return pyarrow.table([pyarrow.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)], names=names)


def random_rows(count, seed=7):
    """Return rows with null and empty keys and values, sizes around the borders of varints, and timestamps in any order."""
    rng = random.Random(seed)

    def some_bytes():
        return None if rng.random() < 0.05 else rng.randbytes(rng.choice([0, 1, 8, 63, 64, 127, 128, 700, 9000]))

    times = (0, 1, 1_700_000_000_000, 1_760_000_000_000)
    return [(rng.randrange(PARTITIONS), some_bytes(), some_bytes(), rng.choice(times) + rng.randrange(10**6)) for _ in range(count)]


def headers_of(client, topic):
    return read_all(client, topic, shown=lambda message: message.headers())


def read_all(client, topic, partitions=PARTITIONS, shown=lambda message: (message.key(), message.value(), message.timestamp()[1])):
    """Read a topic whole with librdkafka: what is shown of each record, by partition."""
    consumer = Consumer({**client, "group.id": "reader", "enable.auto.commit": False, "enable.partition.eof": True, "check.crcs": True})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    found, ended = {number: [] for number in range(partitions)}, set()
    while len(ended) < partitions:
        for message in consumer.consume(1000, timeout=1):
            if message.error():
                ended.add(message.partition())
            else:
                found[message.partition()].append(shown(message))
    consumer.close()
    return found


def by_partition(rows):
    return {number: [row[1:] for row in rows if row[0] == number] for number in range(PARTITIONS)}


def test_the_log_is_what_confluent_kafka_writes(broker, topic):
    rows = [row for row in random_rows(4000) if row[3] > 0]
    settings = librdkafka_settings(broker.connection)
    ours, theirs = (topic(partitions=PARTITIONS, config={"retention.ms": "-1"}) for _ in range(2))
    reports = write_batches(iter(table_of(rows).to_batches(500)), ours, settings)
    producer = Producer(broker.client)
    for partition, key, value, timestamp in rows:
        producer.produce(theirs, value, key, partition=partition, timestamp=timestamp)
        producer.poll(0)
    assert producer.flush(HANG_SECONDS) == 0
    assert read_all(broker.client, ours) == read_all(broker.client, theirs) == by_partition(rows)
    assert {number: report.written for number, report in reports.items()} == {n: len(part) for n, part in by_partition(rows).items()}


def test_headers_are_what_confluent_kafka_writes(broker, topic):
    lists = [None, [], [("a", b"1")], [("ä", None), ("ä", b""), ("b", b"x" * 300)]]
    rows = [(at % PARTITIONS, b"k%d" % at, None if at % 5 == 0 else b"v", 1_760_000_000_000 + at, lists[at % 4]) for at in range(600)]
    kind = pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())]))
    dicts = [None if row[4] is None else [{"key": key, "value": value} for key, value in row[4]] for row in rows]
    table = table_of([row[:4] for row in rows]).append_column("headers", pyarrow.array(dicts, kind))
    ours, theirs = (topic(partitions=PARTITIONS, config={"retention.ms": "-1"}) for _ in range(2))
    settings = librdkafka_settings(broker.connection)
    reports = write_batches(iter(table.to_batches(70)), ours, settings)
    assert sum(report.written for report in reports.values()) == len(rows)
    LibrdkafkaWriter(theirs, settings, None).write(table.to_batches(70))
    expected = {number: [row[4] or None for row in rows if row[0] == number] for number in range(PARTITIONS)}
    assert headers_of(broker.client, ours) == headers_of(broker.client, theirs) == expected
    assert read_all(broker.client, ours) == read_all(broker.client, theirs)


def test_a_timestamp_of_zero_stays_zero(broker, topic):
    name = topic(partitions=PARTITIONS, config={"retention.ms": "-1"})
    write_batches(iter(table_of([(0, b"k", b"v", 0)]).to_batches()), name, librdkafka_settings(broker.connection))
    assert read_all(broker.client, name)[0] == [(b"k", b"v", 0)]


def test_batches_too_large_for_the_topic_are_split(broker, topic):
    name = topic(partitions=PARTITIONS, config={"max.message.bytes": "20000", "retention.ms": "-1"})
    rows = random_rows(1500, seed=3)
    reports = write_batches(iter(table_of(rows).to_batches()), name, librdkafka_settings(broker.connection))
    assert read_all(broker.client, name) == by_partition(rows)
    assert sum(report.failed for report in reports.values()) == 0


def test_a_record_too_large_for_the_topic_is_refused_with_the_reason(broker, topic):
    name = topic(partitions=PARTITIONS, config={"max.message.bytes": "2000"})
    rows = [(0, b"large", b"x" * 5000, 1_760_000_000_000), (1, b"small", b"x", 1_760_000_000_000)]
    reports = write_batches(iter(table_of(rows).to_batches()), name, librdkafka_settings(broker.connection))
    assert (reports[0].failed, reports[1].written) == (1, 1)
    assert "maximum" in reports[0].error


def test_timestamps_that_the_topic_does_not_take_are_refused(broker, topic):
    name = topic(partitions=PARTITIONS, config={"message.timestamp.before.max.ms": "1000"})
    reports = write_batches(iter(table_of([(2, b"k", b"v", 1_000_000)]).to_batches()), name, librdkafka_settings(broker.connection))
    assert reports[2].failed == 1
    assert reports[2].error


def test_a_batch_that_is_sent_twice_is_there_once(broker, topic):
    name = topic(partitions=PARTITIONS, config={"retention.ms": "-1"})
    rows = [(0, b"k%d" % n, b"v", 1_760_000_000_000 + n) for n in range(100)]
    producer = BatchProducer(name, librdkafka_settings(broker.connection))
    producer.write(table_of(rows))
    producer._sequences.clear()  # as if the answer had been lost: the same batch, with the same sequence numbers
    producer.write(table_of(rows))
    producer.close()
    assert read_all(broker.client, name)[0] == by_partition(rows)[0]


def test_a_broker_that_restarts_meanwhile_loses_and_doubles_nothing(own_broker, own_topic):
    own = own_broker()
    name = own_topic(own, partitions=PARTITIONS)
    now = time.time_ns() // 1_000_000  # a broker that restarts forgets producers whose records are older than producer.id.expiration.ms
    tables = [table_of([(n % PARTITIONS, b"%d-%d" % (part, n), b"v" * 50, now + n) for n in range(2000)]) for part in range(40)]
    producer = BatchProducer(name, librdkafka_settings(own.connection))
    restarted = threading.Event()

    def restart():
        own.kill()
        own.start()
        restarted.set()

    for part, table in enumerate(tables):
        if part == 10:
            threading.Thread(target=restart).start()
        producer.write(table)
    restarted.wait(HANG_SECONDS)
    producer.close()
    assert not [report.error for report in producer.reports.values() if report.failed]
    expected = by_partition([tuple(row.values()) for table in tables for row in table.to_pylist()])
    assert read_all(own.client, name) == expected


@pytest.fixture
def own_topic():
    """Make a topic on a test's own broker."""
    from confluent_kafka.admin import AdminClient, NewTopic

    def make(own, partitions):
        admin = AdminClient(own.client)
        admin.create_topics([NewTopic("own", partitions, 1, config={"retention.ms": "-1"})])["own"].result(HANG_SECONDS)
        return "own"

    return make


def test_requests_are_no_larger_than_the_broker_takes(own_broker, own_topic, monkeypatch):
    original = brokers.server_settings
    monkeypatch.setattr(
        brokers, "server_settings", lambda *given, **more: original(*given, **more) | {"socket.request.max.bytes": "1000000"}
    )
    own = own_broker()
    name = own_topic(own, partitions=8)
    rows = [(at % 8, b"%d" % at, b"v" * 4000, 1_760_000_000_000 + at) for at in range(800)]
    reports = write_batches(iter(table_of(rows).to_batches(100)), name, librdkafka_settings(own.connection))
    assert {number: (report.written, report.failed) for number, report in reports.items()} == dict.fromkeys(range(8), (100, 0))
    assert read_all(own.client, name, 8) == {number: [row[1:] for row in rows if row[0] == number] for number in range(8)}


def test_batches_of_many_partitions_go_in_several_requests():
    part = columns_of(*(table_of([(0, b"k", b"v" * 1000, 1)] * 10).column(name).combine_chunks() for name in ("key", "value", "timestamp")))
    batches = {number: batch_producer._Batch(part, 0) for number in range(300)}
    size = batches[0].size
    requests = list(batch_producer._requests(batches, 16 * size))
    assert [number for request in requests for number in request] == list(range(300))
    assert max(map(len, requests)) == 16
    assert [len(request) for request in batch_producer._requests(batches, size - 1)] == [1] * 300


def test_sequence_numbers_begin_again_after_the_largest(broker, topic):
    """The broker takes any number as the first of a producer that it does not know."""
    name = topic(partitions=PARTITIONS, config={"retention.ms": "-1"})
    producer = BatchProducer(name, librdkafka_settings(broker.connection))
    rows = [(0, b"k%d" % at, b"v", 1_760_000_000_000 + at) for at in range(30)]
    producer._sequences[name, 0] = 2**31 - 5
    for start in range(0, 30, 10):
        producer.write(table_of(rows[start : start + 10]))
    producer.close()
    assert producer._sequences[name, 0] == 25
    assert read_all(broker.client, name)[0] == by_partition(rows)[0]


def test_it_writes_over_tls_with_scram(own_broker, own_topic):
    own = own_broker(security="sasl-ssl")
    name = own_topic(own, partitions=PARTITIONS)
    settings = librdkafka_settings(own.connection)
    assert can_connect(settings)
    rows = random_rows(300, seed=5)
    write_batches(iter(table_of(rows).to_batches()), name, settings)
    assert read_all(own.client, name) == by_partition(rows)


def test_settings_that_it_does_not_know_are_left_to_confluent_kafka():
    assert not can_connect({"bootstrap.servers": "b:9092", "ssl.keystore.location": "/k.p12"})
    assert not can_connect({"bootstrap.servers": "b:9092", "sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.config": "principal=a"})


def test_kafka_python_reads_the_encoding_back():
    from kafka.record.default_records import DefaultRecordBatch

    rows = random_rows(3000)
    keys, values, times = ([row[index] for row in rows] for index in (1, 2, 3))
    found = []
    for part in split(columns_of(pyarrow.array(keys, pyarrow.binary()), pyarrow.array(values, pyarrow.binary()), pyarrow.array(times))):
        batch = DefaultRecordBatch(encode(part, Identity(9, 1, len(found))))
        assert batch.validate_crc()
        assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (9, 1, len(found))
        found += [(record.key, record.value, record.timestamp) for record in batch]
    assert found == list(zip(keys, values, times, strict=True))


def test_headers_of_a_stage_are_written(broker, topic, tmp_path):
    from pyarrow import parquet

    from kops.spark.staging.stage_files import records_to_append
    from kops.spark.staging.writer import WriteTarget, _write_batches

    kind = pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())]))
    lists = [[{"key": "v", "value": b"\x03"}], [], None]
    count, times = len(lists), pyarrow.array([0, 1_760_000_000_000, 1_760_000_000_001])
    rows = {"partition": pyarrow.array([0] * count, pyarrow.int32()), "key": pyarrow.array([b"a", b"b", b"c"])}
    for side, is_there in (("before", False), ("after", True)):
        rows |= {f"{side}_present": pyarrow.array([is_there] * count), f"{side}_value": pyarrow.array([b"x"] * count)}
        rows |= {f"{side}_timestamp": times, f"{side}_headers": pyarrow.array(lists, kind)}
    parquet.write_table(pyarrow.table(rows), tmp_path / "part.parquet")
    name = topic(partitions=PARTITIONS, config={"retention.ms": "-1"})
    target = WriteTarget(name, librdkafka_settings(broker.connection), headers=True)
    written = _write_batches(records_to_append(str(tmp_path / "part.parquet"), backwards=False, headers=True), target)
    assert written == {0: (count, 0, None)}
    assert headers_of(broker.client, name)[0] == [[("v", b"\x03")], None, None]
    assert [time for _, _, time in read_all(broker.client, name)[0]] == times.to_pylist()
