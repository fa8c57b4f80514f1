"""What a state file says otherwise than a captured program."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kops.core.statefile.against_program import FileDifference, file_differences, uncovered_stores
from kops.core.streams.capture import Sink, Source
from kops.core.streams.capture_file import read_capture
from kops.operations.engine.state_files import read_state_file

CAPTURED = json.loads((Path(__file__).parents[1] / "streams" / "capture.json").read_text(encoding="utf-8"))
WINDOW = {"size": "5m", "grace": "1m", "retention": "6m"}


@pytest.fixture
def capture():
    return read_capture(CAPTURED, "c.json")


@pytest.fixture
def source(capture):
    """The topic that fills the stores `counts` and `windows`."""
    node = next(node for node in capture.nodes if isinstance(node, Source) and node.name == "KSTREAM-SOURCE-0000000000")
    return {"topic": node.topics[0], "key": "string", "value": "string", "timestamp": "timestamp", "start": "latest"}


@pytest.fixture
def file(tmp_path, source):
    def write(streams=None, counts=None, **windows):
        stores = {
            "counts": {"from": source, "aggregate": {"count": True}, **(counts or {})},
            "windows": {"from": source, "type": "window", "window": WINDOW, "aggregate": {"count": True}, **windows},
        }
        path = tmp_path / "state.yaml"
        path.write_text(
            json.dumps({"application": "many", "streams": streams or {"version": "4.3", "isolation": "read_committed"}, "stores": stores})
        )
        return read_state_file(str(path), ())

    return write


def of_store(found, name):
    return [(each.what, each.file, each.program) for each in found if each.store == name]


def test_a_file_that_says_the_same(capture, file):
    assert file_differences(file(), capture) == []


def test_windows(capture, file):
    found = file_differences(file(window={"size": "1m", "grace": "2m", "retention": "10m"}), capture)
    assert of_store(found, "windows") == [
        ("window.size", "1m", "5m"),
        ("window.advance", "1m", "5m"),
        ("window.grace", "2m", "1m"),
        ("window.retention", "10m", "6m"),
    ]
    assert of_store(file_differences(file(window={**WINDOW, "retention": "7m"}), capture), "windows") == [("window.retention", "7m", "6m")]


def test_kinds(capture, file):
    gap = {"gap": "5m", "grace": "1m"}
    found = file_differences(file(counts={"type": "window", "window": WINDOW}, type="session", window=gap), capture)
    assert of_store(found, "counts") == [("type", "window", "timestamped-key-value")]
    assert of_store(found, "windows") == [("type", "session", "timestamped-window")]


def test_stores_without_timestamps(capture, file):
    found = file_differences(file(counts={"timestamped": False}), capture)
    assert of_store(found, "counts") == [("timestamped", "false", "true")]


def test_formats_of_a_fixed_length(capture, file, source):
    sums = {"sum": "length(value)", "as": "double"}
    found = file_differences(file(counts={"from": {**source, "key": "long"}, "aggregate": sums}), capture)
    assert of_store(found, "counts") == [("aggregate.as", "double", "long")]  # its keys have the program's own serde
    assert of_store(file_differences(file(counts={"from": {**source, "key": "bytes"}}), capture), "counts") == []


def test_a_store_that_the_program_does_not_have(capture, file):
    found = file_differences(file(counts={"changelog": "many-other-changelog"}), capture)
    assert of_store(found, "counts") == [("changelog", "many-other-changelog", None)]


def test_topics_repartitioning_and_partitioners(capture, file, source):
    found = file_differences(file(counts={"from": {**source, "topic": "elsewhere"}}), capture)
    assert of_store(found, "counts")[0][:2] == ("from", "elsewhere")
    moved = file_differences(file(counts={"key_by": "value"}), capture)
    assert of_store(moved, "counts") == [("key_by", "many-counts-repartition", None)]
    assert any(isinstance(node, Sink) for node in capture.custom_partitioners)


def test_of_the_application(capture, file):
    settings = replace(
        capture.settings,
        effective={**capture.settings.effective, "processing.guarantee": "exactly_once_v2"},
        given={**capture.settings.given, "statestore.cache.max.bytes": "0"},
        main_consumer={**(capture.settings.main_consumer or {}), "isolation.level": "read_committed"},
    )
    other = replace(capture, settings=settings, streams_version="3.9.1")
    assert file_differences(file({"version": "4.3"}), other) == [
        FileDifference(None, "guarantee", "at_least_once", "exactly_once_v2"),
        FileDifference(None, "isolation", "read_uncommitted", "read_committed"),
        FileDifference(None, "version", "4.3", "3.9.1"),
        FileDifference(None, "cache", "true", "false"),
    ]
    unknown = replace(capture, settings=replace(settings, effective={}, given={}, main_consumer=None), streams_version=None)
    assert file_differences(file({"version": "4.3"}), unknown) == []


def test_times_and_starts(capture, file, source):
    plain = {name: source[name] for name in ("topic", "key", "value")}
    assert of_store(file_differences(file(counts={"from": plain}), capture), "counts") == [
        (f"timestamp of {source['topic']}", None, "ManyStores$ByOffset"),
        (f"start of {source['topic']}", None, "latest"),
    ]


def test_stores_that_the_file_does_not_have(capture, file):
    names = {store.name for store in uncovered_stores(file(), capture)}
    assert {"sessions", "seen", "final-store", "users-store"} <= names
    assert not names & {"counts", "windows", "recent"}  # recent has no changelog
