"""The internal topics of another application with the same stores: their names, which are missing, and the cluster as if they existed.

What is computed for that application reads the missing ones as empty topics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from kops.core.errors import Refused
from kops.core.models import Bounds, NewTopic, Partition, Setting, Topic, TopicPartition
from kops.core.statefile import StateFile, Store
from kops.core.topics.settings import own_settings
from kops.gateways.kafka import Kafka
from kops.operations.services import Services
from kops.operations.state.replace import streams_settings
from kops.operations.state.snapshot_manifest import own_name

_REPARTITION = {"cleanup.policy": "delete", "message.timestamp.type": "CreateTime", "retention.ms": "-1", "segment.bytes": "52428800"}


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
        made.append(NewTopic(name, partitions, None, streams_settings(store) if name == store.changelog else _REPARTITION))
    return made


def _patterns(services: Services, names: list[str]) -> Mapping[str, NewTopic]:
    found = services.kafka.topics.existing(names)
    settings = services.kafka.topics.settings(found) if found else {}
    return {
        name: NewTopic(name, len(topic.partitions), topic.replication_factor, own_settings(settings[name])) for name, topic in found.items()
    }


class _Through:
    """Delegates everything that it does not define itself."""

    def __init__(self, real: Any, planned: Mapping[str, NewTopic]) -> None:
        self._real, self._planned = real, planned

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def _split(self, partitions: Iterable[TopicPartition]) -> tuple[list[TopicPartition], list[TopicPartition]]:
        found = list(partitions)
        return [at for at in found if at.topic not in self._planned], [at for at in found if at.topic in self._planned]


class _Topics(_Through):
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


class _Offsets(_Through):
    def bounds(self, partitions: Iterable[TopicPartition], **options: Any) -> dict[TopicPartition, Bounds]:
        there, planned = self._split(partitions)
        found: dict[TopicPartition, Bounds] = self._real.bounds(there, **options) if there else {}
        return found | dict.fromkeys(planned, Bounds(0, 0))


class _Kafka(_Through):
    @property
    def topics(self) -> _Topics:
        return _Topics(self._real.topics, self._planned)

    @property
    def offsets(self) -> _Offsets:
        return _Offsets(self._real.offsets, self._planned)


class _Services(_Through):
    @property
    def kafka(self) -> Kafka:
        return cast("Kafka", _Kafka(self._real.kafka, self._planned))


def with_topics(services: Services, planned: Iterable[NewTopic]) -> Services:
    """Return services that show some topics that do not exist yet as empty ones.

    :param planned: with their number of partitions
    """
    return cast("Services", _Services(services, {topic.name: topic for topic in planned}))


def _topic(planned: NewTopic) -> Topic:
    return Topic(planned.name, tuple(Partition(number, None, (), ()) for number in range(planned.partitions or 1)))
