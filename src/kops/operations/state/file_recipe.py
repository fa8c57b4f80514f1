"""Stores computed as a state file describes them."""
# ruff: noqa: ARG002 - a recipe gets what either kind needs

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from kops.core.findings import counted
from kops.core.models import CommittedOffset, TopicPartition
from kops.core.statefile import StateFile, Store
from kops.core.statefile.models import VERSIONED
from kops.operations.engine.spark import Engine, dropped_on_failure, new_stage, start_engine
from kops.operations.services import Services
from kops.operations.state.compute import ComputedStore, compute_stores, job_of
from kops.operations.state.facts import StoreFacts
from kops.operations.state.from_snapshot import BaseSnapshot
from kops.operations.state.input_offsets import InputOffsets
from kops.operations.state.repartition_inputs import Inputs, keyed_inputs
from kops.operations.state.repartition_stages import MovedChangelog
from kops.operations.state.waiting_records import without_waiting


@dataclass(frozen=True)
class FileRecipe:
    """By a state file, as Spark's own aggregates, folds and joins.

    :param skip_undecodable: skip records that are not in the declared formats
    """

    skip_undecodable: bool = False
    restores = False

    def engine(self, services: Services, master: str | None) -> Engine:
        return start_engine(services, master)

    def refuse_lost(self, services: Services, stores: Sequence[str]) -> None:
        pass  # reading the facts names topics that are gone

    def notes(self) -> Sequence[str]:
        return ()

    @contextmanager
    def running(
        self, engine: Engine, state_file: StateFile, facts: Sequence[StoreFacts], base: BaseSnapshot | None
    ) -> Iterator[RunningFile]:
        yield RunningFile(state_file, skip_undecodable=self.skip_undecodable)

    def whole(self, engine: Engine, state_file: StateFile, facts: Sequence[StoreFacts], cut: InputOffsets) -> list[ComputedStore]:
        bare = [found.without_changelog() for found in facts]
        return compute_stores(engine, state_file, bare, cut, skip_undecodable=self.skip_undecodable)

    def records(self, engine: Engine, state_file: StateFile, computed: Sequence[ComputedStore], cut: InputOffsets) -> list[ComputedStore]:
        whole: list[ComputedStore] = []
        stages: list[str] = []
        with dropped_on_failure(engine, stages):
            for found in computed:
                if found.facts.store.type == VERSIONED:
                    whole.append(self._versions(engine, state_file, found, cut))
                else:
                    whole += self.whole(engine, state_file, [found.facts], cut)
                stages.append(whole[-1].stage)
        return whole

    def _versions(self, engine: Engine, state_file: StateFile, found: ComputedStore, cut: InputOffsets) -> ComputedStore:
        from kops.spark.driver.failures import explained
        from kops.spark.stores.versioned import stage_versions

        stage = new_stage(engine.services, state_file.application)
        with explained(f"compute {found.facts.store.name}"):
            job = job_of(state_file, found.facts, cut, skip_undecodable=self.skip_undecodable)
            staged = stage_versions(engine.kafka(), job, stage)
        return replace(found, stage=stage, counts=replace(found.counts, staged=staged))

    def without_waiting(
        self, engine: Engine, state_file: StateFile, facts: StoreFacts, cut: InputOffsets, services: Services
    ) -> StoreFacts:
        return without_waiting(services, engine, state_file, facts, cut, skip_undecodable=self.skip_undecodable)

    def refuse_start(self, state_file: StateFile, base: BaseSnapshot) -> None:
        pass  # `open_base` refuses what a state file cannot start from

    def check_start(self, engine: Engine, state_file: StateFile, base: BaseSnapshot) -> None:
        pass  # nothing is used of a snapshot but the stores themselves

    def keyed_topics(self, state_file: StateFile, store: Store) -> Sequence[str]:
        return sorted({source.topic for source in store.inputs}) if store.table is not None or not store.moves else []

    def read_topics(self) -> set[str] | None:
        return None

    def for_another(self) -> FileRecipe:
        return self

    def repartition_topics(self, state_file: StateFile) -> list[str]:
        return [store.repartition_topic for store in state_file.stores if store.repartition_topic]

    def keyed_inputs(self, state_file: StateFile) -> Mapping[str, bool]:
        return keyed_inputs(state_file)

    def refuse_move(self, engine: Engine, inputs: Inputs, partitions: int) -> None:
        pass  # what a state file says of repartition topics does not depend on their number of partitions

    def refuse_partly_moved(self, state_file: StateFile, topics: set[str], partitions: int) -> None:
        pass  # it may name some of an application's stores

    def why_misplaced(self, store: str) -> str:
        return "its input uses a custom partitioner, or the state is wrong: check with `kops state verify`"

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
        return [], [f"{found.store.name}: {counted(found.done.keys, 'key')}" for found in moved]


@dataclass(frozen=True)
class RunningFile:
    """A state file, for which Spark alone has to start."""

    state_file: StateFile
    skip_undecodable: bool

    def compute(
        self, engine: Engine, facts: Sequence[StoreFacts], cut: InputOffsets, services: Services, *, replacing: bool
    ) -> tuple[list[ComputedStore], str]:
        return compute_stores(engine, self.state_file, facts, cut, skip_undecodable=self.skip_undecodable), ""
