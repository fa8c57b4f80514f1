"""What a snapshot's stores would change in the existing changelogs, staged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kops.core.errors import ConfigError, Refused
from kops.core.models import Bounds, Topic, TopicPartition, isolation_of
from kops.core.plan import Item
from kops.operations.archive.manifest import held_json
from kops.operations.engine.spark import Engine, drop_stage, new_stage
from kops.operations.state.arguments import StoreWrite
from kops.operations.state.changelog_writes import refuse_time_zero
from kops.operations.state.snapshot_manifest import Manifest, SnapshotStore, store_folder

if TYPE_CHECKING:
    from kops.spark.reading.ranges import TopicRange
    from kops.spark.staging.stage import Staged


@dataclass(frozen=True)
class SnapshotFiles:
    """The files of a snapshot, under the names that it had.

    :param original: the manifest, before the application was renamed
    """

    folder: Path
    original: Manifest


@dataclass(frozen=True)
class StagedStore:
    """A store of the snapshot, and what its changelog lacks.

    :param bounds: of the changelog as it is; none when it does not exist
    """

    store: SnapshotStore
    bounds: Mapping[int, Bounds]
    stage: str
    staged: Staged | None

    @property
    def write(self) -> StoreWrite:
        """What the plan writes; for a store with headers all of it, as stored in the snapshot."""
        staged = self.staged
        contents = self.store.contents if staged is None else {number: asdict(content) for number, content in staged.contents.items()}
        return StoreWrite(self.store.topic.name, self.stage, contents, in_order=self.store.is_versioned, with_headers=staged is None)

    def items(self) -> list[Item]:
        found, contents = [], self.write.contents
        for number in range(self.store.topic.partitions or 0):
            target = f"{self.store.topic.name}:{number}"
            end = self.bounds[number].log_end_offset if number in self.bounds else 0
            content = contents.get(number)
            if content is None:
                found.append(Item(target, "none", end, end, "up to date"))
                continue
            actions = self.staged.actions.get(number, {}) if self.staged else {"added": content["records"]}
            counts = ", ".join(f"{count:,} {name}" for name, count in actions.items() if count)
            found.append(Item(target, "append", end, end + content["records"], counts))
        return found


def stage_stores(engine: Engine, files: SnapshotFiles, manifest: Manifest, existing: Mapping[str, Topic]) -> list[StagedStore]:
    """Check the files of every store, and stage what its changelog lacks.

    :param manifest: under the names that the stores are to have
    :raises ConfigError: when files are not what was written
    """
    isolation = isolation_of(committed=manifest.exactly_once)
    done: list[StagedStore] = []
    try:
        for before, store in zip(files.original.stores, manifest.stores, strict=True):
            numbers = range(len(existing[store.topic.name].partitions)) if store.topic.name in existing else ()
            partitions = [TopicPartition(store.topic.name, number) for number in numbers]
            found = engine.services.kafka.offsets.bounds(partitions, isolation=isolation) if partitions else {}
            done.append(
                _stage(engine, store_folder(files.folder, before), store, {at.partition: bound for at, bound in found.items()}, manifest)
            )
    except BaseException:
        for staging in done:
            if staging.staged is not None:
                drop_stage(staging.stage)
        raise
    return done


def _stage(engine: Engine, folder: Path, store: SnapshotStore, bounds: Mapping[int, Bounds], manifest: Manifest) -> StagedStore:
    from kops.spark.driver.failures import explained
    from kops.spark.reading.ranges import TopicRange
    from kops.spark.reading.snapshot import held, read_snapshot
    from kops.spark.staging.stage import stage_view

    engine.services.progress.step(f"checking {store.name}: {store.records:,} records")
    view = read_snapshot(engine.session, str(folder))
    with explained(f"read the snapshot of {store.name}"):
        found = held_json(held(view))
    if found != _contents(store):
        raise ConfigError(f"{folder} is not what was written there: counts or hashes differ", hint="use another copy")
    ranges = {number: (bound.log_start_offset, bound.log_end_offset) for number, bound in bounds.items()}
    changelog = TopicRange(store.topic.name, ranges, read_committed=manifest.exactly_once, headers=True) if ranges else None
    with_headers = any(kept["with_headers"] for kept in store.contents.values())
    if changelog and (with_headers or (store.is_versioned and changelog.records)):
        return _nothing_to_write(engine, store, bounds, changelog)
    if with_headers:
        return _with_headers(engine, folder, store, bounds, manifest)
    stage = new_stage(engine.services, manifest.application)
    engine.services.progress.step(f"comparing {store.topic.name}")
    with explained(f"compare {store.topic.name}"):
        staged = stage_view(engine.kafka(), view, changelog, stage)
    earliest = [content.earliest for content in staged.contents.values() if content.records]
    refuse_time_zero(engine.services, store.topic.name, earliest, exactly_once=manifest.exactly_once)
    return StagedStore(store, bounds, stage, staged)


def _contents(store: SnapshotStore) -> dict[int, dict[str, int]]:
    return {number: dict(kept) for number, kept in store.contents.items()}


def _nothing_to_write(engine: Engine, store: SnapshotStore, bounds: Mapping[int, Bounds], changelog: TopicRange) -> StagedStore:
    """Return a store whose changelog holds the snapshot already: versions and headers can only be written into a new one.

    :raises Refused: when it holds anything else
    """
    from kops.spark.driver.failures import explained
    from kops.spark.reading.snapshot import held, snapshot_view
    from kops.spark.staging.stage import Staged

    engine.services.progress.step(f"comparing {store.topic.name}")
    with explained(f"compare {store.topic.name}"):
        found = held_json(held(snapshot_view(engine.kafka().read(changelog), versioned=store.is_versioned)))
    if found == _contents(store):
        return StagedStore(store, bounds, "", Staged({}, {}))
    what = f"{store.topic.name} does not hold what the snapshot does, and is"
    raise Refused(
        f"{what} a versioned store's: the versions that it has would stay"
        if store.is_versioned
        else f"{what} not new: the records of store {store.name} have headers, and are written whole",
        hint=f"delete it first (kops topics delete {store.topic.name}), or restore with --application into another",
    )


def _with_headers(engine: Engine, folder: Path, store: SnapshotStore, bounds: Mapping[int, Bounds], manifest: Manifest) -> StagedStore:
    """Return a store whose records have headers: all of it is written, from the snapshot itself, into a changelog that does not exist."""
    earliest = [kept["earliest"] for kept in store.contents.values() if kept["records"]]
    refuse_time_zero(engine.services, store.topic.name, earliest, exactly_once=manifest.exactly_once, headers=True)
    return StagedStore(store, bounds, str(folder), None)
