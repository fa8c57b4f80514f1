"""The hash of records as tasks compute it, against Spark's own."""

import random

import numpy
import pyarrow
import pytest

from kops.formats.batches.columns import decode
from kops.formats.batches.encode import columns_of, encode
from kops.formats.batches.header import Producer, batches_of
from kops.formats.xxhash64_columns import column_hashes, record_hashes

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
