"""Takes a snapshot of an application's state: its changelogs as Parquet, and a manifest with them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kops
from kops.config.durable import settle, synced
from kops.core.errors import Refused, UsageProblem
from kops.core.models import NewTopic, Setting, TopicPartition, isolation_of
from kops.core.statefile import StateFile
from kops.core.times import time_text, to_milliseconds
from kops.operations.archive.manifest import held_json
from kops.operations.engine.spark import Engine, start_engine
from kops.operations.services import Services
from kops.operations.state.snapshot_manifest import FILE, STORES, Manifest, SnapshotStore, manifest_json, store_folder
from kops.operations.state.snapshot_topics import own_topics, standing_still

if TYPE_CHECKING:
    from kops.spark.reading.ranges import TopicRange


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
    still = standing_still(services, topics, isolation=isolation)
    kinds = {store.name: store.type for store in state_file.stores} if state_file else {}
    stores = tuple(
        SnapshotStore(
            name,
            kinds.get(name) or guessed_type(topics.settings[topic.name]),
            topic,
            {
                number: (found.log_start_offset, found.log_end_offset)
                for number in range(topic.partitions or 0)
                for found in [still.bounds[TopicPartition(topic.name, number)]]
            },
        )
        for name, topic in topics.changelogs.items()
    )
    own = {topic.name for topic in (*topics.changelogs.values(), *topics.repartitions)}
    inputs = sorted({partition.topic for partition in still.committed} - own)
    described = services.kafka.topics.existing(inputs)
    manifest = Manifest(
        application=application,
        guarantee=chosen,
        cluster_id=services.kafka.cluster().cluster_id,
        taken=time_text(to_milliseconds(services.now())),
        kops=kops.__version__,
        stores=stores,
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
        raise UsageProblem(f"there is no folder {target.parent}", hint="make it first")


def guessed_type(settings: Mapping[str, Setting]) -> str:
    """Guess the type of a store from its changelog's settings (``InternalTopicConfig`` and its subclasses)."""

    def value(name: str) -> str:
        found = settings.get(name)
        return (found.value or "") if found else ""

    if "delete" in value("cleanup.policy").split(","):
        return "windowed"
    return "versioned" if int(value("min.compaction.lag.ms") or 0) > 0 else "key-value"


def _written(engine: Engine, manifest: Manifest, target: Path) -> Manifest:
    """Write into a folder next to the target, and rename it at the end."""
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(mode=0o700 if engine.is_local else 0o777)  # the workers of a cluster may run as another user
        (part / STORES).mkdir()
        stores = tuple(replace(store, contents=_write_store(engine, manifest, store, part)) for store in manifest.stores)
        done = replace(manifest, stores=stores)
        with (part / FILE).open("w", encoding="utf-8") as file:
            json.dump(manifest_json(done), file, indent=2, ensure_ascii=False)
            file.flush()
            os.fsync(file.fileno())
        refuse_existing(target)
        settle(part, private=engine.is_local)
        part.rename(target)
        synced(target.parent)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return done


def _write_store(engine: Engine, manifest: Manifest, store: SnapshotStore, part: Path) -> dict[int, dict[str, int]]:
    from kops.spark.driver.failures import explained
    from kops.spark.reading.snapshot import snapshot_view, write_snapshot

    wanted = changelog_of(manifest, store.topic, store.cut)
    engine.services.progress.step(f"reading {wanted.records:,} records of {store.topic.name}")
    with explained(f"read {store.topic.name}"), engine.reading(wanted):
        records = engine.kafka().read(wanted)
        held = write_snapshot(snapshot_view(records, versioned=store.is_versioned), str(store_folder(part, store)))
    if held and not any(store_folder(part, store).glob("*.parquet")):
        raise Refused(
            f"Spark at {engine.master} wrote where this machine does not see it",
            hint="name a folder that its workers and this machine share, or leave --master out",
        )
    return held_json(held)


def changelog_of(manifest: Manifest, topic: NewTopic, cut: Mapping[int, tuple[int, int]]) -> TopicRange:
    from kops.spark.reading.ranges import TopicRange

    return TopicRange(topic.name, dict(cut), read_committed=manifest.exactly_once, headers=True)


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
