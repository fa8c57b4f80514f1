"""Shared parts of the plans that change an application's state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace

from kops.core.models import CommittedOffset, TopicPartition
from kops.core.plan import Item, Plan, Severity
from kops.core.statefile import StateFile
from kops.formats.streams import offset_metadata
from kops.formats.streams.offset_metadata import OffsetMetadata
from kops.operations.engine.spark import Engine
from kops.operations.offsets.items import move_item
from kops.operations.state.arguments import StateArguments, StoreWrite
from kops.operations.state.completeness import still_open, uncovered_changelogs, uncovered_note
from kops.operations.state.computation import Computation
from kops.operations.state.guard import guarded
from kops.operations.state.internal_topics import TopicChange


def state_plan(
    engine: Engine,
    operation: str,
    arguments: StateArguments,
    items: Iterable[Item],
    *,
    summary: str,
    watched: Iterable[str],
    warnings: Iterable[str] = (),
    notes: Iterable[str] = (),
    confirm: str = "",
) -> Plan[StateArguments]:
    """Return the plan of a change of state, guarded by what the cluster shows now.

    :param watched: topics whose committed offsets must not move
    :param confirm: what the operator types before topics are recreated; empty: none is
    """
    services = engine.services
    plan = Plan(
        operation=operation,
        summary=summary,
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=tuple(items),
        severity=Severity.SEVERE if confirm else Severity.MODERATE,
        confirm=confirm,
        arguments=arguments,
        warnings=tuple(warnings),
        notes=tuple(notes),
    )
    return guarded(services, plan, watched)


def computed_arguments(
    engine: Engine, state_file: StateFile, done: Computation, stores: Mapping[str, StoreWrite], topics: Sequence[TopicChange] = ()
) -> StateArguments:
    """Return the arguments of a plan that writes computed stores, without the offsets that it commits."""
    return StateArguments(
        application=state_file.application,
        state_file=state_file.path,
        exactly_once=state_file.exactly_once,
        master=engine.master,
        topics=tuple(topics),
        stores=stores,
        facts={"archives": [asdict(share) for share in done.cut.archived]},
    )


def plan_computed(
    engine: Engine,
    operation: str,
    state_file: StateFile,
    done: Computation,
    *,
    stores: Mapping[str, StoreWrite],
    items: Sequence[Item],
    topics: Sequence[TopicChange] = (),
    summary: str,
    warnings: Sequence[str],
    wipes: Sequence[str],
    notes: Iterable[str],
    confirm: str = "",
) -> Plan[StateArguments]:
    """Return the plan that writes an application's own stores, and moves the application where ``--at`` says so.

    :param wipes: where local state has to be deleted, one sentence each; they are among the warnings
    :param notes: about the stores
    """
    cut = done.cut
    commits = _moved_offsets(engine, state_file, done)
    uncovered = uncovered_changelogs(engine.services, state_file)
    arguments = computed_arguments(engine, state_file, done, stores, topics).with_commits(commits, cut.committed)
    arguments = replace(arguments, open=tuple(still_open(done.computed, uncovered, wipes)))
    moves = [move_item(at, cut.committed.get(at), found, "the application resumes here") for at, found in sorted(commits.items())]
    own = [found.store for found in done.facts]
    return state_plan(
        engine,
        operation,
        arguments,
        (*items, *moves),
        summary=summary,
        watched={topic for store in own for topic in (store.repartition_topic, *(source.topic for source in store.inputs)) if topic},
        warnings=(*cut.notes, *warnings),
        notes=(*done.origins, *notes, *uncovered_note(state_file, uncovered)),
        confirm=confirm,
    )


def _moved_offsets(engine: Engine, state_file: StateFile, done: Computation) -> dict[TopicPartition, CommittedOffset]:
    """Return what to commit for the application, with the partition time that Kafka Streams would have stored."""
    from kops.spark.reading.ranges import TopicRange
    from kops.spark.stores.jobs import partition_times

    cut, commits = done.cut, {}
    for topic in sorted({partition.topic for partition in cut.moves}):
        found = next(found for found in done.facts if any(source.topic == topic for source in found.store.inputs))
        ranges = {p: bounds for p, bounds in cut.ranges(found, topic).items() if TopicPartition(topic, p) in cut.moves}
        store = replace(found.store, source=next(source for source in found.store.inputs if source.topic == topic))
        read = TopicRange(topic, ranges, read_committed=state_file.reads_committed)
        times = partition_times(engine.kafka(), read, state_file, store)
        for number in ranges:
            partition = TopicPartition(topic, number)
            metadata = offset_metadata.encode(OffsetMetadata(times[number])) if number in times else ""
            commits[partition] = CommittedOffset(cut.offsets[partition], metadata)
    return commits
