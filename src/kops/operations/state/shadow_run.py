"""How a shadow is made, watched until it is through, and compared."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kops.core.durations import duration_text
from kops.core.errors import OperationFailed, Refused, StateMoved
from kops.core.models import READ_COMMITTED, READ_UNCOMMITTED, CommittedOffset, NewTopic, TopicPartition
from kops.core.plan import Plan
from kops.core.statefile import StateFile
from kops.core.streams.capture import BUFFER, Source
from kops.core.streams.local_state import CATCH_UP
from kops.core.streams.program import count_of, tasks_of
from kops.core.streams.shadow import Progress, done_of, facts_before_start, new_shadow, of_repeated, shadow_topic, waited_for, waited_text
from kops.core.topics.settings import as_new
from kops.gateways.machine.agent import command_text
from kops.gateways.machine.shadow import LOOK_SECONDS, ShadowProgram, ShadowStart
from kops.operations.engine.spark import Engine, new_stage
from kops.operations.engine.stable import settled_bounds
from kops.operations.services import Services
from kops.operations.state.compute import changelog_range
from kops.operations.state.facts import StoreFacts
from kops.operations.state.input_offsets import InputOffsets, begins, refuse_running_group
from kops.operations.state.own_code.start import CONSTRUCTION_SECONDS, ProgramRun
from kops.operations.state.own_code.tasks import refuse_missing, refuse_other_count, store_task
from kops.operations.state.shadow_change import ShadowArguments, plan_shadow
from kops.operations.state.snapshot_topics import unprocessed

if TYPE_CHECKING:
    from kops.spark.programs.jobs import StoreCounts
    from kops.spark.programs.shadow import ShadowTask
    from kops.spark.reading.ranges import TopicRange

_TIMES = ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms", "message.timestamp.difference.max.ms")
_KEPT = ("max.message.bytes", "segment.bytes", "compression.type", "min.insync.replicas", *_TIMES)
"""Settings of an internal topic that its shadow has too; others, such as retention, might delete what is compared."""
_OWN_TIMES = {"message.timestamp.type": "CreateTime"}
_NAMED = 3

Ranges = Mapping[TopicPartition, tuple[int, int]]


@dataclass(frozen=True)
class Outcome:
    """What came of a shadow.

    :param seen: what it said at its end
    :param counts: by store
    :param doubts: what makes the result doubtful, one sentence each
    """

    seen: Progress
    counts: Mapping[str, StoreCounts]
    doubts: tuple[str, ...]


class Shadow:
    """A shadow of an application.

    :raises Refused: when topics of the program do not exist or do not fit, or records wait in its repartition topics
    """

    def __init__(
        self,
        engine: Engine,
        state_file: StateFile,
        program: ProgramRun,
        facts: Sequence[StoreFacts],
        cut: InputOffsets,
        *,
        services: Services,
    ) -> None:
        self._services, self._engine, self._batches = services, engine, engine.require_batches("a shadow is compared")
        self._state_file, self._program, self._facts, self._cut = state_file, program, facts, cut
        self._capture = program.capture
        self._isolation = state_file.isolation
        self.name = new_shadow(state_file.application)
        self.folder = services.directories.state / "shadows" / self.name
        self.outcome: Outcome | None = None
        self._sources, self._changelogs, self._repartitions = self._named()
        existing = services.kafka.topics.existing({*self._sources, *self._changelogs, *self._repartitions})
        self.partitions = {name: len(topic.partitions) for name, topic in existing.items()}
        self._refuse()
        settings = services.kafka.topics.settings([name for name in existing if name not in self._sources])
        self._topics = [
            self._like(as_new(existing[name], settings[name])) for name in (*self._changelogs, *self._repartitions) if name in existing
        ]
        self._starts = self._first_offsets()
        self._needed = self._needed_ranges()
        self.stages = {found.store.name: new_stage(services, state_file.application) for found in facts}

    def plan(self) -> Plan[ShadowArguments]:
        _, records = done_of(self._needed, Progress("", {}, {}))
        arguments = ShadowArguments(
            application=self._state_file.application,
            shadow=self.name,
            command=command_text(self._capture.command),
            folder=str(self.folder),
            topics=tuple(topic.name for topic in self._topics),
            work=self._work,
        )
        summary = f"run {arguments.command} as {self.name}, beside {arguments.application}, over {records:,} records"
        notes = (
            f"input: what {arguments.application} has committed, and no more; output: to its own repartition topics and changelogs only",
            f"local state: {self.folder / 'state'}, as large as an instance's that has all tasks",
        )
        return plan_shadow(self._services, arguments, summary=summary, notes=notes)

    def _named(self) -> tuple[list[str], list[str], list[str]]:
        """Return the topics that the program reads, its changelogs, and its repartition topics."""
        tasks = tasks_of(self._capture).values()
        repartitions = sorted({topic.name for each in tasks for topic in each.repartition_topics})
        changelogs = sorted({topic.name for each in tasks for topic in each.changelogs if not topic.is_source_topic})
        is_global = {name for each in self._capture.subtopologies if each.is_global for name in each.nodes}
        nodes = [node for node in self._capture.nodes if isinstance(node, Source) and node.name not in is_global]
        sources = {topic for node in nodes for topic in node.topics} | {topic for each in tasks for topic in each.source_topics or ()}
        return sorted(sources - {*repartitions}), changelogs, repartitions

    def _refuse(self) -> None:
        missing = [name for name in (*self._sources, *self._repartitions) if name not in self.partitions]
        refuse_missing(self._state_file.application, missing)
        for found in self._facts:
            here = self._capture.subtopology_of(found.store.name)
            refuse_other_count(found, count_of(self._capture, here.number, self.partitions) if here else 0)
        places = [TopicPartition(topic, number) for topic in self._repartitions for number in range(self.partitions[topic])]
        for place, (start, end) in unprocessed(self._services, places, self._cut.committed, isolation=self._isolation).items():
            raise Refused(
                f"{place} holds records from offset {start} to {end} that {self._state_file.application} has not processed; a shadow would"
                " process them, and they would count twice",
                hint=CATCH_UP,
            )

    def _like(self, topic: NewTopic) -> NewTopic:
        kept = {name: value for name, value in topic.settings.items() if name in _KEPT}
        policy = {"cleanup.policy": "compact"} if topic.name in self._changelogs else {"cleanup.policy": "delete", "retention.ms": "-1"}
        name = shadow_topic(topic.name, self._state_file.application, self.name)
        return NewTopic(name, topic.partitions, topic.replication_factor, {**kept, **_OWN_TIMES, **policy})

    def _first_offsets(self) -> dict[TopicPartition, int]:
        places = [TopicPartition(topic, number) for topic in self._sources for number in range(self.partitions[topic])]
        found = {place: bound.log_start_offset for place, bound in self._services.kafka.offsets.bounds(places).items()}
        return {**found, **begins(self._facts)}

    def _needed_ranges(self) -> Ranges:
        """Return what counts of the topics that feed the stores; an aborted or unfinished transaction may end it earlier."""
        wanted = [place for found in self._facts for place in found.input_bounds]
        bounds = self._services.kafka.offsets.bounds(wanted, isolation=self._isolation)
        starts = {place: self._starts[place] for place in wanted}
        return {place: (start, max(start, min(self._cut.offsets[place], bounds[place].log_end_offset))) for place, start in starts.items()}

    def _work(self) -> None:
        """Make it, run it until it is through, let it close, and compare."""
        services, program = self._services, self._program
        self.folder.mkdir(parents=True, mode=0o700)
        for error in services.kafka.topics.create(self._topics).values():
            if error is not None:
                raise error
        own = dict.fromkeys(self._own_places(), 0)
        starts = {place: CommittedOffset(offset, "") for place, offset in {**self._starts, **own}.items()}
        for error in services.kafka.groups.commit(self.name, starts).values():
            if error is not None:
                raise error
        capture = program.capture
        start = ShadowStart(
            command=capture.command,
            directory=program.directory,
            folder=str(self.folder),
            application=capture.application,
            shadow=self.name,
            cuts={str(place): self._needed[place][1] if place in self._needed else first for place, first in self._starts.items()},
            topology=facts_before_start(capture),
            class_path=program.class_path,
            class_path_sha256=capture.class_path_sha256,
            seconds=CONSTRUCTION_SECONDS,
        )
        services.progress.step(f"starting {command_text(capture.command)} as {self.name}")
        with ShadowProgram(start) as running:
            services.progress.step(f"waiting until {self.name} is through")
            ends = self._watch(running)
            services.progress.step(f"closing {self.name}")
            seen = running.close()
        later = self._own_ends()
        more = sum(later[place][1] - end for place, (_, end) in ends.items())
        doubts = [f"{more} records in its repartition topics came after the shadow was through, and were not processed"] if more else []
        self.outcome = Outcome(seen, self._compared(), (*doubts, *of_repeated(seen, exactly_once=self._state_file.exactly_once)))
        self._refuse_moved()

    def _refuse_moved(self) -> None:
        """Refuse where the application did something while its shadow ran.

        :raises StateMoved: naming it
        """
        application = self._state_file.application
        refuse_running_group(self._services, application)
        now = self._services.kafka.groups.committed([application], stable=True)[application]
        moved = sorted(str(place) for place in {*now, *self._cut.committed} if now.get(place) != self._cut.committed.get(place))
        if moved:
            raise StateMoved(
                f"{application} has committed {', '.join(moved[:_NAMED])} while its shadow ran", hint="see that it is stopped everywhere"
            )

    def _watch(self, running: ShadowProgram) -> Ranges:
        """Wait until the shadow is through; return the ends of its repartition topics.

        :raises OperationFailed: when it stands still for too long
        """
        shadow = self._program.shadow
        still_seconds = shadow.still_ms / 1000 if shadow else 0
        since, before, waited = time.monotonic(), None, "its threads to start"
        while True:
            seen = running.look()
            committed: dict[TopicPartition, int] = {}
            if seen is not None:
                self._services.progress.advance(*done_of(self._needed, seen), "records")
                input_left = waited_for(self._needed, seen, seen.after)
                waited = waited_text(input_left)
                if not input_left:
                    ends, settled = self._own_ends(), self._settled()
                    seen = running.look() or seen
                    committed = self._committed()
                    left = waited_for({**self._needed, **ends}, seen, committed)
                    if not left and settled and self._own_ends() == ends:
                        return ends
                    waited = waited_text(left) or "its repartition topics to stand still"
            moment = (seen and (seen.state, dict(seen.positions), dict(seen.after)), committed)
            if moment != before:
                since, before = time.monotonic(), moment
            elif time.monotonic() - since > still_seconds:
                state = f" ({seen.state})" if seen else ""
                raise OperationFailed(
                    f"{self.name}{state} has stood still for {duration_text(round(still_seconds * 1000))}; it waits for {waited}",
                    hint="--still-for DURATION gives it longer; the application itself may get no further with these records",
                )
            time.sleep(LOOK_SECONDS)

    def _committed(self) -> dict[TopicPartition, int]:
        found = self._services.kafka.groups.committed([self.name])[self.name]
        return {place: each.offset for place, each in found.items()}

    def _own_places(self) -> list[TopicPartition]:
        """Return the partitions of its repartition topics."""
        return [
            TopicPartition(shadow_topic(name, self._state_file.application, self.name), number)
            for name in self._repartitions
            for number in range(self.partitions[name])
        ]

    def _own_ends(self) -> dict[TopicPartition, tuple[int, int]]:
        """Return the ranges of its repartition topics; what it has processed it may have deleted."""
        bounds = self._services.kafka.offsets.bounds(self._own_places(), isolation=self._isolation)
        return {place: (0, bound.log_end_offset) for place, bound in bounds.items()}

    def _settled(self) -> bool:
        """Whether no transaction is open in its repartition topics: the markers of one that is committed come one after the other."""
        places, offsets = self._own_places(), self._services.kafka.offsets
        return offsets.bounds(places, isolation=READ_COMMITTED) == offsets.bounds(places, isolation=READ_UNCOMMITTED)

    def _compared(self) -> dict[str, StoreCounts]:
        from kops.spark.programs.shadow import compare_with_shadow

        changelogs = {found.store.name: self._written(found) for found in self._facts}
        self._services.progress.step(f"comparing the changelogs of {self.name} and {self._state_file.application}")
        held = [changelog_range(self._state_file, found) for found in self._facts]
        with self._engine.reading(*changelogs.values(), *held):
            return compare_with_shadow(self._batches, list(self._comparisons(changelogs)))

    def _comparisons(self, changelogs: Mapping[str, TopicRange]) -> Iterator[ShadowTask]:
        from kops.spark.programs.shadow import ShadowTask
        from kops.spark.reading.batch_source import piece_of

        kinds = {store.name: store.kind for store in self._capture.stores}
        for found in self._facts:
            name = found.store.name
            for partition in sorted(found.changelog_bounds):
                written = changelogs[name]
                task = store_task(self._state_file, found, partition, written.topic, self.stages[name])
                yield ShadowTask(task, partition, piece_of(written, partition), timed=kinds[name] != BUFFER)

    def _written(self, facts: StoreFacts) -> TopicRange:
        """Return the whole of a changelog of the shadow, once no transaction is open in it."""
        from kops.spark.reading.ranges import TopicRange

        topic = shadow_topic(facts.store.changelog, self._state_file.application, self.name)
        places = [TopicPartition(topic, number) for number in sorted(facts.changelog_bounds)]
        bounds = settled_bounds(self._services, places)
        ranges = {place.partition: (bound.log_start_offset, bound.log_end_offset) for place, bound in bounds.items()}
        return TopicRange(topic, ranges, read_committed=self._state_file.exactly_once)
