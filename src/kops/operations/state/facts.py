"""What the cluster shows about a store before anything is computed, and what is refused because of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kops.core.errors import ConfigError, Refused
from kops.core.findings import Finding
from kops.core.models import Bounds, Topic, TopicPartition, isolation_of
from kops.core.statefile import StateFile, Store
from kops.core.statefile.fields import nearest
from kops.core.streams.lost_topics import CHANGELOG_GONE, repartition_gone
from kops.core.topics.names import no_topics_text
from kops.operations.engine.stable import bounds_of_application, own_transactions
from kops.operations.services import Services
from kops.operations.state.archived_input import ArchivedInput, archived_findings, cleanup_policy, with_archives
from kops.operations.state.input_starts import find_starts, oldest_commits, starts_after_snapshot
from kops.operations.state.lost_records import BufferLog, lossy_partitions, read_buffers
from kops.operations.state.rules.statement import input_log, statement, unknown_changes


@dataclass(frozen=True)
class StoreFacts:
    """One store and the topics that belong to it.

    :param input_bounds: of the input topics
    :param changelog_bounds: up to the end; up to the last stable offset for an exactly-once application
    :param settings: of the changelog
    :param findings: what its topics, their settings and the state file show
    :param loose: for a grouped table: not every change of the table is known, or not their order
    :param tasks: number of tasks that fill the store, one per partition of its own topics
    :param starts: where the application began to read its input, as far as the state file says it
    :param before: bounds of the changelog as it is, if it is to count as empty
    :param base: path of the rows of a snapshot that the store starts from; None: from nothing
    :param damaged: partitions of the changelog that the operator declared damaged: their keys are not evidence
    :param waiting: offsets of input records that wait in the repartition topic, and do not count yet
    :param held: path of the rows of a snapshot that replaces the changelog; then bounds and settings are those of the snapshot too
    :param output_bounds: of the topic that the application writes the store's table to, if the state file names one
    :param buffer_bounds: of the changelog of the buffer of ``suppress()`` behind the store, if the state file names one
    """

    store: Store
    input_bounds: Mapping[TopicPartition, Bounds]
    changelog_bounds: Mapping[int, Bounds]
    settings: Mapping[str, str]
    findings: tuple[Finding, ...] = ()
    loose: bool = False
    tasks: int = 0
    starts: Mapping[TopicPartition, int] = field(default_factory=dict)
    before: Mapping[int, Bounds] | None = None
    waiting: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    base: str | None = None
    damaged: frozenset[int] = frozenset()
    output_bounds: Mapping[int, Bounds] = field(default_factory=dict)
    buffer_bounds: Mapping[int, Bounds] = field(default_factory=dict)
    held: str | None = None

    def without_changelog(self) -> StoreFacts:
        """Return the facts as if the changelog had no records and no damage, so that the whole store differs."""
        nothing = {number: Bounds(0, 0) for number in self.changelog_bounds}
        return replace(self, changelog_bounds=nothing, before=self.changelog_bounds, damaged=frozenset())

    @property
    def is_bare(self) -> bool:
        """Whether the changelog counts as empty, so that all of the store is staged."""
        return self.before is not None

    @property
    def partitions(self) -> int:
        """The number of partitions of a changelog of the store; never fewer than it has now.

        A sub-topology has as many tasks as the greatest of its topics has partitions (``ChangelogTopics``), and this store may be fed by
        a smaller one of them, as where streams are merged behind it: the remaining partitions stay empty.
        """
        return max(self.tasks, len(self.changelog_bounds))

    @property
    def fits(self) -> bool:
        """Whether the changelog exists, with a partition for each task."""
        return len(self.changelog_bounds) >= self.tasks

    @property
    def spare(self) -> list[int]:
        """The partitions of the changelog that none of the store's own topics feeds."""
        return [number for number in sorted(self.changelog_bounds) if number >= self.tasks]

    @property
    def whole(self) -> list[int]:
        """The partitions of the changelog that have records from offset 0 on."""
        return [number for number, bound in self.changelog_bounds.items() if bound.log_start_offset == 0 < bound.log_end_offset]

    @property
    def lossy(self) -> list[int]:
        """The partitions of the changelog that have lost records although its settings do not delete any."""
        starts = {number: bound.log_start_offset for number, bound in self.changelog_bounds.items()}
        return lossy_partitions(starts, self.settings.get("cleanup.policy", ""))

    @property
    def emptied(self) -> list[int]:
        """The lossy partitions that have lost every record."""
        return [number for number in self.lossy if self.changelog_bounds[number].empty]

    def waiting_of(self, topic: str) -> dict[int, tuple[int, ...]]:
        return {place.partition: offsets for place, offsets in self.waiting.items() if place.topic == topic}

    def starts_of(self, topic: str) -> dict[int, int]:
        return {place.partition: offset for place, offset in self.starts.items() if place.topic == topic}


