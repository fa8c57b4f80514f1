import re

import pytest

from kops.core.models import TopicPartition
from kops.core.streams.shadow import Progress, done_of, new_shadow, of_repeated, progress_of, shadow_topic, waited_for, waited_text

IN, OTHER = TopicPartition("in", 0), TopicPartition("in", 1)


def progress(positions=(), after=(), **more):
    return Progress("RUNNING", dict(positions), dict(after), **more)


def test_the_names_of_a_shadow():
    name = new_shadow("prices")
    assert re.fullmatch(r"prices-shadow-[0-9a-f]{8}", name)
    assert new_shadow("prices") != name
    assert shadow_topic("prices-prices-changelog", "prices", "prices-shadow-1") == "prices-shadow-1-prices-changelog"


def test_what_the_agent_tells():
    reported = progress_of(
        {
            "state": "RUNNING",
            "place.a.b-c:12": "7,5",
            "records": "9",
            "skipped": "1",
            "without_key": "x,y",
            "calls": "one\ntwo",
            "initial_calls": "three",
            "kept": "com.acme.Sum.total",
            "schedules.STREAM_TIME.0": "4",
            "schedules.STREAM_TIME.12": "1",
            "schedules.WALL_CLOCK_TIME.0": "2",
            "again": "5",
        }
    )
    place = TopicPartition("a.b-c", 12)
    seen = (("one", "two"), ("three",), ("com.acme.Sum.total",), {0: 4, 12: 1}, {0: 2}, 5)
    assert reported == Progress("RUNNING", {place: 7}, {place: 5}, 9, 1, ("x", "y"), *seen)
    empty = progress_of({"state": "REBALANCING", "records": "0", "skipped": "0", "without_key": "", "again": "0"})
    assert empty == Progress("REBALANCING", {}, {})


@pytest.mark.parametrize(
    ("position", "after", "committed", "why"),
    [
        (None, 0, {}, "at 2 of 10"),
        (9, 9, {IN: 9}, "at 9 of 10"),
        (10, 10, {IN: 9}, "9 of 10 committed"),
        (10, 9, {}, "0 of 9 committed"),
        (10, 9, {IN: 9}, ""),  # after the last record there are markers of transactions
        (11, 10, {IN: 11}, ""),
        (10, 0, {}, ""),  # there was no record
    ],
)
def test_a_partition_is_through_when_all_it_gave_is_committed(position, after, committed, why):
    reported = progress({} if position is None else {IN: position}, {IN: after})
    assert waited_for({IN: (2, 10)}, reported, committed) == ({IN: why} if why else {})


def test_nothing_is_waited_for_where_there_is_nothing():
    assert waited_for({IN: (4, 4)}, progress(), {}) == {}


def test_how_far_it_is():
    ranges = {IN: (10, 30), OTHER: (5, 5)}
    assert done_of(ranges, progress()) == (0, 20)
    assert done_of(ranges, progress({IN: 4})) == (0, 20)
    assert done_of(ranges, progress({IN: 15})) == (5, 20)
    assert done_of(ranges, progress({IN: 40, OTHER: 9})) == (20, 20)


def test_records_that_were_given_again_count_twice_unless_they_are_undone():
    (said,) = of_repeated(progress(again=1200), exactly_once=False)
    assert said == "1,200 records were given to the shadow's tasks again, as after a rebalance, and may have counted twice"
    assert of_repeated(progress(again=1200), exactly_once=True) == of_repeated(progress(), exactly_once=False) == ()


def test_the_first_of_what_is_waited_for_are_named():
    waited = {TopicPartition("in", at): "at 0 of 1" for at in range(5)}
    assert waited_text(waited) == "in:0 (at 0 of 1), in:1 (at 0 of 1), in:2 (at 0 of 1) and 2 more"
    assert waited_text({}) == ""
