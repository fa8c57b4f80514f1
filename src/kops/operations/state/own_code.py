"""Stores computed by the application's own program, which a capture of it names, instead of by what a state file says.

The program runs in JVMs of this machine, one for each of Spark's Python workers, sub-topology by sub-topology. What is compared, staged,
judged, written and read back is as with a state file; only what computes is another.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kops.core.errors import Refused, UsageProblem
from kops.core.models import READ_COMMITTED, READ_UNCOMMITTED, TopicPartition, isolation_of
from kops.core.secret_shapes import HIDDEN
from kops.core.statefile import Form, StateFile
from kops.core.statefile import Store as StateStore
from kops.core.statefile.draft_program import known_formats
from kops.core.statefile.fields import nearest
from kops.core.statefile.models import GUARANTEES, KEY_VALUE, PLAIN, PROGRAM, Aggregation, Windows
from kops.core.statefile.models import SESSION as SESSIONS
from kops.core.statefile.models import WINDOW as WINDOWS
from kops.core.statefile.sources import LATEST, WALL_CLOCK, Source, Start
from kops.core.streams import capture as captured
from kops.core.streams.capture import Capture, Subtopology
from kops.core.streams.program import (
    Step,
    answer_topics,
    count_of,
    global_topics,
    has_windows,
    reason_against,
    steps_for,
    tasks_of,
    topics_of,
    topology_facts,
    with_pattern_topics,
)
from kops.core.streams.program_doubts import BY_TIME, ORDERS, doubts_about, open_to_order
from kops.gateways.machine.agent import LAUNCH, require_agent, require_runner
from kops.gateways.machine.private_files import run_folder
from kops.gateways.machine.program import ProgramStart
from kops.operations.engine.spark import Engine, drop_stage, new_stage
from kops.operations.services import Services
from kops.operations.state.compute import Computed, changelog_range, damaged_of, of_places, unproven
from kops.operations.state.evidence import proof_of
from kops.operations.state.evidence_doubts import of_emptied
from kops.operations.state.exactness import Exactness, worst
from kops.operations.state.facts import StoreFacts
from kops.operations.state.input_offsets import InputOffsets, amount_text, begins
from kops.operations.state.own_code_exactness import of_runs
from kops.operations.state.snapshot_topics import beyond_committed

if TYPE_CHECKING:
    from kops.spark.programs.jobs import Ran, StoreCounts
    from kops.spark.programs.tasks import Key, ProgramTask, Run
    from kops.spark.reading.batch_source import BatchSource, Piece
    from kops.spark.reading.ranges import TopicRange

_BYTES = Form("bytes")
_AT_ONCE = "exactly_once"
_WALL_CLOCK_EXTRACTOR = "org.apache.kafka.streams.processor.WallclockTimestampExtractor"
_OWN_TIMES = (
    "org.apache.kafka.streams.processor.FailOnInvalidTimestamp",
    "org.apache.kafka.streams.processor.LogAndSkipOnInvalidTimestamp",
    "org.apache.kafka.streams.processor.UsePartitionTimeOnInvalidTimestamp",
)
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
INTO_OPTION = "--into"
_CATCH_UP = "start the application until it has caught up, and stop it again"
_TYPES = {
    captured.TIMESTAMPED_KEY_VALUE: KEY_VALUE,
    captured.WINDOW: WINDOWS,
    captured.TIMESTAMPED_WINDOW: WINDOWS,
    captured.SESSION: SESSIONS,
}


@dataclass(frozen=True)
class ProgramRun:
    """A captured program that is to compute its stores.

    :param seconds: how long it may take to construct KafkaStreams
    :param nothing_waits: unprocessed records of its repartition topics count as processed, since the application will not process them for
        these stores
    """

    capture: Capture
    seconds: float = 120.0
    nothing_waits: bool = False


def program_state_file(capture: Capture, path: str, names: Sequence[str]) -> tuple[StateFile, list[str]]:
    """Return a program's stores as a state file has them, and why others of its stores are left out, one sentence each.

    :param path: of the capture
    :param names: of the stores; all that can be rebuilt when empty
    :raises UsageProblem: when it has no such store
    :raises Refused: when one of them, or all, cannot be rebuilt, or the captured command cannot be started again
    :raises MissingRequirement: when kops was installed without its Java parts
    """
    require_agent()
    require_runner()
    _refuse_command(capture, path)
    known = {store.name: store for store in capture.stores}
    for name in names:
        if name not in known:
            raise UsageProblem(f"{path} has no store {name}", hint=f"{nearest(name, known)}stores: {', '.join(known)}")
    reasons = {name: reason_against(capture, store) for name, store in known.items()}
    unfit = [f"store {name} is left as it is: {reason}" for name, reason in reasons.items() if reason and name not in names]
    for name in names:
        if reasons[name]:
            raise Refused(f"store {name} cannot be rebuilt by its program: {reasons[name]}", hint="name others with --store")
    chosen = [store for name, store in known.items() if not reasons[name] and (not names or name in names)]
    if not chosen:
        raise Refused(f"no store of {path} can be rebuilt by its program: {'; '.join(unfit) or 'it has none'}")
    effective, consumer = capture.settings.effective, capture.settings.main_consumer or {}
    committed = str(consumer.get("isolation.level")) == READ_COMMITTED
    return (
        StateFile(
            path=path,
            application=capture.application,
            stores=tuple(_store(capture, store) for store in chosen),
            guarantee=GUARANTEES[str(effective.get("processing.guarantee")).startswith(_AT_ONCE)],
            isolation=READ_COMMITTED if committed else READ_UNCOMMITTED,
            says_isolation=True,
        ),
        unfit,
    )


def with_topics(services: Services, capture: Capture) -> Capture:
    """Return a capture with the topics that its patterns match, if it has any.

    :raises Refused: where a pattern matches a topic that the program itself makes
    """
    has_patterns = any(isinstance(node, captured.Source) and node.pattern for node in capture.nodes)
    return with_pattern_topics(capture, services.kafka.topics.names()) if has_patterns else capture


def _refuse_command(capture: Capture, path: str) -> None:
    if any(HIDDEN in word for word in capture.command):
        raise Refused(
            f"the command of {path} had secrets, which are not in it, so it cannot be started again",
            hint="give the program its secrets by variables or files, and capture it again",
        )
    if LAUNCH in capture.command:
        raise Refused(f"{path} was captured with --topology-class, and not by a start command", hint="capture it by its start command")
    if capture.settings.main_consumer is None:
        raise Refused(
            f"{path} does not say where the program begins to read, nor whether it reads aborted records: the settings of its consumers"
            " could not be read",
            hint="`unknown` in it says why; capture the program again",
        )


def _store(capture: Capture, store: captured.Store) -> StateStore:
    found = capture.subtopology_of(store.name)
    if found is None or store.changelog is None:
        raise ValueError(store.name)
    sources = [_source(capture, topic) for topic in topics_of(capture, found.number).external]
    if not sources:
        raise Refused(f"store {store.name} is filled from no topic", hint="name others with --store")
    kind = _TYPES.get(store.kind or "", PLAIN)
    key_form, value_form = map(Form, known_formats(capture, store))
    window = None
    if kind in (WINDOWS, SESSIONS):
        size = store.window_size_ms or 0
        window = Windows(SESSIONS if kind == SESSIONS else WINDOWS, size, max(1, size), store.grace_ms or 0, store.retention_ms or 0)
    return StateStore(
        name=store.name,
        source=sources[0],
        others=tuple(sources[1:]),
        aggregate=Aggregation(PROGRAM, value_form),
        key_form=key_form,
        changelog=store.changelog,
        repartition_topic=next((topic.name for topic in found.repartition_topics), None),
        custom_partitioner=True,
        type=kind,
        window=window,
        changelog_settings=next((topic.settings for topic in found.changelogs if topic.name == store.changelog), None),
    )


def refuse_moving(state_file: StateFile, unfit: Sequence[str], what: str) -> None:
    """Refuse to move an application, or to make another one, of which some stores would be as they were.

    :param unfit: why stores of the program are left out, one sentence each
    :param what: the option
    :raises Refused: when a store is left out, or when only the program's own timestamp extractor knows the partition time to commit
    """
    if unfit:
        raise Refused(f"{what} needs all stores of the program, and {unfit[0]}", hint="name those that are enough with --store")
    for source in {source.topic: source for store in state_file.stores for source in store.inputs}.values():
        if source.timestamp not in (None, WALL_CLOCK) and what != INTO_OPTION:
            raise Refused(
                f"{what} commits the time of the last record with each offset, which for {source.topic} only {source.timestamp} knows",
                hint="`kops offsets reset` moves the application, and `rebuild` then computes up to there",
            )


def _source(capture: Capture, topic: str) -> Source:
    """Return a topic with what the program says of its times, and of where it began to read."""
    nodes = [node for node in capture.nodes if isinstance(node, captured.Source) and topic in node.topics]
    default = str(capture.settings.effective.get("default.timestamp.extractor") or _OWN_TIMES[0])
    extractor = next((node.timestamp_extractor for node in nodes if node.timestamp_extractor), default)
    resets = [node.reset.get(topic) for node in nodes]
    reset = next((each for each in resets if each), None) or (capture.settings.main_consumer or {}).get("auto.offset.reset") or "earliest"
    return Source(
        topic,
        _BYTES,
        _BYTES,
        start=None if str(reset).lower() == "earliest" else Start(LATEST),
        timestamp=WALL_CLOCK if extractor == _WALL_CLOCK_EXTRACTOR else None if extractor in _OWN_TIMES else extractor,
    )


def compute_by_program(
    engine: Engine,
    state_file: StateFile,
    program: ProgramRun,
    facts: Sequence[StoreFacts],
    cut: InputOffsets,
    *,
    damaged: Mapping[str, frozenset[int] | None] | None = None,
    apart: Collection[str] = (),
    services: Services | None = None,
    replacing: bool = False,
) -> list[Computed]:
    """Run the tasks that fill some stores, and stage what their changelogs lack.

    :param damaged: and ``apart``: as in ``compute.compute_stores``
    :param services: include the topics that a plan will create
    :param replacing: changelogs may be recreated, so that they need not fit
    :raises Refused: where Spark's tasks do not run on this machine, or cannot read whole record batches
    :raises OperationFailed: when the program throws, or its JVM ends
    """
    batches = engine.kafka().batches
    if batches is None:
        raise Refused(
            f"a program runs only where Spark does on this machine (here: {engine.master}), over a connection that kops itself can open",
            hint="leave out --master",
        )
    facts = [replace(found, damaged=damaged_of(found, damaged or {})) for found in facts]
    plan = _Plan(services or engine.services, state_file, program, facts, cut)
    inputs = [wanted for number in plan.needed for wanted in plan.inputs(number)]
    changelogs = [changelog_range(state_file, found) for found in facts]
    facts = [replace(found, tasks=plan.tasks_of(found, replacing=replacing)) for found in facts]
    names = ", ".join(plan.stages)
    engine.services.progress.step(
        f"running {len(plan.needed)} sub-topologies for {names} over"
        f" {amount_text(engine.services, [engine.in_kafka(wanted) for wanted in inputs], changelogs)}"
    )
    try:
        with _folder(engine) as folder, engine.reading(*map(engine.in_kafka, inputs), *changelogs):
            run = plan.run(program, folder)
            plan.keep_archived(engine, run)
            ran = {step.number: _ran(batches, run, plan.tasks(step)) for step in plan.steps}
            computed = [_judged(engine, program.capture, found, ran, plan) for found in facts]
        return [unproven(found) if found.facts.store.name in apart else found for found in computed]
    except BaseException:
        engine.cancel_jobs()
        for stage in plan.stages.values():
            drop_stage(stage)
        raise


def _ran(batches: BatchSource, run: Run, tasks: Sequence[ProgramTask]) -> Ran:
    from kops.spark.programs.jobs import run_subtopology

    return run_subtopology(batches, run, tasks)


@contextmanager
def _folder(engine: Engine) -> Iterator[str]:
    """Give a private folder; with it the programs of this run end."""
    folder = tempfile.mkdtemp(prefix="program-", dir=run_folder(engine.services.directories.state / "spark"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Plan:
    """Which tasks there are, and what each reads.

    :raises Refused: when a topic of the program does not exist
    """

    def __init__(
        self,
        services: Services,
        state_file: StateFile,
        program: ProgramRun,
        facts: Sequence[StoreFacts],
        cut: InputOffsets,
    ) -> None:
        self._services, self._state_file, self._capture, self._cut = services, state_file, program.capture, cut
        capture = program.capture
        self.stages = {found.store.name: new_stage(services, state_file.application) for found in facts}
        self._facts = {found.store.name: found for found in facts}
        self._written = {store.name: store.changelog or "" for store in capture.stores}
        wanted = {found.number for name in self._facts if (found := capture.subtopology_of(name))}
        self.steps = steps_for(capture, wanted)
        self.needed = list(dict.fromkeys(step.number for step in self.steps))
        self._tasks = tasks_of(capture)
        self.partitions = self._partitions()
        stores = [store for store in capture.stores if store.name in self._facts]
        self.varied = open_to_order(capture, stores, self.needed, self.partitions)
        self._bounds = {place: bound for found in facts for place, bound in found.input_bounds.items()}
        self._starts = begins(facts)
        self._archived: Mapping[TopicPartition, int] = {}
        none_waits = program.nothing_waits or any(found.held for found in facts)  # a snapshot is only taken when nothing waits
        self._waiting = {} if none_waits else self._read_waiting()

    def keep_archived(self, engine: Engine, run: Run) -> None:
        """Put what archives have of the input where tasks find it; they read the rest from its topics."""
        from kops.spark.programs.jobs import keep_archived

        kept: dict[TopicPartition, int] = {}
        for wanted in {each.topic: each for number in self.needed for each in self.inputs(number)}.values():
            if wanted.topic in engine.archives:
                ends = keep_archived(engine.session, run, engine.archives[wanted.topic], wanted)
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
        if missing:
            raise Refused(
                f"{', '.join(missing)}, which {self._state_file.application} reads, {'does' if len(missing) == 1 else 'do'} not exist",
                hint="Kafka Streams makes its repartition topics when the application starts",
            )
        return found

    def tasks_of(self, facts: StoreFacts, *, replacing: bool) -> int:
        """Return how many tasks fill a store.

        :param replacing: the changelog may be recreated with more partitions
        :raises Refused: when its changelog has more or fewer partitions, with which the application would not start
        """
        found = self._capture.subtopology_of(facts.store.name)
        tasks, there = count_of(self._capture, found.number, self.partitions) if found else 0, len(facts.changelog_bounds)
        if there > tasks or (there < tasks and not replacing):
            raise Refused(
                f"store {facts.store.name}: {facts.store.changelog} has {there} partitions, and the program has {tasks} tasks that fill it",
                hint="see which of its topics was altered; Kafka Streams itself refuses to start so"
                + ("; --write replace recreates the changelog" if there < tasks else ""),
            )
        return tasks

    def run(self, program: ProgramRun, folder: str) -> Run:
        """Return what all tasks have in common.

        :param folder: private to this run
        """
        from kops.spark.programs.tasks import Run

        capture = program.capture
        directory = capture.folder if capture.folder and Path(capture.folder).is_dir() else str(Path.cwd())
        entries = tuple((Path(entry.path).name, entry.sha256) for entry in capture.class_path)
        start = ProgramStart(capture.command, directory, folder, os.getpid(), entries, capture.class_path_sha256, program.seconds)
        settings = {f"partitions.{topic}": str(count) for topic, count in self.partitions.items()}
        now = str(int(self._services.now().timestamp() * 1000))
        settings |= {f"config.{name}": "0" for name in _AT_EACH_RECORD}
        settings |= {"wall_clock": now, "state.dir": folder}
        return Run(start, settings, capture.application, topology_facts(capture), tuple(self._global_pieces()), self.varied)

    def _global_pieces(self) -> Iterator[Piece]:
        from kops.spark.reading.batch_source import Piece

        places = [TopicPartition(name, number) for name in global_topics(self._capture) for number in range(self.partitions[name])]
        bounds = self._services.kafka.offsets.bounds(places, isolation=self._state_file.isolation) if places else {}
        for place, bound in bounds.items():
            if bound.log_start_offset < bound.log_end_offset:
                committed = self._state_file.reads_committed
                yield Piece(place.topic, place.partition, bound.log_start_offset, bound.log_end_offset, committed)

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
        from kops.spark.programs.tasks import ProgramTask

        number, answers = step.number, answer_topics(self._capture)
        here, is_last = self._tasks[number], not any(other.number == number for other in self.steps[self.steps.index(step) + 1 :])
        read = [topic.name for topic in here.repartition_topics]
        repartition = [topic for topic in read if step.answers or topic not in answers]
        needed = {topic.name for each in self.needed for topic in self._tasks[each].repartition_topics}
        inputs = self.inputs(number)
        return [
            ProgramTask(
                number,
                partition,
                tuple(piece for each in inputs if (piece := self._tail(each, partition))),
                tuple(topic for topic in repartition if partition < self.partitions[topic]),
                {topic: self._waiting[topic, partition] for topic in repartition if (topic, partition) in self._waiting},
                tuple(self._store_tasks(here, partition)) if is_last else (),
                tuple(sorted(needed & set(here.sink_topics or ()))),
                ORDERS if number in self.varied else (BY_TIME,),
                tuple(each.topic for each in inputs if TopicPartition(each.topic, partition) in self._archived),
                tuple(topic for topic in read if topic in answers and partition < self.partitions[topic]),
            )
            for partition in range(count_of(self._capture, number, self.partitions))
        ]

    def _tail(self, wanted: TopicRange, partition: int) -> Piece | None:
        """Return what a task reads of a topic itself: all but what comes from an archive."""
        found = _piece(wanted, partition)
        after = self._archived.get(TopicPartition(wanted.topic, partition), 0)
        if found is None or after >= found.end:
            return None
        return replace(found, start=max(found.start, after))

    def _store_tasks(self, here: Subtopology, partition: int) -> Iterator[Any]:
        from kops.spark.programs.tasks import StoreTask

        for name, found in self._facts.items():
            if self._capture.subtopology_of(name) == here:
                held, window = _piece(changelog_range(self._state_file, found), partition), found.store.window
                time_at = 0 if window is None else _TIME_AT[window.kind]
                expires_ms = 0 if window is None else window.retention_ms + max(window.retention_ms // 2, _SHORTEST_SEGMENT_MS)
                yield StoreTask(name, self._written[name], held, self.stages[name], time_at, expires_ms, found.held)

    def _read_waiting(self) -> dict[tuple[str, int], list[Key]]:
        """Read the records of repartition topics that the application has yet to process."""
        topics = sorted({topic.name for number in self.needed for topic in self._tasks[number].repartition_topics})
        places = [TopicPartition(topic, number) for topic in topics for number in range(self.partitions[topic])]
        isolation = isolation_of(committed=self._state_file.reads_committed)
        ranges = beyond_committed(self._services, places, self._cut.committed, isolation=isolation)
        found: dict[tuple[str, int], list[Key]] = {}
        for count, record in enumerate(
            record for batch in (self._services.kafka.records.read(ranges, isolation=isolation) if ranges else ()) for record in batch
        ):
            if count >= _MOST_WAITING:
                raise Refused(f"{record.topic} holds more than {_MOST_WAITING:,} records not processed by the application", hint=_CATCH_UP)
            found.setdefault((record.topic, record.partition), []).append((record.key, record.value, record.timestamp or 0))
        return found


def _piece(wanted: TopicRange, partition: int) -> Piece | None:
    from kops.spark.reading.batch_source import Piece

    start, end = wanted.ranges.get(partition, (0, 0))
    return Piece(wanted.topic, partition, start, end, wanted.read_committed, partition in wanted.trimmed) if end > start else None


def _judged(engine: Engine, capture: Capture, facts: StoreFacts, ran: Mapping[int, Ran], plan: _Plan) -> Computed:
    """Return a store with its class: A only where one partition feeds each task, or all orders that were tried gave the same."""
    from kops.spark.stores.jobs import Counts

    store = next(each for each in capture.stores if each.name == facts.store.name)
    found = capture.subtopology_of(store.name)
    if found is None:
        raise ValueError(store.name)
    concerned = [found.number, *topics_of(capture, found.number).upstream]
    here: StoreCounts = ran[found.number].stores[store.name]
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
    starts = facts.starts
    lost = [str(place) for place, bound in sorted(facts.input_bounds.items()) if bound.log_start_offset > starts.get(place, 0)]
    exactness = worst(
        [
            facts.exactness,
            *of_runs(
                doubts_about(capture, store, plan.partitions),
                here,
                [ran[number] for number in concerned],
                windows=has_windows(capture, concerned),
            ),
            Exactness("D", (f"the oldest records of {', '.join(lost[:3])} are gone",)) if lost else Exactness("A"),
        ]
    )
    actions = here.staged.actions
    proof = proof_of(live=here.live, expected=here.keys, actions=actions, damaged=facts.damaged, whole=facts.whole, lossy=facts.lossy)
    emptied = of_emptied(facts.store, [number for number in facts.emptied if not actions.get(number)])
    places = of_places(engine.session, facts, plan.stages[store.name], actions, facts.damaged)
    return Computed(facts, plan.stages[store.name], counts, worst([exactness, emptied, places]), worst([exactness, emptied]).grade, proof)
