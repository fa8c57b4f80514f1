"""The hash of records as tasks compute it, against Spark's own."""

import random

import numpy
import pyarrow
import pytest

from kops.formats.batches.columns import decode
from kops.formats.batches.encode import columns_of, encode
from kops.formats.batches.header import Producer, batches_of
from kops.formats.xxhash64_columns import column_hashes, record_hashes
from kops.spark.reading.ranges import HEADERS

pytestmark = pytest.mark.spark


def test_records_hash_as_in_spark_sql(spark):
    rng = random.Random(11)
    pieces = [None, *(rng.randbytes(length) for length in range(140)), rng.randbytes(5000)]
    rows = [(rng.choice(pieces), rng.choice(pieces), rng.choice([0, -1, 2**41, -(2**62)]) + rng.randrange(1000)) for _ in range(3000)]
    keys, values = (pyarrow.array([row[column] for row in rows], pyarrow.binary()) for column in (0, 1))
    data = encode(columns_of(keys, values, pyarrow.array([row[2] for row in rows])), Producer(1, 0, 0))
    found = record_hashes(decode(data, batches_of(data))).tolist()
    assert column_hashes(keys, values, numpy.array([row[2] for row in rows])).tolist() == found
    assert column_hashes(keys[7:90], values[7:90], numpy.array([row[2] for row in rows[7:90]])).tolist() == found[7:90]
    frame = spark.createDataFrame([(number, *row) for number, row in enumerate(rows)], "n int, key binary, value binary, timestamp bigint")
    wanted = frame.selectExpr("n", "xxhash64(key, value is null, value, timestamp) as hash").orderBy("n").collect()
    assert found == [row.hash % 2**64 for row in wanted]


def test_headers_hash_as_in_spark_sql(spark):
    rng = random.Random(12)
    values = [None, b"", *(rng.randbytes(length) for length in range(1, 50))]
    lists = [
        [{"key": f"h{rng.randrange(9)}é", "value": rng.choice(values)} for _ in range(rng.choice([0, 0, 1, 2, 5]))]
        or rng.choice([None, []])
        for _ in range(500)
    ]
    kind = pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())]))
    keys, times = pyarrow.array([b"k"] * len(lists), pyarrow.binary()), numpy.arange(len(lists))
    headers = pyarrow.array(lists, kind)
    found = column_hashes(keys, keys, times, headers).tolist()
    assert column_hashes(keys[3:77], keys[3:77], times[3:77], headers[3:77]).tolist() == found[3:77]
    assert [found[at] for at, each in enumerate(lists) if not each] == [
        column_hashes(keys, keys, times).tolist()[at] for at, each in enumerate(lists) if not each
    ]
    rows = [(at, b"k", b"k", at, [(one["key"], one["value"]) for one in each] if each else each) for at, each in enumerate(lists)]
    frame = spark.createDataFrame(rows, f"n int, key binary, value binary, timestamp bigint, {HEADERS}")
    wanted = frame.selectExpr("n", "xxhash64(key, value is null, value, timestamp, headers) as hash").orderBy("n").collect()
    assert found == [row.hash % 2**64 for row in wanted]
