"""Which tasks of an application's own program there are, and what each of them reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

from kops.core.errors import Refused
from kops.core.models import TopicPartition, value_of
from kops.core.statefile import StateFile
from kops.core.statefile.models import SESSION as SESSIONS
from kops.core.statefile.models import WINDOW as WINDOWS
from kops.core.streams import capture as captured
from kops.core.streams.capture import Capture, Subtopology
from kops.core.streams.local_state import CATCH_UP
from kops.core.streams.lost_topics import partitions_of_repartition, repartition_gone
from kops.core.streams.program import Step, answers_of, count_of, global_topics, steps_for, tasks_of, topology_facts
from kops.core.streams.program_doubts import BACKWARD, BY_TIME, ORDERS, open_to_order
from kops.operations.engine.spark import Engine, new_stage
from kops.operations.services import Services
from kops.operations.state.compute import changelog_range
from kops.operations.state.facts import StoreFacts
from kops.operations.state.input_offsets import InputOffsets, begins
from kops.operations.state.own_code.snapshot import restored_changelogs
from kops.operations.state.own_code.start import ProgramRun, program_start
from kops.operations.state.snapshot_topics import beyond_committed

if TYPE_CHECKING:
    from kops.spark.programs.jobs import Jobs
    from kops.spark.programs.models import ProgramTask, Run, StoreTask, WaitingRecord
    from kops.spark.reading.batch_source import TaskInput
    from kops.spark.reading.ranges import TopicRange

_TIME_AT = {WINDOWS: -12, SESSIONS: -16}
"""Where in a key the start of a window, or the end of a session, stands: before a number of four bytes, or the start."""
_SHORTEST_SEGMENT_MS = 60_000
"""Stores of older versions drop whole segments, of half the retention or at least a minute (``Stores.defaultSegmentInterval``)."""
_AT_EACH_RECORD = (
    "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__",
    "__emit.interval.ms.kstreams.windowed.aggregation__",
)
"""Settings for how often, by the clock, outer joins and windows that close send results: here it stands still, so they would not."""
_MOST_WAITING = 200_000
_LIMIT = "max.message.bytes"


@dataclass(frozen=True)
class Layout:
    """How the program's topics will be after a move to another number of partitions.

    :param counts: partitions of topics
    :param relaid: inputs whose records are put where the default partitioner puts them, and the number of partitions they were produced for
    """

    counts: Mapping[str, int]
    relaid: Mapping[str, int]

    @property
    def mixes(self) -> bool:
        """Whether records of several partitions meet in one, in an order that no log has."""
        return any(self.counts[topic] % old for topic, old in self.relaid.items())


class ProgramTasks:
    """Which tasks there are, and what each reads.

    :param layout: as the topics are when None
    :raises Refused: when a topic of the program does not exist
    """

    def __init__(
        self,
        services: Services,
        state_file: StateFile,
        program: ProgramRun,
        facts: Sequence[StoreFacts],
        cut: InputOffsets,
        *,
        layout: Layout | None = None,
    ) -> None:
        self._services, self._state_file, self._capture, self._cut = services, state_file, program.capture, cut
        capture, self._base, self._as_records = program.capture, program.base, program.as_records
        self._all_disturbed = program.all_disturbed
        self.stages = {found.store.name: new_stage(services, state_file.application) for found in facts}
        self._facts = {found.store.name: found for found in facts}
        self._written = {store.name: store.changelog or "" for store in capture.stores}
        wanted = {found.number for name in self._facts if (found := capture.subtopology_of(name))}
        self.steps = steps_for(capture, wanted)
        self.needed = list(dict.fromkeys(step.number for step in self.steps))
        self._tasks = tasks_of(capture)
        self.partitions = {**self._partitions(), **(layout.counts if layout else {})}
        self._relaid, self._moves = layout.relaid if layout else {}, layout is not None
        stores = [store for store in capture.stores if store.name in self._facts]
        self.varied = open_to_order(capture, stores, self.needed, self.partitions)
        if layout is not None and layout.mixes:
            self.varied = frozenset(self.needed)
        self._bounds = {place: bound for found in facts for place, bound in found.input_bounds.items()}
        self._starts = begins(facts)
        self._archived: Mapping[TopicPartition, int] = {}
        none_waits = program.nothing_waits or any(found.held for found in facts)  # a snapshot is only taken when nothing waits
        self._waiting = {} if none_waits else self._read_waiting()

    def keep_archived(self, engine: Engine, jobs: Jobs) -> None:
        """Put what archives have of the input where tasks find it; they read the rest from its topics."""
        kept: dict[TopicPartition, int] = {}
        for wanted in {each.topic: each for number in self.needed for each in self.inputs(number)}.values():
            if wanted.topic in engine.archives:
                ends = jobs.keep_archived(engine.archives[wanted.topic], wanted)
                kept |= {TopicPartition(wanted.topic, number): end for number, end in ends.items()}
        self._archived = kept

    def _partitions(self) -> dict[str, int]:
        """Return the number of partitions of all topics that the program names and that exist."""
        named = {topic for node in self._capture.nodes if isinstance(node, captured.Source) for topic in node.topics}
        named |= {topic for each in self._tasks.values() for topic in each.sink_topics or ()}
        named |= {topic.name for each in self._tasks.values() for topic in (*each.repartition_topics, *each.changelogs)}
        found = {name: len(topic.partitions) for name, topic in self._services.kafka.topics.existing(named).items()}
        read = {topic.name for number in self.needed for topic in self._tasks[number].repartition_topics}
        missing = sorted((read | set(global_topics(self._capture))) - found.keys())
        _refuse_missing(self._state_file.application, missing)
        return found

    def tasks_of(self, facts: StoreFacts, *, replacing: bool) -> int:
        """Return how many tasks fill a store.

        :param replacing: the changelog may be recreated with more partitions
        :raises Refused: when its changelog has more or fewer partitions, with which the application would not start
        """
        found = self._capture.subtopology_of(facts.store.name)
        tasks, there = count_of(self._capture, found.number, self.partitions) if found else 0, len(facts.changelog_bounds)
        if not (replacing and there < tasks):
            _refuse_other_count(facts, tasks, "; --write replace recreates the changelog" if there < tasks else "")
        return tasks

    def run(self, program: ProgramRun, folder: str) -> Run:
        """Return what all tasks have in common.

        :param folder: private to this run
        """
        from kops.spark.programs.models import Run

        settings = {f"partitions.{topic}": str(count) for topic, count in self.partitions.items()}
        now = str(int(self._services.now().timestamp() * 1000))
        settings |= {f"limit.{topic}": limit for topic, limit in self._limits().items()}
        settings |= {f"config.{name}": "0" for name in _AT_EACH_RECORD}
        settings |= {"wall_clock": now, "state.dir": folder}
        capture, start = program.capture, program_start(program, folder)
        return Run(start, settings, capture.application, topology_facts(capture), tuple(self._global_pieces()), self.varied)

    def _limits(self) -> dict[str, str]:
        """Return the greatest batch that brokers accept for each internal topic: what is larger, the program's producer is refused."""
        tasks = [self._tasks[number] for number in self.needed]
        topics = {topic.name for each in tasks for topic in (*each.repartition_topics, *each.changelogs) if not topic.is_source_topic}
        settings = self._services.kafka.topics.settings(sorted(topics & self.partitions.keys()))
        return {topic: limit for topic, found in settings.items() if (limit := value_of(found, _LIMIT, ""))}

    def _global_pieces(self) -> Iterator[TaskInput]:
        from kops.spark.reading.batch_source import TaskInput

        places = [TopicPartition(name, number) for name in global_topics(self._capture) for number in range(self.partitions[name])]
        committed = self._state_file.reads_committed
        for place, bound in self._services.kafka.offsets.bounds(places, isolation=self._state_file.isolation).items():
            if not bound.empty:
                yield TaskInput(place.topic, place.partition, bound.log_start_offset, bound.log_end_offset, committed)

    def inputs(self, number: int) -> list[TopicRange]:
        """Return what the tasks of a sub-topology read of its topics."""
        from kops.spark.reading.ranges import TopicRange

        found = []
        for topic in self._tasks[number].source_topics or ():
            ranges = {place.partition: self._range(place) for place in self._bounds if place.topic == topic}
            found.append(TopicRange(topic, ranges, read_committed=self._state_file.reads_committed))
        return found

    def _range(self, place: TopicPartition) -> tuple[int, int]:
        return self._starts[place], max(self._starts[place], self._cut.offsets[place])

    def tasks(self, step: Step) -> list[ProgramTask]:
        """Return the tasks of a step; stores are compared after the last one of their sub-topology."""
        from kops.spark.programs.models import ProgramTask

        number, answers = step.number, answers_of(self._capture, step.number)
        here, is_last = self._tasks[number], not any(other.number == number for other in self.steps[self.steps.index(step) + 1 :])
        needed = {topic.name for each in self.needed for topic in self._tasks[each].repartition_topics}
        inputs, base = [each for each in self.inputs(number) if each.topic not in self._relaid], self._base
        in_files = [*step.topics, *(topic for topic in here.source_topics or () if topic in self._relaid)]
        restored = {} if base is None else restored_changelogs(self._capture, number, base)
        return [
            ProgramTask(
                number,
                partition,
                tuple(piece for each in inputs if (piece := self._tail(each, partition))),
                tuple(topic for topic in in_files if partition < self.partitions[topic]),
                {topic: self._waiting[topic, partition] for topic in step.topics if (topic, partition) in self._waiting},
                tuple(self._store_tasks(here, partition)) if is_last else (),
                tuple(sorted(needed & set(here.sink_topics or ()) - set(step.topics))),  # what it reads is whole already
                self._orders(number),
                self._disturbed(number, partition, is_last=is_last),
                tuple(each.topic for each in inputs if TopicPartition(each.topic, partition) in self._archived),
                {topic: rank for topic, rank in answers.items() if partition < self.partitions[topic]},
                restored,
                self._committed([*(each.topic for each in inputs), *step.topics], partition),
            )
            for partition in range(count_of(self._capture, number, self.partitions))
        ]

    def _orders(self, number: int) -> tuple[str, ...]:
        if number not in self.varied:
            return (BY_TIME,)
        return ORDERS if self._moves else (BY_TIME, BACKWARD)

    def _disturbed(self, number: int, partition: int, *, is_last: bool) -> str:
        from kops.spark.programs.disturbed import MOST_SAMPLED
        from kops.spark.programs.models import SAMPLE, SELDOM, WHOLE

        if self._moves:
            return ""
        if is_last and self._all_disturbed:
            return WHOLE
        if number in self.varied:
            return WHOLE if partition < MOST_SAMPLED else SELDOM
        return SAMPLE if is_last else ""

    def _committed(self, topics: Sequence[str], partition: int) -> dict[str, tuple[int, str]]:
        """Return what the application had committed of a task's topics when the snapshot was taken."""
        then = {} if self._base is None else self._base.manifest.committed
        found = {topic: then.get(TopicPartition(topic, partition)) for topic in topics}
        return {topic: (each.offset, each.metadata or "") for topic, each in found.items() if each is not None}

    def _tail(self, wanted: TopicRange, partition: int) -> TaskInput | None:
        """Return what a task reads of a topic itself: all but what comes from an archive."""
        from kops.spark.reading.batch_source import task_input

        found = task_input(wanted, partition)
        after = self._archived.get(TopicPartition(wanted.topic, partition), 0)
        if found is None or after >= found.end:
            return None
        return replace(found, start=max(found.start, after))

    def _store_tasks(self, here: Subtopology, partition: int) -> Iterator[StoreTask]:
        for name, found in self._facts.items():
            if self._capture.subtopology_of(name) == here:
                as_records = self._as_records and found.store.history_ms is not None
                yield _store_task(self._state_file, found, partition, self._written[name], self.stages[name], as_records=as_records)

    def _read_waiting(self) -> dict[tuple[str, int], list[WaitingRecord]]:
        """Read the records of repartition topics that the application has yet to process."""
        topics = sorted({topic.name for number in self.needed for topic in self._tasks[number].repartition_topics})
        places = [TopicPartition(topic, number) for topic in topics for number in range(self.partitions[topic])]
        isolation = self._state_file.isolation
        ranges = beyond_committed(self._services, places, self._cut.committed, isolation=isolation)
        found: dict[tuple[str, int], list[WaitingRecord]] = {}
        for count, record in enumerate(chain.from_iterable(self._services.kafka.records.read(ranges, isolation=isolation))):
            if count >= _MOST_WAITING:
                raise Refused(f"{record.topic} holds more than {_MOST_WAITING:,} records not processed by the application", hint=CATCH_UP)
            found.setdefault((record.topic, record.partition), []).append((record.key, record.value, record.timestamp or 0))
        return found


