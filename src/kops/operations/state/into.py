"""Plans for ``rebuild --into``: the state of an application computed for another one, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from kops.core.errors import Refused, UsageProblem
from kops.core.findings import counted
from kops.core.models import Bounds, CommittedOffset, NewTopic, Partition, Setting, Topic, TopicPartition
from kops.core.plan import Plan
from kops.core.statefile import StateFile, Store
from kops.core.statefile.models import VERSIONED
from kops.core.streams.local_state import delete_local_state
from kops.core.streams.topics import REPARTITION_SETTINGS
from kops.core.topics.settings import as_new
from kops.gateways.kafka import Kafka
from kops.operations.engine.spark import drop_stage
from kops.operations.offsets.items import move_item
from kops.operations.services import Services
from kops.operations.state.arguments import StateArguments
from kops.operations.state.change import INTO
from kops.operations.state.changelog_writes import refuse_time_zero
from kops.operations.state.computation import ComputeOptions, compute_all
from kops.operations.state.compute import ComputedStore
from kops.operations.state.input_offsets import COMMITTED, InputOffsets, refuse_running_group
from kops.operations.state.internal_topics import TopicChange
from kops.operations.state.plans import computed_arguments, state_plan
from kops.operations.state.rebuild import append_items, store_write
from kops.operations.state.replace import streams_settings
from kops.operations.state.snapshot import own_name
from kops.operations.state.snapshot_topics import CHANGELOG, REPARTITION
from kops.operations.topics.plan import prepare_creation


def plan_into(
    services: Services, state_file: StateFile, into: str, options: ComputeOptions, *, offsets_of: str = ""
) -> Plan[StateArguments]:
    """Return the plan that gives another application the stores of a state file, and the offsets they belong to.

    :param into: the other ``application.id``; it must not run
    :param offsets_of: the application whose committed offsets are the cut; the state file's when empty. It may run
    :raises Refused: when a store must not be computed, or the other application runs
    """
    source = replace(state_file, application=offsets_of or state_file.application)
    if source.application == into and options.at == COMMITTED:
        raise UsageProblem(
            f"{into} is the application that {state_file.path} names",
            hint="leave --into out, or say --offsets-of the application to follow",
        )
    named = renamed(state_file, into)
    refuse_running_group(services, into)
    engine = options.recipe.engine(services, options.master)
    creation = prepare_creation(services, missing_topics(services, named, state_file))
    planned = with_topics(services, creation.topics)
    recipe = options.recipe.for_another()
    unproven = replace(options, has_witnesses=False, recipe=recipe)  # the other's changelogs hold nothing, or another state
    done = compute_all(planned, replace(named, application=source.application), engine, unproven, must_be_empty=False)
    cut = done.cut
    _refuse_versions(done.computed)
    versioned = list(filter(_writes_versions, done.computed))
    wholes = {whole.facts.store.name: whole for whole in recipe.records(engine, named, versioned, cut)}
    computed = [_writable(found, wholes.get(found.facts.store.name)) for found in done.computed]
    for found in computed:
        earliest = [content.earliest for content in found.contents.values() if content.records]
        refuse_time_zero(services, found.facts.store.changelog, earliest, exactly_once=state_file.exactly_once)
    prior = services.kafka.groups.committed([into])[into]
    internal = [own_name(topic, state_file.application, into) for topic in recipe.repartition_topics(state_file)]
    commits = _commits(services, planned, cut, internal, (source.application, into))
    changes = [TopicChange(None, topic) for topic in creation.topics]
    moves = [
        move_item(at_, prior.get(at_), found, f"where {source.application} is" if not cut.is_new else "") for at_, found in commits.items()
    ]
    stores = {found.facts.store.name: store_write(found) for found in computed}
    arguments = computed_arguments(engine, state_file, replace(done, computed=computed), stores, changes)
    arguments = replace(arguments, application=into, offsets_of=source.application).with_commits(commits, prior)
    return state_plan(
        engine,
        INTO,
        arguments,
        [
            *(change.item("it does not exist") for change in changes),
            *(item for found in computed for item in append_items(found)),
            *moves,
        ],
        summary=_summary(source.application, into, computed),
        watched={partition.topic for partition in commits},
        warnings=(*cut.notes, *_running(services, source.application), *((delete_local_state(into),) if changes and prior else ())),
        notes=(*done.origins, *(note for found in computed for note in found.explained)),
    )


def _writes_versions(found: ComputedStore) -> bool:
    return found.facts.store.type == VERSIONED and bool(found.differing)


def _refuse_versions(computed: Sequence[ComputedStore]) -> None:
    for found in filter(_writes_versions, computed):
        if not found.changelog_is_empty:
            drop_stage(*(each.stage for each in computed))
            raise Refused(
                f"{found.facts.store.changelog} is a versioned store's and differs in {found.differing:,} versions, which would stay",
                hint=f"delete it first: kops topics delete {found.facts.store.changelog}",
            )


def _writable(found: ComputedStore, whole: ComputedStore | None) -> ComputedStore:
    """Return a store with the records that are written: a versioned store is compared by version, and each version is a record.

    :param whole: all records of a versioned store; None for others
    """
    if whole is None:
        return found
    drop_stage(found.stage)
    return replace(found, stage=whole.stage, counts=replace(found.counts, staged=whole.counts.staged))


def _running(services: Services, application: str) -> tuple[str, ...]:
    found = services.kafka.groups.describe_or_errors([application])[application]
    if isinstance(found, Exception) or found.state == "EMPTY":
        return ()
    return (f"{application} is running: this is its state at the offsets above; to switch, stop it and run the command again",)


def _commits(
    services: Services, planned: Services, cut: InputOffsets, internal: Iterable[str], names: tuple[str, str]
) -> dict[TopicPartition, CommittedOffset]:
    """Return what to commit for the new application: the input offsets that the state reflects, and the ends of its own repartition topics.

    :param internal: repartition topics of the new application, which need not exist
    :param names: of the old and the new application
    """
    old, new = names
    if cut.is_new:
        commits = {partition: CommittedOffset(offset, "") for partition, offset in cut.offsets.items()}
    else:
        own = {name for name in services.kafka.topics.names() if name.startswith(f"{old}-") and name.endswith((CHANGELOG, REPARTITION))}
        commits = {partition: found for partition, found in cut.committed.items() if partition.topic not in own}
        commits |= {partition: CommittedOffset(offset, "") for partition, offset in cut.offsets.items() if partition not in commits}
    topics = planned.kafka.topics.existing(internal)
    partitions = [TopicPartition(name, number) for name, topic in topics.items() for number in range(len(topic.partitions))]
    for partition, bound in planned.kafka.offsets.bounds(partitions).items():
        theirs = cut.committed.get(TopicPartition(own_name(partition.topic, new, old), partition.partition))
        commits[partition] = CommittedOffset(bound.log_end_offset, (theirs.metadata or "") if theirs and not cut.is_new else "")
    if not commits:
        raise Refused(f"{old} has committed nothing to continue from", hint="--at end computes up to the end of the input")
    return dict(sorted(commits.items()))


def _summary(old: str, new: str, computed: Sequence[ComputedStore]) -> str:
    records = sum(content.records for found in computed if found.must_write for content in found.contents.values())
    stores = ", ".join(f"{found.facts.store.name} {counted(found.counts.keys, 'key')}" for found in computed)
    return f"give {new} the state that {old} has ({stores}): append {counted(records, 'record')}"


def renamed(state_file: StateFile, application: str) -> StateFile:
    """Return the same stores for another application; the state file keeps its own application, whose input it reads.

    :raises Refused: when a topic's name does not begin with the application's: then its name in the other one is unknown
    """
    old = state_file.application
    return replace(state_file, stores=tuple(_renamed(store, old, application) for store in state_file.stores))


def _renamed(store: Store, old: str, new: str) -> Store:
    if store.reuses_source:
        return store
    for topic in filter(None, (store.changelog, store.repartition_topic)):
        if not topic.startswith(f"{old}-"):
            raise Refused(
                f"store {store.name}: {topic} does not begin with {old}-, so its name under {new} is not known",
                hint=f"write a state file for {new} that names it, and say --offsets-of {old}",
            )
    repartition = own_name(store.repartition_topic, old, new) if store.repartition_topic else None
    return replace(store, changelog=own_name(store.changelog, old, new), repartition_topic=repartition)


def missing_topics(services: Services, state_file: StateFile, like: StateFile) -> list[NewTopic]:
    """Return the internal topics that do not exist, as Kafka Streams would create them.

    If the other application has such a topic, that is the pattern; otherwise the library's own settings are used (``InternalTopicConfig``
    and its subclasses), and the partitions are those of the input.

    :param state_file: the stores whose topics should exist
    :param like: the same stores under the names that they have elsewhere
    """
    pairs: dict[str, tuple[str, Store]] = {}
    for store, other in zip(state_file.stores, like.stores, strict=True):
        if not store.reuses_source:
            pairs[store.changelog] = (other.changelog, store)
        if store.repartition_topic:
            pairs[store.repartition_topic] = (str(other.repartition_topic), store)
    there = services.kafka.topics.existing(pairs)
    wanted = {name: pair for name, pair in pairs.items() if name not in there}
    patterns = _patterns(services, [other for other, _ in wanted.values()])
    inputs = {source.topic for _, store in wanted.values() for source in store.inputs}
    sizes = {name: len(topic.partitions) for name, topic in services.kafka.topics.existing(inputs).items()}
    made = []
    for name, (pattern, store) in wanted.items():
        if pattern in patterns:
            made.append(replace(patterns[pattern], name=name))
            continue
        partitions = max((sizes[source.topic] for source in store.inputs if source.topic in sizes), default=1)
        if store.repartition_topic and name == store.changelog:
            repartition = there.get(store.repartition_topic)
            known = patterns.get(pairs[store.repartition_topic][0])
            partitions = len(repartition.partitions) if repartition else (known.partitions or partitions) if known else partitions
        made.append(NewTopic(name, partitions, None, streams_settings(store) if name == store.changelog else REPARTITION_SETTINGS))
    return made


def _patterns(services: Services, names: list[str]) -> Mapping[str, NewTopic]:
    found = services.kafka.topics.existing(names)
    settings = services.kafka.topics.settings(found) if found else {}
    return {name: as_new(topic, settings[name]) for name, topic in found.items()}


class _Delegate:
    """Delegates everything that it does not define itself."""

    def __init__(self, real: Any, planned: Mapping[str, NewTopic]) -> None:
        self._real, self._planned = real, planned

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class _Topics(_Delegate):
    def existing(self, names: Iterable[str]) -> dict[str, Topic]:
        wanted = list(dict.fromkeys(names))
        found: dict[str, Topic] = self._real.existing([name for name in wanted if name not in self._planned])
        found |= {name: _topic(self._planned[name]) for name in wanted if name in self._planned}
        return {name: found[name] for name in wanted if name in found}

    def settings(self, names: Iterable[str], **options: Any) -> dict[str, dict[str, Setting]]:
        wanted = list(dict.fromkeys(names))
        found: dict[str, dict[str, Setting]] = self._real.settings([name for name in wanted if name not in self._planned], **options)
        made = {name: self._planned[name].settings for name in wanted if name in self._planned}
        return found | {name: {key: Setting(key, value, "topic") for key, value in settings.items()} for name, settings in made.items()}


class _Offsets(_Delegate):
    def bounds(self, partitions: Iterable[TopicPartition], **options: Any) -> dict[TopicPartition, Bounds]:
        wanted = list(partitions)
        there = [at for at in wanted if at.topic not in self._planned]
        found: dict[TopicPartition, Bounds] = self._real.bounds(there, **options) if there else {}
        return found | {at: Bounds(0, 0) for at in wanted if at.topic in self._planned}


class _Kafka(_Delegate):
    @property
    def topics(self) -> _Topics:
        return _Topics(self._real.topics, self._planned)

    @property
    def offsets(self) -> _Offsets:
        return _Offsets(self._real.offsets, self._planned)


class _Services(_Delegate):
    @property
    def kafka(self) -> Kafka:
        return cast("Kafka", _Kafka(self._real.kafka, self._planned))


def with_topics(services: Services, planned: Iterable[NewTopic]) -> Services:
    """Return services that show some topics that do not exist yet as empty ones."""
    return cast("Services", _Services(services, {topic.name: topic for topic in planned}))


def _topic(planned: NewTopic) -> Topic:
    return Topic(planned.name, tuple(Partition(number, None, (), ()) for number in range(planned.partitions or 1)))
