"""Which changelog is meant, and where it ends now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kops.core.errors import NotFound, UsageProblem
from kops.core.models import Bounds, Setting, Topic, TopicPartition, value_of
from kops.core.records.models import OffsetRange
from kops.core.selection import Selection
from kops.core.streams.topics import CHANGELOG, store_of
from kops.operations.services import Services


@dataclass(frozen=True)
class FrozenChangelog:
    """A changelog topic, frozen: records written after it was looked up do not count.

    :param partitions: number of partitions of the topic
    :param ranges: the whole log of every partition
    :param chosen: the requested partitions
    :param isolation: ``read_committed`` leaves out aborted and open transactions
    """

    topic: str
    partitions: int
    settings: dict[str, Setting]
    ranges: dict[TopicPartition, OffsetRange]
    chosen: tuple[int, ...]
    isolation: str = "read_committed"

    def ranges_of(self, partitions: Sequence[int] | None = None) -> dict[TopicPartition, OffsetRange]:
        """Return the logs of some partitions; of the chosen ones when None."""
        wanted = self.chosen if partitions is None else partitions
        return {TopicPartition(self.topic, number): self.ranges[TopicPartition(self.topic, number)] for number in wanted}

    @property
    def offsets(self) -> int:
        """How many offsets the chosen partitions have: an upper bound for the records."""
        return sum(found.end - found.start for found in self.ranges_of().values())

    def setting(self, name: str) -> str:
        return value_of(self.settings, name)


def find_target(services: Services, selection: Selection, *, isolation: str) -> FrozenChangelog:
    """Return a topic with its settings and bounds as they are now.

    :raises UsageProblem: when it has no such partition
    """
    topic = selection.topic
    described = _described(services, topic)
    numbers = [partition.partition for partition in described.partitions]
    for number in selection.partitions or ():
        if number not in numbers:
            raise UsageProblem(f"{topic} has no partition {number}", hint=f"it has {len(numbers)}: 0 to {len(numbers) - 1}")
    bounds = services.kafka.offsets.bounds(TopicPartition(topic, number) for number in numbers)
    ranges = {partition: OffsetRange(found.log_start_offset, found.log_end_offset) for partition, found in bounds.items()}
    settings = services.kafka.topics.settings([topic])[topic]
    return FrozenChangelog(topic, len(numbers), settings, ranges, selection.partitions or tuple(numbers), isolation)


def _described(services: Services, name: str) -> Topic:
    """Return a topic.

    :raises NotFound: when there is none; if an application has that name, with the stores that it has
    """
    try:
        return services.kafka.topics.describe([name])[name]
    except NotFound as missing:
        stores = [store for topic in services.kafka.topics.names() if (store := store_of(topic, name))]
        if not stores:
            raise
        hint = f"name a store of application {name} too: {', '.join(stores)}"
        raise NotFound(missing.message, hint=hint, **missing.details) from missing


def changelog_topic(services: Services, application: str, store: str) -> str:
    """Return the changelog topic of a store (``ProcessorStateManager.storeChangelogTopic``).

    :raises NotFound: naming the changelogs that the application has
    """
    topic = f"{application}-{store}{CHANGELOG}"
    names = services.kafka.topics.names()
    if topic in names:
        return topic
    stores = [other for name in names if (other := store_of(name, application))]
    hint = f"stores of {application} with a changelog: {', '.join(stores)}" if stores else f"no changelog begins with {application}-"
    raise NotFound(f"store {store} of application {application} has no changelog topic {topic}", hint=hint, topics=[topic])


def frozen(services: Services, topics: Iterable[str]) -> dict[str, FrozenChangelog]:
    """Return whole topics, with their settings and bounds as they are now; those deleted meanwhile are left out."""
    settings = services.kafka.topics.settings(topics, missing_ok=True)
    described = services.kafka.topics.existing(settings)
    partitions = [place for topic in described.values() for place in topic.places]
    bounds = services.kafka.offsets.bounds_or_errors(partitions) if partitions else {}
    found = {}
    for name, topic in described.items():
        logs = {place: bounds[place] for place in topic.places}
        ranges = {place: OffsetRange(log.log_start_offset, log.log_end_offset) for place, log in logs.items() if isinstance(log, Bounds)}
        numbers = tuple(place.partition for place in ranges)
        found[name] = FrozenChangelog(name, len(topic.partitions), settings[name], ranges, numbers)
    return found
