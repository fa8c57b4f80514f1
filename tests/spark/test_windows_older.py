"""Windows and sessions as a Kafka Streams before 3.0 holds them, which closes a session by its grace alone (KAFKA-12718)."""

from dataclasses import replace

import pytest

from kops.gateways.machine.jars import KAFKA_VERSION
from support.older_streams import VERSION, older_windows
from support.programs import Window
from support.windows_cases import expected, inputs, setup
from support.windows_in_spark import Topic, computed

pytestmark = [pytest.mark.spark, pytest.mark.streams]

CASES = 120
SETUPS = [
    setup("count", "long", Window("session", 5, grace=3, retention=40)),
    setup("count", "long", Window("window", 10, grace=3, retention=40)),
]


@pytest.mark.parametrize("setup", SETUPS, ids=lambda setup: setup.name)
def test_what_spark_computes_is_what_kafka_streams_2_8_holds(spark, setup):
    cases = inputs(setup, CASES)
    wanted = [expected(setup, written, held) for written, held in older_windows(setup.program, cases)]
    old, new = (computed(replace(setup.program, version=version), Topic(spark, cases), CASES) for version in (VERSION, KAFKA_VERSION[:3]))
    wrong = [(cases[at], view, old[0].get(at, {})) for at, view in enumerate(wanted) if old[0].get(at, {}) != view]
    assert not wrong, f"{len(wrong)} of {CASES}, the shortest: {min(wrong, key=lambda case: len(case[0]))}"
    assert old[1].noted["late"] > 0
    assert (old[0] == new[0]) == (setup.window.type == "window"), "sessions, and they alone, depend on the version"
