"""What follows from a capture for running a program's tasks again."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kops.core.streams.capture_file import read_capture
from kops.core.streams.program import count_of, doubts_about, global_topics, in_order, reason_against, topics_of

CAPTURED = json.loads((Path(__file__).parent / "capture.json").read_text(encoding="utf-8"))
PARTITIONS = {"clicks": 4, "views": 4, "many-by-value-repartition": 4, "many-apart-repartition": 7, "users": 2, "orders": 1}


@pytest.fixture
def capture():
    return read_capture(CAPTURED, "c.json")


def store(capture, name):
    return next(each for each in capture.stores if each.name == name)


def test_no_sub_topology_comes_before_one_that_writes_into_it(capture):
    order = in_order(capture)
    assert order.index(0) < order.index(1)
    assert order.index(0) < order.index(2)


def test_the_sides_of_a_foreign_key_join_write_into_each_other(capture):
    assert set(in_order(capture)).isdisjoint({3, 4})
    assert "foreign-key join" in reason_against(capture, store(capture, "of-users"))


def test_a_repartition_topic_is_filled_from_the_topics_before_it(capture):
    found = topics_of(capture, 1)
    assert (found.external, found.upstream) == (("clicks", "views"), (0,))
    assert (count_of(capture, 1, PARTITIONS), count_of(capture, 2, PARTITIONS)) == (4, 7)


def test_the_topics_of_global_stores(capture):
    assert global_topics(capture) == ["settings"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("recent", "it has no changelog"),
        ("final-store", "the records of its changelog have headers"),
        ("counts", ""),
        ("windows", ""),
    ],
)
def test_which_stores_cannot_be_rebuilt(capture, name, reason):
    assert reason_against(capture, store(capture, name)) == reason


def test_what_feeds_a_task_in_an_unknown_order_is_named(capture):
    doubts = " ".join(doubts_about(capture, store(capture, "windows"), PARTITIONS))
    assert "4 tasks write into many-by-value-repartition" in doubts
    assert "each task of sub-topology 0 reads clicks and views" in doubts
    assert "global stores (settings-store)" in doubts


def test_one_partition_and_the_librarys_processors_leave_no_doubt(capture):
    here = next(each for each in capture.subtopologies if each.number == 0)
    alone = replace(here, source_topics=("clicks",))
    without = replace(capture, global_stores=(), subtopologies=tuple(alone if each.number == 0 else each for each in capture.subtopologies))
    assert doubts_about(without, store(capture, "counts"), PARTITIONS) == []
    of_one = {**PARTITIONS, "clicks": 1, "many-by-value-repartition": 1}
    assert doubts_about(without, store(capture, "windows"), of_one) == []


def test_the_programs_own_processors_and_their_clocks_are_named(capture):
    doubts = " ".join(doubts_about(capture, store(capture, "seen"), PARTITIONS))
    assert "dedup (ManyStores$Dedup)" in doubts
    assert "these may act on wall-clock time" in doubts
