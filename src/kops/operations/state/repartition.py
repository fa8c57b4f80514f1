"""Plans to move an application to another number of partitions: its internal topics are recreated, and its state is written into them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kops.core.errors import ConfigError, Refused, UsageProblem
from kops.core.models import Bounds, Committed, NewTopic, TopicPartition, isolation_of, value_of
from kops.core.plan import Item, Plan
from kops.core.statefile import StateFile
from kops.core.statefile.models import SESSION, VERSIONED
from kops.core.streams.local_state import delete_local_state
from kops.core.topics.names import no_topics
from kops.operations.engine.spark import STAGES_KEPT_DAYS, Engine, drop_stage, new_stage, start_engine
from kops.operations.offsets.items import move_item
from kops.operations.protocol.journal import EntryStatus, Journal, crashed
from kops.operations.protocol.journal_actions import is_unfinished
from kops.operations.services import Services
from kops.operations.state.arguments import GROW, StateArguments, StoreWrite, arguments_of
from kops.operations.state.change import REPARTITION, STATE_CHANGE
from kops.operations.state.changelog_writes import refuse_time_zero
from kops.operations.state.internal_topics import TopicChange, refuse_unless_recreatable, topic_ids
from kops.operations.state.lost_records import losses_text
from kops.operations.state.plans import state_plan
from kops.operations.state.repartition_inputs import InputChoice, emissions_of, plan_inputs
from kops.operations.state.snapshot_topics import OwnTopics, StandingStill, own_topics, standing_still
from kops.operations.state.stored_keys import suffix_length

if TYPE_CHECKING:
    from kops.spark.stores.repartition import Repartitioned


def plan_repartition(
    services: Services, state_file: StateFile, partitions: int, choice: InputChoice, *, master: str | None = None
) -> Plan[StateArguments]:
    """Return the plan that moves the stores of a state file to another number of partitions.

    :raises Refused: when the application runs, has unprocessed records in a repartition topic, or keys are where no default
        partitioner puts them
    """
    for store in state_file.stores:
        if store.reuses_source:
            raise Refused(
                f"the changelog of store {store.name} is its input topic {store.changelog} itself",
                hint="produce the topic again with as many partitions as are needed, and reset the application",
            )
    unfinished = _unfinished(services, state_file.application, partitions)
    if unfinished is not None:
        return unfinished
    engine = start_engine(services, master)
    topics = own_topics(services, state_file.application, state_file)
    isolation = isolation_of(committed=state_file.exactly_once)
    still = standing_still(services, topics, isolation=isolation)
    inputs = plan_inputs(services, state_file, partitions, choice, still.committed)
    changes, repartitions = _changes(services, state_file, topics, partitions)
    if not changes:
        raise UsageProblem(f"the internal topics of {state_file.application} have {partitions} partitions already", hint="nothing to do")
    refuse_unless_recreatable(services, changes)
    moved = stage_changelogs(engine, state_file, changes, still.bounds, partitions)
    commits = dict(inputs.commits)
    for name in repartitions:
        begin = Committed(0, emissions_of(found for at, found in still.committed.items() if at.topic == name))
        commits |= {TopicPartition(name, number): begin for number in range(partitions)}
    moves = [
        move_item(at, None if at.topic in repartitions else still.committed.get(at), found, _why(at, repartitions))
        for at, found in sorted(commits.items())
    ]
    grown = [
        Item(f"{GROW} {name}", GROW, len(services.kafka.topics.existing([name])[name].partitions), total, "cannot be undone")
        for name, total in inputs.grow.items()
    ]
    application = state_file.application
    arguments = StateArguments(
        application=application,
        state_file=state_file.path,
        exactly_once=state_file.exactly_once,
        master=engine.master,
        topics=tuple(changes),
        repartitions=tuple(sorted(repartitions)),
        stores={found.store.name: found.write for found in moved},
        committed_before=dict(sorted(still.committed.items())),
        commit={at: found for (at, found), item in zip(sorted(commits.items()), moves, strict=True) if item.changes},
        grow=inputs.grow,
    )
    recreated = [
        change.item(
            "what is in it was processed"
            if change.name in repartitions
            else f"its records are kept, and written to {partitions} partitions"
        )
        for change in changes
    ]
    return state_plan(
        engine,
        REPARTITION,
        arguments,
        (*recreated, *(item for found in moved for item in found.items()), *grown, *moves),
        summary=f"move {application} to {partitions} partitions, with the state of {', '.join(found.store.name for found in moved)}",
        watched={at.topic for at in (*commits, *still.committed)},
        warnings=(
            *_losses(state_file, topics, still),
            *inputs.warnings,
            *_left_alone(topics, changes, partitions),
            delete_local_state(application),
        ),
        notes=(f"{found.store.name}: {found.done.keys:,} keys" for found in moved),
        confirm=application,
    )


def forget_kept(journal: Journal, application: str) -> list[str]:
    """Delete what is kept of an application's moves, which cannot be undone then. Return what was deleted.

    :raises Refused: when nothing is kept, or a move was not finished
    """
    readable = journal.entries(lambda _damaged: None)  # what an unreadable one keeps is not deleted
    entries = [entry for entry in readable if entry.plan.operation == REPARTITION and arguments_of(entry.plan).application == application]
    kept = []
    for entry in entries:
        if entry.status is not EntryStatus.DONE and not (entry.undone_by or entry.finished_by):
            raise Refused(f"{entry.id} was not finished", hint=f"`kops journal finish {entry.id}` does what is left of it")
        kept += [store.prior_stage for store in arguments_of(entry.plan).stores.values() if Path(store.prior_stage).is_dir()]
    if not kept:
        raise Refused(f"nothing is kept of {application}", hint="`kops journal list` shows what was done")
    drop_stage(*kept)
    return kept


def _losses(state_file: StateFile, topics: OwnTopics, still: StandingStill) -> list[str]:
    """Return what cannot move: keys that the changelogs have lost, of which there is no trace once these are recreated.

    Of a store that the state file does not describe, the settings alone show whether it has windows.
    """
    windowed = {store.changelog: store.window is not None for store in state_file.stores}
    texts = []
    for topic in topics.changelogs.values():
        starts = {at.partition: bound.log_start_offset for at, bound in still.bounds.items() if at.topic == topic.name}
        policy = value_of(topics.settings[topic.name], "cleanup.policy", "delete")
        texts.append(losses_text(topic.name, starts, policy, windowed=windowed.get(topic.name, True)))
    return [f"{text}, and do not move; `kops state verify` compares the state with its input" for text in texts if text]


def _unfinished(services: Services, application: str, partitions: int) -> Plan[StateArguments] | None:
    """Return the plan for what is left of an earlier move to this number of partitions: the old changelogs may be gone, but are staged."""
    cluster_id = services.kafka.cluster().cluster_id
    for entry in Journal(services.directories.state / "journal").entries(lambda _: None, mentioning=REPARTITION):
        if (entry.plan.operation, entry.plan.cluster_id) != (REPARTITION, cluster_id):
            continue
        plan = STATE_CHANGE.typed(entry.plan)
        if plan.arguments.application != application:
            continue
        if not is_unfinished(entry) or (entry.status is EntryStatus.OPEN and not crashed(entry)):
            return None  # the newest counts
        sizes = {change.after.partitions or 0 for change in plan.arguments.topics if change.after}
        if sizes != {partitions}:
            hint = f"`kops journal finish {entry.id}` does what is left of it, `kops undo {entry.id}` undoes it"
            raise Refused(f"{entry.id} moved {application} to {max(sizes, default=0)} partitions, and was not finished", hint=hint)
        left = STATE_CHANGE.resume(services, plan)
        return replace(left, notes=(f"this does what is left of {entry.id}", *left.notes))
    return None


def _changes(services: Services, state_file: StateFile, topics: OwnTopics, partitions: int) -> tuple[list[TopicChange], set[str]]:
    """Return the internal topics that are recreated, and which of them are repartition topics."""
    there = {topic.name: topic for topic in (*topics.changelogs.values(), *topics.repartitions)}
    wanted = [store.changelog for store in movables(state_file)]
    repartitions = [store.repartition_topic for store in state_file.stores if store.repartition_topic]
    for name in (*wanted, *repartitions):
        if name not in there:
            raise Refused(no_topics([name]), hint="Kafka Streams makes it when the application starts; correct the state file")
    old = [there[name] for name in dict.fromkeys((*wanted, *repartitions)) if there[name].partitions != partitions]
    changes = [TopicChange(topic, replace(topic, partitions=partitions)) for topic in old]
    ids = topic_ids(services, changes)
    return [replace(change, topic_id=ids[change.name]) for change in changes], {topic.name for topic in old if topic.name in repartitions}


def _left_alone(topics: OwnTopics, changes: Sequence[TopicChange], partitions: int) -> list[str]:
    touched = {change.name for change in changes}
    there: list[NewTopic] = [*topics.changelogs.values(), *topics.repartitions]
    left = [topic for topic in there if topic.name not in touched and topic.partitions != partitions]
    return [
        f"{topic.name} is of no store of the state file and keeps its {topic.partitions} partitions: right only in another sub-topology"
        for topic in left
    ]


def _why(partition: TopicPartition, repartitions: set[str]) -> str:
    return "the topic is recreated" if partition.topic in repartitions else "where it begins"


BUFFER_SUFFIX, SESSION_SUFFIX = 8, 16
"""Bytes after the application's key in a buffer of suppress: a window's start, or a session's bounds
(``TimeWindowedSerializer``, ``SessionWindowedSerializer``).
"""


@dataclass(frozen=True)
class Movable:
    """A changelog that can be moved.

    :param suffix: number of bytes in its keys after the application's own key
    """

    name: str
    changelog: str
    suffix: int
    is_versioned: bool = False


def movables(state_file: StateFile) -> Iterator[Movable]:
    """Yield the changelogs of a state file: its stores', and those of the buffers of ``suppress()`` behind them."""
    for store in state_file.stores:
        yield Movable(store.name, store.changelog, suffix_length(store.type), store.type == VERSIONED)
        if store.window is not None and store.window.buffer is not None:
            suffix = SESSION_SUFFIX if store.window.kind == SESSION else BUFFER_SUFFIX
            yield Movable(f"{store.name} (suppress)", store.window.buffer, suffix)


