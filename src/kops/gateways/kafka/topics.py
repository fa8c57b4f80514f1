"""Topics and their settings: read, created, altered, given more partitions, deleted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any

from kops.core.acls.models import OPERATIONS
from kops.core.durations import MILLISECONDS
from kops.core.errors import KopsError, NotFound, TimedOut
from kops.core.models import NewTopic, Partition, Setting, Topic, TopicPartition
from kops.core.topics.names import topics_not_found
from kops.gateways.kafka.client import Client
from kops.gateways.kafka.translate import all_good
from kops.gateways.threads import in_thread

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

SETTINGS_BATCH = 500
"""Topics per DescribeConfigs request: an answer of about 2 MB."""

_URL_SAFE = str.maketrans("+/", "-_")
"""librdkafka writes topic ids in plain base64, Kafka (``Uuid.toString``) in its URL-safe form."""
_NO_ID = "A" * 22
"""The zero id: from brokers that give topics no ids (before Kafka 2.8, or with an older inter.broker.protocol.version; other vendors)."""
_SOURCES = {
    "DYNAMIC_TOPIC_CONFIG": "topic",
    "DYNAMIC_BROKER_CONFIG": "broker",
    "STATIC_BROKER_CONFIG": "broker",
    "DYNAMIC_DEFAULT_BROKER_CONFIG": "broker default",
    "DEFAULT_CONFIG": "default",
}
_UNITS = {".hours": MILLISECONDS["h"], ".minutes": MILLISECONDS["m"]}
"""Topics use milliseconds for these settings, for which brokers may use other units: log.retention.hours, log.roll.hours."""

VISIBLE_POLL_SECONDS = 0.05
Changes = Mapping[str, "str | None"]
"""Settings by name: the value to set, or None to remove the topic's own value."""


