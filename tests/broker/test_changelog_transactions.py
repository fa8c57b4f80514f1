"""Transactions in which the changelog of an exactly-once application is written."""

import pyarrow
import pytest

from kops.config.librdkafka import librdkafka_settings
from kops.gateways.wire import librdkafka_writer
from kops.gateways.wire.librdkafka_writer import LibrdkafkaWriter
from support.patience import HANG_SECONDS

pytestmark = pytest.mark.broker


def batches(count, size):
    names, kinds = ("partition", "key", "value", "timestamp"), (pyarrow.int32(), pyarrow.binary(), pyarrow.binary(), pyarrow.int64())
    rows = [(at % 2, b"k%d" % at, b"v" * size, 1_760_000_000_000 + at) for at in range(count)]
    columns = [pyarrow.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
    return [pyarrow.RecordBatch.from_arrays(columns, list(names))]


def ends(broker, name):
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({**broker.client, "group.id": "reader"})
    found = [consumer.get_watermark_offsets(TopicPartition(name, number), HANG_SECONDS)[1] for number in range(2)]
    consumer.close()
    return found


def test_a_transaction_holds_so_many_bytes_though_few_records(broker, topic, unique):
    name = topic(partitions=2)
    reports = LibrdkafkaWriter(name, librdkafka_settings(broker.connection), f"{unique()}-0").write(batches(1_000, 5_000))
    assert {number: report[:2] for number, report in reports.items()} == {0: (500, 0), 1: (500, 0)}
    markers = [end - 500 for end in ends(broker, name)]
    assert min(markers) >= 2, "of 1 MB, then 2 MB at most, then the rest"


@pytest.mark.parametrize(("seconds", "most"), [(0.1, 2 << 20), (5.0, 1 << 20), (30.0, 1 << 19)])
def test_a_slow_cluster_gets_smaller_ones(broker, topic, unique, monkeypatch, seconds, most):
    """The brokers are as slow as the clock says: each time it is read, ``seconds`` more have passed."""
    clock = iter(range(10**6))
    monkeypatch.setattr(librdkafka_writer, "time", type("Clock", (), {"monotonic": staticmethod(lambda: seconds * next(clock))}))
    made = LibrdkafkaWriter(topic(partitions=2), librdkafka_settings(broker.connection), f"{unique()}-0")
    made.write(batches(10, 100))
    assert made._most_bytes == most


def test_a_coordinator_that_is_away_is_named(monkeypatch, unique):
    monkeypatch.setattr(librdkafka_writer, "_COORDINATOR_SECONDS", 0.5)
    nobody = LibrdkafkaWriter("t", {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}, f"{unique()}-0")
    with pytest.raises(TimeoutError, match=r"the transaction coordinator did not answer within 0\.5 s"):
        nobody.write(batches(1, 1))
