"""Sets of offsets as intervals, and as text."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kops.core.intervals import below, intervals_of, intervals_text, joined

SETS = st.sets(st.integers(0, 300), max_size=80)


def intervals(numbers):
    return joined((number, number + 1) for number in numbers)


def numbers(some):
    return {number for start, end in some for number in range(start, end)}


@given(SETS, SETS, st.integers(0, 310))
def test_intervals_behave_like_sets(one, other, bound):
    assert numbers(joined(intervals(one), intervals(other))) == one | other
    assert numbers(below(intervals(one), bound)) == {number for number in one if number < bound}
    found = joined(intervals(one), intervals(other))
    assert all(left[1] < right[0] for left, right in pairwise(found))


@given(SETS, st.integers(0, 2**50))
def test_intervals_text_round_trips(some, base):
    found = tuple((start + base, end + base) for start, end in intervals(some))
    assert intervals_of(intervals_text(found)) == found


def test_intervals_text_is_short_and_validated():
    assert len(intervals_text(((0, 10**12),))) < 30
    assert len(intervals_text(tuple((n, n + 1) for n in range(0, 20_000, 2)))) < 100
    assert intervals_text(()) == ""
    for wrong in ("x", "AAAA"):
        with pytest.raises(ValueError, match="not a valid set of offsets"):
            intervals_of(wrong)
