"""A program's stores as a state file has them: what its capture says of input, times and transactions, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kops.core.errors import Refused
from kops.core.statefile.sources import LATEST, WALL_CLOCK
from kops.core.streams.capture import Source
from kops.core.streams.capture_file import read_capture
from kops.operations.state.own_code.stores import program_state_file, refuse_moving
from support.stand_in_jars import stand_in

CAPTURED = json.loads((Path(__file__).parents[3] / "core" / "streams" / "capture.json").read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def jars(tmp_path, monkeypatch):
    stand_in(tmp_path, monkeypatch)


@pytest.fixture
def capture():
    return read_capture(CAPTURED, "c.json")


def settings(capture, **changed):
    return replace(capture, settings=replace(capture.settings, **changed))


def state_file(capture, *names):
    return program_state_file(capture, "c.json", names)[0]


def store(capture, name):
    (found,) = state_file(capture, name).stores
    return found


def test_all_stores_that_can_be_computed_and_why_others_are_left(capture):
    found, left = program_state_file(capture, "c.json", ())
    assert {each.name for each in found.stores} == {each.name for each in capture.stores} - {"recent"}
    assert left == ["store recent is left as it is: it has no changelog"]


def test_a_store_whose_changelog_is_its_topic_is_only_looked_at(capture):
    """With ``topology.optimization`` the application restores it from its topic, where nothing is to be rebuilt."""
    topic = "users"
    optimized = [
        replace(
            each, changelogs=tuple(replace(log, name=topic, is_source_topic=True) for log in each.changelogs if "users-store" in log.name)
        )
        if any("users-store" in log.name for log in each.changelogs)
        else each
        for each in capture.subtopologies
    ]
    stores = [replace(each, changelog=topic) if each.name == "users-store" else each for each in capture.stores]
    optimized_capture = replace(capture, subtopologies=tuple(optimized), stores=tuple(stores))
    with pytest.raises(Refused, match="users, which the program reads, is its changelog itself"):
        state_file(optimized_capture, "users-store")
    (found,) = program_state_file(optimized_capture, "c.json", ["users-store"], reused=True)[0].stores
    assert (found.reuses_source, found.changelog, found.source.topic) == (True, topic, topic)


def test_aborted_records_count_as_the_consumers_of_the_program_read_them(capture):
    assert state_file(capture).reads_committed
    uncommitted = settings(capture, main_consumer={"isolation.level": "read_uncommitted"})
    assert not state_file(uncommitted).reads_committed
    assert state_file(uncommitted).says_isolation


@pytest.mark.parametrize(
    ("guarantee", "exactly"), [("at_least_once", False), ("exactly_once", True), ("exactly_once_beta", True), ("exactly_once_v2", True)]
)
def test_the_guarantee(capture, guarantee, exactly):
    assert state_file(settings(capture, effective={"processing.guarantee": guarantee})).exactly_once is exactly


def test_a_store_behind_a_repartition_topic_is_of_the_topics_before_it(capture):
    windows = store(capture, "windows")
    assert [source.topic for source in windows.inputs] == ["clicks", "views"]
    assert windows.repartition_topic == "many-by-value-repartition"
    assert (windows.window.size_ms, windows.window.grace_ms, windows.window.retention_ms) == (300_000, 0, 360_000)


def test_where_a_topic_was_read_from_the_end_is_not_known(capture):
    """The program says so for the topic itself, or by its settings; anything but the beginning."""
    clicks, views = store(capture, "counts").inputs
    assert clicks.start is not None  # "latest" for clicks alone
    assert clicks.start.kind == LATEST
    assert views.start is None
    for policy in ("latest", "none", "by_duration:PT1H"):
        both = store(settings(capture, main_consumer={"auto.offset.reset": policy}), "counts").inputs
        assert [source.start and source.start.kind for source in both] == [LATEST, LATEST]


def test_whose_times_are_those_of_the_records(capture):
    clicks, views = store(capture, "counts").inputs
    assert (clicks.timestamp, views.timestamp) == ("ManyStores$ByOffset", None)
    clock = "org.apache.kafka.streams.processor.WallclockTimestampExtractor"
    by_clock = settings(capture, effective={"default.timestamp.extractor": clock})
    assert store(by_clock, "counts").inputs[1].timestamp == WALL_CLOCK


def test_a_store_that_no_topic_fills(capture):
    nothing = [replace(each, source_topics=()) if each.number == 0 else each for each in capture.subtopologies]
    nodes = tuple(node for node in capture.nodes if not isinstance(node, Source))
    with pytest.raises(Refused, match="store counts is filled from no topic"):
        state_file(replace(capture, subtopologies=tuple(nothing), nodes=nodes), "counts")


def test_a_store_is_shown_in_the_programs_own_formats_and_made_with_its_settings(capture):
    counts = store(capture, "counts")
    assert (counts.key_form.name, counts.aggregate.form.name) == ("bytes", "long")
    assert counts.changelog_settings["cleanup.policy"] == "compact"


@pytest.mark.parametrize("option", ["--into", "--at"])
def test_what_moves_an_application_needs_all_of_its_stores(capture, option):
    found, unfit = program_state_file(capture, "c.json", ())
    with pytest.raises(Refused, match=f"{option} needs all stores of the program, and store .* is left as it is") as refused:
        refuse_moving(found, unfit, option)
    assert "--store" in (refused.value.hint or "")
    refuse_moving(state_file(capture, "counts"), (), "--into")
