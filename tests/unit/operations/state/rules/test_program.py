"""What is in doubt about a store that an application's own program has computed."""

import pytest

from kops.core.streams.program_doubts import Doubts
from kops.core.streams.verdict import doubt
from kops.operations.state.rules.program import ProgramRuns
from kops.spark.programs.jobs import Ran, StoreCounts
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
        schedules=0,
        timed=0,
        dropped=0,
        **seen,
    ):
        here = StoreCounts(StagedPartitions({}, {}), 40, {}, 0, unsure, unsure_times, elsewhere, examples)
        ran = Ran(
            {"s": here},
            100,
            **{"skipped": 0, "without_key": (), "orders": 3, **seen},
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
    assert summaries(found) == ["all keys agreed in 3 legal orders of records, though each task reads a and b"]


def test_keys_that_depend_on_the_order_are_counted_and_named(judged):
    found = judged(unsure=2, unsure_times=1, examples=(b"k1", b"\xff\x00"))
    assert kinds(found) == [DOUBT]
    assert summaries(found) == ["2 of 40 keys depend on the order of records, such as k1, base64:/wA=: each task reads a and b"]
    assert said(judged(unsure=60, elsewhere=30, examples=(b"k1",))).startswith("60 of 70 keys depend"), "some are in other orders only"
    times = judged(unsure_times=1, examples=(b"k1",))
    assert kinds(times) == [REMARK]
    assert said(times).startswith("the timestamps of 1 of 40 keys depend on the order of records, such as k1")


def test_records_that_were_refused_are_counted_and_those_of_a_changelog_are_a_doubt(judged):
    """The store held these until a restart; what did not reach a repartition topic was never in the store."""
    found = judged(Doubts(), refused={"a-by-repartition": 2})
    assert kinds(found) == [REMARK]
    assert said(found).startswith("2 records for a-by-repartition were too large")
    kept = judged(Doubts(), refused={"a-by-repartition": 2, "a-s-changelog": 1})
    assert kinds(kept) == [REMARK, DOUBT]
    assert kept[1].summary.startswith("1 records for a-s-changelog")
    assert "until a restart" in kept[1].summary


def test_a_program_that_fails_in_another_order(judged):
    found = judged(thrown="the program threw X")
    assert kinds(found) == [DOUBT]
    assert summaries(found) == ["in another legal order of its records it fails: the program threw X; each task reads a and b"]


def test_what_is_seen_of_a_run_is_a_doubt_whatever_the_orders_gave(judged):
    for seen, text in (
        (
            {"calls": ("App.f: Instant.now",)},
            "was seen to call what gives another answer each time, or on another machine: App.f: Instant.now",
        ),
        ({"schedules": 2}, "schedules 2 punctuators by wall-clock time"),
        ({"timed": 1}, "schedules 1 punctuator by stream time, which its capture does not show"),
        ({"without_key": ("x", "y"), "anywhere": {"y"}}, "records without a key go to any partition of x"),
        ({"skipped": 3, "windows": True}, "3 records came late for windows that the store may still hold"),
    ):
        found = judged(Doubts(), **seen)
        assert kinds(found) == [DOUBT]
        assert text in said(found)
    assert judged(Doubts(), skipped=3) == []  # such as records without a key
    assert judged(Doubts(), without_key=("y",), anywhere={"y"}) == []


def test_stream_time_that_the_capture_shows_is_a_matter_of_order(judged):
    assert judged(Doubts(shows_stream_time=True), timed=1) == []


def test_offsets_are_known_where_no_repartition_topic_lies_between(judged):
    calls = ("Seen.process: RecordMetadata.offset",)
    assert judged(Doubts(), calls=calls) == []
    found = judged(Doubts(numbers_anew=True), calls=calls)
    assert kinds(found) == [DOUBT]
    asked = "the program was seen to ask for offsets of records, and those of repartition topics are others here"
    assert summaries(found) == [f"{asked}: {calls[0]}"]


def test_who_schedules_by_the_clock_is_named_where_it_is_not_counted(judged):
    calls = ("Timers.each: PunctuationType.WALL_CLOCK_TIME",)
    assert summaries(judged(Doubts(), calls=calls)) == [f"punctuators by wall-clock time are scheduled: {calls[0]}"]
    counted = summaries(judged(Doubts(), calls=calls, schedules=1))
    assert counted == ["the program schedules 1 punctuator by wall-clock time, not called here"]


def test_what_the_classes_of_a_store_were_given_when_they_were_loaded(judged):
    initial = (
        "com.acme.App.<clinit>: Instant.now",
        "com.acme.App$Helper.<init>: UUID.randomUUID",
        "org.spring.Context.<init>: System.nanoTime",
    )
    found = judged(Doubts(classes=frozenset({"com.acme.App$$Lambda"})), initial_calls=initial)
    assert kinds(found) == [DOUBT]
    assert said(found).endswith("com.acme.App$Helper.<init>: UUID.randomUUID, com.acme.App.<clinit>: Instant.now")
    assert judged(Doubts(classes=frozenset({"com.acme.Other"})), initial_calls=initial) == []


def test_what_a_program_keeps_in_fields_is_lost_at_a_restart(judged):
    found = judged(Doubts(), kept=("com.acme.Sum.total",))
    assert kinds(found) == [DOUBT]
    forgets = "the program keeps something between records in fields, which a restart forgets, and when it was restarted is not known"
    assert summaries(found) == [f"{forgets}: com.acme.Sum.total"]


def test_many_calls_are_named_in_part(judged):
    (found,) = judged(Doubts(), calls=tuple("abcdefg"))
    assert found.summary.endswith("a, b, c, d, e and 2 more")


def test_own_processors_are_named_and_what_lasts_stays(judged):
    own = judged(Doubts(own_processors=("keep (App$Keep)",)))
    assert kinds(own) == [REMARK]
    assert "keep (App$Keep)" in said(own)
    lasting = doubt("global_stores", "the program has global stores")
    assert judged(Doubts(findings=(lasting,)), orders=3) == [lasting]


def test_records_that_were_dropped_without_a_network_may_be_those_of_a_call_that_failed(judged):
    found = judged(Doubts(), skipped=3, dropped=3)
    assert kinds(found) == [DOUBT]
    assert said(found).startswith("the library dropped 3 records, and without a network")
