"""The cluster as it will be once some topics are made: empty ones, for what is computed before anything is changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from kops.core.models import Bounds, NewTopic, Partition, Setting, Topic, TopicPartition
from kops.gateways.kafka import Kafka
from kops.operations.services import Services


class _Through:
    """Passes everything on that it does not know itself."""

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
    """Return services that see some topics which do not exist yet, without records.

    :param planned: with their number of partitions
    """
    return cast("Services", _Services(services, {topic.name: topic for topic in planned}))


def _topic(planned: NewTopic) -> Topic:
    return Topic(planned.name, tuple(Partition(number, None, (), ()) for number in range(planned.partitions or 1)))
