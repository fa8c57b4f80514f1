"""Takes a snapshot of an application's state: its changelogs as Parquet, and a manifest with all that is needed to restore it elsewhere."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kops
from kops.config.durable import sync, sync_tree
from kops.config.files import is_absent, read_json
from kops.core.errors import ConfigError, Refused, UsageProblem
from kops.core.findings import counted
from kops.core.models import CommittedOffset, NewTopic, Setting, TopicPartition, isolation_of, value_of
from kops.core.statefile import StateFile
from kops.core.statefile.models import KEY_VALUE, SESSION, SLIDING, VERSIONED, WINDOW
from kops.core.streams.topics import ADDED_MS
from kops.core.times import time_text, to_milliseconds
from kops.core.topics.changes import new_topic_json
from kops.operations.archive.manifest import held_json
from kops.operations.engine.spark import Engine, start_engine
from kops.operations.offsets.items import committed_json, committed_of_json
from kops.operations.services import Services
from kops.operations.state.lost_records import losses_text, lossy_partitions
from kops.operations.state.snapshot_topics import own_topics, stopped_application

if TYPE_CHECKING:
    from kops.spark.reading.ranges import TopicRange
    from kops.spark.types import DataFrame

VERSION = 1
FILE = "manifest.json"
STORES = "stores"
_FIELDS = ("application", "guarantee", "streams_version", "cluster_id", "taken", "kops")
_WINDOWED = (WINDOW, SLIDING, SESSION, "windowed")
"""Types of stores that lose old records as they should; the last is a guess from the topic's settings."""


@dataclass(frozen=True)
class SnapshotStore:
    """One store of a snapshot.

    :param type: as in a state file; a guess from the topic's settings when no state file was named
    :param topic: the changelog, as it is to be created
    :param cut: the offsets that were read, by partition: from, and up to
    :param contents: what the files hold, by partition: ``kops.spark.reading.snapshot.Held`` as JSON
    :param history_ms: of a versioned store; files hold what it accepted. None: of another one
    """

    name: str
    type: str
    topic: NewTopic
    cut: Mapping[int, tuple[int, int]]
    contents: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    history_ms: int | None = None

    @property
    def is_versioned(self) -> bool:
        return self.type == VERSIONED

    @property
    def cleanup_policy(self) -> str:
        return (self.topic.settings or {}).get("cleanup.policy", "delete")

    @property
    def emptied(self) -> list[int]:
        starts = {number: start for number, (start, end) in self.cut.items() if start == end}
        return lossy_partitions(starts, self.cleanup_policy)

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
    committed: Mapping[TopicPartition, CommittedOffset]
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
        **{name: getattr(manifest, name) for name in _FIELDS},
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
        body = read_json(path / FILE, hint="take the snapshot again")
    except ConfigError as error:
        if is_absent(error):
            hint = "name the folder that `kops state snapshot --to DIR` made"
            raise ConfigError(f"{path} is not a snapshot: it has no {FILE}", hint=hint) from error
        raise
    if not isinstance(body, dict) or body.get("version") != VERSION:
        raise ConfigError(f"{path / FILE} is not of a snapshot of version {VERSION}", hint="use the version of kops that took it")
    try:
        return Manifest(
            **{name: body[name] for name in _FIELDS},
            stores=tuple(_store_of_json(store) for store in body["stores"]),
            repartitions=tuple(NewTopic(**topic) for topic in body["repartitions"]),
            inputs=body["inputs"],
            input_ids=body["input_ids"],
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
        **({} if store.history_ms is None else {"history_ms": store.history_ms}),
    }


def _store_of_json(body: Mapping[str, Any]) -> SnapshotStore:
    return SnapshotStore(
        name=body["name"],
        type=body["type"],
        topic=NewTopic(**body["changelog"]),
        cut={int(number): (int(found[0]), int(found[1])) for number, found in body["cut"].items()},
        contents={int(number): held for number, held in body["contents"].items()},
        history_ms=body.get("history_ms"),
    )


def _renamed(topic: NewTopic, old: str, new: str) -> NewTopic:
    return replace(topic, name=own_name(topic.name, old, new))


def take_snapshot(services: Services, subject: StateFile | str, to: str, *, guarantee: str = "", master: str | None = None) -> Manifest:
    """Write all changelogs of an application that does not run to a folder, which either becomes complete or does not exist.

    :param subject: a state file, or an ``application.id``
    :param guarantee: ``processing.guarantee``, when there is no state file to give it; at_least_once when empty
    :raises Refused: when the folder exists, or the state does not stand still
    """
    target = Path(to).absolute()
    refuse_existing(target)
    state_file = subject if isinstance(subject, StateFile) else None
    application = subject.application if isinstance(subject, StateFile) else subject
    chosen = state_file.guarantee if state_file else guarantee or "at_least_once"
    engine = start_engine(services, master)
    topics = own_topics(services, application, state_file)
    isolation = isolation_of(committed=chosen != "at_least_once")
    still = stopped_application(services, topics, isolation=isolation)
    known = {store.name: (store.type, store.history_ms) for store in state_file.stores} if state_file else {}
    stores = []
    for name, topic in topics.changelogs.items():
        kind, history_ms = known.get(name) or guessed_type(topics.settings[topic.name])
        bounds = {number: still.bounds[TopicPartition(topic.name, number)] for number in range(topic.partitions or 0)}
        cut = {number: (found.log_start_offset, found.log_end_offset) for number, found in bounds.items()}
        stores.append(SnapshotStore(name, kind, topic, cut, history_ms=history_ms))
    own = {topic.name for topic in (*topics.changelogs.values(), *topics.repartitions)}
    inputs = sorted({partition.topic for partition in still.committed} - own)
    described = services.kafka.topics.existing(inputs)
    manifest = Manifest(
        application=application,
        guarantee=chosen,
        cluster_id=services.kafka.cluster().cluster_id,
        taken=time_text(to_milliseconds(services.now())),
        kops=kops.__version__,
        stores=tuple(stores),
        repartitions=topics.repartitions,
        inputs={name: len(topic.partitions) for name, topic in described.items()},
        input_ids={name: topic.topic_id for name, topic in described.items() if topic.topic_id},
        committed=still.committed,
        streams_version=state_file.streams_version if state_file else None,
    )
    return _written(engine, manifest, target)


