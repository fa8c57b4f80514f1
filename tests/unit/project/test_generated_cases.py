"""That the generator of random applications makes what it says, and notices what contradicts a claim."""

import json
import struct

import pytest

from kops.core.statefile import parse_state_file
from support.generated import Rounds, batch
from support.generated_keeping import KEPT, READ
from support.generated_truth import Claim, contradicts, held
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
    ("changed", "exact", "values", "some"),
    [
        ([], 0, 0, 0),
        ([Record(b"a", None, 1_000, (), 0)], 1, 1, 1),
        ([Record(b"b", b"2", 3_000, (), 1)], 1, 1, 1),
        ([Record(b"b", b"3", 9_000, (), 1)], 1, 0, 1),
        ([Record(b"c", b"1", 1_000, (), 0)], 1, 1, 0),
        ([Record(b"b", b"3", 3_000, (), 0)], 1, 1, 0),
    ],
)
def test_what_contradicts_a_claim(changed, exact, values, some):
    wanted, now = held(None, BEFORE), [*BEFORE, *changed]
    assert len(contradicts(Claim(), wanted, now, "string")) == exact
    assert len(contradicts(Claim(is_exact=False), wanted, now, "string")) == values
    assert len(contradicts(Claim(2, is_whole=False), wanted, now, "string")) == some
    assert not contradicts(Claim(1, is_whole=False), wanted, now, "string")


def test_what_is_called_proven_has_survived():
    """Not as many right ones, of which some were written."""
    wanted, claim = held(None, BEFORE), Claim(2, is_whole=False, proven=2)
    assert not contradicts(claim, wanted, BEFORE, "string", survived=BEFORE)
    (found,) = contradicts(claim, wanted, BEFORE, "string", survived=BEFORE[:1])
    assert found.startswith("2 keys are called proven, and 1 that survived are right")


def test_programs_keep_fields_and_restart_at_random_points(tmp_path):
    made = batch("kept", "random", (40,), VERSIONS, kept=tmp_path / "kept")
    programs = made.lives[0].made.specification.programs
    kinds = {dict(program.keeps).get("kind") for program in programs if program.keeps}
    assert kinds & {*KEPT}
    assert kinds & {*READ}
    assert {dict(program.keeps)["effect"] for program in programs if program.keeps} == {"add", "filter"}
    assert made.around is not None
    assert made.cuts == tuple(sorted(made.cuts))
    assert len(made.cuts) == made.parts
    for one in made.lives[0].made.inputs:
        assert tuple(record for part in range(made.parts) for record in made.arriving(part)[0][one.topic]) == one.records


def _said(proven=2, computed=0, doubtful=0, impossible=0, **findings):
    found = [{"check": check, "severity": severity, "subject": subject} for check, (severity, subject) in findings.items()]
    return {"proven": proven, "computed": computed, "doubtful": doubtful, "impossible": impossible, "findings": found}


@pytest.mark.parametrize(
    ("said", "of_right_file", "of_wrong_file"),
    [
        (_said(), Claim(2), Claim(2)),
        (_said(computed=3), Claim(5), Claim(2, is_whole=False)),
        (_said(doubtful=1, keys_differ=("warning", "")), Claim(2, is_whole=False), Claim(2, is_whole=False)),
        (_said(impossible=1, lost_records=("critical", "")), Claim(2, is_whole=False), Claim(2, is_whole=False)),
        (_said(emptied_partitions=("warning", "log")), Claim(2, is_whole=False), Claim(2, is_whole=False)),
        (_said(other_bytes=("note", "")), Claim(2, is_exact=False), Claim(2, is_exact=False)),
        (_said(rewritten_code=("note", "")), Claim(2), Claim(2)),
    ],
)
def test_what_kops_claims(said, of_right_file, of_wrong_file):
    assert Claim.of(said) == of_right_file
    assert Claim.of(said, file_is_right=False) == of_wrong_file


def test_windows_that_have_expired_are_not_missed():
    def window(start):
        return Record(b"k" + struct.pack(">qi", start, 0), b"1", start, (), 0)

    wanted = held(Window("window", 1_000, retention=5_000), [window(1_000), window(2_000), window(6_000)])
    assert not contradicts(Claim(), wanted, [window(2_000), window(6_000)], "long")
    assert contradicts(Claim(), wanted, [window(6_000)], "long")
