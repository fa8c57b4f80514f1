"""Log directories of brokers, through kafka-python: confluent-kafka has no such request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kops.core.cluster.log_dirs import LogDir, ReplicaOnDisk
from kops.core.errors import AuthorizationFailed, KopsError
from kops.core.models import TopicPartition
from kops.gateways.kafka.admin import Wire
from kops.gateways.kafka.client import Client


class LogDirs:
    """Requests about log directories; every method waits for the answer."""

    def __init__(self, client: Client) -> None:
        self._wire = Wire(client)

    def describe_or_errors(
        self, broker_ids: Iterable[int], partitions: Iterable[TopicPartition] | None = None
    ) -> dict[int, tuple[LogDir, ...] | KopsError]:
        """Return the log directories of each broker, or why they are not known: a broker that is down, a missing permission.

        :param partitions: list only the replicas of these; None lists all
        """
        topics = None if partitions is None else _by_topic(partitions)
        return {broker_id: self._of_broker(broker_id, topics) for broker_id in sorted(set(broker_ids))}

    def _of_broker(self, broker_id: int, topics: dict[str, list[int]] | None) -> tuple[LogDir, ...] | KopsError:
        doing = f"describe the log directories of broker {broker_id}"
        try:
            [answer] = self._wire.ask(doing, lambda admin: admin.describe_log_dirs(topics, brokers=[broker_id]))
        except KopsError as error:
            return error
        if not answer["log_dirs"]:
            # Every broker has one: an empty answer means that the request was rejected, and kafka-python drops the error code with it.
            return AuthorizationFailed(
                f"could not {doing}: it names none", hint="the principal of this context needs DESCRIBE on the cluster; ask for an ACL"
            )
        return tuple(_log_dir(broker_id, found) for found in answer["log_dirs"])


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for partition in partitions:
        topics.setdefault(partition.topic, []).append(partition.partition)
    return topics


def _log_dir(broker_id: int, found: Mapping[str, Any]) -> LogDir:
    replicas = [
        ReplicaOnDisk(
            TopicPartition(topic["name"], part["partition_index"]), part["partition_size"], part["offset_lag"], part["is_future_key"]
        )
        for topic in found["topics"]
        for part in topic["partitions"]
    ]
    return LogDir(
        broker=broker_id,
        path=found["log_dir"],
        replicas=tuple(sorted(replicas, key=lambda replica: (replica.partition, replica.future))),
        total_bytes=_known(found.get("total_bytes")),
        usable_bytes=_known(found.get("usable_bytes")),
        problem=_problem(found["error_code"]),
    )


def _known(size: int | None) -> int | None:
    return None if size is None or size < 0 else size


def _problem(code: int) -> str:
    if not code:
        return ""
    from kafka.errors import for_code

    kind = for_code(code)
    return str(getattr(kind, "description", "") or getattr(kind, "message", "") or kind.__name__)
