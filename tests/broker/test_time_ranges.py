"""Ranges of time: every record of that time and no other, wherever it stands, as a plain consumer sees them."""

import json

import pytest

from support.programs import Record

pytestmark = pytest.mark.broker

BASE = 1_760_000_000_000
OUT_OF_ORDER = (0, 100, 300, 200, 50, 400)


@pytest.fixture
def scattered(topic, cluster):
    """A topic with a timestamp that belongs to the range standing after a later one."""
    name = topic()
    cluster.produce(name, [Record(b"k", b"%d" % after, BASE + after, (), 0) for after in OUT_OF_ORDER])
    return name


def span(first, end):
    return f"@{BASE + first}..@{BASE + end}"


def seen(outcome):
    return [json.loads(line)["timestamp_ms"] - BASE for line in outcome.ok().out.splitlines()]


@pytest.mark.parametrize(
    ("wanted", "right"),
    [
        (span(40, 150), [100, 50]),
        (span(40, 60), [50]),
        (span(150, 250), [200]),
        (span(60, 90), []),
        (f"@{BASE + 150}..", [300, 200, 400]),
        (f"..@{BASE + 60}", [0, 50]),
        (f"2..@{BASE + 210}", [200, 50]),
        (f"@{BASE + 40}..4", [100, 300, 200]),
    ],
)
def test_a_range_of_time_has_every_record_of_that_time(kops, scattered, wanted, right):
    outcome = kops("records", "consume", scattered, wanted, "-o", "json")
    assert sorted(seen(outcome)) == sorted(right)
