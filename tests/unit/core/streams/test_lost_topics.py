"""How many partitions a program gives a repartition topic that is gone; where nothing shows it, kops does not guess."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kops.core.streams.capture_file import read_capture
from kops.core.streams.lost_topics import partitions_of_repartition, repartition_gone

CAPTURED = json.loads((Path(__file__).parent / "capture.json").read_text(encoding="utf-8"))
TOPIC, APART = "many-by-value-repartition", "many-apart-repartition"


@pytest.fixture
def capture():
    return read_capture(CAPTURED, "c.json")


def test_as_many_as_the_program_says_or_its_writers_or_its_changelogs_have(capture):
    assert partitions_of_repartition(capture, APART, {}) == 7
    assert partitions_of_repartition(capture, TOPIC, {"clicks": 4, "views": 3}) == 4
    assert partitions_of_repartition(capture, TOPIC, {"clicks": 4, "many-windows-changelog": 6}) == 6


def test_none_where_what_exists_does_not_show_it(capture):
    """Its writers' topics are gone, or its sub-topology reads other topics, with which it may have to agree."""
    assert partitions_of_repartition(capture, TOPIC, {"views": 4}) is None
    joined = [replace(each, source_topics=("rates",)) if each.number == 1 else each for each in capture.subtopologies]
    assert partitions_of_repartition(replace(capture, subtopologies=tuple(joined)), TOPIC, {"clicks": 4, "rates": 2}) is None


def test_the_advice_is_a_command_and_not_to_start_the_application():
    known = repartition_gone("a-b-repartition", 3, {"retention.ms": "-1"})
    assert known.startswith("create it: `kops topics create a-b-repartition --partitions 3 --config retention.ms=-1`; then --write replace")
    assert "do not start the application without it, unless it is new" in known
    unknown = repartition_gone("a-b-repartition", None, likely="a-b-changelog has 3")
    assert "--partitions N --config cleanup.policy=delete" in unknown
    assert "(N: as many as it had; a-b-changelog has 3)" in unknown
