"""How the stores of an application are computed. Only what reads SOURCE knows whether a state file or the program itself says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from kops.core.models import CommittedOffset, TopicPartition
from kops.core.statefile import StateFile, Store
from kops.operations.engine.spark import Engine
from kops.operations.services import Services
from kops.operations.state.compute import ComputedStore
from kops.operations.state.facts import StoreFacts
from kops.operations.state.from_snapshot import BaseSnapshot
from kops.operations.state.input_offsets import InputOffsets
from kops.operations.state.repartition_inputs import Inputs

if TYPE_CHECKING:
    from kops.operations.state.repartition_stages import MovedChangelog


class Running(Protocol):
    """A recipe that is ready to compute."""

    def compute(
        self, engine: Engine, facts: Sequence[StoreFacts], cut: InputOffsets, services: Services, *, replacing: bool
    ) -> tuple[list[ComputedStore], str]:
        """Compute stores, and stage what their changelogs lack.

        :param services: include the topics that a plan will create
        :param replacing: changelogs may be recreated, so that they need not fit
        :return: also what it took besides Spark, in one line; empty: nothing
        """


class Recipe(Protocol):
    """How stores are computed: by what a state file says, or by the application's own program."""

    restores: bool
    """Tasks start from a snapshot as the application does from its changelogs, so that windows can start from one too."""

    def engine(self, services: Services, master: str | None) -> Engine:
        """Begin to start Spark, where it can compute the stores."""

    def refuse_lost(self, services: Services, stores: Sequence[str]) -> None:
        """Refuse where topics are gone without which stores cannot be computed."""

    def notes(self) -> Sequence[str]:
        """Return what should be known about how stores are computed, one sentence each."""

    def running(
        self, engine: Engine, state_file: StateFile, facts: Sequence[StoreFacts], base: BaseSnapshot | None
    ) -> AbstractContextManager[Running]:
        """Get ready to compute, while Spark starts."""

    def whole(self, engine: Engine, state_file: StateFile, facts: Sequence[StoreFacts], cut: InputOffsets) -> list[ComputedStore]:
        """Compute stores as if their changelogs held nothing, so that their stages have all of their keys."""

    def records(self, engine: Engine, state_file: StateFile, computed: Sequence[ComputedStore], cut: InputOffsets) -> list[ComputedStore]:
        """Return stores with all of their records, as they are written: of a versioned store each version is one."""

    def without_waiting(
        self, engine: Engine, state_file: StateFile, facts: StoreFacts, cut: InputOffsets, services: Services
    ) -> StoreFacts:
        """Return a store's facts, with the records of its input that still wait in its repartition topic.

        :param services: include the topics that a plan will create
        """

    def refuse_start(self, state_file: StateFile, base: BaseSnapshot) -> None:
        """Refuse to start from a snapshot that has not all that is needed."""

    def check_start(self, engine: Engine, state_file: StateFile, base: BaseSnapshot) -> None:
        """Compare what is used of a snapshot besides the stores themselves with what was written."""

    def keyed_topics(self, state_file: StateFile, store: Store) -> Sequence[str]:
        """Return the topics by whose keys a store is divided, or a table before it."""

    def read_topics(self) -> set[str] | None:
        """Return all topics that the application reads; None: not all are known."""

    def for_another(self) -> Recipe:
        """Return how the stores are computed for another application, whose repartition topics begin empty."""

    def repartition_topics(self, state_file: StateFile) -> list[str]:
        """Return the repartition topics behind the stores."""

    def keyed_inputs(self, state_file: StateFile) -> Mapping[str, bool]:
        """Return the input topics, and whether the keys of their records decide who has their state."""

    def refuse_move(self, engine: Engine, inputs: Inputs, partitions: int) -> None:
        """Refuse a move to another number of partitions that the application would not follow."""

    def refuse_partly_moved(self, state_file: StateFile, topics: set[str], partitions: int) -> None:
        """Refuse to move only some of the stores that are filled together.

        :param topics: that are recreated
        """

    def why_misplaced(self, store: str) -> str:
        """Return what can have put keys of a store elsewhere than the default partitioner."""

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
        """Return warnings and notes about what is moved; what is staged is deleted where it is wrong.

        :param committed: what the application had committed when that was read
        :param grown: inputs that get more partitions
        """
