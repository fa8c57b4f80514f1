"""Stores computed by the application's own program, which a capture of it names, instead of by what a state file says.

The program runs in JVMs beside Spark's Python workers, one for each, sub-topology by sub-topology. What is compared, staged,
judged, written and read back is as with a state file; only what computes is another.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from kops.core.findings import counted
from kops.core.statefile import StateFile
from kops.core.streams.program_doubts import doubts_about
from kops.operations.engine.spark import Engine, dropped_on_failure
from kops.operations.services import Services
from kops.operations.state.compute import ComputedStore, changelog_range, computed_store
from kops.operations.state.facts import StoreFacts
from kops.operations.state.input_offsets import InputOffsets, amount_text
from kops.operations.state.own_code.memory import memory_for
from kops.operations.state.own_code.start import ProgramRun, folder_for, jobs_of
from kops.operations.state.own_code.tasks import ProgramTasks
from kops.operations.state.rules.program import ProgramRuns, surroundings_differ

if TYPE_CHECKING:
    from kops.spark.programs.jobs import SubtopologyRun


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
    :raises Refused: where Spark's tasks cannot run a program, or read whole record batches
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
        engine.reading(*map(engine.in_kafka, inputs), *changelogs) if engine.is_local else nullcontext(),
    ):
        run = plan.run(program, folder)
        with jobs_of(engine, program, batches, run) as jobs:
            plan.keep_archived(engine, jobs)
            ran = {step.number: run_subtopology(jobs, plan.tasks(step)) for step in plan.steps}
        engine.services.progress.step(_disturbed_text([*ran.values()]))
        elsewhere = surroundings_differ(program.differences, program.capture.surroundings, ran.values())
        stores = {store.name: store for store in program.capture.stores}
        return [
            _computed(
                found,
                ProgramRuns.of(
                    program.capture,
                    found.store.name,
                    doubts_about(program.capture, stores[found.store.name], plan.partitions),
                    ran,
                    alone=bool(program.alone),
                    elsewhere=elsewhere,
                ),
                plan.stages[found.store.name],
            )
            for found in facts
        ]


def _disturbed_text(ran: Sequence[SubtopologyRun]) -> str:
    records, disturbed = sum(each.records for each in ran), sum(each.disturbed for each in ran)
    restarts = sum(each.restarts for each in ran)
    return f"{disturbed:,} of {records:,} records were given once more, disturbed; the program began afresh at {restarts:,} points"


def _computed(facts: StoreFacts, runs: ProgramRuns, stage: str) -> ComputedStore:
    from kops.spark.stores.jobs import Counts

    here = runs.here
    counts = Counts(
        read=sum(each.records for each in runs.ran),
        dropped={},
        keys=here.keys,
        mixed=0,
        noted={"expired": here.expired},
        live=here.live,
        staged=here.staged,
        headers=here.headers,
    )
    return computed_store(facts, stage, counts, runs, heap=runs.ran[0].heap, on_disk=here.on_disk)
