"""A run of an application's own program, and its tasks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kops.core.streams.program_doubts import BY_TIME
from kops.gateways.machine.program import ProgramStart
from kops.gateways.machine.program_travel import PackedProgram

if TYPE_CHECKING:
    from kops.spark.reading.batch_source import TaskInput

REPARTITIONED, ARCHIVED = "repartitioned", "archived"
"""Folders in a run's folder: records for repartition topics, by order, topic and partition; archived records, by topic."""
FAILURE = "failure.json"
"""A file in a run's folder: the first error of any task."""

WHOLE, SAMPLE, SELDOM, BRIEF = "whole", "sample", "seldom", "brief"
"""How a task is disturbed: given all of its input again, or a sample of it; ``SELDOM`` and ``BRIEF`` are these two with few restarts."""

WaitingRecord = tuple["bytes | None", "bytes | None", int]
"""Key, value and timestamp of a record that the application has yet to process."""


@dataclass(frozen=True)
class Run:
    """What all tasks of a run share.

    :param settings: of the frame that configures the runner
    :param global_inputs: what is read of the topics of global stores
    :param application: which the program must be
    :param topology: the runner must report the same one
    :param varied: sub-topologies whose tasks run in several orders
    :param packed: the program for tasks on other machines; None: they run on this one, or it was unpacked
    """

    start: ProgramStart
    settings: Mapping[str, str]
    application: str
    topology: Mapping[str, str]
    global_inputs: tuple[TaskInput, ...] = ()
    varied: frozenset[int] = frozenset()
    packed: PackedProgram | None = None

    @property
    def folder(self) -> Path:
        return Path(self.start.folder)

    def repartitioned(self, topic: str, partition: int, order: str) -> Path:
        """Return the folder with the records for a partition of a repartition topic."""
        return self.folder / REPARTITIONED / order / topic / str(partition)

    def files(self, topic: str, partition: int, order: str) -> list[Path]:
        """Return the files written there, sorted by the task that wrote them. Sub-topologies that run in one order only ran by time."""
        folders = {BY_TIME, order}
        found = [file for each in folders for file in self.repartitioned(topic, partition, each).glob("*.arrow")]
        return sorted(file for file in found if (order if int(file.name[:5]) in self.varied else BY_TIME) == file.parents[2].name)

    def archived(self, topic: str, partition: int) -> Path:
        return self.folder / ARCHIVED / topic / f"{partition}.arrow"

    def failure(self) -> dict[str, Any] | None:
        """Return the error that a task met, as ``KopsError.as_json``."""
        file = self.folder / FAILURE
        return dict(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else None


@dataclass(frozen=True)
class StoreTask:
    """A store of which a task computes a partition.

    :param held: what its changelog holds; None: nothing
    :param snapshot: path of a snapshot's rows that stand for its changelog; None: none do
    :param base: path of a snapshot's rows that the store starts from; None: it starts from nothing
    :param stage: folder of the difference; empty where none is staged
    :param time_at: of a store of windows, where in its keys the time stands by which they expire; negative, from the end
    :param expires_ms: how much older than the latest time a window is certainly gone
    :param history_ms: of a versioned store, whose changelog has each version of a key; None: of another one
    :param as_records: what is staged of a versioned store are the records to write, and not its versions
    """

    name: str
    changelog: str
    held: TaskInput | None
    stage: str
    time_at: int = 0
    expires_ms: int = 0
    snapshot: str | None = None
    base: str | None = None
    history_ms: int | None = None
    as_records: bool = False


@dataclass(frozen=True)
class ProgramTask:
    """One task of the program.

    :param inputs: ranges of its topics, at most one of each
    :param repartition: repartition topics that it reads
    :param waiting: records of those that the application has yet to process, in their order; they must not count
    :param passes_on: repartition topics that it writes
    :param orders: in which it is run, by time first
    :param disturbed: how much of its input it is given once more, disturbed: ``WHOLE``, ``SAMPLE``,
        ``SELDOM``, ``BRIEF``, or nothing
    :param archived: topics of which an archive has what comes before their ranges
    :param answers: topics with answers of foreign-key joins, or with questions of its own: read after all else, in the order of these
        numbers, or not at all
    :param restored: changelogs of its stores, with the paths of a snapshot's rows that they start from
    :param committed: of its topics, offset and metadata that the application had committed when that was taken
    """

    subtopology: int
    partition: int
    inputs: tuple[TaskInput, ...]
    repartition: tuple[str, ...] = ()
    waiting: Mapping[str, Sequence[WaitingRecord]] = field(default_factory=dict)
    stores: tuple[StoreTask, ...] = ()
    passes_on: tuple[str, ...] = ()
    orders: tuple[str, ...] = (BY_TIME,)
    disturbed: str = ""
    archived: tuple[str, ...] = ()
    answers: Mapping[str, int] = field(default_factory=dict)
    restored: Mapping[str, str] = field(default_factory=dict)
    committed: Mapping[str, tuple[int, str]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.subtopology}_{self.partition}"
