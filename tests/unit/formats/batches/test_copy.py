"""Record batches encoded with headers and compression, and copied: read back by kafka-python, another implementation."""

import random
import struct

import google_crc32c
import pyarrow
import pytest
from kafka.record.default_records import DefaultRecordBatch

from kops.formats.batches.columns import decode
from kops.formats.batches.compression import CODECS
from kops.formats.batches.copy import can_go_on, columns_of_records, columns_of_table, fingerprint, renewed
from kops.formats.batches.encode import encode
from kops.formats.batches.header import Producer, batches_of, is_sound

WRITER = Producer(7, 3, 40, transactional=True)
START = 1_760_000_000_000
HEADERS = pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())]))


def table_of(count=200, seed=2):
    """Return records of all kinds as Spark gives them."""
    rng = random.Random(seed)
    some = [None, b"", b"k", b"x" * 63, b"y" * 64, b"z" * 700]
    headers = [None, [], [("h", b"1"), ("h", None), ("h", b"1")], [("schlüssel", b"")], [("", b"v" * 300)] * 70]
    columns = {
        "key": pyarrow.array([rng.choice(some) for _ in range(count)], pyarrow.binary()),
        "value": pyarrow.array([rng.choice(some) for _ in range(count)], pyarrow.binary()),
        "timestamp_ms": pyarrow.array([rng.choice([-1, 0, START, START + rng.randrange(10**6)]) for _ in range(count)], pyarrow.int64()),
        "headers": pyarrow.array([rng.choice(headers) for _ in range(count)], HEADERS),
    }
    return pyarrow.table(columns)


def rows_of(table):
    return [
        (row["key"], row["value"], row["timestamp_ms"], [(h["key"], h["value"]) for h in row["headers"] or []]) for row in table.to_pylist()
    ]


def read(data):
    batch = DefaultRecordBatch(data)
    assert batch.validate_crc()
    return [(record.key, record.value, record.timestamp, list(record.headers)) for record in batch]


@pytest.mark.parametrize("codec", ["none", "gzip"])  # the others: tests/broker/test_batch_writer.py
def test_headers_and_compression_as_another_client_reads_them(codec):
    table = table_of()
    for part in (table, table.slice(100, 50), table.slice(3, 1)):
        data = encode(columns_of_table(part), WRITER, CODECS[codec])
        assert read(data) == rows_of(part)


@pytest.mark.parametrize("codec", ["none", *(pytest.param(codec, marks=pytest.mark.slow) for codec in CODECS if codec != "none")])
def test_decoded_and_encoded_again_it_is_the_same(codec):
    data = encode(columns_of_table(table_of()), WRITER, CODECS[codec])
    (batch,) = batches_of(data)
    assert batch.is_transactional
    again = encode(columns_of_records(decode(data, [batch])), WRITER)
    assert read(again) == rows_of(table_of())
    plain = encode(columns_of_table(table_of()), Producer(1, 0, 0))
    assert fingerprint(data, batch, inflated=True) == fingerprint(plain, batches_of(plain)[0])


def test_a_renewed_batch_differs_in_its_writer_only():
    data = encode(columns_of_table(table_of()), Producer(1, 0, 0))
    (batch,) = batches_of(data)
    copy = renewed(data, batch, WRITER)
    (other,) = batches_of(copy)
    assert read(copy) == read(data)
    assert (other.producer_id, other.is_transactional, is_sound(copy, other)) == (7, True, True)
    assert fingerprint(copy, other) == fingerprint(data, batch)
    assert renewed(copy, other, Producer(1, 0, 0)) == data
    damaged = bytearray(copy)
    damaged[-1] ^= 1
    assert not is_sound(bytes(damaged), other)


@pytest.mark.parametrize(("at", "form", "value"), [(23, ">i", 900), (21, ">h", 0x08), (21, ">h", 0x40)])
def test_batches_that_brokers_do_not_take_from_producers(at, form, value):
    """Those with gaps after compaction, with a time of appending, and with the time when their tombstones go."""
    data = bytearray(encode(columns_of_table(table_of(20)), Producer(1, 0, 0)))
    assert can_go_on(batches_of(bytes(data))[0])
    struct.pack_into(form, data, at, value)
    struct.pack_into(">I", data, 17, google_crc32c.value(bytes(data[21:])))
    (batch,) = batches_of(bytes(data))
    assert is_sound(bytes(data), batch)
    assert not can_go_on(batch)
    again = encode(columns_of_records(decode(bytes(data), [batch])), WRITER)
    found = [row[:2] + row[3:] for row in read(again)]
    assert found == [row[:2] + row[3:] for row in rows_of(table_of(20))]
