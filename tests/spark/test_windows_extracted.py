"""Windows by the time that a TimestampExtractor takes from the value: what Spark computes is what Kafka Streams holds."""

import json
from dataclasses import replace

import pytest

from kops.core.errors import ConfigError
from kops.core.findings import Severity
from kops.operations.state.rules.statement import statement
from kops.spark.stores.views import UndecodableInput
from support.programs import Program, Record, Window
from support.windows_cases import Setup, case_programs, expected, inputs
from support.windows_in_spark import Topic, computed, job_of

pytestmark = [pytest.mark.spark, pytest.mark.streams]

CASES = 40
EXTRACTED = Program("count", "long", value="json", schema="ts bigint", timestamp="coalesce(value.ts, timestamp_ms)")
WINDOWS = [Window("window", 10, grace=3, advance=4), Window("session", 5, grace=3), Window("sliding-window", 10, grace=4)]


def in_payload(record, at):
    """Move a record's time into its value; a negative one makes Kafka Streams skip the record."""
    value = json.dumps({"ts": -1 if at % 11 == 5 else record.timestamp}).encode()
    return record if at % 7 == 3 else replace(record, value=value, timestamp=(at * 37) % 50)


@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: window.type)
def test_windows_are_those_of_the_extracted_time(spark, oracle, window):
    setup = Setup(window.type, replace(EXTRACTED, window=window))
    cases = [[in_payload(replace(record, value=b"{}"), at) for at, record in enumerate(case)] for case in inputs(setup, CASES)]
    wanted = [expected(setup, written, held) for written, held in oracle.several(case_programs(setup, CASES), cases, payload_time=True)]
    found, seen = computed(setup.program, Topic(spark, cases), CASES)
    assert [found.get(at, {}) for at in range(CASES)] == wanted
    assert seen.dropped["negative_timestamp"] > 0
    assert seen.keys == sum(map(len, wanted))


def test_a_record_without_a_time_ends_it(spark):
    program = replace(EXTRACTED, window=WINDOWS[0], timestamp="value.ts")
    cases = [[Record(b"a", b"{}", 7)]]
    with pytest.raises(UndecodableInput, match=r"a timestamp that is not null.* at offset 0 \(timestamp\)"):
        computed(program, Topic(spark, cases), 1)


@pytest.mark.parametrize("expression", ["value.ts * 0.5D", "cast(value.ts as string)"])
def test_what_is_no_time_is_refused(spark, expression):
    program = replace(EXTRACTED, window=WINDOWS[0], timestamp=expression)
    with pytest.raises(ConfigError, match=r"stores\.totals\.from\.timestamp is .*not a time"):
        computed(program, Topic(spark, [[Record(b"a", b"{}", 7)]]), 1)


def test_the_wall_clock_is_never_exact():
    for window, severity in ((WINDOWS[0], Severity.CRITICAL), (None, Severity.WARNING)):
        job = job_of(replace(EXTRACTED, window=window, timestamp="wall-clock"), None, 1)
        found = {finding.check: finding.severity for finding in statement(job.state_file, job.store, {})}
        assert found["processing_time"] is severity