def read_facts(
    services: Services,
    state_file: StateFile,
    *,
    replacing: bool = False,
    archived: Mapping[str, ArchivedInput] | None = None,
    since: Mapping[TopicPartition, int] | None = None,
) -> list[StoreFacts]:
    """Read what is needed about every store's topics.

    :param since: up to where a snapshot, which the stores start from, has the input; None: they start from nothing
    :param replacing: a changelog that does not exist, or has a wrong number of partitions, is not a reason to refuse
    :param archived: archives of input topics: their records count as if the topics still had them
    :raises ConfigError: when a topic does not exist
    :raises Refused: when a store cannot be rebuilt from or into its topics
    """
    topics = _partitions(services, state_file, replacing=replacing)
    settings = {
        name: {key: setting.value or "" for key, setting in found.items()}
        for name, found in services.kafka.topics.settings(list(topics)).items()
    }
    archives = archived or {}
    bounds = with_archives(_bounds(services, state_file, topics), archives)
    policies = {name: cleanup_policy(found.get("cleanup.policy", "delete"), archives.get(name)) for name, found in settings.items()}

    def of(topic: str) -> dict[int, Bounds]:
        return {partition.partition: bounds[partition] for partition in topics.get(topic, ())}

    facts, buffers, oldest = [], read_buffers(services, state_file), oldest_commits(services, state_file) if since is None else {}
    for store in state_file.stores:
        inputs = {partition: bounds[partition] for source in store.inputs for partition in topics[source.topic]}
        starts = find_starts(services, state_file, store, inputs, oldest) if since is None else starts_after_snapshot(inputs, since)
        own_settings, buffer = settings.get(store.changelog, {}), buffers.get(store.name, BufferLog())
        changes = list(unknown_changes(state_file, store, [policies[source.topic] for source in store.inputs]))
        findings = [
            *(
                finding
                for source in store.inputs
                for finding in input_log(store, of(source.topic), policies[source.topic], source.topic, starts.of(source.topic))
            ),
            *starts.findings,
            *archived_findings(state_file, store, archives),
            *changes,
            *statement(state_file, store, own_settings),
            *buffer.findings,
        ]
        found = StoreFacts(
            store=store,
            input_bounds=inputs,
            changelog_bounds=of(store.changelog),
            settings=own_settings,
            findings=tuple(findings),
            loose=bool(changes),
            tasks=_tasks(store, {name: len(partitions) for name, partitions in topics.items()}),
            starts=starts.offsets,
            output_bounds=of(store.output) if store.output else {},
            buffer_bounds=buffer.bounds,
        )
        _refuse_broker_times(state_file, store, settings)
        _refuse_unfit(found, replacing=replacing, from_nothing=since is None)
        facts.append(found)
    return facts


def _bounds(services: Services, state_file: StateFile, topics: Mapping[str, Sequence[TopicPartition]]) -> dict[TopicPartition, Bounds]:
    """Return the bounds as the application sees them: its consumer for the topics that it reads, its restore for the changelogs.

    :raises Refused: when a transaction stays open that hides what it wrote
    """
    read = {name for store in state_file.stores for source in store.inputs for name in (source.topic, store.repartition_topic)}
    inputs, written = ([at for name in sorted(chosen) for at in topics[name]] for chosen in (topics.keys() & read, topics.keys() - read))
    isolation, writer = isolation_of(committed=state_file.exactly_once), own_transactions(state_file.application)
    return {
        **services.kafka.offsets.bounds(inputs, isolation=state_file.isolation),
        **bounds_of_application(services, written, isolation=isolation, writer=writer),
    }