@dataclass(frozen=True)
class Moved:
    store: Movable
    change: TopicChange
    stage: str
    prior_stage: str
    done: Repartitioned

    @property
    def write(self) -> StoreWrite:
        return StoreWrite(
            changelog=self.store.changelog,
            stage=self.stage,
            contents={number: asdict(found) for number, found in self.done.after.items()},
            in_order=self.store.is_versioned,
            with_headers=bool(self.done.with_headers),
            prior_stage=self.prior_stage,
            prior_contents={number: asdict(found) for number, found in self.done.before.items()},
        )

    def items(self) -> list[Item]:
        """Return one item per new partition that gets records."""
        return [
            Item(f"{self.store.changelog}:{number}", "append", 0, found.records, f"{found.records:,} of {self.done.keys:,} keys")
            for number, found in sorted(self.done.after.items())
        ]


def stage_changelogs(
    engine: Engine, state_file: StateFile, changes: Sequence[TopicChange], bounds: Mapping[TopicPartition, Bounds], partitions: int
) -> list[Moved]:
    """Stage every changelog that is recreated.

    :raises Refused: when its keys are where no default partitioner puts them
    """
    by_topic = {change.name: change for change in changes}
    done: list[Moved] = []
    try:
        for store in movables(state_file):
            if store.changelog in by_topic:
                here = {at.partition: bound for at, bound in bounds.items() if at.topic == store.changelog}
                done.append(_stage(engine, state_file, store, by_topic[store.changelog], here, partitions=partitions))
                _refuse_unmovable(engine, state_file, done[-1])
    except BaseException:
        drop_stage(*(stage for found in done for stage in (found.stage, found.prior_stage)))
        raise
    return done


