"""How a task is disturbed: what it is given, when its program begins afresh, and which disturbances explain what differs."""

from types import SimpleNamespace

import numpy
import pyarrow
import pytest

from kops.core.errors import OperationFailed
from kops.formats import runner_frames as frames
from kops.gateways.machine.program import OTHER_SURROUNDINGS, ProgramStart
from kops.spark.programs import disturbed, task_run
from kops.spark.programs.disturbed import Runs, after_all_ran, disturb
from kops.spark.programs.models import BRIEF, SAMPLE, SELDOM, WHOLE, ProgramTask, Run, StoreTask
from kops.spark.programs.spill import Spill
from kops.spark.programs.task_run import Way

STORE = StoreTask("counts", "app-counts-changelog", None, "unused")


def batch(first, keys, times=None):
    count = len(keys)
    zeros, nothing = numpy.zeros(count, numpy.int32), pyarrow.nulls(count, pyarrow.binary())
    offsets = numpy.arange(first, first + count)
    return frames.Batch(
        ["in"], zeros, zeros, offsets, offsets if times is None else numpy.array(times), pyarrow.array(keys), nothing, nothing
    )


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Return a task whose runs are played: each gives the rows that a function makes of its way; and the runs that there were."""

    def make(values, how=SAMPLE, *, orders=("time",), inputs=()):
        ways = []

        def once(_run, _task, way, _read, *, sample=None, apart=False):
            ways.append((way, sample, apart))
            rows = values(way)
            if rows is None:
                raise OperationFailed("the program threw X")
            written = Spill(tmp_path, {"counts": None})
            texts = [(key, value, 1, b"") for key, value in rows.items()]
            kinds = {"key": pyarrow.binary(), "value": pyarrow.binary(), "timestamp": pyarrow.int64(), "headers": pyarrow.binary()}
            columns = zip(*texts, strict=True)
            written.add(
                "counts", pyarrow.table({name: pyarrow.array(each, kinds[name]) for name, each in zip(kinds, columns, strict=True)})
            )
            return SimpleNamespace(of=lambda _store: written.rows("counts"), passed={}), {
                "records": 10,
                "commits": 1,
                "restarts": len(way.restarts),
            }

        monkeypatch.setattr(disturbed, "run_once", once)
        monkeypatch.setattr(disturbed, "inputs_of", lambda *_: {"in": iter(inputs)})
        start = ProgramStart(("java",), "/", str(tmp_path), 1, (), "digest", 60)
        found = Runs(Run(start, {}, "app", {}), ProgramTask(0, 0, (), stores=(STORE,), orders=orders, disturbed=how), lambda _: iter(()))
        written, _ = once(None, None, Way(), None)
        ways.clear()
        return found, written, ways

    return make


def shown_of(made, records=10, lost=()):
    found, written, _ = made
    shown = disturb(found, written, {"records": records, "commits": 1}, {"counts": lost})
    of_task, stores = shown.facts(["counts"])
    return {**of_task, **stores["counts"]}


def test_what_agrees_is_run_once_more_only(runs):
    made = runs(lambda _: {b"a": b"1"}, inputs=[batch(0, [b"a"] * 10)])
    facts = shown_of(made)
    ((way, sample, apart),) = made[2]
    assert (way.surroundings, way.offsets, apart, len(sample[0])) == (OTHER_SURROUNDINGS, True, True, 10)
    assert (facts["disturbed"], facts["unsure"], facts["depends_on"]) == (10, 0, [])
    assert set(way.restarts) == set(range(1, 10)), "after each record of so few"


@pytest.mark.parametrize(
    ("differs", "expected"),
    [
        (lambda way: way.surroundings, ["chance"]),
        (lambda way: "zone" in way.surroundings, ["zone"]),
        (lambda way: way.restarts, ["restarts"]),
        (lambda way: way.order != "time", ["order"]),
        (lambda way: way.restarts and "clock" in way.surroundings, ["several"]),
        (lambda way: way.offsets or "locale" in way.surroundings, ["offsets"]),
    ],
)
def test_single_disturbances_are_tried_until_all_is_explained(runs, differs, expected):
    made = runs(lambda way: {b"a": b"2" if differs(way) else b"1", b"b": b"1"}, WHOLE, orders=("time", "backward"))
    facts = shown_of(made)
    assert (facts["unsure"], facts["examples"], facts["depends_on"]) == (1, [b"a".hex()], expected)
    assert all(apart for _, _, apart in made[2][1:]), "no other task reads what they pass on"


def test_keys_that_differ_each_time_explain_nothing_else(runs):
    def values(way):
        return {b"chance": b"2" if way.surroundings else b"1", b"zone": b"2" if "zone" in way.surroundings else b"1"}

    assert shown_of(runs(values, WHOLE))["depends_on"] == ["chance", "zone"]


def test_what_a_disturbed_program_throws_is_said_with_the_disturbance(runs):
    facts = shown_of(runs(lambda way: None if "charset" in way.surroundings else {b"a": b"1"}, WHOLE))
    assert facts["thrown"] == "the program threw X (by charset alone)"


def test_the_records_of_lost_keys_are_in_the_sample_with_those_before_them(runs):
    """And the program begins afresh just before them, and before late ones where there is room."""
    keys = [b"k%d" % (at % 50) for at in range(20_000)]
    keys[15_000] = b"lost"
    made = runs(lambda _: {b"a": b"1"}, inputs=[batch(0, keys[:9000]), batch(9000, keys[9000:])])
    facts = shown_of(made, 20_000, [b"lost"])
    (_, sample, _), (way, same, _) = made[2]
    offsets = numpy.concatenate([each.offset for each in sample]).tolist()
    assert offsets == [*range(4096), *range(14_992, 15_001)]
    assert same == sample
    assert facts["depends_on"] == []
    assert offsets.index(15_000) in way.restarts
    assert len(way.restarts) >= 16

    times = [*range(100), 5, *range(100, 199)]
    made = runs(lambda _: {b"a": b"1"}, inputs=[batch(0, [b"a"] * 200, times)])
    shown_of(made, 200)
    assert 100 in made[2][-1][0].restarts


def test_an_input_is_read_once_for_the_records_of_many_lost_keys(runs):
    """The last of them are taken, each with those before it, also those of the batch before."""
    keys = [b"lost" if at in (5000, 10_003) or (at > 19_000 and at % 2) else b"k" for at in range(20_000)]
    for size, expected in ((1000, range(19_865, 20_000)), (10_000, range(19_865, 20_000))):
        batches = (batch(at, keys[at : at + size]) for at in range(0, 20_000, size))
        made = runs(lambda _: {b"a": b"1"}, inputs=batches)
        shown_of(made, 20_000, [b"lost"])
        assert numpy.concatenate([each.offset for each in made[2][0][1]]).tolist() == [*range(4096), *expected]
    keys = [b"lost" if at in (5000, 10_003) else b"k" for at in range(20_000)]
    made = runs(lambda _: {b"a": b"1"}, inputs=(batch(at, keys[at : at + 1000]) for at in range(0, 20_000, 1000)))
    shown_of(made, 20_000, [b"lost"])
    offsets = numpy.concatenate([each.offset for each in made[2][0][1]]).tolist()
    assert offsets == [*range(4096), *range(4992, 5001), *range(9995, 10_004)]


@pytest.mark.parametrize(("records", "others"), [(10_000, ""), (600, BRIEF)])
def test_of_many_tasks_those_with_most_lost_keys_are_given_a_sample(records, others):
    """Of a small input all are, so that all of it is disturbed, with fewer restarts in the others."""
    tasks = [ProgramTask(0, number, (), stores=(STORE,), disturbed=SAMPLE) for number in range(6)]
    lost = [0, 3, 0, 7, 0, 0]
    ran = {
        f"0_{number}": {"records": records if number < 5 else 0, "stores": {"counts": {"lost_keys": lost[number]}}} for number in range(6)
    }
    assert [task.disturbed for task in after_all_ran(tasks, ran)] == [others, SAMPLE, others, SAMPLE, others, ""]


def test_of_all_of_an_input_there_are_few_restarts_where_other_tasks_have_many(runs):
    many, few = (runs(lambda _: {b"a": b"1"}, how, orders=("time", "backward")) for how in (WHOLE, SELDOM))
    assert shown_of(many, 20_000)["restarts"] == 20
    facts = shown_of(few, 20_000)
    assert (facts["restarts"], facts["disturbed"]) == (4, 20_000)


def test_a_brief_sample_has_few_restarts(runs):
    made = runs(lambda _: {b"a": b"1"}, BRIEF, inputs=[batch(0, [b"a"] * 600)])
    assert 4 <= shown_of(made, 600)["restarts"] <= 7
    made = runs(lambda _: {b"a": b"1"}, BRIEF, inputs=[batch(0, [b"a"] * 4)])
    shown_of(made, 4)
    assert set(made[2][-1][0].restarts) >= {1, 2, 3}, "after each record of so few"


def test_a_program_begins_afresh_after_exactly_so_many_records(monkeypatch):
    given = [batch(0, [b"a"] * 5), "in", batch(5, [b"a"] * 5)]
    found = [
        each if each is None or isinstance(each, str) else each.offset.tolist() for each in task_run._with_restarts(given, [2, 5, 8, 99])
    ]
    assert found == [[0, 1], None, [2, 3, 4], None, "in", [5, 6, 7], None, [8, 9]]


def test_a_program_that_starts_slowly_begins_afresh_a_few_times(monkeypatch):
    now = iter(range(0, 1000, 2))
    monkeypatch.setattr(task_run.time, "monotonic", lambda: next(now))
    found = list(task_run._with_restarts([batch(0, [b"a"] * 40)], list(range(1, 29))))
    assert found.count(None) == 4
