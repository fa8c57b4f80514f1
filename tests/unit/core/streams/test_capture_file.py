"""Reading the capture of a program, and the error for a file that is not one."""

import copy
import json
from pathlib import Path

import pytest

from kops.core.errors import ConfigError
from kops.core.streams.capture import Processor, Sink, Source, Windows
from kops.core.streams.capture_file import public_capture, read_capture

CAPTURED = json.loads((Path(__file__).parent / "capture.json").read_text(encoding="utf-8"))
"""What the agent wrote of tests/streams/capture/ManyStores.java with 4.3.1, its class path and settings shortened."""


@pytest.fixture
def body():
    return copy.deepcopy(CAPTURED)


def test_a_capture_is_read(body):
    found = read_capture(body, "c.json")
    assert (found.application, found.streams_version, found.unknown) == ("many", "4.3.1", ())
    stores = {store.name: store for store in found.stores}
    assert (stores["windows"].kind, stores["windows"].retention_ms, stores["windows"].caching) == ("timestamped-window", 360_000, True)
    assert (stores["seen"].kind, stores["seen"].capacity, stores["seen"].key.name) == (
        "key-value",
        100,
        "org.apache.kafka.common.serialization.StringDeserializer",
    )
    assert stores["counts"].key is None
    assert stores["counts"].value.inner["valueDeserializer"].name == "org.apache.kafka.common.serialization.LongDeserializer"
    assert (stores["recent"].changelog, stores["recent"].retain_duplicates) == (None, True)
    assert stores["pairs-left-shared-join-store"].kind == "list"
    assert stores["final-store"].kind == "buffer"
    assert [store.name for store in found.global_stores] == ["settings-store"]
    assert found.global_stores[0].processors is None


def test_nodes_are_read_by_their_type(body):
    found = read_capture(body, "c.json")
    clicks = found.node("KSTREAM-SOURCE-0000000000")
    assert isinstance(clicks, Source)
    assert (clicks.reset, clicks.timestamp_extractor) == ({"clicks": "latest"}, "ManyStores$ByOffset")
    aggregate = found.node("KSTREAM-AGGREGATE-0000000003")
    assert isinstance(aggregate, Processor)
    kind = "org.apache.kafka.streams.kstream.TimeWindows"
    assert aggregate.windows == (Windows(kind, size_ms=300_000, advance_ms=300_000, grace_ms=60_000),)
    assert found.node("final").suppresses
    chosen = found.node("chosen")
    assert isinstance(chosen, Sink)
    assert chosen.topic is None
    assert [each.name for each in found.program_processors] == ["dedup"]
    assert [each.topic for each in found.custom_partitioners] == ["many-apart-repartition"]


def test_stores_are_found_in_their_subtopologies(body):
    found = read_capture(body, "c.json")
    apart = found.subtopology_of("lengths")
    assert [(each.name, each.partitions) for each in apart.repartition_topics] == [("many-apart-repartition", 7)]
    assert found.subtopology_of("settings-store") is None
    assert found.subtopology_of("no-such-store") is None


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("format",), "something", "c.json is not a capture of a program"),
        (("version",), 3, "c.json was captured by a newer kops: it is of version 3, not 2"),
        (("version",), 1, "c.json was captured by an older kops: it is of version 1, not 2"),
        (("version",), True, "c.json: version is bool, not int"),
        (("application_id",), None, "c.json has no application_id"),
        (("stores", 0, "headers"), "yes", "c.json: stores: KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-0000000031: headers is str, not bool"),
        (("stores", 1, "value_serde", "deserializer", "class"), None, "c.json: stores: counts: value_serde: deserializer has no class"),
        (("nodes", 0, "type"), "sauce", "c.json: nodes: KSTREAM-SOURCE-0000000000: type is 'sauce', and not source, processor or sink"),
        (("nodes", 0, "topics"), [1], "c.json: nodes: KSTREAM-SOURCE-0000000000: topics holds 1, which is not text"),
        (("nodes", 0), "text", "c.json: nodes: 0 is not an object"),
        (("subtopologies", 0, "changelogs", 0, "name"), None, "c.json: subtopologies: 0: changelogs: 0 has no name"),
    ],
)
def test_an_error_says_where(body, place, value, message):
    *above, last = place
    at = body
    for key in above:
        at = at[key]
    at[last] = value
    with pytest.raises(ConfigError) as raised:
        read_capture(body, "c.json")
    assert raised.value.message == message
    assert raised.value.hint


@pytest.mark.parametrize("body", [None, [], "text", {}])
def test_something_else_is_not_a_capture(body):
    with pytest.raises(ConfigError, match=r"c\.json is not a capture of a program"):
        read_capture(body, "c.json")


def test_secrets_are_recognized_by_their_shape():
    command = ["java", "-Dpassword=hunter2", "--db-password", "hunter2", "--password-file", "name"]
    found = public_capture({"command": command, "config": {"url": "http://me:hunter2@registry"}, "number": 1})
    shown = ["java", "-Dpassword=********", "--db-password", "********", "--password-file", "name"]
    assert found == {"command": shown, "config": {"url": "http://me:********@registry"}, "number": 1}
