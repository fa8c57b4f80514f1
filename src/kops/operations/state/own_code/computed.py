"""Stores computed by the application's own program, which a capture of it names, instead of by what a state file says.

The program runs in JVMs of this machine, one for each of Spark's Python workers, sub-topology by sub-topology. What is compared, staged,
judged, written and read back is as with a state file; only what computes is another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kops.core.findings import counted
from kops.core.statefile import StateFile
from kops.core.streams.capture import Capture
from kops.core.streams.program import has_windows, topics_of
from kops.core.streams.program_doubts import Doubts, doubts_about, topics_in_any_partition
from kops.operations.engine.spark import Engine, dropped_on_failure
from kops.operations.services import Services
from kops.operations.state.compute import ComputedStore, changelog_range, of_places
from kops.operations.state.evidence import proof_of
from kops.operations.state.evidence_doubts import of_emptied
from kops.operations.state.exactness import SURE, Exactness, worst
from kops.operations.state.facts import StoreFacts
from kops.operations.state.input_offsets import InputOffsets, amount_text
from kops.operations.state.own_code.exactness import of_runs
from kops.operations.state.own_code.memory import memory_for
from kops.operations.state.own_code.start import ProgramRun, folder_for
from kops.operations.state.own_code.tasks import ProgramTasks

if TYPE_CHECKING:
    from kops.spark.programs.jobs import Ran, StoreCounts


def compute_by_program(
    engine: Engine,
    state_file: StateFile,
    program: ProgramRun,
    facts: Sequence[StoreFacts],
    cut: InputOffsets,
    *,
    services: Services,
    replacing: bool,
) -> list[ComputedStore]:
    """Run the tasks that fill some stores, and stage what their changelogs lack.

    :param services: include the topics that a plan will create
    :param replacing: changelogs may be recreated, so that they need not fit
    :raises Refused: where Spark's tasks do not run on this machine, or cannot read whole record batches
    :raises OperationFailed: when the program throws, or its JVM ends
    """
    from kops.spark.programs.jobs import run_subtopology

    batches = engine.require_batches("a program runs")
    program = replace(program, memory=program.memory or memory_for(engine, facts))
    plan = ProgramTasks(services, state_file, program, facts, cut)
    inputs = [wanted for number in plan.needed for wanted in plan.inputs(number)]
    changelogs = [changelog_range(state_file, found) for found in facts]
    facts = [replace(found, tasks=plan.tasks_of(found, replacing=replacing)) for found in facts]
    names = ", ".join(plan.stages)
    engine.services.progress.step(
        f"running {counted(len(plan.needed), 'sub-topology')} for {names} over"
        f" {amount_text(engine.services, [engine.in_kafka(wanted) for wanted in inputs], changelogs)}"
    )
    with (
        dropped_on_failure(engine, plan.stages.values()),
        folder_for(engine, program) as folder,
        engine.reading(*map(engine.in_kafka, inputs), *changelogs),
    ):
        run = plan.run(program, folder)
        plan.keep_archived(engine, run)
        ran = {step.number: run_subtopology(batches, run, plan.tasks(step)) for step in plan.steps}
        engine.services.progress.step(_disturbed_text([*ran.values()]))
        partitions, more = plan.partitions, _of_no_network(program, ran)
        stores = {store.name: store for store in program.capture.stores}
        return [
            _judged(
                engine,
                program.capture,
                found,
                ran,
                doubts_about(program.capture, stores[found.store.name], partitions),
                stage=plan.stages[found.store.name],
                more=more,
            )
            for found in facts
        ]


def _disturbed_text(ran: Sequence[Ran]) -> str:
    records, disturbed = sum(each.records for each in ran), sum(each.disturbed for each in ran)
    restarts = sum(each.restarts for each in ran)
    return f"{disturbed:,} of {records:,} records were given once more, disturbed; the program began afresh at {restarts:,} points"


def _of_no_network(program: ProgramRun, ran: Mapping[int, Ran]) -> tuple[Exactness, ...]:
    """Doubt all stores where records were dropped without a network: a handler may have gone on after a call that reached nothing."""
    skipped = sum(each.skipped for each in ran.values())
    if not program.alone or not skipped:
        return ()
    why = "without a network that may be since serdes could not ask a schema registry, or another call failed"
    return (Exactness("C", (f"the library dropped {skipped:,} records, and {why}",)),)


def _judged(
    engine: Engine,
    capture: Capture,
    facts: StoreFacts,
    ran: Mapping[int, Ran],
    doubts: Doubts,
    *,
    stage: str,
    more: Sequence[Exactness] = (),
) -> ComputedStore:
    """Return a store with its class: A only where one partition feeds each task, or all orders that were tried gave the same.

    :param ran: the sub-topologies that fill it
    :param doubts: that its capture leaves about the store
    :param more: what else is known of how exact it is
    """
    from kops.spark.stores.jobs import Counts

    name = facts.store.name
    found = capture.subtopology_of(name)
    if found is None:
        raise ValueError(name)
    concerned = [found.number, *topics_of(capture, found.number).upstream]
    here: StoreCounts = ran[found.number].stores[name]
    counts = Counts(
        read=sum(ran[number].records for number in concerned),
        dropped={},
        keys=here.keys,
        mixed=0,
        noted={"expired": here.expired},
        live=here.live,
        staged=here.staged,
        headers=here.headers,
    )
    actions = here.staged.actions
    lost = [str(place) for place, bound in sorted(facts.input_bounds.items()) if bound.log_start_offset > facts.starts.get(place, 0)]
    exactness = worst(
        [
            facts.exactness,
            *of_runs(
                doubts,
                here,
                [ran[number] for number in concerned],
                windows=has_windows(capture, concerned),
                anywhere=topics_in_any_partition(capture),
            ),
            *more,
            Exactness("D", (f"the oldest records of {', '.join(lost[:3])} are gone",)) if lost else SURE,
            of_emptied(facts.store, [number for number in facts.emptied if not actions.get(number)]),
        ]
    )
    proof = proof_of(live=here.live, expected=here.keys, actions=actions, damaged=facts.damaged, whole=facts.whole, lossy=facts.lossy)
    places, heap = of_places(engine.session, facts, stage, actions, facts.damaged), ran[found.number].heap
    return ComputedStore(facts, stage, counts, worst([exactness, places]), exactness.grade, proof, heap=heap, on_disk=here.on_disk)
