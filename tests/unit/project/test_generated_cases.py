"""That the generator of random applications makes what it says, and notices what contradicts a class."""

import json
import struct

import pytest

from kops.core.statefile import parse_state_file
from support.generated import Rounds, batch
from support.generated_truth import contradicts, held
from support.programs import Record, Window

VERSIONS = ("4.4.0", "3.9.1")
BEFORE = [Record(b"a", b"1", 1_000, (), 0, 0), Record(b"b", b"2", 2_000, (), 1, 0), Record(b"b", b"3", 3_000, (), 1, 1)]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(4))
def test_cases_differ_and_their_files_can_be_read(number):
    made = batch(f"unit-{number}", "random", (6, 3), VERSIONS, now=1_700_000_000)
    assert made == batch(f"unit-{number}", "random", (6, 3), VERSIONS, now=1_700_000_000)
    for life in made.lives:
        starts = {(one.topic, partition): 3 for one in life.made.inputs for partition in range(one.partitions)}
        rounds = Rounds(made.seed, life, made.version)
        every = [case for number in range(3) for case in rounds.cases(number)]
        assert len({(case.store, case.what) for case in every}) == rounds.count
        assert len(every) == rounds.count or life.is_light
        for case in every:
            files = {filled.store: filled.file for filled in life.made.stores} | {case.store: case.file}
            file = parse_state_file("state.yaml", json.loads(life.state_file(files, starts)))
            assert {store.changelog for store in file.stores} == {filled.changelog for filled in life.made.stores}


def test_all_records_of_an_input_arrive_once():
    made = batch("unit", "random", (4,), VERSIONS)
    for one in made.lives[0].made.inputs:
        assert tuple(record for part in range(made.parts) for record in made.arriving(part)[0][one.topic]) == one.records


@pytest.mark.parametrize(
    ("changed", "by_a", "by_b"),
    [
        ([], 0, 0),
        ([Record(b"a", None, 1_000, (), 0)], 1, 1),
        ([Record(b"b", b"2", 3_000, (), 1)], 1, 1),
        ([Record(b"b", b"3", 9_000, (), 1)], 1, 0),
        ([Record(b"c", b"1", 1_000, (), 0)], 1, 1),
        ([Record(b"b", b"3", 3_000, (), 0)], 1, 1),
    ],
)
def test_what_contradicts_a_class(changed, by_a, by_b):
    wanted, now = held(None, BEFORE), [*BEFORE, *changed]
    assert len(contradicts("A", wanted, now, "string")) == by_a
    assert len(contradicts("B", wanted, now, "string")) == by_b
    assert not contradicts("C", wanted, now, "string")


def test_windows_that_have_expired_are_not_missed():
    def window(start):
        return Record(b"k" + struct.pack(">qi", start, 0), b"1", start, (), 0)

    wanted = held(Window("window", 1_000, retention=5_000), [window(1_000), window(2_000), window(6_000)])
    assert not contradicts("A", wanted, [window(2_000), window(6_000)], "long")
    assert contradicts("A", wanted, [window(6_000)], "long")
