"""Names, keys, inputs and manifests of state that moves: pure rules."""

from dataclasses import replace
from pathlib import Path

import pytest

from kops.core.errors import ConfigError, Refused, UsageProblem
from kops.core.models import Bounds, Committed, NewTopic, TopicPartition
from kops.core.records.models import Record
from kops.core.statefile import parse_state_file
from kops.core.times import Position
from kops.operations.state.internal_topics import TopicChange, changes_json, changes_of_json
from kops.operations.state.into import renamed, with_topics
from kops.operations.state.query import newest_versions
from kops.operations.state.repartition_inputs import parse_instead
from kops.operations.state.snapshot import Manifest, SnapshotStore, manifest_json, own_name, read_manifest
from kops.operations.state.stored_keys import stored_key, suffix_length

STORE = SnapshotStore("s", "key-value", NewTopic("a-s-changelog", 2, 1, {"cleanup.policy": "compact"}), {0: (0, 5), 1: (3, 3)})
MANIFEST = Manifest(
    application="a",
    guarantee="exactly_once_v2",
    cluster_id="c",
    taken="2026-11-21T00:00:00.000Z",
    kops="1",
    stores=(STORE,),
    repartitions=(NewTopic("a-s-repartition", 2, 1, {}),),
    inputs={"in": 1, "a-b": 1},
    committed={
        TopicPartition("in", 0): Committed(7, "m", 1),
        TopicPartition("a-s-repartition", 1): Committed(2),
        TopicPartition("a-b", 0): Committed(1),
    },
)


def test_a_manifest_is_read_back_as_it_was(tmp_path):
    import json

    (tmp_path / "manifest.json").write_text(json.dumps(manifest_json(MANIFEST)))
    assert read_manifest(tmp_path) == MANIFEST
    assert MANIFEST.exactly_once


@pytest.mark.parametrize("text", ["", "[]", '{"version": 2}', '{"version": 1}'])
def test_a_manifest_that_is_none(tmp_path, text):
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(ConfigError):
        read_manifest(tmp_path)
    with pytest.raises(ConfigError, match="not a snapshot"):
        read_manifest(Path(tmp_path / "manifest.json"))


def test_another_application_has_topics_of_its_own_and_the_same_input():
    named = MANIFEST.named("b")
    assert named.stores[0].topic.name == "b-s-changelog"
    assert named.repartitions[0].name == "b-s-repartition"
    assert set(named.committed) == {TopicPartition("in", 0), TopicPartition("b-s-repartition", 1), TopicPartition("a-b", 0)}
    assert own_name("elsewhere", "a", "b") == "elsewhere"


def state_file(**store):
    body = {"from": {"topic": "in", "key": "string", "value": "long"}, "key_by": "value", "aggregate": {"count": True}, **store}
    return parse_state_file("f.yaml", {"application": "a", "stores": {"s": body}})


def test_a_state_file_for_another_application():
    (store,) = renamed(state_file(), "b").stores
    assert (store.changelog, store.repartition_topic, store.source.topic) == ("b-s-changelog", "b-s-repartition", "in")
    with pytest.raises(Refused, match="does not begin with a-"):
        renamed(state_file(changelog="mine"), "b")


def test_the_applications_own_key_and_what_is_around_it():
    window = b"key" + (1000).to_bytes(8, "big") + bytes(4)
    session = b"key" + (2000).to_bytes(8, "big") + (1000).to_bytes(8, "big")
    for kind, data in (("window", window), ("sliding-window", window), ("session", session), ("key-value", b"key"), ("versioned", b"key")):
        assert stored_key(kind, data).inner == b"key"
        assert data[: len(data) - suffix_length(kind)] == b"key"
    around = stored_key("window", window, 500).around
    assert (around["window_start"], around["window_end"]) == ("1970-01-01T00:00:01.000Z", "1970-01-01T00:00:01.500Z")
    assert stored_key("session", session).around["window_end"] == "1970-01-01T00:00:02.000Z"
    assert stored_key("window", b"short").inner == b"short"


def test_of_a_versioned_store_the_time_decides():
    records = [
        Record("t", 0, offset, time, b"k", value) for offset, (time, value) in enumerate([(10, b"a"), (30, b"c"), (20, b"b"), (30, None)])
    ]
    (newest,) = newest_versions(records, Position("end"))
    assert (newest.timestamp, newest.value) == (30, None)
    (then,) = newest_versions(records, Position("time", 25))
    assert then.value == b"b"
    assert newest_versions(records, Position("time", 5)) == []


def test_inputs_in_place_of_others():
    assert parse_instead(["a=b", "c=d"]) == {"a": "b", "c": "d"}
    for wrong in ("a", "a=", "=b"):
        with pytest.raises(UsageProblem):
            parse_instead([wrong])


def test_changes_of_topics_go_there_and_back():
    old, new = NewTopic("t", 4, 1, {"x": "y"}), NewTopic("t", 12, 1, {"x": "y"})
    change = TopicChange(old, new, "id")
    assert changes_of_json(changes_json([change])) == [change]
    assert (change.action, TopicChange(None, new).action, TopicChange(old, None).action) == ("replace", "create", "delete")
    assert change.backwards("other") == TopicChange(new, old, "other")


class _Nothing:
    """A cluster without topics, which is asked only for what it has."""

    kafka = property(lambda self: self)
    topics = offsets = property(lambda self: self)

    def existing(self, names):
        assert list(names) == []
        return {}

    def settings(self, names):
        assert list(names) == []
        return {}


def test_topics_that_are_planned_are_there_and_empty():
    services = with_topics(_Nothing(), [NewTopic("new", 2, None, {"cleanup.policy": "compact"})])
    found = services.kafka.topics.existing(["new"])
    assert len(found["new"].partitions) == 2
    assert services.kafka.topics.settings(["new"])["new"]["cleanup.policy"].value == "compact"
    partitions = [TopicPartition("new", number) for number in range(2)]
    assert services.kafka.offsets.bounds(partitions, isolation="read_committed") == dict.fromkeys(partitions, Bounds(0, 0))


def test_snapshot_names_changelogs_that_had_lost_records():
    assert STORE.emptied == [1]
    assert MANIFEST.losses == ["partition 1 of a-s-changelog has lost records: keys that nothing has written again since are missing there"]
    deleting = replace(STORE, topic=NewTopic("a-s-changelog", 2, 1, {"cleanup.policy": "compact,delete"}))
    (loss,) = replace(MANIFEST, stores=(deleting,)).losses
    assert "which its settings delete (cleanup.policy=compact,delete)" in loss
    expiring = replace(deleting, type="window")
    assert replace(MANIFEST, stores=(expiring,)).losses == deleting.emptied == []
