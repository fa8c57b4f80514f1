"""Plans to move an application to another number of partitions: its internal topics are recreated, and its state is written into them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kops.core.errors import Refused, UsageProblem
from kops.core.findings import counted
from kops.core.models import CommittedOffset, NewTopic, TopicPartition, isolation_of, value_of
from kops.core.plan import Item, Plan
from kops.core.statefile import StateFile
from kops.core.streams.local_state import delete_local_state
from kops.core.streams.lost_topics import NOT_STARTED
from kops.core.topics.names import no_topics_text
from kops.operations.engine.spark import drop_stage
from kops.operations.offsets.items import move_item
from kops.operations.protocol.journal import EntryStatus, Journal, crashed
from kops.operations.protocol.journal_actions import is_unfinished
from kops.operations.services import Services
from kops.operations.state.arguments import GROW, StateArguments, arguments_of
from kops.operations.state.change import REPARTITION, STATE_CHANGE
from kops.operations.state.internal_topics import TopicChange, refuse_unless_recreatable, topic_ids
from kops.operations.state.lost_records import losses_text
from kops.operations.state.plans import state_plan
from kops.operations.state.recipe import Recipe
from kops.operations.state.repartition_inputs import InputChoice, emissions_of, plan_inputs
from kops.operations.state.repartition_stages import movables, stage_changelogs
from kops.operations.state.snapshot_topics import OwnTopics, StoppedApplication, own_topics, stopped_application


def plan_repartition(
    services: Services,
    state_file: StateFile,
    partitions: int,
    choice: InputChoice,
    *,
    master: str | None = None,
    recipe: Recipe,
) -> Plan[StateArguments]:
    """Return the plan that moves the stores of a state file to another number of partitions.

    :param recipe: how the stores are computed, which may show whether what is moved is right
    :raises Refused: when the application runs, has unprocessed records in a repartition topic, or keys are where no default
        partitioner puts them; or the program computes something else
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
    engine = recipe.engine(services, master)
    topics = own_topics(services, state_file.application, state_file)
    isolation = isolation_of(committed=state_file.exactly_once)
    still = stopped_application(services, topics, isolation=isolation)
    inputs = plan_inputs(services, state_file, partitions, choice, keyed=recipe.keyed_inputs(state_file), committed=still.committed)
    recipe.refuse_move(engine, inputs, partitions)
    changes, repartitions = _changes(services, state_file, topics, partitions, recipe.repartition_topics(state_file))
    recipe.refuse_partly_moved(state_file, {change.name for change in changes}, partitions)
    if not changes:
        raise UsageProblem(
            f"the internal topics of {state_file.application} have {counted(partitions, 'partition')} already", hint="nothing to do"
        )
    refuse_unless_recreatable(services, changes)
    moved = stage_changelogs(engine, state_file, changes, still.bounds, partitions, why_misplaced=recipe.why_misplaced)
    warnings, notes = recipe.check_moved(engine, state_file, moved, still.committed, partitions=partitions, grown=inputs.grow)
    commits = dict(inputs.commits)
    for name in repartitions:
        begin = CommittedOffset(0, emissions_of(found for at, found in still.committed.items() if at.topic == name))
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
            else f"its records are kept, and written to {counted(partitions, 'partition')}"
        )
        for change in changes
    ]
    stores = ", ".join(found.store.name for found in moved)
    return state_plan(
        engine,
        REPARTITION,
        arguments,
        (*recreated, *(item for found in moved for item in found.items()), *grown, *moves),
        summary=f"move {application} to {counted(partitions, 'partition')}, with the state of {stores}",
        watched={at.topic for at in (*commits, *still.committed)},
        warnings=(
            *warnings,
            *_losses(state_file, topics, still),
            *inputs.warnings,
            *_left_alone(state_file, topics, changes, partitions),
            delete_local_state(application),
        ),
        notes=notes,
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


def _losses(state_file: StateFile, topics: OwnTopics, still: StoppedApplication) -> list[str]:
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


def _changes(
    services: Services, state_file: StateFile, topics: OwnTopics, partitions: int, repartitions: Sequence[str]
) -> tuple[list[TopicChange], set[str]]:
    """Return the internal topics that are recreated, and which of them are repartition topics."""
    there = {topic.name: topic for topic in (*topics.changelogs.values(), *topics.repartitions)}
    wanted = [store.changelog for store in movables(state_file)]
    for name in (*wanted, *repartitions):
        if name not in there:
            raise Refused(no_topics_text([name]), hint=f"`kops state rebuild` says how to recreate it; {NOT_STARTED}")
    old = [there[name] for name in dict.fromkeys((*wanted, *repartitions)) if there[name].partitions != partitions]
    changes = [TopicChange(topic, replace(topic, partitions=partitions)) for topic in old]
    ids = topic_ids(services, changes)
    return [replace(change, topic_id=ids[change.name]) for change in changes], {topic.name for topic in old if topic.name in repartitions}


def _left_alone(state_file: StateFile, topics: OwnTopics, changes: Sequence[TopicChange], partitions: int) -> list[str]:
    touched = {change.name for change in changes}
    there: list[NewTopic] = [*topics.changelogs.values(), *topics.repartitions]
    left = [topic for topic in there if topic.name not in touched and topic.partitions != partitions]
    return [
        f"{topic.name} is of no store of {state_file.path} and keeps its {topic.partitions} partitions: right only in another sub-topology"
        for topic in left
    ]


def _why(partition: TopicPartition, repartitions: set[str]) -> str:
    return "the topic is recreated" if partition.topic in repartitions else "where it begins"
