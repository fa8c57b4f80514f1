"""Stores computed by the whole program, run as a shadow of the application; its changelogs are what the application's are compared with.

For programs whose tasks cannot be run by themselves. All that is made for the shadow is gone before the result is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kops.core.errors import Refused
from kops.core.statefile import StateFile
from kops.core.streams.capture import Capture, Subtopology
from kops.core.streams.program import topics_of
from kops.core.streams.program_doubts import doubts_about
from kops.core.streams.shadow import Progress, reason_against_shadow, shadow_topic, wall_clock_doubts
from kops.operations.engine.spark import Engine, dropped_on_failure
from kops.operations.services import Services
from kops.operations.state.compute import ComputedStore
from kops.operations.state.exactness import Exactness
from kops.operations.state.facts import StoreFacts
from kops.operations.state.input_offsets import InputOffsets
from kops.operations.state.own_code.computed import judged
from kops.operations.state.own_code.start import ProgramRun
from kops.operations.state.shadow_run import Shadow

if TYPE_CHECKING:
    from kops.spark.programs.jobs import Ran, StoreCounts


def compute_by_shadow(
    engine: Engine,
    state_file: StateFile,
    program: ProgramRun,
    facts: Sequence[StoreFacts],
    cut: InputOffsets,
    *,
    services: Services,
    replacing: bool,
) -> list[ComputedStore]:
    """Run the program as a shadow, and stage what the changelogs of some stores lack.

    :raises Refused: where the result could not be that of the application
    :raises OperationFailed: when the program throws, ends, or stands still
    """
    if program.shadow is None or replacing or cut.is_new:
        raise ValueError("a shadow computes up to the committed offsets, and its result is appended")
    _refuse_unlike(program.capture, facts)
    shadow = Shadow(engine, state_file, program, facts, cut, services=services)
    with dropped_on_failure(engine, shadow.stages.values()):
        program.shadow.carry_out(shadow.plan())
        return [_judged(engine, program.capture, found, shadow) for found in facts]


def _refuse_unlike(capture: Capture, facts: Sequence[StoreFacts]) -> None:
    """Refuse stores whose records in a shadow are others than in the application."""
    stores = {store.name: store for store in capture.stores}
    for found in facts:
        why = reason_against_shadow(capture, stores[found.store.name])
        if why:
            raise Refused(f"store {found.store.name} cannot be rebuilt by a shadow: {why}", hint="name others with --store")


def _judged(engine: Engine, capture: Capture, facts: StoreFacts, shadow: Shadow) -> ComputedStore:
    """Return a store with its class: that of a program that ran in one order."""
    store = next(each for each in capture.stores if each.name == facts.store.name)
    here = capture.subtopology_of(store.name)
    if here is None or shadow.outcome is None:
        raise ValueError(store.name)
    seen, counts = shadow.outcome.seen, shadow.outcome.counts[store.name]
    ran = what_ran(capture, here, shadow.name, seen, {store.name: counts})
    doubts = doubts_about(capture, store, shadow.partitions, whole=True)
    one = ("the shadow ran in one order of records, and another may give other values",) if doubts.of_order else ()
    by_clock = wall_clock_doubts(capture, store, seen)
    more = [Exactness("C", sentences) for sentences in (one, by_clock, shadow.outcome.doubts) if sentences]
    return judged(engine, capture, facts, ran, doubts, stage=shadow.stages[store.name], more=more)


def what_ran(capture: Capture, here: Subtopology, shadow: str, seen: Progress, counts: Mapping[str, StoreCounts]) -> dict[int, Ran]:
    """Return what came of the sub-topologies that fill a store; what the shadow reports of all counts for its own.

    :param here: the one of the store
    :param shadow: the application id of the shadow
    :param counts: of the store
    """
    from kops.spark.programs.jobs import Ran

    numbers = (here.number, *topics_of(capture, here.number).upstream)
    read = {topic.name for each in capture.subtopologies if each.number in numbers for topic in each.repartition_topics}
    names = {shadow_topic(name, capture.application, shadow): name for name in read}
    without_key = tuple(sorted(names[name] for name in seen.without_key if name in names))
    timed = {number: Ran({}, 0, 0, 0, seen.stream_time_schedules.get(number, 0), ()) for number in numbers}
    own = replace(
        timed[here.number],
        stores=counts,
        records=seen.records,
        skipped=seen.skipped,
        without_key=without_key,
        calls=seen.calls,
        initial_calls=seen.initial_calls,
        kept=seen.kept,
    )
    return {**timed, here.number: own}
