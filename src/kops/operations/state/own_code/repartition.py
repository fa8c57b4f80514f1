"""A move to another number of partitions, judged by the application's own program.

What is moved is what the changelogs hold. The program is run over the input that was processed, put where the default partitioner puts it
among the new partitions: where its stores then hold the same in the same partitions, the moved state is the one that the program has.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kops.core.errors import Refused, StateMoved
from kops.core.findings import counted
from kops.core.models import CommittedOffset, TopicPartition
from kops.core.statefile import StateFile
from kops.core.streams import capture as captured
from kops.core.streams.capture import Capture
from kops.core.streams.foreign_keys import answer_topics
from kops.core.streams.program import repartition_topics, tasks_of
from kops.core.streams.program_doubts import doubts_about
from kops.operations.engine.spark import Engine
from kops.operations.services import Services
from kops.operations.state.facts import StoreFacts, read_facts
from kops.operations.state.input_offsets import COMMITTED, InputOffsets, find_cut
from kops.operations.state.own_code.memory import estimate, memory_for
from kops.operations.state.own_code.start import ProgramRun, folder_for, jobs_of, started_ahead
from kops.operations.state.own_code.tasks import Layout, ProgramTasks
from kops.operations.state.rules.program import keys_text

if TYPE_CHECKING:
    from kops.spark.programs.models import ProgramTask
    from kops.spark.programs.relaid import RelaidCheck

_WINDOWS = (captured.WINDOW, captured.TIMESTAMPED_WINDOW)
_BY_FILE = "a state file moves what the changelogs hold without the program: `kops state init APPLICATION` writes a template"


@dataclass(frozen=True)
class StagedStore:
    """What is staged of a store for its new partitions.

    :param snapshot: in the format of a snapshot, with headers
    """

    stage: str
    snapshot: bool


def refuse_unmovable(capture: Capture, unfit: Sequence[str], partitions: int) -> None:
    """Refuse a program of which a store cannot be moved, or a repartition topic would not follow.

    :param unfit: why stores of the program are left out of its state file, one sentence each
    """
    if unfit:
        raise Refused(f"all stores of {capture.application} have to move, and {unfit[0]}", hint=_BY_FILE)
    if answer_topics(capture):
        raise Refused(f"{capture.application} has foreign-key joins, whose stores have keys of both sides", hint=_BY_FILE)
    for store in capture.stores:
        reason = _reason_against(store)
        if reason:
            raise Refused(f"store {store.name} {reason}", hint=_BY_FILE)
    for sink in capture.custom_partitioners:
        raise Refused(f"{sink.topic} has a partitioner of the program's own, {sink.partitioner}", hint=_BY_FILE)
    for each in tasks_of(capture).values():
        for topic in each.repartition_topics:
            if topic.partitions not in (None, partitions):
                raise Refused(
                    f"the program gives {topic.name} {topic.partitions} partitions, not {partitions}",
                    hint=f"say withNumberOfPartitions({partitions}) in the program, or nothing, and capture it again",
                )


def _reason_against(store: captured.Store) -> str:
    """Return why a store cannot be compared, and moved; empty when it can."""
    if store.kind is None or store.has_own_class:
        return "is of a class of the program itself"
    if store.kind not in captured.BY_KEY:
        return f"is of the kind {store.kind}, and only key-value stores, windows and sessions move so"
    if store.kind in _WINDOWS and store.retain_duplicates is not False:
        return "is a side of a stream-stream join: its keys end with a number that each instance counts from 0"
    return ""


def why_misplaced(capture: Capture, store: str) -> str:
    """Return what can have put keys of a store elsewhere than its default partitioner, which is the only one that its program has."""
    found = capture.subtopology_of(store)
    if found is None:
        raise ValueError(store)
    topics = " and ".join(found.source_topics or ())
    own = [node for node in capture.nodes if isinstance(node, captured.Processor) and node.program_class and store in node.stores]
    whys = [
        *([f"producers of {topics} chose partitions otherwise or knew of fewer"] if topics else []),
        *(f"{node.name} ({node.processor}) keeps other keys than its records have" for node in own),
        "the state is wrong",
    ]
    return f"the program has no partitioner of its own, so {', or '.join(whys)}: `kops state verify CAPTURE` compares it with the input"


def refuse_followers(capture: Capture, kept: Collection[str], partitions: int) -> None:
    """Refuse to leave inputs as they are whose repartition topics follow them."""
    for each in tasks_of(capture).values():
        here = sorted({*kept} & {*(each.source_topics or ())})
        for topic in (topic for other in tasks_of(capture).values() for topic in other.repartition_topics):
            if here and topic.name in (each.sink_topics or ()) and topic.partitions is None:
                raise Refused(
                    f"{topic.name} gets as many partitions as {here[0]}, which is left as it is",
                    hint=f"say withNumberOfPartitions({partitions}) in the program, and capture it again; or --grow-inputs",
                )


def keyed_inputs(capture: Capture, state_file: StateFile) -> dict[str, bool]:
    """Return the topics that feed stores, and whether tasks with stores read them: then their keys decide who has their state."""
    holding = {found.number for store in capture.stores if (found := capture.subtopology_of(store.name))}
    read = {topic for number in holding for topic in tasks_of(capture)[number].source_topics or ()}
    return {source.topic: source.topic in read for store in state_file.stores for source in store.inputs}


def check_by_program(
    engine: Engine,
    state_file: StateFile,
    program: ProgramRun,
    staged: Mapping[str, StagedStore],
    committed: Mapping[TopicPartition, CommittedOffset],
    *,
    partitions: int,
    grown: Mapping[str, int],
) -> tuple[list[str], list[str]]:
    """Run the program over its input as it would lie after the move; return warnings and notes.

    :param staged: store -> what is moved
    :param committed: what the application had committed when that was read
    :param grown: inputs that get more partitions
    :raises Refused: when the program computes something else, or it is not known where a record of its input would be
    """
    batches, services, capture = engine.require_batches("a program runs"), engine.services, program.capture
    facts = read_facts(services, state_file, replacing=True)
    cut = find_cut(services, state_file, facts, COMMITTED)
    if dict(cut.committed) != dict(committed):
        raise StateMoved(f"{state_file.application} committed while it was being read", hint="see that it is stopped everywhere")
    from kops.spark.programs.relaid import check_subtopology, relay
    from kops.spark.reading.batch_source import task_input

    layout = _layout(services, capture, state_file, facts, partitions=partitions, grown=grown)
    memory = memory_for(engine, facts, partitions)
    size = estimate(engine, state_file, facts, cut, memory, tasks=partitions)
    services.progress.step(size.text())
    program = replace(program, nothing_waits=True, memory=memory)
    with started_ahead(engine, program) as run_by:
        plan = ProgramTasks(services, state_file, run_by, facts, cut, layout=layout)
        inputs = {wanted.topic: wanted for number in plan.needed for wanted in plan.inputs(number)}
        services.progress.step(f"running {counted(len(plan.needed), 'sub-topology')} over their input of {partitions} partitions")
        with folder_for(engine, run_by) as folder, engine.reading(*inputs.values()):
            run, found = plan.run(run_by, folder), dict[str, "RelaidCheck"]()
            with jobs_of(engine, run_by, batches, run) as jobs:
                for topic, old in layout.relaid.items():
                    pieces = [piece for number in sorted(inputs[topic].ranges) if (piece := task_input(inputs[topic], number))]
                    relay(jobs, pieces, old, partitions)
                for step in plan.steps:
                    found |= check_subtopology(jobs, [_with_staged(task, staged) for task in plan.tasks(step)])
    warnings, notes = judged(capture, found, layout, cut, partitions)
    return warnings, [size.text(max((check.heap for check in found.values()), default=0)), *notes]


def _layout(
    services: Services,
    capture: Capture,
    state_file: StateFile,
    facts: Sequence[StoreFacts],
    *,
    partitions: int,
    grown: Mapping[str, int],
) -> Layout:
    """Return how many partitions the program's topics will have, and which of them its records were produced for.

    An input that has the new number already was given it while the application did not run: what that had processed is older.
    """
    keyed = keyed_inputs(capture, state_file)
    sizes = {name: len(topic.partitions) for name, topic in services.kafka.topics.existing(keyed).items()}
    before = max(len(found.changelog_bounds) for found in facts)
    relaid = {topic: before if sizes[topic] == partitions else sizes[topic] for topic, is_keyed in keyed.items() if is_keyed}
    changelogs = [store.changelog for store in state_file.stores]
    counts = {**grown, **dict.fromkeys((*relaid, *repartition_topics(capture), *changelogs), partitions)}
    return Layout(counts, relaid)


def _with_staged(task: ProgramTask, staged: Mapping[str, StagedStore]) -> ProgramTask:
    stores = []
    for store in task.stores:
        moved = staged[store.name]
        stores.append(replace(store, held=None, stage=moved.stage, snapshot=moved.stage if moved.snapshot else None))
    return replace(task, stores=tuple(stores))


def judged(
    capture: Capture, found: Mapping[str, RelaidCheck], layout: Layout, cut: InputOffsets, partitions: int
) -> tuple[list[str], list[str]]:
    warnings, notes = [*cut.notes], []
    for name, check in found.items():
        examples = keys_text(check.examples)
        if check.wrong:
            raise Refused(
                f"store {name}: of {check.wrong:,} keys, such as {examples}, the program computes something else over its input of"
                f" {partitions} partitions than its changelog holds",
                hint="`kops state verify CAPTURE` shows whether the changelog is wrong, and `rebuild` repairs it; if it is right, it"
                " depends on which keys share a task, or on input that is gone, and only a state file can move it as it is",
            )
        doubts = doubts_about(capture, next(store for store in capture.stores if store.name == name), layout.counts)
        if check.open:
            warnings.append(
                f"store {name} is doubtful: {check.open:,} of {check.keys:,} keys depend on the order of records, such as {examples};"
                f" what the changelog holds of them is moved, and none of {check.orders} legal orders gives it"
            )
        same = f"the program computes the same over its input of {partitions} partitions"
        by_order = f", {check.by_order:,} of them in another legal order of records than by time" if check.by_order else ""
        notes.append(f"{name}: of {check.keys - check.open:,} of {check.keys:,} keys {same}{by_order}")
        if doubts.own_processors:
            beside = "what they keep outside of stores, or read from elsewhere, does not move"
            notes.append(f"{name}: the program's own processors fill it, and {beside}: {', '.join(doubts.own_processors)}")
    return warnings, notes