class Topics:
    """Requests about topics; every method waits for the answer."""

    def __init__(self, client: Client, heard_by_all: Callable[[], None]) -> None:
        """Connect to nothing yet.

        :param heard_by_all: waits until each broker shows what one of them shows
        """
        self._client, self._heard_by_all = client, heard_by_all
        self.any_without_id = False
        """Whether the brokers gave no id for a topic that was described: then it cannot be seen whether it was recreated."""

    def names(self) -> list[str]:
        """Return the names of all topics visible to us, sorted, including internal ones."""
        with self._client.asking_about_topics:
            metadata = self._client.wait(in_thread(lambda: self._client.admin.list_topics(timeout=self._client.timeout)), "list the topics")
        return sorted(metadata.topics)

    def describe(self, names: Iterable[str] | None = None) -> dict[str, Topic]:
        """Return topics by name, in the given order, in one request; every topic if ``names`` is None.

        :raises NotFound: when any of the names does not exist; lists all of them
        """
        if names is None:
            return self.existing(self.names())  # a topic that is deleted meanwhile is left out
        wanted = list(dict.fromkeys(names))
        found = self.existing(wanted)
        missing = [name for name in wanted if name not in found]
        if missing:
            raise topics_not_found(missing, hint=self._nearest(missing))
        return found

    def existing(self, names: Iterable[str]) -> dict[str, Topic]:
        """Return the topics that exist, by name, in one request."""
        wanted = list(dict.fromkeys(names))
        if not wanted:
            return {}
        answers = self._client.describe_topics(wanted)
        known = all_good({name: answers[name] for name in wanted if not isinstance(answers[name], NotFound)})
        found = {name: _topic(answer) for name, answer in known.items()}
        self.any_without_id = self.any_without_id or any(topic.topic_id is None for topic in found.values())
        return found

    def problems(self, names: Iterable[str]) -> dict[str, KopsError]:
        """Return why topics cannot be described: NotFound for those that do not exist. One request."""
        wanted = list(dict.fromkeys(names))
        answers = self._client.describe_topics(wanted) if wanted else {}
        return {name: answer for name, answer in answers.items() if isinstance(answer, KopsError)}

    def rights(self, names: Iterable[str], *, of_cluster: bool = False) -> dict[str, frozenset[str] | None]:
        """Return our permissions on existing topics (``WRITE``, ``DELETE``, ...); None if the brokers do not report them.

        :param of_cluster: also CREATE and DELETE of the cluster, which are about all topics (``ControllerApis``); brokers report no DELETE
            of it, so whoever has all that they report there counts as having it
        """
        wanted = list(dict.fromkeys(names))
        if not wanted:
            return {}
        from confluent_kafka import TopicCollection

        timeout, topics = self._client.timeout, TopicCollection(wanted)
        futures = self._client.steered(
            lambda admin: admin.describe_topics(topics, include_authorized_operations=True, request_timeout=timeout)
        )
        answers = {name: self._client.wait(future, f"describe topic {name}") for name, future in futures.items()}
        authorized = {name: answer.authorized_operations for name, answer in answers.items()}
        also: set[str] = set()
        if of_cluster:
            asked = self._client.steered(
                lambda admin: {"cluster": admin.describe_cluster(include_authorized_operations=True, request_timeout=timeout)}
            )["cluster"]
            reported = {one.name for one in self._client.wait(asked, "describe the cluster").authorized_operations or ()}
            also = {"CREATE", "DELETE"} if reported.issuperset(OPERATIONS["cluster"]) else reported & {"CREATE"}
        return {name: frozenset({one.name for one in operations} | also) if operations else None for name, operations in authorized.items()}

    def settings(self, names: Iterable[str], *, missing_ok: bool = False) -> dict[str, dict[str, Setting]]:
        """Return the effective settings of topics: all of them, with the source of each value.

        :param missing_ok: leave out a topic that does not exist, or was deleted since it was listed
        :raises NotFound: when a topic does not exist
        """
        found = self.settings_or_errors(names)
        return all_good({name: one for name, one in found.items() if not (missing_ok and isinstance(one, NotFound))})

    def settings_or_errors(self, names: Iterable[str]) -> dict[str, dict[str, Setting] | KopsError]:
        """Return the effective settings of each topic, or why they are not known: each topic has rights of its own."""
        from confluent_kafka.admin import ConfigResource, ResourceType

        resources = [ConfigResource(ResourceType.TOPIC, name) for name in dict.fromkeys(names)]
        return self._describe_configs(resources, "describe the settings of topic")

    def broker_settings(self, broker_id: int) -> dict[str, Setting]:
        """Return the settings of one broker, from which new topics get their defaults."""
        from confluent_kafka.admin import ConfigResource, ResourceType

        resource = ConfigResource(ResourceType.BROKER, str(broker_id))
        return all_good(self._describe_configs([resource], "describe the settings of broker"))[str(broker_id)]

    def _describe_configs(self, resources: Sequence[Any], doing: str) -> dict[str, dict[str, Setting] | KopsError]:
        batches = [resources[start : start + SETTINGS_BATCH] for start in range(0, len(resources), SETTINGS_BATCH)]
        found: dict[str, dict[str, Setting] | KopsError] = {}
        requests = self._client.steered(partial(_ask_for_settings, batches, self._client.timeout))
        for resource, future in requests.items():
            answer = self._client.outcome(future, f"{doing} {resource.name}")
            found[resource.name] = answer if isinstance(answer, KopsError) else {entry.name: _setting(entry) for entry in answer.values()}
        return found

    def _nearest(self, missing: Sequence[str]) -> str:
        import difflib

        near = difflib.get_close_matches(missing[0], self.names(), n=1)
        return f"did you mean {near[0]}?" if near else "`kops topics list` shows those that exist"

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
        while being_deleted := self._being_deleted(errors):
            if time.monotonic() > deadline:
                break
            time.sleep(VISIBLE_POLL_SECONDS)
            errors |= self._asked_to_create([topic for topic in topics if topic.name in being_deleted], validate_only=validate_only)
        if not validate_only:
            created = [name for name, error in errors.items() if error is None]
            late = self._wait_until(created, lambda topic: topic is not None and _has(topic, 1))
            errors |= {name: TimedOut(f"topic {name} was created, but does not show after {timeout:g} s") for name in late}
        return errors

    def _asked_to_create(self, topics: Sequence[NewTopic], *, validate_only: bool) -> dict[str, KopsError | None]:
        timeout = self._client.timeout
        futures = self._client.admin.create_topics(
            [_new_topic(topic) for topic in topics], validate_only=validate_only, operation_timeout=timeout, request_timeout=timeout
        )
        return self._client.errors(futures, "create topic")

    def _being_deleted(self, errors: Mapping[str, KopsError | None]) -> set[str]:
        """Return the topics that are reported to exist but are not listed."""
        taken = {name for name, error in errors.items() if error is not None and error.details.get("kafka_error") == "TOPIC_ALREADY_EXISTS"}
        return taken - set(self.existing(taken))

    def delete(self, names: Iterable[str]) -> dict[str, KopsError | None]:
        """Delete topics in one request, and wait until the cluster no longer shows them.

        :returns: by name, the error or None
        """
        wanted = list(dict.fromkeys(names))
        if not wanted:
            return {}
        timeout = self._client.timeout
        futures = self._client.admin.delete_topics(wanted, operation_timeout=timeout, request_timeout=timeout)
        errors = self._client.errors(futures, "delete topic")
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
        return self._client.errors({resource.name: future for resource, future in futures.items()}, "alter topic")

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
        errors = self._client.errors(futures, "add partitions to topic")
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

    def _wait_until(self, names: Sequence[str], ready: Callable[[Topic | None], bool]) -> list[str]:
        """Wait until all brokers show what the controller decided; return the names that were not ready in time.

        What is asked next may be answered by any of them: a topic that is created after one of its name was deleted has another id.
        """
        deadline = time.monotonic() + self._client.timeout
        left = list(names)
        while left:
            found = self.existing(left)
            left = [name for name in left if not ready(found.get(name))]
            if not left or time.monotonic() > deadline:
                break
            time.sleep(VISIBLE_POLL_SECONDS)
        if names:
            self._heard_by_all()
        return left


