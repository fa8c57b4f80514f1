"""Stores computed by the application's own program."""
# ruff: noqa: ARG002 - a recipe gets what either kind needs

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from kops.core.errors import Refused
from kops.core.models import CommittedOffset, TopicPartition
from kops.core.statefile import StateFile, Store
from kops.core.streams.program import repartition_topics, tasks_of
from kops.operations.engine.spark import Engine, dropped_on_failure
from kops.operations.services import Services
from kops.operations.state.compute import ComputedStore, compute_stores
from kops.operations.state.facts import StoreFacts
from kops.operations.state.from_snapshot import BaseSnapshot
from kops.operations.state.input_offsets import InputOffsets
from kops.operations.state.own_code.computed import compute_by_program
from kops.operations.state.own_code.memory import Memory, estimate, memory_for
from kops.operations.state.own_code.registries import direct_registries
from kops.operations.state.own_code.repartition import StagedStore, check_by_program, keyed_inputs, refuse_followers, why_misplaced
from kops.operations.state.own_code.snapshot import check_start, refuse_start
from kops.operations.state.own_code.start import ProgramRun, engine_for, started_ahead
from kops.operations.state.own_code.tasks import refuse_lost_repartitions
from kops.operations.state.repartition_inputs import Inputs
from kops.operations.state.repartition_stages import MovedChangelog


@dataclass(frozen=True)
class ProgramRecipe:
    """By the program of a capture, whose tasks Spark runs."""

    program: ProgramRun
    restores = True

    def engine(self, services: Services, master: str | None) -> Engine:
        return engine_for(services, self.program, master)

    def refuse_lost(self, services: Services, stores: Sequence[str]) -> None:
        refuse_lost_repartitions(services, self.program.capture, stores)

    def notes(self) -> Sequence[str]:
        program = self.program
        direct = [
            f"the program asks the schema registry {url} itself: kops does not see whether it registers schemas there"
            for url in direct_registries(program)
        ]
        if not program.alone:
            return direct
        named = " and ".join(each.origin.url for each in program.registries.upstreams)
        registry = f"but for reading the schema registry {named} through kops" if named else "and no schema registry"
        reached = f"it could reach files and sockets of this machine, but no other machine, {registry}"
        return [f"the program was run without a network: {reached}"]

    @contextmanager
    def running(
        self, engine: Engine, state_file: StateFile, facts: Sequence[StoreFacts], base: BaseSnapshot | None
    ) -> Iterator[RunningProgram]:
        memory = memory_for(engine, facts)
        with started_ahead(engine, replace(self.program, memory=memory, base=base)) as program:
            yield RunningProgram(state_file, program, memory)

    def whole(self, engine: Engine, state_file: StateFile, facts: Sequence[StoreFacts], cut: InputOffsets) -> list[ComputedStore]:
        """Compute stores whole; the program decides itself what it skips, and has no say in what is restored from a topic."""
        bare = [found.without_changelog() for found in facts]
        restored = [found for found in bare if found.store.reuses_source]
        filled = [found for found in bare if not found.store.reuses_source]
        computed = compute_stores(engine, state_file, restored, cut, skip_undecodable=True) if restored else []
        with dropped_on_failure(engine, [found.stage for found in computed]):
            if filled:
                computed += compute_by_program(engine, state_file, self.program, filled, cut, services=engine.services, replacing=True)
        return computed

    def records(self, engine: Engine, state_file: StateFile, computed: Sequence[ComputedStore], cut: InputOffsets) -> list[ComputedStore]:
        recipe = replace(self, program=replace(self.program, as_records=True))
        return recipe.whole(engine, state_file, [found.facts for found in computed], cut) if computed else []

    def without_waiting(
        self, engine: Engine, state_file: StateFile, facts: StoreFacts, cut: InputOffsets, services: Services
    ) -> StoreFacts:
        return facts  # its tasks leave them out

    def refuse_start(self, state_file: StateFile, base: BaseSnapshot) -> None:
        refuse_start(self.program.capture, state_file, base)

    def check_start(self, engine: Engine, state_file: StateFile, base: BaseSnapshot) -> None:
        check_start(engine, self.program.capture, state_file, base)

    def keyed_topics(self, state_file: StateFile, store: Store) -> Sequence[str]:
        keyed = keyed_inputs(self.program.capture, state_file)
        return sorted({source.topic for source in store.inputs if keyed.get(source.topic)})

    def read_topics(self) -> set[str] | None:
        tasks = tasks_of(self.program.capture).values()
        read = {topic for each in tasks for topic in each.source_topics or ()}
        return read | {topic.name for each in tasks for topic in each.repartition_topics}

    def for_another(self) -> ProgramRecipe:
        return replace(self, program=replace(self.program, nothing_waits=True))

    def repartition_topics(self, state_file: StateFile) -> list[str]:
        return repartition_topics(self.program.capture)

    def keyed_inputs(self, state_file: StateFile) -> Mapping[str, bool]:
        return keyed_inputs(self.program.capture, state_file)

    def refuse_move(self, engine: Engine, inputs: Inputs, partitions: int) -> None:
        engine.require_batches("a program runs")  # before changelogs are read
        refuse_followers(self.program.capture, inputs.kept, partitions)

    def refuse_partly_moved(self, state_file: StateFile, topics: set[str], partitions: int) -> None:
        left = [store.changelog for store in state_file.stores if store.changelog not in topics]
        if topics and left:
            raise Refused(
                f"{left[0]} has {partitions} partitions already, and {min(topics)} has not",
                hint="see which of them was altered: `kops state rebuild CAPTURE` says with how many the program would start",
            )

    def why_misplaced(self, store: str) -> str:
        return why_misplaced(self.program.capture, store)

    def check_moved(
        self,
        engine: Engine,
        state_file: StateFile,
        moved: Sequence[MovedChangelog],
        committed: Mapping[TopicPartition, CommittedOffset],
        *,
        partitions: int,
        grown: Mapping[str, int],
    ) -> tuple[list[str], list[str]]:
        staged = {found.store.name: StagedStore(found.stage, bool(found.done.with_headers)) for found in moved}
        with dropped_on_failure(engine, [stage for found in moved for stage in (found.stage, found.prior_stage)]):
            return check_by_program(engine, state_file, self.program, staged, committed, partitions=partitions, grown=grown)


@dataclass(frozen=True)
class RunningProgram:
    """A program whose JVMs have been started.

    :param memory: that it may take
    """

    state_file: StateFile
    program: ProgramRun
    memory: Memory

    def compute(
        self, engine: Engine, facts: Sequence[StoreFacts], cut: InputOffsets, services: Services, *, replacing: bool
    ) -> tuple[list[ComputedStore], str]:
        size = estimate(engine, self.state_file, facts, cut, self.memory)
        services.progress.step(size.text())
        computed = compute_by_program(engine, self.state_file, self.program, facts, cut, services=services, replacing=replacing)
        return computed, size.text(max(found.heap for found in computed))
