"""Plans to rebuild: append to the changelogs what they lack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from kops.core.errors import Refused
from kops.core.models import Committed, TopicPartition
from kops.core.plan import Item, Plan
from kops.core.statefile import StateFile
from kops.core.statefile.models import VERSIONED
from kops.core.times import to_milliseconds
from kops.formats.streams import offset_metadata
from kops.formats.streams.offset_metadata import OffsetMetadata
from kops.operations.engine.spark import Engine, drop_stage, start_engine
from kops.operations.services import Services
from kops.operations.state.arguments import StateArguments, StoreWrite
from kops.operations.state.change import REBUILD
from kops.operations.state.changelog_writes import refuse_time_zero
from kops.operations.state.completeness import stale_local_state, still_open, uncovered_changelogs, uncovered_note
from kops.operations.state.computation import ComputeOptions, compute_all
from kops.operations.state.compute import Computed
from kops.operations.state.facts import StoreFacts, refuse_timestamps
from kops.operations.state.guard import guarded
from kops.operations.state.input_offsets import InputOffsets
from kops.operations.state.judgement import question_of
from kops.operations.state.windows import counted, emitted_again, fading

ACTIONS = ("added", "changed", "removed", "erased")
_NAMED = 3


def plan_rebuild(services: Services, state_file: StateFile, options: ComputeOptions) -> Plan[StateArguments]:
    """Compute every store, stage what its changelog lacks, and return the plan to append it.

    :param options: if ``at`` is the end, or a time, the application is moved there
    :raises Refused: with the reason, when a store must not be rebuilt
    """
    engine = start_engine(services, options.master)
    facts, cut, computed = compute_all(services, state_file, engine, options, must_be_empty=True)
    _refuse_versions(computed)
    now_ms = to_milliseconds(services.now())
    for found in computed:
        for content in found.contents.values():
            refuse_timestamps(found.facts, content.earliest, content.latest, now_ms)
            refuse_time_zero(services, found.facts.store.changelog, [content.earliest], exactly_once=state_file.exactly_once)
    commits = moved_offsets(engine, state_file, facts, cut)
    uncovered, wipes = uncovered_changelogs(services, state_file), stale_local_state(state_file.application, computed)
    items = [item for found in computed for item in append_items(found)] + move_items(cut, commits)
    arguments = StateArguments(
        application=state_file.application,
        state_file=state_file.path,
        exactly_once=state_file.exactly_once,
        master=engine.master,
        stores={found.facts.store.name: store_write(found) for found in computed if not found.facts.store.reuses_source},
        commit=dict(commits),
        prior={partition: cut.committed.get(partition) for partition in commits},
        open=tuple(still_open(computed, uncovered, wipes)),
        question=question_of(computed),
        facts={"archives": cut.archives_json},
    )
    plan = Plan(
        operation=REBUILD,
        summary=_summary(state_file, computed),
        cluster_id=services.kafka.cluster().cluster_id,
        context=services.connection.label,
        items=tuple(items),
        arguments=arguments,
        warnings=(*cut.notes, *wipes, *_of_windows(computed, is_moved=bool(commits), now_ms=now_ms)),
        notes=(*cut.origins, *(note for found in computed for note in _notes(found)), *uncovered_note(state_file, uncovered)),
    )
    return guarded(services, plan, watched_topics(facts))


def _refuse_versions(computed: Sequence[Computed]) -> None:
    """Refuse to append to the changelog of a versioned store: each of its records is a version, and stays one."""
    for found in computed:
        if found.facts.store.type == VERSIONED and found.differing:
            for done in computed:
                drop_stage(done.stage)
            raise Refused(
                f"store {found.facts.store.name} is versioned and differs in {found.differing:,} versions: its history cannot be unwritten",
                hint="--write replace recreates its changelog",
            )


def _of_windows(computed: Sequence[Computed], *, is_moved: bool, now_ms: int) -> list[str]:
    said = []
    for found in computed:
        store = found.facts.store
        if is_moved:
            said += emitted_again(store)
        if found.must_write and found.contents:
            said += fading(store, found.facts.settings, min(content.earliest for content in found.contents.values()), now_ms)
    return said


def _notes(found: Computed) -> list[str]:
    if found.exactness.reasons or found.proof is None:
        return [found.summary, *found.warnings]
    return [f"{found.facts.store.name}: {found.evidence}", *found.warnings]


def append_items(found: Computed) -> list[Item]:
    """Return one item per changelog partition. Tombstones alone that no local store needs are not a reason to write."""
    items = []
    for number, bounds in sorted(found.facts.changelog_bounds.items()):
        target, end = f"{found.facts.store.changelog}:{number}", bounds.log_end_offset
        content, actions = found.contents.get(number), found.actions.get(number, {})
        if content is None or not found.must_write:
            reason = "the topic is the changelog itself" if found.facts.store.reuses_source else "up to date"
            items.append(Item(target, "none", end, end, reason))
            continue
        counts = ", ".join(f"{actions[name]:,} {name}" for name in ACTIONS if actions.get(name))
        items.append(Item(target, "append", end, end + content.records, f"{counts} (exactness {found.grade})"))
    return items


def move_items(cut: InputOffsets, commits: Mapping[TopicPartition, Committed]) -> list[Item]:
    items = []
    for partition, committed in sorted(commits.items()):
        before = cut.committed.get(partition)
        action = "move" if before else "commit"
        items.append(Item(str(partition), action, before.offset if before else None, committed.offset, "the application resumes here"))
    return items


def moved_offsets(engine: Engine, state_file: StateFile, facts: Sequence[StoreFacts], cut: InputOffsets) -> dict[TopicPartition, Committed]:
    """Return what to commit for the application, with the partition time that Kafka Streams would have stored."""
    from kops.spark.reading.ranges import TopicRange
    from kops.spark.stores.jobs import partition_times

    commits = {}
    for topic in sorted({partition.topic for partition in cut.moves}):
        found = next(found for found in facts if any(source.topic == topic for source in found.store.inputs))
        ranges = {p: bounds for p, bounds in cut.ranges(found, topic).items() if TopicPartition(topic, p) in cut.moves}
        store = replace(found.store, source=next(source for source in found.store.inputs if source.topic == topic))
        read = TopicRange(topic, ranges, read_committed=state_file.reads_committed)
        times = partition_times(engine.kafka(), read, state_file, store)
        for number in ranges:
            partition = TopicPartition(topic, number)
            metadata = offset_metadata.encode(OffsetMetadata(times[number])) if number in times else ""
            commits[partition] = Committed(cut.offsets[partition], metadata)
    return commits


def store_write(found: Computed) -> StoreWrite:
    """Return what is written for a store. A versioned store's records are written in timestamp order: it drops records that come late."""
    return StoreWrite(
        changelog=found.facts.store.changelog,
        stage=found.stage,
        contents={number: asdict(content) for number, content in found.contents.items()} if found.must_write else {},
        in_order=found.facts.store.type == VERSIONED,
        facts={
            "exactness": found.judgement,
            "read": found.counts.read,
            "keys": found.counts.keys,
            "dropped": found.counts.dropped,
            **counted(found.counts.noted),
            "actions": {str(number): dict(actions) for number, actions in found.actions.items()},
        },
    )


def watched_topics(facts: Sequence[StoreFacts]) -> list[str]:
    """Return the topics whose committed offsets must not move."""
    stores = [found.store for found in facts]
    return sorted(
        {source.topic for store in stores for source in store.inputs}
        | {store.repartition_topic for store in stores if store.repartition_topic}
    )


def _summary(state_file: StateFile, computed: Sequence[Computed]) -> str:
    records = sum(content.records for found in computed if found.must_write for content in found.contents.values())
    stores = [f"{found.facts.store.name} {found.counts.keys:,} keys, exactness {found.grade}" for found in computed[:_NAMED]]
    more = f"; and {len(computed) - _NAMED} more stores" if len(computed) > _NAMED else ""
    what = f"({'; '.join(stores)}{more})"
    if not records:
        return f"the state of {state_file.application} {what} is up to date"
    return f"rebuild the state of {state_file.application} {what}: append {records:,} records"