def _refuse_missing(application: str, topics: Sequence[str], hint: str = "") -> None:
    """Refuse where topics that a program reads do not exist.

    :raises Refused: naming them
    """
    if topics:
        raise Refused(
            f"{', '.join(topics)}, which {application} reads, {'does' if len(topics) == 1 else 'do'} not exist",
            hint=hint or "see whether it was deleted or renamed: `kops topics list` shows those that exist",
        )


def refuse_lost_repartitions(services: Services, capture: Capture, stores: Collection[str]) -> None:
    """Refuse where repartition topics are gone through which some stores are filled.

    :raises Refused: with the command that creates the first of them as the program would
    """
    numbers = {found.number for name in stores if (found := capture.subtopology_of(name))}
    needed = {step.number for step in steps_for(capture, numbers)}
    tasks = tasks_of(capture)
    read = {topic.name: topic for number in needed for topic in tasks[number].repartition_topics}
    if not read:
        return
    others = {topic for each in tasks.values() for topic in (*each.read_topics, *(log.name for log in each.changelogs))}
    partitions = {name: len(topic.partitions) for name, topic in services.kafka.topics.existing(others).items()}
    missing = sorted(read.keys() - partitions.keys())
    if missing:
        first = read[missing[0]]
        hint = repartition_gone(first.name, partitions_of_repartition(capture, first.name, partitions), first.settings)
        _refuse_missing(capture.application, missing, hint)


