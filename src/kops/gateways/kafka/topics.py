"""Changing topics: creating, altering, adding partitions, deleting; and the requests of :class:`TopicsRead`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from kops.core.errors import KopsError, TimedOut
from kops.core.models import NewTopic, Topic, TopicPartition
from kops.gateways.kafka.topics_read import TopicsRead

VISIBLE_POLL_SECONDS = 0.05

Changes = Mapping[str, "str | None"]
"""Settings by name: the value to set, or None to remove the topic's own value."""


class Topics(TopicsRead):
    """Requests about topics; every method waits for the answer."""

    def create(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> dict[str, KopsError | None]:
        """Create topics in one request, and wait until the cluster shows them with their leaders.

        ZooKeeper-based brokers may briefly report that a topic exists which they no longer list: it is being deleted, so the request is
        repeated.

        :param topics: without duplicate names
        :param validate_only: let the broker check them, and create nothing
        :returns: by name, the error or None
        """
        if not topics:
            return {}
        timeout = self._client.timeout
        errors = self._asked_to_create(topics, validate_only=validate_only)
        deadline = time.monotonic() + timeout
        while going := self._being_deleted(errors):
            if time.monotonic() > deadline:
                break
            time.sleep(VISIBLE_POLL_SECONDS)
            errors |= self._asked_to_create([topic for topic in topics if topic.name in going], validate_only=validate_only)
        if not validate_only:
            created = [name for name, error in errors.items() if error is None]
            late = self._wait_until(created, lambda topic: topic is not None and all(part.leader is not None for part in topic.partitions))
            errors |= {name: TimedOut(f"topic {name} was created, but does not show after {timeout:g} s") for name in late}
        return errors

    def _asked_to_create(self, topics: Sequence[NewTopic], *, validate_only: bool) -> dict[str, KopsError | None]:
        timeout = self._client.timeout
        futures = self._client.admin.create_topics(
            [_new_topic(topic) for topic in topics], validate_only=validate_only, operation_timeout=timeout, request_timeout=timeout
        )
        return self._errors(futures, "create topic")

    def _being_deleted(self, errors: Mapping[str, KopsError | None]) -> set[str]:
        """Return the topics that are reported to exist but are not listed."""
        said = {name for name, error in errors.items() if error is not None and error.details.get("kafka_error") == "TOPIC_ALREADY_EXISTS"}
        return said - set(self.existing(said))

    def delete(self, names: Iterable[str]) -> dict[str, KopsError | None]:
        """Delete topics in one request, and wait until the cluster no longer shows them.

        :returns: by name, the error or None
        """
        wanted = list(dict.fromkeys(names))
        if not wanted:
            return {}
        timeout = self._client.timeout
        futures = self._client.admin.delete_topics(wanted, operation_timeout=timeout, request_timeout=timeout)
        errors = self._errors(futures, "delete topic")
        late = self._wait_until([name for name, error in errors.items() if error is None], lambda topic: topic is None)
        return errors | {name: TimedOut(f"topic {name} was deleted, but still shows after {timeout:g} s") for name in late}

    def alter(self, changes: Mapping[str, Changes], *, validate_only: bool = False) -> dict[str, KopsError | None]:
        """Change settings of topics in one request, leaving all others unchanged. Brokers show the change soon after, each at its own time.

        :param validate_only: let the broker check them, and change nothing
        :returns: by name, the error or None
        """
        if not changes:
            return {}
        request = [_altered(name, settings) for name, settings in changes.items()]
        timeout = self._client.timeout
        futures = self._client.admin.incremental_alter_configs(request, validate_only=validate_only, request_timeout=timeout)
        return self._errors({resource.name: future for resource, future in futures.items()}, "alter topic")

    def add_partitions(self, totals: Mapping[str, int], *, validate_only: bool = False) -> dict[str, KopsError | None]:
        """Add partitions to topics, and wait until the cluster shows them with their leaders.

        :param totals: total number of partitions, by topic
        :param validate_only: let the broker check them, and change nothing
        :returns: by name, the error or None
        """
        if not totals:
            return {}
        from confluent_kafka.admin import NewPartitions

        request = [NewPartitions(name, total) for name, total in totals.items()]
        timeout = self._client.timeout
        futures = self._client.admin.create_partitions(
            request, validate_only=validate_only, operation_timeout=timeout, request_timeout=timeout
        )
        errors = self._errors(futures, "add partitions to topic")
        if not validate_only:
            grown = [name for name, error in errors.items() if error is None]
            late = self._wait_until(grown, lambda topic: topic is not None and _has(topic, totals[topic.name]))
            errors |= {name: TimedOut(f"partitions were added to {name}, but do not show after {timeout:g} s") for name in late}
        return errors

    def delete_records(self, below: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | KopsError]:
        """Delete the records below an offset of each partition.

        :returns: the lowest offset that a replica has now, or the error of the partition
        """
        from confluent_kafka import TopicPartition as Librdkafka

        if not below:
            return {}
        request = [Librdkafka(partition.topic, partition.partition, offset) for partition, offset in below.items()]
        timeout = self._client.timeout
        futures = self._client.admin.delete_records(request, operation_timeout=timeout, request_timeout=timeout)
        answers: dict[TopicPartition, int | KopsError] = {}
        for asked, future in futures.items():
            partition = TopicPartition(asked.topic, asked.partition)
            outcome = self._client.outcome(future, f"delete records of {partition}")
            answers[partition] = outcome if isinstance(outcome, KopsError) else int(outcome.low_watermark)
        return answers

    def _errors(self, futures: Mapping[str, Future[Any]], doing: str) -> dict[str, KopsError | None]:
        outcomes = {name: self._client.outcome(future, f"{doing} {name}") for name, future in futures.items()}
        return {name: outcome if isinstance(outcome, KopsError) else None for name, outcome in outcomes.items()}

    def _wait_until(self, names: Sequence[str], ready: Callable[[Topic | None], bool]) -> list[str]:
        """Wait until the brokers show what the controller decided; return the names that were not ready in time."""
        deadline = time.monotonic() + self._client.timeout
        left = list(names)
        while left:
            found = self.existing(left)
            left = [name for name in left if not ready(found.get(name))]
            if not left or time.monotonic() > deadline:
                break
            time.sleep(VISIBLE_POLL_SECONDS)
        return left


def _new_topic(topic: NewTopic) -> Any:
    from confluent_kafka.admin import NewTopic as Request

    return Request(topic.name, topic.partitions or -1, topic.replication_factor or -1, config=dict(topic.settings))


def _altered(name: str, settings: Changes) -> Any:
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

    entries = [
        ConfigEntry(key, value, incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET)
        for key, value in settings.items()
    ]
    return ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)


def _has(topic: Topic, total: int) -> bool:
    return len(topic.partitions) >= total and all(part.leader is not None for part in topic.partitions)
