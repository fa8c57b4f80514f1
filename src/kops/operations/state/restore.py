"""Plans to restore a snapshot: into the application that it was taken of or another one, on this cluster or another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kops.core.errors import Refused, UsageProblem
from kops.core.findings import counted
from kops.core.models import Bounds, CommittedOffset, Topic, TopicPartition, isolation_of, value_of
from kops.core.plan import Item, Plan
from kops.core.statefile.fields import nearest
from kops.core.streams.local_state import delete_local_state
from kops.operations.archive.manifest import held_json
from kops.operations.engine.spark import Engine, drop_stage, new_stage, start_engine
from kops.operations.engine.stable import bounds_of_application, own_transactions
from kops.operations.offsets.items import move_item
from kops.operations.services import Services
from kops.operations.state.arguments import StateArguments, StoreWrite
from kops.operations.state.change import RESTORE
from kops.operations.state.changelog_writes import refuse_time_zero
from kops.operations.state.input_offsets import refuse_running_group
from kops.operations.state.internal_topics import TopicChange
from kops.operations.state.plans import state_plan
from kops.operations.state.snapshot import Manifest, SnapshotStore, read_manifest, store_folder, view_of, whole_view
from kops.operations.topics.plan import on_this_cluster, prepare_creation

if TYPE_CHECKING:
    from kops.spark.reading.ranges import TopicRange
    from kops.spark.staging.stage import StagedPartitions


def plan_restore(
    services: Services, path: str, *, application: str = "", stores: Sequence[str] = (), offsets: bool = True, master: str | None = None
) -> Plan:
    """Return the plan that gives an application the state of a snapshot.

    :param application: another ``application.id`` than that of the snapshot
    :param stores: only these; then offsets stay as they are, since the other stores do
    :param offsets: commit the offsets of the snapshot too
    :raises Refused: when topics do not fit, or what the offsets point to does not exist
    """
    folder = Path(path).absolute()
    original = _chosen(read_manifest(folder), stores)
    manifest = original.named(application or original.application)
    engine = start_engine(services, master)
    refuse_running_group(services, manifest.application)
    existing = services.kafka.topics.existing([*(store.topic.name for store in manifest.stores), *(t.name for t in manifest.repartitions)])
    _refuse_unfit(services, manifest, existing)
    absent = [topic for topic in (*(store.topic for store in manifest.stores), *manifest.repartitions) if topic.name not in existing]
    creation = prepare_creation(services, on_this_cluster(services, manifest.cluster_id, absent))
    commits, prior = _restored_offsets(services, manifest, existing) if offsets and not stores else ({}, {})
    staged = stage_stores(engine, folder, original, manifest, existing)
    changes = [TopicChange(None, topic) for topic in creation.topics]
    moves = [move_item(partition, prior.get(partition), found, _why(manifest, partition)) for partition, found in sorted(commits.items())]
    wipe = _local_state(manifest, staged)
    arguments = StateArguments(
        application=manifest.application,
        exactly_once=manifest.exactly_once,
        master=engine.master,
        topics=tuple(changes),
        stores={found.store.name: found.write for found in staged},
        open=wipe,
        facts={"snapshot": str(folder), "taken_of": {"cluster_id": original.cluster_id, "application": original.application}},
    ).with_commits(commits, prior)
    return state_plan(
        engine,
        RESTORE,
        arguments,
        [
            *(change.item("it does not exist here") for change in changes),
            *(item for found in staged for item in found.items()),
            *moves,
        ],
        summary=_summary(path, original, manifest, staged),
        watched={partition.topic for partition in manifest.committed},
        warnings=(
            *(f"when the snapshot was taken, {loss}" for loss in original.losses),
            *_sent_again(manifest, commits, prior),
            *wipe,
            *_elsewhere(services, manifest),
        ),
        notes=_notes(manifest, staged),
    )


def _chosen(manifest: Manifest, stores: Sequence[str]) -> Manifest:
    known = {store.name: store for store in manifest.stores}
    for name in stores:
        if name not in known:
            raise UsageProblem(f"the snapshot has no store {name}", hint=f"{nearest(name, known)}stores: {', '.join(known)}")
    return replace(manifest, stores=tuple(known[name] for name in stores or known))


def _refuse_unfit(services: Services, manifest: Manifest, existing: Mapping[str, Topic]) -> None:
    """Refuse existing topics that cannot take the state."""
    settings = services.kafka.topics.settings(existing)
    for topic in (*(store.topic for store in manifest.stores), *manifest.repartitions):
        found = existing.get(topic.name)
        if found is None:
            continue
        if len(found.partitions) != topic.partitions:
            raise Refused(
                f"{topic.name} has {len(found.partitions)} partitions here, and the snapshot has {topic.partitions}",
                hint="restore it into another application with --application, then `kops state repartition` moves that",
            )
        if value_of(settings[topic.name], "message.timestamp.type") == "LogAppendTime":
            raise Refused(
                f"{topic.name} has message.timestamp.type=LogAppendTime: the broker would replace the timestamps, which are state",
                hint=f"set it to CreateTime: kops topics alter {topic.name} --config message.timestamp.type=CreateTime",
            )


def _restored_offsets(
    services: Services, manifest: Manifest, existing: Mapping[str, Topic]
) -> tuple[dict[TopicPartition, CommittedOffset], dict[TopicPartition, CommittedOffset]]:
    """Return what to commit, and what is committed now.

    Records in a repartition topic come from input after the snapshot, which is processed again: they are skipped.

    :raises Refused: when the input is not on this cluster, or ends before the offset
    """
    hint = "--no-offsets restores only the stores; set the offsets with `kops offsets reset` then"
    own = {topic.name: topic for topic in manifest.repartitions}
    inputs = services.kafka.topics.existing(manifest.inputs)
    for name, count in manifest.inputs.items():
        if name not in inputs or len(inputs[name].partitions) != count:
            what = f"has {len(inputs[name].partitions)} partitions here, and had {count}" if name in inputs else "does not exist here"
            raise Refused(f"the input topic {name} {what}", hint=hint, topic=name)
    here = [partition for partition in manifest.committed if partition.topic in inputs or partition.topic in existing]
    bounds = services.kafka.offsets.bounds(here)
    same_cluster = services.kafka.cluster().cluster_id == manifest.cluster_id
    commits = {}
    for partition, found in manifest.committed.items():
        if partition.topic in own:
            end = bounds[partition].log_end_offset if partition in bounds else 0
            commits[partition] = CommittedOffset(end, found.metadata)
            continue
        if partition not in bounds:
            continue
        bound = bounds[partition]
        if not bound.log_start_offset <= found.offset <= bound.log_end_offset:
            raise Refused(
                f"{partition} has offsets {bound.log_start_offset} to {bound.log_end_offset}, and the snapshot is of offset {found.offset}",
                hint=hint,
            )
        commits[partition] = found if same_cluster else CommittedOffset(found.offset, found.metadata)
    group = manifest.application
    return commits, services.kafka.groups.committed([group])[group]


def _why(manifest: Manifest, partition: TopicPartition) -> str:
    if partition.topic in {topic.name for topic in manifest.repartitions}:
        return "what is in it comes from input that is processed again"
    return f"where the application was at {manifest.taken}"


def _sent_again(
    manifest: Manifest, commits: Mapping[TopicPartition, CommittedOffset], prior: Mapping[TopicPartition, CommittedOffset]
) -> tuple[str, ...]:
    back = sum(max(0, prior[at].offset - to.offset) for at, to in commits.items() if at in prior and at.topic in manifest.inputs)
    if not back:
        return ()
    return (f"{back:,} records of the input are processed again, and what the application sends for them is sent again",)


def _local_state(manifest: Manifest, staged: Sequence[StagedStore]) -> tuple[str, ...]:
    """Return where local stores would not follow: a log that was emptied or recreated does not delete old keys."""
    return (delete_local_state(manifest.application),) if any(_fills_empty(found) for found in staged) else ()


def _fills_empty(found: StagedStore) -> bool:
    """Whether a changelog is new, or keys are written to a partition of it that has no records."""
    empty = {number for number, bound in found.bounds.items() if bound.empty}
    return len(empty) == len(found.bounds) or bool(empty & found.write.contents.keys())


def _elsewhere(services: Services, manifest: Manifest) -> tuple[str, ...]:
    if services.kafka.cluster().cluster_id == manifest.cluster_id:
        return ()
    return ("this is another cluster than the snapshot's: see that the input has the same records at the same offsets here",)


def _notes(manifest: Manifest, staged: Sequence[StagedStore]) -> tuple[str, ...]:
    return tuple(f"{found.store.name}: {counted(found.store.records, 'record')} in the snapshot of {manifest.taken}" for found in staged)


def _summary(path: str, original: Manifest, manifest: Manifest, staged: Sequence[StagedStore]) -> str:
    records = sum(found.write.records for found in staged)
    of = "" if original.application == manifest.application else f" of {original.application}"
    return f"restore the state of {manifest.application} from {path}{of}: append {counted(records, 'record')}"


@dataclass(frozen=True)
class StagedStore:
    """A store of the snapshot, and what its changelog lacks.

    :param bounds: of the changelog as it is; none when it does not exist
    """

    store: SnapshotStore
    bounds: Mapping[int, Bounds]
    stage: str
    staged: StagedPartitions | None

    @property
    def write(self) -> StoreWrite:
        """The write to plan; for a store with headers the whole store, as stored in the snapshot."""
        staged = self.staged
        contents = self.store.contents if staged is None else held_json(staged.contents)
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


def stage_stores(engine: Engine, folder: Path, original: Manifest, manifest: Manifest, existing: Mapping[str, Topic]) -> list[StagedStore]:
    """Check the files of every store, and stage what its changelog lacks.

    :param original: under the names that the stores had; ``manifest``: under those that they are to have
    :raises ConfigError: when files are not what was written
    """
    isolation = isolation_of(committed=manifest.exactly_once)
    done: list[StagedStore] = []
    try:
        for before, store in zip(original.stores, manifest.stores, strict=True):
            partitions = existing[store.topic.name].places if store.topic.name in existing else ()
            found = bounds_of_application(engine.services, partitions, isolation=isolation, writer=own_transactions(manifest.application))
            done.append(_stage(engine, store_folder(folder, before), store, {at.partition: bound for at, bound in found.items()}, manifest))
    except BaseException:
        drop_stage(*(staging.stage for staging in done if staging.staged is not None))
        raise
    return done


def _stage(engine: Engine, folder: Path, store: SnapshotStore, bounds: Mapping[int, Bounds], manifest: Manifest) -> StagedStore:
    from kops.spark.driver.failures import explained
    from kops.spark.reading.ranges import TopicRange
    from kops.spark.staging.stage import stage_view

    engine.services.progress.step(f"checking {store.name}: {counted(store.records, 'record')}")
    view = whole_view(engine, store, folder)
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


def _nothing_to_write(engine: Engine, store: SnapshotStore, bounds: Mapping[int, Bounds], changelog: TopicRange) -> StagedStore:
    """Return a store whose changelog holds the snapshot already: versions and headers can only be written into a new one.

    :raises Refused: when it holds anything else
    """
    from kops.spark.driver.failures import explained
    from kops.spark.reading.snapshot import snapshot_contents
    from kops.spark.staging.stage import StagedPartitions

    engine.services.progress.step(f"comparing {store.topic.name}")
    with explained(f"compare {store.topic.name}"):
        found = held_json(snapshot_contents(view_of(engine, store, changelog)))
    if found == store.contents:
        return StagedStore(store, bounds, "", StagedPartitions({}, {}))
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
    refuse_time_zero(engine.services, store.topic.name, earliest, exactly_once=manifest.exactly_once)
    return StagedStore(store, bounds, str(folder), None)
