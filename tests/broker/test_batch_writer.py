"""Transactions of whole batches with the position inside: what other clients see of them, and what the next writer of the name finds."""

import pyarrow
import pytest

from kops.config.librdkafka import librdkafka_settings
from kops.formats.batches.compression import CODECS
from kops.formats.batches.copy import columns_of_table
from kops.formats.batches.encode import encode
from kops.gateways.wire.transaction_requests import Names, Position
from kops.gateways.wire.transactions import BatchWriter, BrokenTransaction, RefusedBatch
from support.streams_apps import Cluster
from support.topics import whole_partition

START = 1_760_000_000_000
HEADERS = pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())]))


def columns(first, count):
    numbers = range(first, first + count)
    return columns_of_table(
        pyarrow.table(
            {
                "key": pyarrow.array([None if n % 5 == 4 else b"%d" % n for n in numbers], pyarrow.binary()),
                "value": pyarrow.array([None if n % 7 == 6 else b"v" * (n % 90) for n in numbers], pyarrow.binary()),
                "timestamp_ms": pyarrow.array([START + n for n in numbers], pyarrow.int64()),
                "headers": pyarrow.array([[("n", b"%d" % n), ("n", None)] if n % 3 else None for n in numbers], HEADERS),
            }
        )
    )


def expected(first, count):
    headers = {n: [("n", b"%d" % n), ("n", None)] if n % 3 else [] for n in range(first, first + count)}
    return [(None if n % 5 == 4 else b"%d" % n, None if n % 7 == 6 else b"v" * (n % 90), START + n, headers[n]) for n in headers]


def read(client, topic):
    Cluster(client["bootstrap.servers"]).settle(topic)
    return [record[1:] for record in whole_partition(client, topic, "read_committed")]


@pytest.fixture
def writer(broker, topic, group):
    """Make writers of one name to one topic; closed with the test."""
    name, made = topic(config={"retention.ms": "-1", "max.message.bytes": "100000"}), []

    def make(*, transactional=True):
        made.append(BatchWriter(librdkafka_settings(broker.connection), Names(group, name, 0, group if transactional else None)))
        made[-1].topic = name
        return made[-1]

    yield make
    for each in made:
        each.close()


def send(writer, first, count, codec=0):
    some = columns(first, count)
    writer.send(writer.topic, 0, count, lambda producer: encode(some, producer, codec))


@pytest.mark.parametrize("transactional", [True, False])
def test_every_codec_reads_as_it_was_written(broker, writer, transactional):
    ours = writer(transactional=transactional)
    assert ours.begin() is None
    for number, codec in enumerate(CODECS.values()):
        send(ours, 1000 * number, 700, codec)
        ours.commit(Position(number, f"after {codec}"))
    assert ours.position() == Position(4, "after 4")
    assert read(broker.client, ours.topic) == [row for number in range(5) for row in expected(1000 * number, 700)]


def test_the_next_writer_undoes_what_is_open_and_shuts_the_last_one_out(broker, writer):
    first = writer()
    first.begin()
    send(first, 0, 100)
    first.commit(Position(100, "x"))
    send(first, 100, 100)
    first.flush()
    second = writer()
    assert second.begin() == Position(100, "x")
    assert second._identity.producer_id == first._identity.producer_id
    with pytest.raises(BrokenTransaction):
        first.commit(Position(200, "too late"))
    send(second, 100, 50)
    second.commit(Position(150, ""))
    assert second.position() == Position(150, "")
    assert read(broker.client, first.topic) == expected(0, 150)


def test_records_that_the_topic_does_not_take_are_refused(broker, writer):
    ours = writer()
    ours.begin()
    send(ours, 0, 10)
    send(ours, 0, 5000)
    with pytest.raises(RefusedBatch) as refused:
        ours.flush()
    assert refused.value.too_large
    ours.abort()
    assert ours.begin() is None
    assert read(broker.client, ours.topic) == []
