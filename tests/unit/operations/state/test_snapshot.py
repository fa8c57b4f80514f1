"""Manifests of snapshots."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kops.core.errors import ConfigError
from kops.core.models import CommittedOffset, NewTopic, TopicPartition
from kops.operations.state.snapshot import Manifest, SnapshotStore, manifest_json, own_name, read_manifest

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
        TopicPartition("in", 0): CommittedOffset(7, "m", 1),
        TopicPartition("a-s-repartition", 1): CommittedOffset(2),
        TopicPartition("a-b", 0): CommittedOffset(1),
    },
)


def test_a_manifest_is_read_back_as_it_was(tmp_path):
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


def test_snapshot_names_changelogs_that_had_lost_records():
    assert STORE.emptied == [1]
    assert MANIFEST.losses == ["partition 1 of a-s-changelog has lost records: keys that nothing has written again since are missing there"]
    deleting = replace(STORE, topic=NewTopic("a-s-changelog", 2, 1, {"cleanup.policy": "compact,delete"}))
    (loss,) = replace(MANIFEST, stores=(deleting,)).losses
    assert "which its settings delete (cleanup.policy=compact,delete)" in loss
    expiring = replace(deleting, type="window")
    assert replace(MANIFEST, stores=(expiring,)).losses == deleting.emptied == []
