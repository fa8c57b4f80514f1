"""The class of a store that a shadow has computed: what it was seen to do counts as it does for tasks that are run one by one."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kops.core.streams.capture import Source
from kops.core.streams.capture_file import read_capture
from kops.core.streams.program import topology_facts
from kops.core.streams.program_doubts import Doubts
from kops.core.streams.shadow import Progress, facts_before_start, wall_clock_doubts
from kops.operations.state.exactness import worst
from kops.operations.state.own_code.exactness import of_runs
from kops.operations.state.shadow import what_ran
from kops.spark.programs.jobs import StoreCounts
from kops.spark.staging.stage import StagedPartitions

CAPTURED = json.loads((Path(__file__).parents[2] / "core" / "streams" / "capture.json").read_text(encoding="utf-8"))
"""Its store windows is in sub-topology 1, into which 0 writes; 2 fills another one, and in 6 there is a processor of the program's own."""
SHADOW = "many-shadow-1a2b3c4d"
COUNTS = StoreCounts(StagedPartitions({}, {}), 40, {}, 0)
ANOTHER = "what gives another answer each time, or on another machine"


@pytest.fixture(scope="module")
def capture():
    return read_capture(CAPTURED, "c.json")


@pytest.fixture
def seen():
    def see(**what):
        return Progress("NOT_RUNNING", {}, {}, **what)

    return see


@pytest.fixture
def judged(capture, seen):
    """Return the class of windows; its tasks read one partition each."""

    def judge(doubts=None, **what):
        ran = what_ran(capture, capture.subtopology_of("windows"), SHADOW, seen(**what), {"windows": COUNTS})
        return worst(of_runs(doubts or Doubts(), COUNTS, list(ran.values()), windows=True))

    return judge


def test_where_nothing_was_seen_there_is_no_doubt(judged):
    assert (judged(records=100).grade, judged().reasons) == ("A", ())


def test_a_clock_that_its_classes_asked_when_they_were_loaded(judged):
    initial = ("com.acme.App.<clinit>: Instant.now", "org.spring.Context.<init>: System.nanoTime")
    found = judged(Doubts(classes=frozenset({"com.acme.App$$Lambda"})), initial_calls=initial)
    assert found.grade == "C"
    assert found.reasons == (f"a class of its nodes was seen to call, outside of tasks, {ANOTHER}: {initial[0]}",)
    assert judged(Doubts(classes=frozenset({"com.acme.Other"})), initial_calls=initial).grade == "A"


@pytest.mark.parametrize(
    ("schedules", "said"), [({1: 3}, "3 punctuators"), ({0: 1}, "1 punctuator"), ({0: 1, 1: 1, 2: 7}, "2 punctuators")]
)
def test_stream_time_that_a_helper_schedules_here_or_before(judged, schedules, said):
    found = judged(stream_time_schedules=schedules)
    assert found.grade == "C"
    assert found.reasons == (
        f"the program schedules {said} by stream time, which its capture does not show: its tasks ran in no other order, and between"
        " which records these acted is not known",
    )


def test_stream_time_elsewhere_is_none_of_its_business(judged):
    assert judged(stream_time_schedules={2: 7}).grade == "A"


def test_stream_time_that_the_capture_shows_is_a_matter_of_order(judged):
    """Of which the shadow tried one."""
    found = judged(Doubts(of_order=("these may act on stream time: keep",), shows_stream_time=True), stream_time_schedules={1: 1})
    assert (found.grade, found.reasons) == ("C", ("these may act on stream time: keep",))


def test_calls_and_dropped_records_are_not_told_apart_and_count(judged):
    assert judged(calls=("App.f: Instant.now",)).reasons == (f"the program was seen to call {ANOTHER}: App.f: Instant.now",)
    assert "dropped 3 records" in judged(skipped=3).reasons[0]


def test_records_without_a_key_where_the_store_comes_from(judged):
    of_shadow = tuple(f"{SHADOW}-{name}-repartition" for name in ("apart", "by-value"))
    assert judged(without_key=of_shadow).reasons == ("records without a key go to any partition of many-by-value-repartition",)


def test_what_reads_by_a_pattern_is_not_known_before_it_starts(capture):
    """The topics of the capture are those that a cluster has."""
    by_pattern = replace(next(node for node in capture.nodes if isinstance(node, Source) and "clicks" in node.topics), pattern="clic.*")
    nodes = tuple(by_pattern if node.name == by_pattern.name else node for node in capture.nodes)
    facts = topology_facts(capture)
    assert facts_before_start(capture) == facts
    others = {name: of for name, of in facts.items() if not name.startswith("subtopology.0.")}
    assert facts_before_start(replace(capture, nodes=nodes)) == others


def test_wall_clock_time_is_doubted_by_who_names_it_or_by_how_many_were_scheduled(capture, seen):
    stores = {each.name: each for each in capture.stores}
    another = "wall-clock time, which was another when the shadow ran"
    assert wall_clock_doubts(capture, stores["seen"], seen()) == (f"these may act on {another}: dedup",)
    assert wall_clock_doubts(capture, stores["windows"], seen(wall_clock_schedules={2: 1, 6: 1})) == ()
    scheduled = wall_clock_doubts(capture, stores["windows"], seen(wall_clock_schedules={0: 1, 1: 4}))
    assert scheduled == (f"the program schedules 5 punctuators by {another}",)
