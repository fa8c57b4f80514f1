"""The class of a store that an application's own program has computed."""

import pytest

from kops.core.streams.program_doubts import Doubts
from kops.gateways.machine.program import OTHER_SURROUNDINGS
from kops.operations.state.exactness import worst
from kops.operations.state.own_code.exactness import DEPENDS_ON, of_runs
from kops.spark.programs.disturbed import CHANCE, OFFSETS, RESTARTS, TOGETHER
from kops.spark.programs.disturbed import ORDER as BY_ORDER
from kops.spark.programs.jobs import Ran, StoreCounts
from kops.spark.staging.stage import StagedPartitions

ORDER = Doubts(of_order=("each task reads a and b",))


@pytest.fixture
def judged():
    def judge(
        doubts=ORDER, *, windows=False, anywhere=(), unsure=0, unsure_times=0, elsewhere=0, examples=(), by=(), schedules=0, timed=0, **seen
    ):
        here = StoreCounts(StagedPartitions({}, {}), 40, {}, 0, unsure, unsure_times, elsewhere, examples, by)
        ran = Ran(
            {"s": here},
            100,
            **{"skipped": 0, "without_key": (), "orders": 2, **seen},
            wall_clock_schedules=schedules,
            stream_time_schedules=timed,
        )
        return worst(of_runs(doubts, here, [ran], windows=windows, anywhere=anywhere))

    return judge


def test_without_a_doubt_it_is_a(judged):
    assert judged(Doubts(), orders=1) == judged(Doubts())
    assert judged(Doubts()).grade == "A"
    assert judged(Doubts()).reasons == ()


def test_an_order_that_was_not_tried_is_open(judged):
    assert (judged(orders=1).grade, judged(orders=1).reasons) == ("C", ORDER.of_order)


def test_agreement_is_called_evidence_and_not_proof(judged):
    found = judged()
    assert found.grade == "A"
    assert found.reasons == ("all keys agreed in 2 legal orders of records, which is evidence and not proof", *ORDER.of_order)


def test_keys_that_differ_are_counted_and_named_with_what_they_depend_on(judged):
    found = judged(unsure=2, unsure_times=1, examples=(b"k1", b"\xff\x00"), by=("order", "zone"))
    assert found.grade == "C"
    on = "the order of records and the time zone of the process"
    assert found.reasons == (f"2 of 40 keys depend on {on}, such as k1, base64:/wA=", *ORDER.of_order)
    assert judged(unsure=60, elsewhere=30).reasons[0].startswith("60 of 70 keys differ when it is run once more"), "some only then"
    times = judged(Doubts(), unsure_times=1, examples=(b"k1",), by=("restarts",))
    assert times.grade == "B"
    assert times.reasons[0].startswith("the timestamps of 1 of 40 keys depend on when the application was restarted")
    passed = judged(Doubts(), passed_differing=3, passed_depends_on=("clock",))
    assert (passed.grade, passed.reasons) == ("C", ("3 records that are passed on depend on the date",))


def test_each_disturbance_has_words():
    singles = {RESTARTS, BY_ORDER, OFFSETS, CHANCE, TOGETHER, *OTHER_SURROUNDINGS}
    assert singles == DEPENDS_ON.keys()


def test_records_that_were_refused_are_counted_and_those_of_a_changelog_are_a_doubt(judged):
    """The store held these until a restart; what did not reach a repartition topic was never in the store."""
    found = judged(Doubts(), refused={"a-by-repartition": 2})
    assert found.grade == "A"
    assert found.reasons[0].startswith("2 records for a-by-repartition were too large")
    kept = judged(Doubts(), refused={"a-by-repartition": 2, "a-s-changelog": 1})
    assert kept.grade == "C"
    assert any(reason.startswith("1 records for a-s-changelog") and "until a restart" in reason for reason in kept.reasons)


def test_a_program_that_fails_when_it_is_disturbed(judged):
    found = judged(thrown="the program threw X")
    assert found.grade == "C"
    assert found.reasons[0] == "run once more, disturbed, it fails: the program threw X"


def test_what_is_seen_of_a_run_lowers_the_class_whatever_the_orders_gave(judged):
    for seen, said in (
        ({"schedules": 2}, "schedules 2 punctuators by wall-clock time"),
        ({"timed": 1}, "schedules 1 punctuator by stream time, which its capture does not show"),
        ({"without_key": ("x", "y"), "anywhere": {"y"}}, "records without a key go to any partition of x"),
        ({"skipped": 3, "windows": True}, "the library dropped 3 records, such as late ones"),
    ):
        found = judged(Doubts(), **seen)
        assert found.grade == "C"
        assert said in " ".join(found.reasons)
    assert judged(Doubts(), skipped=3).grade == "A"  # such as records without a key
    assert judged(Doubts(), without_key=("y",), anywhere={"y"}).grade == "A"


def test_stream_time_that_the_capture_shows_is_a_matter_of_order(judged):
    assert judged(Doubts(shows_stream_time=True), timed=1).grade == "A"


def test_own_processors_are_named_and_what_lasts_stays(judged):
    own = judged(Doubts(own_processors=("keep (App$Keep)",)))
    assert own.grade == "A"
    assert "keep (App$Keep)" in own.reasons[0]
    assert judged(Doubts(lasting=("the program has global stores",))).grade == "C"
