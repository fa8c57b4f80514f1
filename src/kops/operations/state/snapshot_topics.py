"""The internal topics of an application, and whether its state stands still."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kops.core.errors import NotFound, Refused, StateMoved
from kops.core.models import Bounds, CommittedOffset, NewTopic, Setting, TopicPartition
from kops.core.records.models import OffsetRange
from kops.core.statefile import StateFile
from kops.core.streams.local_state import CATCH_UP
from kops.core.streams.topics import owner_of
from kops.core.topics.settings import as_new
from kops.operations.engine.stable import bounds_of_application, own_transactions
from kops.operations.groups.matching import find_group
from kops.operations.services import Services
from kops.operations.state.input_offsets import refuse_alive

CHANGELOG, REPARTITION = "-changelog", "-repartition"


@dataclass(frozen=True)
class OwnTopics:
    """The internal topics of an application that exist.

    :param changelogs: name of the store -> its topic
    """

    application: str
    changelogs: Mapping[str, NewTopic]
    repartitions: tuple[NewTopic, ...]
    settings: Mapping[str, Mapping[str, Setting]]


def own_topics(services: Services, application: str, state_file: StateFile | None = None) -> OwnTopics:
    """Return the internal topics of an application: those that have its name, and those that its state file names.

    Topics of an application whose name only begins the same, as ``orders-v2`` does, are not those of ``orders``.

    :raises NotFound: when it has no changelog
    """
    names = services.kafka.topics.names()
    groups = {*services.kafka.groups.ids(), application}
    changelogs = {
        name[len(application) + 1 : -len(CHANGELOG)]: name
        for name in names
        if name.endswith(CHANGELOG) and owner_of(name, groups) == application
    }
    repartitions = {name for name in names if name.endswith(REPARTITION) and owner_of(name, groups) == application}
    for store in state_file.stores if state_file else ():
        named = {topic: name for name, topic in changelogs.items()}
        changelogs.pop(named.get(store.changelog, ""), None)
        if store.changelog in names:
            changelogs[store.name] = store.changelog
        if store.repartition_topic in names:
            repartitions.add(str(store.repartition_topic))
    if not changelogs:
        raise NotFound(
            f"the application {application} has no changelog topics", hint=f"no topic {application}-...-changelog exists", group=application
        )
    described = services.kafka.topics.describe([*changelogs.values(), *sorted(repartitions)])
    settings = services.kafka.topics.settings(described)
    made = {name: as_new(topic, settings[name]) for name, topic in described.items()}
    return OwnTopics(
        application,
        {store: made[topic] for store, topic in sorted(changelogs.items())},
        tuple(made[name] for name in sorted(repartitions)),
        settings,
    )


@dataclass(frozen=True)
class StoppedApplication:
    """The offsets of an application that does not run.

    :param bounds: of its changelogs
    """

    committed: Mapping[TopicPartition, CommittedOffset]
    bounds: Mapping[TopicPartition, Bounds]


def stopped_application(services: Services, topics: OwnTopics, *, isolation: str) -> StoppedApplication:
    """Return one cut through changelogs and committed offsets, which is only consistent while nothing runs.

    :raises GroupActive: while the application has members
    :raises Refused: when it has committed nothing, or a repartition topic has records that were not processed
    :raises StateMoved: when something was committed or written meanwhile
    """
    application = topics.application
    try:
        refuse_alive(find_group(services, application))
    except NotFound as missing:
        raise Refused(f"the application {application} has committed nothing: there is no such group", hint=missing.hint) from missing
    first = _look(services, topics, isolation)
    refuse_unprocessed(services, application, topics.repartitions, first.committed, isolation=isolation)
    if _look(services, topics, isolation) != first:
        raise StateMoved(
            f"{application} committed or wrote while it was being checked", hint="see that it is stopped everywhere, and try again"
        )
    return first


def _look(services: Services, topics: OwnTopics, isolation: str) -> StoppedApplication:
    committed = services.kafka.groups.committed([topics.application], stable=True)[topics.application]
    partitions = [TopicPartition(topic.name, number) for topic in topics.changelogs.values() for number in range(topic.partitions or 0)]
    writer = own_transactions(topics.application)
    return StoppedApplication(committed, bounds_of_application(services, partitions, isolation=isolation, writer=writer))


def refuse_unprocessed(
    services: Services, application: str, topics: Iterable[NewTopic], committed: Mapping[TopicPartition, CommittedOffset], *, isolation: str
) -> None:
    """Refuse while repartition topics hold records that were not processed: they are state too, and are in no changelog."""
    partitions = [TopicPartition(topic.name, number) for topic in topics for number in range(topic.partitions or 0)]
    for partition, (start, end) in unprocessed(services, partitions, committed, isolation=isolation).items():
        raise Refused(
            f"{partition} holds records from offset {start} to {end} that {application} has not processed: no changelog has them",
            hint=CATCH_UP,
        )


def unprocessed(
    services: Services, partitions: Sequence[TopicPartition], committed: Mapping[TopicPartition, CommittedOffset], *, isolation: str
) -> dict[TopicPartition, tuple[int, int]]:
    """Return the partitions with records after the committed offset, with first and end offset of these; markers are not records."""
    left = {}
    for partition, wanted in beyond_committed(services, partitions, committed, isolation=isolation).items():
        if any(batch for batch in services.kafka.records.read({partition: wanted}, isolation=isolation)):
            left[partition] = (wanted.start, wanted.end)
    return left


def beyond_committed(
    services: Services, partitions: Sequence[TopicPartition], committed: Mapping[TopicPartition, CommittedOffset], *, isolation: str
) -> dict[TopicPartition, OffsetRange]:
    """Return the offsets from the committed one, or else the log start, to the log end, where there are any.

    :raises Refused: when a transaction stays open that could hide some from ``read_committed``
    """
    ranges = {}
    for partition, bound in bounds_of_application(services, partitions, isolation=isolation).items():
        found = committed.get(partition)
        start = max(found.offset if found else 0, bound.log_start_offset)
        if start < bound.log_end_offset:
            ranges[partition] = OffsetRange(start, bound.log_end_offset)
    return ranges