def _refuse_other_count(facts: StoreFacts, tasks: int, more: str = "") -> None:
    """Refuse a store whose changelog has more or fewer partitions than tasks fill.

    :param more: another hint
    :raises Refused: naming it
    """
    there = len(facts.changelog_bounds)
    if there != tasks:
        raise Refused(
            f"store {facts.store.name}: {facts.store.changelog} has {there} partitions, and the program has {tasks} tasks that fill it",
            hint=f"see which of its topics was altered; Kafka Streams itself refuses to start so{more}",
        )


def _store_task(
    state_file: StateFile, facts: StoreFacts, partition: int, written: str, stage: str, *, as_records: bool = False
) -> StoreTask:
    """Return what a task compares of a partition of a store.

    :param written: the changelog that the program writes
    :param as_records: as in ``ProgramRun``
    """
    from kops.spark.programs.models import StoreTask
    from kops.spark.reading.batch_source import task_input

    held, window = task_input(changelog_range(state_file, facts), partition), facts.store.window
    time_at = 0 if window is None else _TIME_AT[window.kind]
    expires_ms = 0 if window is None else window.retention_ms + max(window.retention_ms // 2, _SHORTEST_SEGMENT_MS)
    rows = facts.held, facts.base, facts.store.history_ms, as_records
    return StoreTask(facts.store.name, written, held, stage, time_at, expires_ms, *rows)
