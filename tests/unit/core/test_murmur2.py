import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kops.core.murmur2 import murmur2, partition_for

CASES = json.loads((Path(__file__).parents[1] / "formats" / "golden" / "murmur2.json").read_text("utf-8"))["cases"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["key"][:16] or "empty")
def test_hash_and_partition_match_java(case):
    key = bytes.fromhex(case["key"])
    assert murmur2(key) == case["murmur2"]
    assert partition_for(key, 12) == case["of_12"]
    assert partition_for(key, 7) == case["of_7"]


def test_cases_cover_negative_hashes_and_all_tail_lengths():
    assert {len(case["key"]) // 2 % 4 for case in CASES if case["murmur2"] < 0} == {0, 1, 2, 3}


@given(st.binary(max_size=64), st.integers(1, 1000))
@example(b"", 1)
def test_partition_is_in_range(key, partitions):
    assert -(2**31) <= murmur2(key) < 2**31
    assert 0 <= partition_for(key, partitions) < partitions


@pytest.mark.parametrize("partitions", [0, -1])
def test_zero_partitions_are_rejected(partitions):
    with pytest.raises(ValueError, match="at least one partition"):
        partition_for(b"k", partitions)
