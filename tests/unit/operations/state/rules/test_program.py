"""What is in doubt about a store that an application's own program has computed."""

import pytest

from kops.core.streams.program_doubts import Doubts
from kops.core.streams.verdict import LIMITED_TO, counted, doubt
from kops.gateways.machine.program import OTHER_SURROUNDINGS
from kops.operations.state.rules.program import DEPENDS_ON, ProgramRuns
from kops.spark.programs.disturbed import CHANCE, OFFSETS, RESTARTS, TOGETHER
from kops.spark.programs.disturbed import ORDER as BY_ORDER
from kops.spark.programs.jobs import StoreCounts, SubtopologyRun
from kops.spark.staging.stage import StagedPartitions
from support.verdicts import DOUBT, REMARK, kinds, said, summaries

ORDER = Doubts(of_order=("each task reads a and b",))


@pytest.fixture
def judged():
    def judge(
        doubts=ORDER,
        *,
        windows=False,
        anywhere=(),
        unsure=0,
        unsure_times=0,
        elsewhere=0,
        examples=(),
        by=(),
        disturbed=100,
        schedules=0,
        timed=0,
        dropped=0,
        **seen,
    ):
        here = StoreCounts(StagedPartitions({}, {}), 40, {}, 0, unsure, unsure_times, elsewhere, examples, by)
        ran = SubtopologyRun(
            {"s": here},
            100,
            **{"skipped": 0, "without_key": (), "orders": 2, "disturbed": disturbed, **seen},
            wall_clock_schedules=schedules,
            stream_time_schedules=timed,
        )
        return list(ProgramRuns(doubts, here, [ran], windows=windows, anywhere=anywhere, dropped=dropped).findings())

    return judge


def test_without_a_doubt_nothing_is_found(judged):
    assert judged(Doubts(), orders=1) == judged(Doubts()) == []


def test_an_order_that_was_not_tried_is_open(judged):
    found = judged(orders=1)
    assert (kinds(found), tuple(summaries(found))) == ([DOUBT], ORDER.of_order)


def test_agreement_is_a_remark_and_proves_nothing(judged):
    found = judged()
    assert kinds(found) == [REMARK]
    assert summaries(found) == ["all keys agreed in 2 legal orders of records, though each task reads a and b"]


def test_keys_that_differ_are_counted_and_named_with_what_they_depend_on(judged):
    found = judged(unsure=2, unsure_times=1, examples=(b"k1", b"\xff\x00"), by=("order", "zone"))
    assert kinds(found) == [DOUBT]
    on = "the order of records and the time zone of the process"
    assert summaries(found) == [f"2 of 40 keys depend on {on}, such as k1, base64:/wA=: each task reads a and b"]
    assert found[0].facts["on"] == ["order", "zone"]
    assert said(judged(unsure=60, elsewhere=30)).startswith("60 of 70 keys differ when it is run once more"), "some only then"
    times = judged(Doubts(), unsure_times=1, examples=(b"k1",), by=("restarts",))
    assert kinds(times) == [REMARK]
    assert said(times).startswith("the timestamps of 1 of 40 keys depend on when the application was restarted")
    passed = judged(Doubts(), passed_differing=3, passed_depends_on=("clock",))
    assert (kinds(passed), summaries(passed)) == ([DOUBT], ["3 records that are passed on depend on the date"])


def test_where_all_input_was_disturbed_by_order_the_keys_that_agreed_are_in_no_doubt(judged):
    """Of a sample, one key that differs stands for others, and so does one that differs by restarts or chance."""
    by_order = {"by": ("order",)}
    for seen, limited in (
        (by_order, 2),
        ({**by_order, "disturbed": 99}, None),
        ({**by_order, "elsewhere": 1}, None),
        *(({"by": by}, None) for by in (("restarts",), ("chance",), ("order", "restarts"), ())),
    ):
        found = judged(Doubts(), unsure=2, **seen)
        assert found[0].facts.get(LIMITED_TO) == limited
        verdict = counted(found, [], keys=40, proven=30, contradicted=0, unexpected=0)
        assert (verdict.computed, verdict.doubtful) == ((8, 2) if limited else (0, 10))


def test_how_much_of_a_sample_was_disturbed_is_said(judged):
    (found,) = judged(Doubts(), disturbed=7)
    assert kinds([found]) == [REMARK]
    assert found.summary == "7 of 100 records were given to the program once more, disturbed (--disturb all: all)"
    (found,) = judged(Doubts(), disturbed=7, tasks=(6, 2))
    assert found.summary.endswith("; they are of 2 of its 6 tasks, and of the others no more is known")
    assert found.facts == {"records": 7, "of_records": 100, "tasks": 2, "of_tasks": 6}


def test_each_disturbance_has_words():
    singles = {RESTARTS, BY_ORDER, OFFSETS, CHANCE, TOGETHER, *OTHER_SURROUNDINGS}
    assert singles == DEPENDS_ON.keys()


def test_records_that_were_refused_are_counted_and_those_of_a_changelog_are_a_doubt(judged):
    """The store held these until a restart; what did not reach a repartition topic was never in the store."""
    found = judged(Doubts(), refused={"a-by-repartition": 2})
    assert kinds(found) == [REMARK]
    assert said(found).startswith("2 records for a-by-repartition were too large")
    kept = judged(Doubts(), refused={"a-by-repartition": 2, "a-s-changelog": 1})
    assert kinds(kept) == [REMARK, DOUBT]
    assert kept[1].summary.startswith("1 records for a-s-changelog")
    assert "until a restart" in kept[1].summary


def test_a_program_that_fails_when_it_is_disturbed(judged):
    found = judged(Doubts(), thrown="the program threw X")
    assert kinds(found) == [DOUBT]
    assert summaries(found) == ["run once more, disturbed, it fails: the program threw X"]
    assert kinds(judged(thrown="the program threw X")) == [DOUBT], "that all keys agreed was not seen"
    found = judged(Doubts(), not_restarted="its main takes arguments")
    assert (kinds(found), summaries(found)) == ([DOUBT], ["what it keeps between records is not known: its main takes arguments"])


def test_what_is_seen_of_a_run_is_a_doubt_whatever_the_orders_gave(judged):
    for seen, text in (
        ({"schedules": 2}, "schedules 2 punctuators by wall-clock time"),
        ({"timed": 1}, "schedules 1 punctuator by stream time, which its capture does not show"),
        ({"without_key": ("x", "y"), "anywhere": {"y"}}, "records without a key go to any partition of x"),
        ({"skipped": 3, "windows": True}, "the library dropped 3 records, such as late ones"),
    ):
        found = judged(Doubts(), **seen)
        assert kinds(found) == [DOUBT]
        assert text in said(found)
    assert judged(Doubts(), skipped=3) == []  # such as records without a key
    assert judged(Doubts(), without_key=("y",), anywhere={"y"}) == []


def test_stream_time_that_the_capture_shows_is_a_matter_of_order(judged):
    assert judged(Doubts(shows_stream_time=True), timed=1) == []


def test_own_processors_are_named_and_what_lasts_stays(judged):
    own = judged(Doubts(own_processors=("keep (App$Keep)",)))
    assert kinds(own) == [REMARK]
    assert "keep (App$Keep)" in said(own)
    lasting = doubt("global_stores", "the program has global stores")
    assert judged(Doubts(findings=(lasting,))) == [lasting]


def test_records_that_were_dropped_without_a_network_may_be_those_of_a_call_that_failed(judged):
    found = judged(Doubts(), skipped=3, dropped=3)
    assert kinds(found) == [DOUBT]
    assert said(found).startswith("the library dropped 3 records, and without a network")
