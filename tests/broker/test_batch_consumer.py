"""Whole record batches as they come from a broker, against what librdkafka makes of the same log."""

import random

import pyarrow
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from kops.config.librdkafka import librdkafka_settings
from kops.formats.batches.columns import decode
from kops.formats.batches.header import UnreadableBatch, batches_of
from kops.gateways.wire.batch_consumer import BatchConsumer, RecordsLost
from kops.spark.reading.batch_source import RowBuilder
from kops.spark.reading.gathering import gathered, newest_of_each_key
from support.streams_apps import Cluster
from support.topics import whole_partition

SOON = 20
SIZES = (0, 1, 8, 20, 63, 64, 127, 128, 700, 9000, 70_000)


def some_records(count, seed=7):
    """Return (key, value, timestamp, headers): nulls, empty ones, sizes around the borders of varints, one length for long stretches."""
    rng = random.Random(seed)

    def some_bytes():
        return None if rng.random() < 0.05 else rng.randbytes(rng.choice(SIZES))

    alike = [(b"key-%04d" % number, rng.randbytes(8), 1_700_000_000_000 + number, []) for number in range(count)]
    headers = ([], [("h", b"1"), ("h", None), ("schlüssel", b"")])
    mixed = [(some_bytes(), some_bytes(), 1_600_000_000_000 + rng.randrange(10**9), rng.choice(headers)) for _ in range(count)]
    return alike + mixed + alike


def produce(client, topic, records, **settings):
    producer = Producer({**client, "linger.ms": 50, **settings})
    for key, value, timestamp, headers in records:
        producer.produce(topic, value, key, partition=0, timestamp=timestamp, headers=headers)
        producer.poll(0)
    assert producer.flush(SOON) == 0


def read(broker, topic, start, end, **options):
    """Return the same through record batches."""
    consumer = BatchConsumer(topic, librdkafka_settings(broker.connection), **options)
    try:
        return [row for columns in consumer.read(0, start, end) for row in rows_of(columns)]
    finally:
        consumer.close()


def rows_of(columns):
    parts = (columns.offsets.tolist(), columns.keys().to_pylist(), columns.values().to_pylist(), columns.timestamps.tolist())
    return [(*row, columns.headers(number)) for number, row in enumerate(zip(*parts, strict=True))]


def log_end(client, topic):
    consumer = Consumer({**client, "group.id": "reader"})
    end = consumer.get_watermark_offsets(TopicPartition(topic, 0))[1]
    consumer.close()
    return end


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_reads_as_librdkafka_does(broker, topic, codec):
    name = topic(config={"retention.ms": "-1"})
    produce(broker.client, name, some_records(300), **{"compression.type": codec})
    assert read(broker, name, 0, 900) == whole_partition(broker.client, name)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_batches_that_the_broker_recompressed_are_read(broker, topic, codec):
    """It is Java that compresses here: its snappy has frames of its own."""
    name = topic(config={"retention.ms": "-1", "compression.type": codec})
    produce(broker.client, name, some_records(300))
    assert read(broker, name, 0, 900) == whole_partition(broker.client, name)


def test_a_range_may_begin_and_end_within_batches(broker, topic):
    name = topic(config={"retention.ms": "-1"})
    produce(broker.client, name, some_records(300))
    everything = whole_partition(broker.client, name)
    assert read(broker, name, 7, 851) == everything[7:851]
    assert read(broker, name, 7, 7) == []


def test_log_append_time_is_the_time_of_each_record(broker, topic):
    name = topic(config={"message.timestamp.type": "LogAppendTime"})
    produce(broker.client, name, some_records(50))
    assert read(broker, name, 0, 150) == whole_partition(broker.client, name)


def test_aborted_transactions_read_as_librdkafka_reads_them(broker, topic):
    name = topic(config={"retention.ms": "-1"})
    records = some_records(40)
    producers = [Producer({**broker.client, "transactional.id": f"{name}-{number}", "linger.ms": 0}) for number in range(2)]
    for producer in producers:
        producer.init_transactions(SOON)
    for turn, outcomes in enumerate([("commit", "abort"), ("abort", "abort"), ("abort", "commit")]):
        for producer in producers:
            producer.begin_transaction()
        for key, value, timestamp, headers in records[turn * 40 : turn * 40 + 40]:
            for producer in producers:
                producer.produce(name, value, key, partition=0, timestamp=timestamp, headers=headers)
        for producer, outcome in zip(producers, outcomes, strict=True):
            producer.flush(SOON)
            getattr(producer, f"{outcome}_transaction")(SOON)
        produce(broker.client, name, records[:3])
    Cluster(broker.bootstrap_servers).settle(name)
    end = log_end(broker.client, name)
    committed = read(broker, name, 0, end, read_committed=True)
    assert committed == whole_partition(broker.client, name, "read_committed")
    assert len(committed) == 2 * 40 + 9
    assert read(broker, name, 0, end) == whole_partition(broker.client, name)


def test_records_that_are_gone_are_an_error(broker, topic, cluster):
    name = topic(config={"retention.ms": "-1"})
    produce(broker.client, name, some_records(20))
    cluster.trim(name, {0: 30})
    with pytest.raises(RecordsLost, match="no longer has offset 0"):
        read(broker, name, 0, 60)


def test_a_damaged_batch_is_an_error(broker, topic):
    name = topic(config={"retention.ms": "-1"})
    produce(broker.client, name, some_records(20))
    consumer = BatchConsumer(name, librdkafka_settings(broker.connection))
    data = bytearray(consumer._fetch(0, 0).data)
    consumer.close()
    data[-3] ^= 1
    with pytest.raises(UnreadableBatch, match="checksum"):
        decode(bytes(data), batches_of(bytes(data)))


def test_the_newest_record_of_each_key_is_kept(monkeypatch):
    monkeypatch.setattr("kops.spark.reading.gathering.GATHERED_RECORDS", 100)
    rng = random.Random(3)
    rows = [(rng.choice([None, *(b"%d" % number for number in range(400))]), number) for number in range(3000)]
    tables = [
        pyarrow.table({"key": pyarrow.array([row[0] for row in part], pyarrow.binary()), "at": [row[1] for row in part]})
        for part in (rows[first : first + 60] for first in range(0, 3000, 60))
    ]
    kept = [row for table in gathered(iter(tables), newest_of_each_key) for row in table.to_pylist()]
    assert len(kept) < 3000
    last = {}
    for row in sorted(kept, key=lambda row: row["at"]):
        last[row["key"]] = row["at"]
    assert last == dict(rows)


def test_rows_for_spark_are_those_of_librdkafka(broker, topic):
    name = topic(config={"retention.ms": "-1"})
    produce(broker.client, name, some_records(20))
    consumer = BatchConsumer(name, librdkafka_settings(broker.connection))
    rows = [row for table in RowBuilder()(consumer.read(0, 0, 60), 0) for row in table.to_pylist()]
    consumer.close()
    headers = [[(header["key"], header["value"]) for header in row["headers"] or []] for row in rows]
    names = ("offset", "key", "value", "timestamp_ms")
    found = [(*(row[name] for name in names), more) for row, more in zip(rows, headers, strict=True)]
    assert found == whole_partition(broker.client, name)
