"""Ranges of times, as typed, as a condition, and in Spark SQL."""

from datetime import datetime, timezone

import pytest

from kops.core.changelog.filters import parse_times
from kops.core.errors import UsageProblem
from kops.core.times import Times

NOW = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
AT = 1_795_262_400_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@-1h..@now", Times(AT - 3_600_000, AT)),
        ("@-1h..", Times(AT - 3_600_000, None)),
        ("..@now", Times(None, AT)),
        ("start..end", Times()),
        ("@1700000000000", Times(1_700_000_000_000, 1_700_000_000_001)),
        ("@2026-11-21T12:00..@2026-11-21T12:01", Times(AT, AT + 60_000)),
    ],
)
def test_ranges(text, expected):
    assert parse_times(text, NOW, what="--window") == expected


@pytest.mark.parametrize("text", ["5..9", "@now..@-1h", "yesterday", "", "@x..", "@1700000000"])
def test_what_is_no_range_of_times(text):
    with pytest.raises(UsageProblem, match="--window"):
        parse_times(text, NOW, what="--window")


def test_the_end_is_not_part_of_it():
    times = Times(10, 20)
    assert [times.include(at) for at in (9, 10, 19, 20, None)] == [False, True, True, False, False]
    assert Times().include(None)
    assert times.sql("t") == "t >= 10 and t < 20"
    assert Times().sql("t") == "true"