def refuse_existing(target: Path) -> None:
    """Refuse to write to a path that exists.

    :raises UsageProblem: when its parent folder does not exist
    """
    if "://" in str(target) or ":/" in target.as_posix().split("/", 2)[0]:
        raise UsageProblem(f"{target} is not a folder that this machine reaches", hint="name a path; copy it elsewhere afterwards")
    if target.exists() or target.is_symlink():
        raise Refused(f"{target} exists already", hint="name a folder that does not exist yet")
    if not target.parent.is_dir():
        raise UsageProblem(f"there is no folder {target.parent}", hint="create it first")


def guessed_type(settings: Mapping[str, Setting]) -> tuple[str, int | None]:
    """Guess the type of a store, and its history, from its changelog's settings (``InternalTopicConfig`` and its subclasses)."""
    if "delete" in value_of(settings, "cleanup.policy").split(","):
        return "windowed", None
    lag_ms = int(value_of(settings, "min.compaction.lag.ms") or 0)
    return VERSIONED if lag_ms > 0 else KEY_VALUE, lag_ms - ADDED_MS if lag_ms > ADDED_MS else None


def _written(engine: Engine, manifest: Manifest, target: Path) -> Manifest:
    """Write into a folder next to the target, and rename it at the end."""
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(mode=0o700 if engine.is_local else 0o777)  # the workers of a cluster may run as another user
        (part / STORES).mkdir()
        stores = tuple(replace(store, contents=_write_store(engine, manifest, store, part)) for store in manifest.stores)
        done = replace(manifest, stores=stores)
        (part / FILE).write_text(json.dumps(manifest_json(done), indent=2, ensure_ascii=False), encoding="utf-8")
        refuse_existing(target)
        sync_tree(part, private=engine.is_local)
        part.rename(target)
        sync(target.parent)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return done


def _write_store(engine: Engine, manifest: Manifest, store: SnapshotStore, part: Path) -> dict[int, dict[str, int]]:
    from kops.spark.driver.failures import explained
    from kops.spark.reading.ranges import TopicRange
    from kops.spark.reading.snapshot import write_snapshot

    wanted = TopicRange(store.topic.name, store.cut, read_committed=manifest.exactly_once, headers=True)
    engine.services.progress.step(f"reading {counted(wanted.records, 'record')} of {store.topic.name}")
    with explained(f"read {store.topic.name}"), engine.reading(wanted):
        held = write_snapshot(view_of(engine, store, wanted), str(store_folder(part, store)))
    if held and not any(store_folder(part, store).glob("*.parquet")):
        raise Refused(
            f"Spark at {engine.master} wrote where this machine does not see it",
            hint="name a folder that its workers and this machine share, or leave --master out",
        )
    return held_json(held)


def view_of(engine: Engine, store: SnapshotStore, changelog: TopicRange) -> DataFrame:
    """Return what a snapshot has, or would have, of a changelog."""
    from kops.spark.stores.versioned import restorable

    return restorable(engine.kafka().read(changelog), store.history_ms, versioned=store.is_versioned)


def whole_view(engine: Engine, store: SnapshotStore, folder: Path) -> DataFrame:
    """Return what a snapshot has of a store, after comparing it with what was written.

    :raises ConfigError: when it is something else
    """
    from kops.spark.driver.failures import explained
    from kops.spark.reading.snapshot import read_snapshot, snapshot_contents

    session = engine.session  # must have started before anything else imports pyspark
    with explained(f"read the snapshot of {store.name}"):
        view = read_snapshot(session, str(folder))
        found = held_json(snapshot_contents(view))
    if found != store.contents:
        raise ConfigError(f"{folder} is not what was written there: counts or hashes differ", hint="use another copy")
    return view


def described(manifest: Manifest, path: str) -> dict[str, Any]:
    return {
        "path": path,
        "application": manifest.application,
        "guarantee": manifest.guarantee,
        "cluster_id": manifest.cluster_id,
        "taken": manifest.taken,
        "stores": [
            {
                "store": store.name,
                "type": store.type,
                "changelog": store.topic.name,
                "partitions": store.topic.partitions,
                "records": store.records,
            }
            for store in manifest.stores
        ],
        "repartitions": [topic.name for topic in manifest.repartitions],
        "inputs": dict(manifest.inputs),
        "committed": {str(partition): found.offset for partition, found in sorted(manifest.committed.items())},
    }