def _stage(
    engine: Engine, state_file: StateFile, store: Movable, change: TopicChange, bounds: Mapping[int, Bounds], *, partitions: int
) -> Moved:
    from kops.spark.driver.failures import explained
    from kops.spark.reading.ranges import TopicRange
    from kops.spark.stores.repartition import stage_repartitioned

    ranges = {number: (bound.log_start_offset, bound.log_end_offset) for number, bound in bounds.items()}
    changelog = TopicRange(store.changelog, ranges, read_committed=state_file.exactly_once, headers=True)
    stage, prior = new_stage(engine.services, state_file.application), _kept_stage(engine.services, state_file.application)
    engine.services.progress.step(f"reading {changelog.records:,} records of {store.changelog}")
    with explained(f"read {store.changelog}"), engine.reading(changelog):
        done = stage_repartitioned(
            engine.kafka(), changelog, (stage, prior), partitions=partitions, suffix=store.suffix, versioned=store.is_versioned
        )
    return Moved(store, change, stage, prior, done)


def _refuse_unmovable(engine: Engine, state_file: StateFile, found: Moved) -> None:
    if found.done.misplaced:
        raise Refused(
            f"store {found.store.name}: {found.done.misplaced:,} of {found.done.keys:,} keys are not where a default partitioner puts them",
            hint="its input uses a custom partitioner, or the state is wrong: check with `kops state verify`",
        )
    earliest = [content.earliest for content in found.done.after.values() if content.records]
    exactly_once, headers = state_file.exactly_once, bool(found.done.with_headers)
    refuse_time_zero(engine.services, found.store.changelog, earliest, exactly_once=exactly_once, headers=headers)


def _kept_stage(services: Services, application: str) -> str:
    """Return the path of a stage that is kept, however old, until the operator confirms that it is no longer needed."""
    place = new_stage(services, application)
    if "://" in place:
        return f"{place}-kept"
    stage = Path(place)
    folder = stage.parent.with_name("kept")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    _forget_unused(services, folder)
    return str(folder / stage.name)


def _forget_unused(services: Services, folder: Path) -> None:
    """Delete what was staged for old plans that were not carried out."""
    limit = time.time() - STAGES_KEPT_DAYS * 86_400
    old = [stage for stage in folder.iterdir() if stage.stat().st_mtime < limit]
    if not old:
        return
    damaged: list[ConfigError] = []
    entries = list(Journal(services.directories.state / "journal").entries(damaged.append))
    if damaged:
        return  # they may need what looks unused
    used = {store.get("prior_stage") for entry in entries for store in dict(entry.plan.arguments.get("stores") or {}).values()}
    drop_stage(*(str(stage) for stage in old if str(stage) not in used))
