"""The manifest of a snapshot: all that is needed to restore it elsewhere, next to the Parquet files. Pure except for reading the file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kops.core.errors import ConfigError
from kops.core.models import Committed, NewTopic, TopicPartition
from kops.core.statefile.models import SESSION, SLIDING, WINDOW
from kops.core.topics.changes import new_topic_json
from kops.operations.offsets.items import committed_json, committed_of_json
from kops.operations.state.lost_records import losses_text, lossy

VERSION = 1
FILE = "manifest.json"
STORES = "stores"
_WINDOWED = (WINDOW, SLIDING, SESSION, "windowed")
"""Types of stores that lose old records as they should; the last is a guess from the topic's settings."""


@dataclass(frozen=True)
class SnapshotStore:
    """One store of a snapshot.

    :param type: as in a state file; a guess from the topic's settings when no state file was named
    :param topic: the changelog, as it is to be created
    :param cut: the offsets that were read, by partition: from, and up to
    :param contents: what the files hold, by partition: ``kops.spark.reading.snapshot.Held`` as JSON
    """

    name: str
    type: str
    topic: NewTopic
    cut: Mapping[int, tuple[int, int]]
    contents: Mapping[int, Mapping[str, int]] = field(default_factory=dict)

    @property
    def is_versioned(self) -> bool:
        return self.type == "versioned"

    @property
    def cleanup_policy(self) -> str:
        return (self.topic.settings or {}).get("cleanup.policy", "delete")

    @property
    def emptied(self) -> list[int]:
        starts = {number: start for number, (start, end) in self.cut.items() if start == end}
        return lossy(starts, self.cleanup_policy)

    @property
    def records(self) -> int:
        return sum(held["records"] for held in self.contents.values())


@dataclass(frozen=True)
class Manifest:
    """What a snapshot contains.

    :param guarantee: ``processing.guarantee`` of the application
    :param repartitions: its repartition topics
    :param inputs: number of partitions of the topics for which it has committed offsets, except its own
    :param committed: with metadata
    :param input_ids: the ids of those topics, where the brokers report them
    """

    application: str
    guarantee: str
    cluster_id: str
    taken: str
    kops: str
    stores: tuple[SnapshotStore, ...]
    repartitions: tuple[NewTopic, ...]
    inputs: Mapping[str, int]
    committed: Mapping[TopicPartition, Committed]
    streams_version: str | None = None
    input_ids: Mapping[str, str] = field(default_factory=dict)

    @property
    def exactly_once(self) -> bool:
        return self.guarantee != "at_least_once"

    @property
    def losses(self) -> list[str]:
        """Which changelogs had lost records when the snapshot was taken, one sentence each."""
        texts = []
        for store in self.stores:
            starts = {number: start for number, (start, _end) in store.cut.items()}
            texts.append(losses_text(store.topic.name, starts, store.cleanup_policy, windowed=store.type in _WINDOWED))
        return [text for text in texts if text]

    def named(self, application: str) -> Manifest:
        """Return the same state for an application with another name: its own topics begin with that name."""
        stores = tuple(replace(store, topic=_renamed(store.topic, self.application, application)) for store in self.stores)
        topics = tuple(_renamed(topic, self.application, application) for topic in self.repartitions)
        own = {topic.name for topic in self.repartitions}
        committed = {
            TopicPartition(own_name(at.topic, self.application, application) if at.topic in own else at.topic, at.partition): found
            for at, found in self.committed.items()
        }
        return replace(self, application=application, stores=stores, repartitions=topics, committed=committed)


def own_name(topic: str, old: str, new: str) -> str:
    """Return the name of an application's internal topic under another ``application.id``."""
    return f"{new}-{topic[len(old) + 1 :]}" if topic.startswith(f"{old}-") else topic


def manifest_json(manifest: Manifest) -> dict[str, Any]:
    return {
        "version": VERSION,
        **{name: getattr(manifest, name) for name in ("application", "guarantee", "streams_version", "cluster_id", "taken", "kops")},
        "stores": [_store_json(store) for store in manifest.stores],
        "repartitions": [new_topic_json(topic) for topic in manifest.repartitions],
        "inputs": dict(sorted(manifest.inputs.items())),
        "input_ids": dict(sorted(manifest.input_ids.items())),
        "committed": {str(at): committed_json(found) for at, found in sorted(manifest.committed.items())},
    }


def read_manifest(path: Path) -> Manifest:
    """Read the manifest of a snapshot.

    :raises ConfigError: when the folder has none: it is not a snapshot, or one that was not finished
    """
    try:
        body = json.loads((path / FILE).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ConfigError(
            f"{path} is not a snapshot: it has no {FILE}", hint="name the folder that `kops state snapshot --to` made"
        ) from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read {path / FILE}: {error}", hint="take the snapshot again") from error
    if not isinstance(body, dict) or body.get("version") != VERSION:
        raise ConfigError(f"{path / FILE} is not of a snapshot of version {VERSION}", hint="use the version of kops that took it")
    try:
        return Manifest(
            **{name: body[name] for name in ("application", "guarantee", "streams_version", "cluster_id", "taken", "kops")},
            stores=tuple(_store_of_json(store) for store in body["stores"]),
            repartitions=tuple(NewTopic(**topic) for topic in body["repartitions"]),
            inputs=body["inputs"],
            input_ids=body.get("input_ids", {}),
            committed={at: found for at, found in committed_of_json(body["committed"]).items() if found is not None},
        )
    except (KeyError, TypeError, ValueError) as broken:
        raise ConfigError(f"{path / FILE} is damaged: {broken!r}", hint="take the snapshot again") from broken


def store_folder(path: Path, store: SnapshotStore) -> Path:
    return path / STORES / store.name


def _store_json(store: SnapshotStore) -> dict[str, Any]:
    return {
        "name": store.name,
        "type": store.type,
        "changelog": new_topic_json(store.topic),
        "cut": {str(number): list(found) for number, found in store.cut.items()},
        "records": store.records,
        "contents": {str(number): dict(held) for number, held in store.contents.items()},
    }


def _store_of_json(body: Mapping[str, Any]) -> SnapshotStore:
    return SnapshotStore(
        name=body["name"],
        type=body["type"],
        topic=NewTopic(**body["changelog"]),
        cut={int(number): (int(found[0]), int(found[1])) for number, found in body["cut"].items()},
        contents={int(number): held for number, held in body["contents"].items()},
    )


def _renamed(topic: NewTopic, old: str, new: str) -> NewTopic:
    return replace(topic, name=own_name(topic.name, old, new))
