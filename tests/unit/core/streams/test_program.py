"""What follows from a capture for running a program's tasks again."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kops.core.errors import Refused
from kops.core.streams.capture import Source
from kops.core.streams.capture_file import read_capture
from kops.core.streams.program import (
    Step,
    answers_of,
    count_of,
    global_topics,
    has_windows,
    in_order,
    reason_against,
    steps_for,
    tasks_of,
    topics_of,
    topology_facts,
    with_pattern_topics,
    writers,
)
from kops.core.streams.program_doubts import doubts_about
from support.verdicts import doubts

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


def test_the_sides_of_a_foreign_key_join_take_turns(capture):
    """Sub-topology 3 asks, 4 answers, and 3 takes the answers."""
    asked, answered = (topic.name for number in (4, 3) for topic in tasks_of(capture)[number].repartition_topics)
    assert steps_for(capture, {3}) == [Step(3, ()), Step(4, (asked,)), Step(3, (answered,))]
    assert steps_for(capture, {4}) == [Step(3, ()), Step(4, (asked,))]
    assert answers_of(capture, 3) == {answered: 1}
    assert answers_of(capture, 4) == {}
    assert reason_against(capture, store(capture, "of-users")) == ""
    assert topics_of(capture, 3).external == ("regions", "users")
    doubts = " ".join(doubts_about(capture, store(capture, "of-users"), PARTITIONS).of_order)
    assert "sub-topology 4 reads regions and many-KTABLE-FK-JOIN" in doubts


def test_a_foreign_key_join_that_waits_for_its_own_answers_is_refused(capture):
    """Its sink gets what the processor behind the answers passes on."""

    def behind(each):
        return replace(each, predecessors=("KTABLE-FK-JOIN-OUTPUT-0000000039",)) if each.name == "KTABLE-SINK-0000000029" else each

    changed = replace(capture, nodes=tuple(map(behind, capture.nodes)))
    assert reason_against(changed, store(changed, "of-users")) == "foreign-key joins wait for one another"


def test_patterns_are_of_the_topics_that_there_are(capture):
    def with_pattern(pattern):
        source = next(each for each in capture.nodes if isinstance(each, Source) and each.topics == ("orders",))
        given = replace(source, topics=(), pattern=pattern)
        return replace(
            capture,
            nodes=tuple(given if each is source else each for each in capture.nodes),
            subtopologies=tuple(
                replace(each, source_topics=None, sink_topics=None) if source.name in each.nodes else each for each in capture.subtopologies
            ),
        )

    found = with_pattern_topics(with_pattern(r"\Qord.\E[a-z]+"), ["ord.ers", "ord.", "orders", "ord.inary"])
    assert topics_of(found, 6).external == ("ord.ers", "ord.inary")
    said = " ".join(doubts(doubts_about(found, store(found, "seen"), {}).findings))
    assert r"what \Qord.\E[a-z]+ matches, and topics that did may have been deleted" in said
    with pytest.raises(Refused, match="matches many-counts-changelog, which is its own"):
        with_pattern_topics(with_pattern("many-.*"), ["many-counts-changelog"])
    with pytest.raises(Refused, match=r"cannot read the pattern \[a\]\("):
        with_pattern_topics(with_pattern("[a]("), ["orders"])
    assert with_pattern_topics(capture, ["orders"]) is capture


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
        ("final-store", ""),
        ("pairs-left-shared-join-store", ""),
        ("counts", ""),
        ("windows", ""),
    ],
)
def test_which_stores_cannot_be_rebuilt(capture, name, reason):
    assert reason_against(capture, store(capture, name)) == reason


def test_windows_of_which_it_is_not_known_how_long_they_are_kept(capture):
    windows = replace(store(capture, "windows"), retention_ms=None)
    assert reason_against(capture, windows) == "how long it keeps its windows could not be read"


def pattern(capture, *, writes=True):
    """Return the capture of a program whose sub-topology 0 reads what a pattern names: the library says nothing of its topics then."""
    without = lambda each: replace(each, source_topics=None, sink_topics=None) if each.number == 0 else each  # noqa: E731
    nodes = (
        capture.nodes if writes else tuple(node for node in capture.nodes if getattr(node, "topic", None) != "many-by-value-repartition")
    )
    return replace(capture, subtopologies=tuple(map(without, capture.subtopologies)), nodes=nodes)


def test_what_a_pattern_feeds_is_not_rebuilt_without_it(capture):
    """Also where only a sub-topology before it has the pattern."""
    assert writers(pattern(capture), "many-by-value-repartition") == [0]
    assert reason_against(pattern(capture), store(capture, "counts")) == "its topics are given by a pattern"
    assert reason_against(pattern(capture), store(capture, "windows")) == "its topics are given by a pattern"


def test_a_repartition_topic_that_nothing_known_fills(capture):
    windows = store(capture, "windows")
    assert reason_against(pattern(capture, writes=False), windows) == "what writes into many-by-value-repartition is not known"


def test_for_which_sub_topologies_records_may_come_too_late(capture):
    assert has_windows(capture, [0])  # sessions, joins
    assert has_windows(capture, [2, 1])
    assert not has_windows(capture, [2])


def test_what_the_runner_has_to_say_of_a_program_as_it_was_captured(capture):
    facts = topology_facts(capture)
    assert facts["subtopology.0.sources"] == "clicks,views"
    assert facts["subtopology.1.sources"] == facts["subtopology.1.repartition"] == "many-by-value-repartition"
    assert facts["subtopology.1.changelogs"] == "many-final-store-changelog,many-windows-changelog"
    assert facts["subtopology.1.sinks"] == "windowed"
    assert not [name for name in facts if name.startswith("subtopology.5.")]  # the global store's
    assert not [name for name in topology_facts(pattern(capture)) if name.startswith("subtopology.0.")]