def _topic(found: Any) -> Topic:
    partitions = sorted((_partition(partition) for partition in found.partitions), key=lambda partition: partition.partition)
    topic_id = str(found.topic_id).translate(_URL_SAFE)
    return Topic(found.name, tuple(partitions), topic_id=None if topic_id == _NO_ID else topic_id, internal=found.is_internal)


def _partition(found: Any) -> Partition:
    leader = found.leader.id if found.leader is not None and found.leader.id >= 0 else None
    return Partition(found.id, leader, tuple(node.id for node in found.replicas), tuple(node.id for node in found.isr))


def _ask_for_settings(batches: Iterable[Sequence[Any]], timeout: float, admin: AdminClient) -> dict[Any, Future[Any]]:
    return {resource: future for batch in batches for resource, future in admin.describe_configs(batch, request_timeout=timeout).items()}


def _setting(entry: Any) -> Setting:
    from confluent_kafka.admin import ConfigSource

    source = _SOURCES.get(ConfigSource(entry.source).name, "unknown")
    inherited = entry.value if source != "topic" else _inherited(entry.synonyms)
    return Setting(entry.name, entry.value, source, entry.is_sensitive, inherited)


def _inherited(synonyms: Mapping[str, Any]) -> str | None:
    """Return the value that a setting would have if the topic set none: the first one that does not come from the topic."""
    from confluent_kafka.admin import ConfigSource

    below = (one for one in synonyms.values() if ConfigSource(one.source) is not ConfigSource.DYNAMIC_TOPIC_CONFIG)
    found = next((one for one in below if one.value is not None), None)
    if found is None:
        return None
    factor = next((factor for unit, factor in _UNITS.items() if found.name.endswith(unit)), 1)
    return str(found.value) if factor == 1 or not found.value.isdigit() else str(int(found.value) * factor)


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
    return len(topic.partitions) >= total and all(partition.leader is not None for partition in topic.partitions)
