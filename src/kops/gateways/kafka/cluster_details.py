"""What only kafka-python can request about a cluster: quorum, features, fenced brokers, reassignments, log directories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from kops.core.cluster.models import Feature, LogDir, Quorum, QuorumReplica, RegisteredBroker, ReplicaOnDisk
from kops.core.errors import AuthorizationFailed, BrokerDown, KopsError, Unreachable
from kops.core.models import TopicPartition, numbers_by_topic
from kops.gateways.kafka.admin import Wire, answer_of, ask_for_quorum
from kops.gateways.kafka.client import Client
from kops.gateways.wire.kafka_python import request_class

if TYPE_CHECKING:
    from kafka import KafkaAdminClient

T = TypeVar("T")


class ClusterDetails:
    """Requests about the cluster; every method waits for the answer and raises KopsError if there is none."""

    def __init__(self, client: Client) -> None:
        self._wire = Wire(client)

    def quorum(self) -> Quorum:
        """Return the controllers and observers of the metadata log (DescribeQuorum, Kafka 3.3)."""
        doing = "describe the controller quorum"
        answer = self._wire.ask(doing, ask_for_quorum, patient=True, controllers=True)
        partition = answer["topics"][0]["partitions"][0]
        leader = partition["leader_id"]
        return Quorum(
            leader if leader >= 0 else None,
            partition["leader_epoch"],
            partition["high_watermark"],
            tuple(sorted(map(_replica, partition["current_voters"]), key=lambda voter: voter.id)),
            tuple(sorted(map(_replica, partition["observers"]), key=lambda observer: observer.id)),
            {node["node_id"]: _address(node["listeners"]) for node in answer.get("nodes") or () if node["listeners"]},
        )

    def features(self) -> tuple[Feature, ...]:
        """Return the features of the cluster by name (ApiVersions, Kafka 2.4)."""
        answer = self._wire.ask("describe the features", lambda admin: admin.describe_features(), patient=True)
        return tuple(
            Feature(name, found.get("supported"), found["finalized"][1] if "finalized" in found else 0)
            for name, found in sorted(answer.items())
        )

    def registered_brokers(self) -> tuple[RegisteredBroker, ...]:
        """Return the brokers that the controllers know, including those that are down if the cluster reports them (Kafka 4.0).

        DescribeCluster itself requires Kafka 2.8.
        """
        answer = self._wire.ask("describe the registered brokers", _ask_for_brokers, patient=True)
        return tuple(
            RegisteredBroker(found["broker_id"], found["host"], found["port"], found["rack"], bool(found.get("is_fenced")))
            for found in sorted(answer["brokers"], key=lambda broker: broker["broker_id"])
        )

    def versions_or_errors(self, broker_ids: Iterable[int]) -> dict[int, str | KopsError]:
        """Return the Kafka release whose requests each broker supports, such as ``4.3``.

        The protocol does not report a broker's version. It is inferred from the request versions that the broker supports: this or newer.
        """
        found = self._wire.brokers_or_errors(
            broker_ids, "find the version of broker", lambda admin, broker: str(admin.get_broker_version_data(broker).broker_version_str)
        )
        return {broker: _as_silent(broker, answer) for broker, answer in found.items()}

    def adding_replicas(self) -> dict[TopicPartition, frozenset[int]]:
        """Return the brokers that partitions are being moved to, by partition: they are not in sync yet, which is not a problem."""
        answer = self._wire.ask(
            "list the partitions that are being moved", lambda admin: admin.list_partition_reassignments(), patient=True, controllers=True
        )
        return {
            TopicPartition(partition.topic, partition.partition): frozenset(found["adding_replicas"]) for partition, found in answer.items()
        }

    def eligible_leaders(self, topics: Iterable[str]) -> dict[TopicPartition, tuple[int, ...]]:
        """Return the out-of-sync brokers that can still be elected without loss, for the partitions that have any (KIP-966)."""
        wanted = sorted(set(topics))
        answer = self._wire.ask("describe the eligible leaders", lambda admin: admin.describe_topic_partitions(wanted), patient=True)
        return {
            TopicPartition(topic["name"], partition["partition_index"]): tuple(partition["eligible_leader_replicas"])
            for topic in answer["topics"]
            for partition in topic["partitions"] or ()
            if partition["eligible_leader_replicas"]
        }


def _as_silent(broker: int, answer: T | KopsError) -> T | KopsError:
    """Return the answer of a broker; an error that names the bootstrap servers, which do answer, names the broker instead."""
    return BrokerDown(f"broker {broker} does not answer", hint=answer.hint, broker=broker) if isinstance(answer, Unreachable) else answer


def _ask_for_brokers(admin: KafkaAdminClient) -> dict[str, Any]:
    """Request the brokers; kafka-python's own method expects an answer of version 1 (Kafka 3.7)."""
    request = request_class("DescribeClusterRequest")
    return answer_of(admin, request(include_cluster_authorized_operations=False, include_fenced_brokers=True))


def _replica(found: Mapping[str, Any]) -> QuorumReplica:
    return QuorumReplica(
        found["replica_id"],
        _known(found["log_end_offset"]),
        _known(found.get("last_fetch_timestamp")),
        _known(found.get("last_caught_up_timestamp")),
    )


def _known(number: int | None) -> int | None:
    return None if number is None or number < 0 else number


def _address(listeners: Iterable[Mapping[str, Any]]) -> str:
    first = next(iter(listeners))
    return f"{first['host']}:{first['port']}"


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
        topics = None if partitions is None else numbers_by_topic(partitions)
        doing = "describe the log directories of broker"
        answers = self._wire.brokers_or_errors(broker_ids, doing, lambda admin, broker: admin.describe_log_dirs(topics, brokers=[broker]))
        return {broker: _as_silent(broker, _log_dirs(broker, f"{doing} {broker}", answer)) for broker, answer in answers.items()}


def _log_dirs(broker: int, doing: str, answer: Any) -> tuple[LogDir, ...] | KopsError:
    if isinstance(answer, KopsError):
        return answer
    [found] = answer
    if not found["log_dirs"]:
        # Every broker has one: an empty answer means that the request was rejected, and kafka-python drops the error code with it.
        return AuthorizationFailed(
            f"could not {doing}: it names none", hint="the principal of this context needs DESCRIBE on the cluster; ask for an ACL"
        )
    return tuple(_log_dir(broker, one) for one in found["log_dirs"])


def _log_dir(broker_id: int, found: Mapping[str, Any]) -> LogDir:
    replicas = [
        ReplicaOnDisk(TopicPartition(topic["name"], replica["partition_index"]), replica["partition_size"], replica["is_future_key"])
        for topic in found["topics"]
        for replica in topic["partitions"]
    ]
    return LogDir(
        broker=broker_id,
        path=found["log_dir"],
        replicas=tuple(sorted(replicas, key=lambda replica: (replica.partition, replica.future))),
        total_bytes=_known(found.get("total_bytes")),
        usable_bytes=_known(found.get("usable_bytes")),
        problem=_problem(found["error_code"]),
    )


def _problem(code: int) -> str:
    if not code:
        return ""
    from kafka.errors import for_code

    kind = for_code(code)
    return str(getattr(kind, "description", "") or getattr(kind, "message", "") or kind.__name__)
