"""Plans to restore a snapshot: into the application that it was taken of or another one, on this cluster or another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kops.core.errors import Refused, UsageProblem
from kops.core.models import Committed, NewTopic, Topic, TopicPartition
from kops.core.plan import Plan
from kops.core.statefile.fields import nearest
from kops.core.streams.local_state import delete_local_state
from kops.operations.engine.spark import start_engine
from kops.operations.offsets.items import move_item, offset_of
from kops.operations.services import Services
from kops.operations.state.arguments import StateArguments
from kops.operations.state.change import RESTORE
from kops.operations.state.guard import guarded
from kops.operations.state.input_offsets import refuse_alive
from kops.operations.state.internal_topics import TopicChange
from kops.operations.state.restore_stage import SnapshotFiles, StagedStore, stage_stores
from kops.operations.state.snapshot_manifest import Manifest, read_manifest
from kops.operations.topics.plan import prepare_creation


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
    group = services.kafka.groups.describe_or_errors([manifest.application])[manifest.application]
    refuse_alive(group if not isinstance(group, Exception) else None)
    existing = services.kafka.topics.existing([*(store.topic.name for store in manifest.stores), *(t.name for t in manifest.repartitions)])
    _refuse_unfit(services, manifest, existing)
    absent = [topic for topic in (*(store.topic for store in manifest.stores), *manifest.repartitions) if topic.name not in existing]
    creation = prepare_creation(services, _on_this_cluster(services, manifest, absent))
    commits, prior = _restored_offsets(services, manifest, existing) if offsets and not stores else ({}, {})
    staged = stage_stores(engine, SnapshotFiles(folder, original), manifest, existing)
    changes = [TopicChange(None, topic) for topic in creation.topics]
    moves = [move_item(partition, prior.get(partition), found, _why(manifest, partition)) for partition, found in sorted(commits.items())]
    items = [
        *(change.item("it does not exist here") for change in changes),
        *(item for found in staged for item in found.items()),
        *moves,
    ]
    commit = {at: found for at, found in commits.items() if offset_of(prior.get(at)) != found.offset}
    wipe = _local_state(manifest, staged)
    arguments = StateArguments(
        application=manifest.application,
        exactly_once=manifest.exactly_once,
        master=engine.master,
        topics=tuple(changes),
        stores={found.store.name: found.write for found in staged},
        commit=commit,
        prior={at: prior.get(at) for at in commit},
        open=wipe,
        facts={"snapshot": str(folder), "taken_of": {"cluster_id": original.cluster_id, "application": original.application}},
    )
    plan = Plan(
        operation=RESTORE,
        summary=_summary(path, original, manifest, staged),
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=tuple(items),
        arguments=arguments,
        warnings=(
            *(f"when the snapshot was taken, {loss}" for loss in original.losses),
            *_sent_again(manifest, commits, prior),
            *wipe,
            *_elsewhere(services, manifest),
        ),
        notes=_notes(manifest, staged),
    )
    return guarded(services, plan, {partition.topic for partition in manifest.committed})


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
        kind = settings[topic.name].get("message.timestamp.type")
        if kind is not None and kind.value == "LogAppendTime":
            raise Refused(
                f"{topic.name} has message.timestamp.type=LogAppendTime: the broker would replace the timestamps, which are state",
                hint=f"set it to CreateTime: kops topics alter {topic.name} --config message.timestamp.type=CreateTime",
            )


def _on_this_cluster(services: Services, manifest: Manifest, topics: Sequence[NewTopic]) -> list[NewTopic]:
    """Return topics to be created; on another cluster with at most as many replicas as it has brokers."""
    if services.kafka.cluster().cluster_id == manifest.cluster_id:
        return list(topics)
    most = len(services.kafka.cluster().brokers)
    return [replace(topic, replication_factor=min(topic.replication_factor or 1, most)) for topic in topics]


def _restored_offsets(
    services: Services, manifest: Manifest, existing: Mapping[str, Topic]
) -> tuple[dict[TopicPartition, Committed], dict[TopicPartition, Committed]]:
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
            commits[partition] = Committed(end, found.metadata)
            continue
        if partition not in bounds:
            continue
        bound = bounds[partition]
        if not bound.log_start_offset <= found.offset <= bound.log_end_offset:
            raise Refused(
                f"{partition} has offsets {bound.log_start_offset} to {bound.log_end_offset}, and the snapshot is of offset {found.offset}",
                hint=hint,
            )
        commits[partition] = found if same_cluster else Committed(found.offset, found.metadata)
    group = manifest.application
    return commits, services.kafka.groups.committed([group])[group]


def _why(manifest: Manifest, partition: TopicPartition) -> str:
    if partition.topic in {topic.name for topic in manifest.repartitions}:
        return "what is in it comes from input that is processed again"
    return f"where the application was at {manifest.taken}"


def _sent_again(
    manifest: Manifest, commits: Mapping[TopicPartition, Committed], prior: Mapping[TopicPartition, Committed]
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
    empty = {number for number, bound in found.bounds.items() if bound.log_start_offset == bound.log_end_offset}
    return len(empty) == len(found.bounds) or bool(empty & found.write.contents.keys())


def _elsewhere(services: Services, manifest: Manifest) -> tuple[str, ...]:
    if services.kafka.cluster().cluster_id == manifest.cluster_id:
        return ()
    return ("this is another cluster than the snapshot's: see that the input has the same records at the same offsets here",)


def _notes(manifest: Manifest, staged: Sequence[StagedStore]) -> tuple[str, ...]:
    return tuple(f"{found.store.name}: {found.store.records:,} records in the snapshot of {manifest.taken}" for found in staged)


def _summary(path: str, original: Manifest, manifest: Manifest, staged: Sequence[StagedStore]) -> str:
    records = sum(found.write.records for found in staged)
    of = "" if original.application == manifest.application else f" of {original.application}"
    return f"restore the state of {manifest.application} from {path}{of}: append {records:,} records"
