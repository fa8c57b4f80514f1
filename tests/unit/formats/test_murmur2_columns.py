import json
import random
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kops.core.murmur2 import partition_for
from kops.formats.murmur2_columns import partitions_of

CASES = json.loads((Path(__file__).parent / "golden" / "murmur2.json").read_text("utf-8"))["cases"]
KEYS = st.lists(st.one_of(st.none(), st.binary(max_size=40)), max_size=60)


def one_by_one(keys, partitions):
    return [None if key is None else partition_for(key, partitions) for key in keys]


def test_partitions_are_those_of_java():
    keys = pa.array([bytes.fromhex(case["key"]) for case in CASES])
    assert partitions_of(keys, 12).to_pylist() == [case["of_12"] for case in CASES]
    assert partitions_of(keys, 12).type == pa.int32()


@given(KEYS, st.integers(1, 2**31 - 1), st.sampled_from([pa.binary(), pa.large_binary()]))
def test_equal_to_the_pure_function(keys, partitions, kind):
    assert partitions_of(pa.array(keys, kind), partitions).to_pylist() == one_by_one(keys, partitions)


@given(KEYS, st.integers(0, 60), st.integers(0, 60))
def test_slices(keys, start, length):
    column = pa.array(keys, pa.binary()).slice(min(start, len(keys)), length)
    assert partitions_of(column, 5).to_pylist() == one_by_one(column.to_pylist(), 5)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_text_is_hashed_as_utf8(kind):
    assert partitions_of(pa.array(["schlüssel", "", None], kind), 7).to_pylist() == one_by_one(["schlüssel".encode(), b"", None], 7)


def test_fixed_size_binary():
    keys = [b"12345678", b"abcdefgh", None]
    assert partitions_of(pa.array(keys, pa.binary(8)), 7).to_pylist() == one_by_one(keys, 7)


@pytest.mark.slow
def test_long_keys_among_many_short_ones():
    chance = random.Random(3)
    keys = [chance.randbytes(chance.choice([0, 1, 3, 4, 7, 30, 900])) for _ in range(70_000)]
    keys[100] = chance.randbytes(1_000_003)
    keys[69_999] = chance.randbytes(2_000_001)
    assert partitions_of(pa.array(keys), 12).to_pylist() == one_by_one(keys, 12)


def test_no_partitions_is_an_error():
    with pytest.raises(ValueError, match="at least one partition"):
        partitions_of(pa.array([b"k"]), 0)
