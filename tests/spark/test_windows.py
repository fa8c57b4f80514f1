"""Windows and sessions as Spark computes them, against what the real Kafka Streams holds: thousands of inputs at their edges.

Each input is a partition of its own, so that one job of Spark computes all inputs of a setup; and a program of its own in one
``TopologyTestDriver``, so that few drivers run them all.
"""

import pytest

from kops.core.statefile import parse_state_file
from kops.spark.jobs import VIEWS, Job
from kops.spark.source import SCHEMA, TopicRange
from support.streams import Oracle
from support.windows_cases import SETUPS, case_programs, expected, inputs

pytestmark = [pytest.mark.spark, pytest.mark.streams]

CASES = 160
OLDER = 20
AT_ONCE = 20


@pytest.fixture(scope="module")
def oracle():
    with Oracle() as running:
        yield running


@pytest.fixture(scope="module")
def older():
    with Oracle("4.1.1") as running:
        yield running


class Topic:
    """A topic that is held in memory, read as the Kafka source does: each partition in the order of its offsets."""

    def __init__(self, spark, rows):
        self.frame = spark.createDataFrame(rows, SCHEMA).repartition(4, "partition").sortWithinPartitions("partition", "offset")
        self.rows = rows

    def read(self, _wanted):
        return self.frame

    @property
    def ranges(self):
        return {row[2]: (0, row[3] + 1) for row in self.rows}


def rows_of(cases):
    return [
        (record.key, record.value, partition, offset, record.timestamp)
        for partition, records in enumerate(cases)
        for offset, record in enumerate(records)
    ]


def view_of(spark, program, cases, partitions=None):
    """Return what kops computes, by partition, and what it saw."""
    file = parse_state_file("state.yaml", program.state_file())
    topic = Topic(spark, rows_of(cases))
    empty = TopicRange("changelog", {})
    job = Job(file, file.stores[0], TopicRange(program.topic, topic.ranges), empty, partitions or len(cases))
    view = VIEWS[job.store.type](topic, job, any_order=False)
    try:
        rows = view.rows.collect()
        found = {}
        for row in rows:
            if row.value is not None:
                found.setdefault(row.partition, {})[bytes(row.key)] = (bytes(row.value), row.timestamp)
        return found, view.seen()
    finally:
        view.done()


def run(oracle, setup, cases):
    programs, views = case_programs(setup, len(cases)), []
    for start in range(0, len(cases), AT_ONCE):
        several = oracle.several(programs[start : start + AT_ONCE], cases[start : start + AT_ONCE])
        views += [expected(setup, written, held) for written, held in several]
    return views


@pytest.mark.parametrize("setup", SETUPS, ids=lambda setup: setup.name)
def test_what_spark_computes_is_what_kafka_streams_holds(spark, oracle, older, setup):
    cases = inputs(setup, CASES)
    wanted = run(oracle, setup, cases)
    assert run(older, setup, cases[:OLDER]) == wanted[:OLDER]
    found, seen = view_of(spark, setup.program, cases)
    wrong = [(cases[at], view, found.get(at, {})) for at, view in enumerate(wanted) if found.get(at, {}) != view]
    assert not wrong, f"{len(wrong)} of {len(cases)}, the shortest: {min(wrong, key=lambda case: len(case[0]))}"
    assert seen.keys == sum(map(len, wanted))
    assert seen.noted["late"] > 0
    assert seen.mixed == 0
    assert seen.noted["boundary"] == 0
