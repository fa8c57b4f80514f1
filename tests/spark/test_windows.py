"""Windows and sessions as Spark computes them, against what the real Kafka Streams holds: thousands of inputs at their edges.

Each input is a partition of its own, so that one job of Spark computes all inputs of a setup; and a program of its own in one
``TopologyTestDriver``, so that few drivers run them all.
"""

import os

import pytest

from support.windows_cases import SETUPS, case_programs, expected, inputs
from support.windows_in_spark import Topic, computed

pytestmark = [pytest.mark.spark, pytest.mark.streams]

CASES = int(os.environ.get("KOPS_TEST_WINDOW_CASES", "60"))
"""Inputs of each setup; more of them for a closer look."""
ENOUGH = 160
"""Cases of each setup among which chance did not fail to make a record late."""
OLDER = 20
AT_ONCE = 20


def run(oracle, setup, cases):
    """Return what the store of each case holds."""
    programs, views = case_programs(setup, len(cases)), []
    for start in range(0, len(cases), AT_ONCE):
        several = oracle.several(programs[start : start + AT_ONCE], cases[start : start + AT_ONCE])
        views += [expected(setup, written, held) for written, held in several]
    return views


@pytest.mark.parametrize("setup", SETUPS, ids=lambda setup: setup.name)
def test_what_spark_computes_is_what_kafka_streams_holds(spark, oracle, older_oracle, setup):
    cases = inputs(setup, CASES)
    wanted = run(oracle, setup, cases)
    assert run(older_oracle, setup, cases[:OLDER]) == wanted[:OLDER]
    found, seen = computed(setup.program, Topic(spark, cases), len(cases))
    wrong = [(cases[at], view, found.get(at, {})) for at, view in enumerate(wanted) if found.get(at, {}) != view]
    assert not wrong, f"{len(wrong)} of {len(cases)}, the shortest: {min(wrong, key=lambda case: len(case[0]))}"
    assert seen.keys == sum(map(len, wanted))
    assert (seen.mixed, seen.noted["boundary"], seen.noted["uncovered"], seen.noted["timed"]) == (0, 0, 0, 0)
    assert seen.noted["late"] > 0 or CASES < ENOUGH