def _partitions(services: Services, state_file: StateFile, *, replacing: bool) -> dict[str, tuple[TopicPartition, ...]]:
    """Return the partitions of all topics.

    :raises ConfigError: naming the topic that does not exist, and where the state file names it
    """
    wanted: dict[str, str] = {}
    for store in state_file.stores:
        place = f"stores.{store.name}"
        for source in store.inputs:
            wanted.setdefault(source.topic, f"{place}.from.topic")
        wanted.setdefault(store.changelog, f"{place}.changelog")
        if store.repartition_topic:
            wanted.setdefault(store.repartition_topic, f"{place}.repartition")
        if store.output:
            wanted.setdefault(store.output, f"{place}.output")
    described = services.kafka.topics.existing(wanted)
    for topic, place in wanted.items():
        if topic in described or (replacing and place.endswith(".changelog")):
            continue
        likely = _filled_through(state_file, topic, described)
        advice = CHANGELOG_GONE if place.endswith(".changelog") else repartition_gone(topic, None, likely=likely)
        hint = nearest(topic, [name for name in services.kafka.topics.names() if name not in wanted])
        if place.endswith((".changelog", ".repartition")):
            hint += f"{advice}; another name goes into {place}"
        if place.endswith(".repartition"):
            hint += "; a processor that changes the key itself has none: type: plain with in_place: true"
        if place.endswith(".output"):
            hint += "leave it out if the topic is gone: then it is not evidence"
        raise ConfigError(
            f"{state_file.path}: {place}: {no_topics_text([topic])}", hint=hint or "`kops topics list` shows those that exist", topic=topic
        )
    return {name: topic.places for name, topic in described.items()}


def _filled_through(state_file: StateFile, repartition: str, described: Mapping[str, Topic]) -> str:
    """Say how many partitions a changelog has that is filled through a repartition topic: as many, unless its tasks read others too."""
    logs = [store.changelog for store in state_file.stores if store.repartition_topic == repartition and store.changelog in described]
    return f"{logs[0]} has {len(described[logs[0]].partitions)}" if logs else ""


def _tasks(store: Store, partitions: Mapping[str, int]) -> int:
    """Return the number of tasks that fill a store.

    :raises Refused: when topics of joined tables differ in their number of partitions, which Kafka Streams refuses too
    """
    if store.repartition_topic:
        return partitions[store.repartition_topic]
    if store.table and not store.table.foreign and len({partitions[source.topic] for source in store.inputs}) > 1:
        counts = ", ".join(f"{source.topic} {partitions[source.topic]}" for source in store.inputs)
        raise Refused(
            f"store {store.name}: the topics of joined tables have not the same number of partitions: {counts}",
            hint="Kafka Streams itself refuses to start so; see which of them was altered",
        )
    return partitions[store.source.topic] if store.table else max(partitions[source.topic] for source in store.inputs)


def _refuse_broker_times(state_file: StateFile, store: Store, settings: Mapping[str, Mapping[str, str]]) -> None:
    if store.output and settings.get(store.output, {}).get("message.timestamp.type") == "LogAppendTime":
        raise ConfigError(
            f"{state_file.path}: stores.{store.name}.output: {store.output} has message.timestamp.type=LogAppendTime: the timestamps of its"
            " records are not those of the store",
            hint="leave `output` out: such a topic is not evidence",
            topic=store.output,
        )


def _refuse_unfit(facts: StoreFacts, *, replacing: bool, from_nothing: bool) -> None:
    """Refuse a changelog that cannot hold what the application would restore, and an input without records."""
    store = facts.store
    if not facts.fits and not replacing:
        origin, has = store.repartition_topic or store.source.topic, len(facts.changelog_bounds)
        raise Refused(
            f"store {store.name}: {origin} has {facts.tasks} partitions and {store.changelog} has only {has}; each task needs one",
            hint="Kafka Streams itself refuses to start so; see which was altered: --write replace recreates the changelog with"
            f" {facts.tasks} partitions",
        )
    kind = facts.settings.get("message.timestamp.type", "CreateTime")
    if kind != "CreateTime" and not store.reuses_source:
        raise Refused(
            f"{store.changelog} has message.timestamp.type={kind}: the broker would replace the timestamps, which are state",
            hint=f"set it to CreateTime: kops topics alter {store.changelog} --config message.timestamp.type=CreateTime",
        )
    if from_nothing and all(bound.empty for bound in facts.input_bounds.values()):
        topics = " and ".join(source.topic for source in store.inputs)
        raise Refused(
            f"{topics} {'have' if store.others else 'has'} no records: rebuilding {store.name} would empty it",
            hint="see whether retention or a truncation emptied the topic; its state cannot be recovered from there",
        )
