"""Topics and their settings: what there is, creating and deleting."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from kops.core.errors import KopsError, NotFound, TimedOut
from kops.core.models import NewTopic, Partition, Setting, Topic
from kops.gateways.kafka.client import Client, in_thread

SETTINGS_BATCH = 500
"""Topics in one DescribeConfigs request: an answer of about 2 MB."""
VISIBLE_POLL_SECONDS = 0.05

_URL_SAFE = str.maketrans("+/", "-_")
"""librdkafka writes topic ids in plain base64, Kafka (``Uuid.toString``) in its URL-safe form."""
_SOURCES = {
    "DYNAMIC_TOPIC_CONFIG": "topic",
    "DYNAMIC_BROKER_CONFIG": "broker",
    "STATIC_BROKER_CONFIG": "broker",
    "DYNAMIC_DEFAULT_BROKER_CONFIG": "broker default",
    "DEFAULT_CONFIG": "default",
}


class Topics:
    """Requests about topics; every method waits for the answer."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def names(self) -> list[str]:
        """Return the names of all topics that we may see, sorted, internal ones included."""
        metadata = self._client.wait(in_thread(lambda: self._client.admin.list_topics(timeout=self._client.timeout)), "list the topics")
        return sorted(metadata.topics)

    def describe(self, names: Iterable[str] | None = None) -> dict[str, Topic]:
        """Return topics by name, in the order asked for, all in one request; every topic when ``names`` is None.

        :raises NotFound: when any of the names does not exist; names all of them
        """
        if names is None:
            return self.existing(self.names())  # one that is deleted meanwhile is left out
        wanted = list(dict.fromkeys(names))
        found = self.existing(wanted)
        missing = [name for name in wanted if name not in found]
        if missing:
            plural = "s" if len(missing) > 1 else ""
            raise NotFound(f"no such topic{plural}: {', '.join(missing)}", hint=self._nearest(missing), topics=missing)
        return found

    def existing(self, names: Iterable[str]) -> dict[str, Topic]:
        """Return those of the topics that exist, by name, all in one request."""
        wanted = list(dict.fromkeys(names))
        if not wanted:
            return {}
        from confluent_kafka import TopicCollection

        futures = self._client.admin.describe_topics(TopicCollection(wanted), request_timeout=self._client.timeout)
        answers = {name: self._client.outcome(future, f"describe topic {name}") for name, future in futures.items()}
        return {name: _topic(answer) for name in wanted if not isinstance(answer := _unless_missing(answers[name]), NotFound)}

    def settings(self, names: Iterable[str], *, missing_ok: bool = False) -> dict[str, dict[str, Setting]]:
        """Return the effective settings of topics: all of them, with where each value comes from.

        :param missing_ok: leave out a topic that does not exist, or was deleted since it was listed
        :raises NotFound: when a topic does not exist
        """
        from confluent_kafka.admin import ConfigResource, ResourceType

        wanted = list(dict.fromkeys(names))
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in wanted]
        return self._describe_configs(resources, "describe the settings of topic", missing_ok=missing_ok)

    def broker_settings(self, broker_id: int) -> dict[str, Setting]:
        """Return the settings of one broker, where the defaults of new topics come from."""
        from confluent_kafka.admin import ConfigResource, ResourceType

        resource = ConfigResource(ResourceType.BROKER, str(broker_id))
        return self._describe_configs([resource], "describe the settings of broker")[str(broker_id)]

    def create(self, topics: Sequence[NewTopic], *, validate_only: bool = False) -> dict[str, KopsError | None]:
        """Create topics in one request, and wait until the cluster shows them with their leaders.

        :param topics: no name twice
        :param validate_only: let the broker check them, and create nothing
        :returns: by name, the error or None
        """
        if not topics:
            return {}
        timeout = self._client.timeout
        futures = self._client.admin.create_topics(
            [_new_topic(topic) for topic in topics], validate_only=validate_only, operation_timeout=timeout, request_timeout=timeout
        )
        errors = self._errors(futures, "create topic")
        if not validate_only:
            created = [name for name, error in errors.items() if error is None]
            late = self._wait_until(created, lambda topic: topic is not None and all(part.leader is not None for part in topic.partitions))
            errors |= {name: TimedOut(f"topic {name} was created, but does not show after {timeout:g} s") for name in late}
        return errors

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

    def _describe_configs(self, resources: Sequence[Any], doing: str, *, missing_ok: bool = False) -> dict[str, dict[str, Setting]]:
        batches = [resources[start : start + SETTINGS_BATCH] for start in range(0, len(resources), SETTINGS_BATCH)]
        requests = [self._client.admin.describe_configs(batch, request_timeout=self._client.timeout) for batch in batches]
        found = {}
        for resource, future in ((resource, future) for futures in requests for resource, future in futures.items()):
            answer = self._client.outcome(future, f"{doing} {resource.name}")
            if isinstance(answer, KopsError):
                if missing_ok and isinstance(answer, NotFound):
                    continue
                raise answer
            found[resource.name] = {entry.name: _setting(entry) for entry in answer.values()}
        return found

    def _nearest(self, missing: Sequence[str]) -> str:
        import difflib

        near = difflib.get_close_matches(missing[0], self.names(), n=1)
        return f"did you mean {near[0]}?" if near else "`kops topics list` shows those that exist"


def _unless_missing(answer: Any) -> Any:
    if isinstance(answer, KopsError) and not isinstance(answer, NotFound):
        raise answer
    return answer


def _topic(found: Any) -> Topic:
    partitions = sorted((_partition(part) for part in found.partitions), key=lambda part: part.partition)
    topic_id = str(found.topic_id).translate(_URL_SAFE)
    return Topic(found.name, tuple(partitions), topic_id=topic_id, internal=found.is_internal)


def _partition(found: Any) -> Partition:
    leader = found.leader.id if found.leader is not None and found.leader.id >= 0 else None
    return Partition(found.id, leader, tuple(node.id for node in found.replicas), tuple(node.id for node in found.isr))


def _setting(entry: Any) -> Setting:
    from confluent_kafka.admin import ConfigSource

    source = _SOURCES.get(ConfigSource(entry.source).name, "unknown")
    return Setting(entry.name, entry.value, source, read_only=entry.is_read_only, sensitive=entry.is_sensitive)


def _new_topic(topic: NewTopic) -> Any:
    from confluent_kafka.admin import NewTopic as Request

    return Request(topic.name, topic.partitions or -1, topic.replication_factor or -1, config=dict(topic.settings))
