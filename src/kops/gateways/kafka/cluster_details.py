"""What only kafka-python can request about a cluster: quorum, features, fenced brokers, reassignments, log directories."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from kops import __version__
from kops.core.cluster.models import (
    DEFAULT_ENTITY,
    Feature,
    LogDir,
    Quorum,
    QuorumReplica,
    Quota,
    RegisteredBroker,
    Release,
    ReplicaOnDisk,
    release_of,
)
from kops.core.errors import BrokerDown, KopsError, Unreachable
from kops.core.groups.look import EpochEnd
from kops.core.models import TopicPartition, numbers_by_topic
from kops.core.rights import Right
from kops.gateways.kafka.admin import Wire, answer_of, ask_for_quorum, raw_answer
from kops.gateways.kafka.client import Client
from kops.gateways.kafka.quorum_messages import add_voter, directory_text, remove_voter
from kops.gateways.kafka.translate import translate_error_code
from kops.gateways.wire.kafka_python import release_by_requests, request_class, request_names

if TYPE_CHECKING:
    from kafka import KafkaAdminClient

T = TypeVar("T")

_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE = 1, 2, 3
"""``FeatureUpdate.UpgradeType`` of Kafka."""
_UPDATE_MILLISECONDS = 30_000
HEARD_SECONDS = 5.0
HEARD_POLL_SECONDS = 0.05


class ClusterDetails:
    """Requests about the cluster; every method waits for the answer and raises KopsError if there is none."""

    def __init__(self, client: Client) -> None:
        self._client, self._wire = client, Wire(client)

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
            {
                node["node_id"]: tuple((one["name"], one["host"], one["port"]) for one in node["listeners"])
                for node in answer.get("nodes") or ()
            },
        )

    def features(self) -> tuple[Feature, ...]:
        """Return the features of the cluster by name (ApiVersions, Kafka 2.4)."""
        answer = self._wire.ask("describe the features", lambda admin: admin.describe_features(), patient=True)
        return tuple(
            Feature(name, found.get("supported"), found["finalized"][1] if "finalized" in found else 0)
            for name, found in sorted(answer.items())
        )

    def supported_or_errors(self, broker_ids: Iterable[int]) -> dict[int, dict[str, tuple[int, int]] | KopsError]:
        """Return the levels of features that each broker supports, or why that is not known (ApiVersions)."""
        found = self._wire.brokers_or_errors(broker_ids, "find the features of broker", _ask_for_features)
        return {broker: _as_silent(broker, answer) for broker, answer in found.items()}

    def api_versions_or_errors(self, broker_ids: Iterable[int]) -> dict[int, dict[int, tuple[int, int]] | KopsError]:
        """Return the versions of requests that each broker supports, by the request's number, or why that is not known."""
        found = self._wire.brokers_or_errors(broker_ids, "find the requests of broker", _ask_for_requests)
        return {broker: _as_silent(broker, answer) for broker, answer in found.items()}

    def heard_by_all(self) -> None:
        """Wait until each broker shows what any of them shows now, for at most ``HEARD_SECONDS``.

        A broker of KRaft applies the metadata log by itself, at times half a second after another (KIP-1166). Its answer to ApiVersions
        has the offset up to which it did: ``KRaftMetadataCache.features``, in every release. Brokers that do not answer are not waited
        for, and with ZooKeeper none is, where this number is of something else.
        """
        brokers, late = [broker.id for broker in self._client.cluster().brokers], time.monotonic() + HEARD_SECONDS
        if not brokers[1:]:
            return
        aim: int | None = None
        while brokers and time.monotonic() < late:
            found = self._wire.brokers_or_errors(brokers, "find the metadata offset of broker", _ask_for_metadata_offset)
            offsets = {broker: offset for broker, offset in found.items() if not isinstance(offset, KopsError)}
            aim = max(offsets.values(), default=0) if aim is None else aim
            if brokers := [broker for broker, offset in offsets.items() if offset < aim]:
                time.sleep(HEARD_POLL_SECONDS)

    def request_names(self) -> dict[int, str]:
        """Return the names of requests by their numbers, as far as they are known here."""
        return request_names()

    def require_features(self) -> None:
        """Look whether the brokers take levels as ``update_features`` sets them.

        :raises BrokersTooOld: before Kafka 3.3, and with ZooKeeper
        """
        self._wire.require("set levels of features", "UpdateFeatures", 1)

    def require_voters(self) -> None:
        """Look whether the brokers can change who votes.

        :raises BrokersTooOld: before Kafka 3.9
        """
        self._wire.require("change the voters", "AddRaftVoter")

    def require_fenced_brokers(self) -> None:
        """Look whether the brokers report those that are down.

        :raises BrokersTooOld: before Kafka 4.0
        """
        self._wire.require("find the brokers that are down", "DescribeCluster", 2)

    def update_features(
        self, after: Mapping[str, int], before: Mapping[str, int], *, unsafe: bool = False, validate_only: bool = False
    ) -> None:
        """Set levels of features, all or none (UpdateFeatures, Kafka 3.3 with ``metadata.version``).

        :param after: 0 disables a feature
        :param unsafe: allow a downgrade that loses metadata
        :param validate_only: let the active controller check the change, and change nothing
        :raises OperationFailed: with the reason of the controller, when it refuses
        """
        doing = "check the levels of features" if validate_only else "set levels of features"
        answer = self._wire.ask(doing, partial(_update, after=after, before=before, unsafe=unsafe, validate_only=validate_only))
        for one in (answer, *(answer.get("results") or ())):
            if error := translate_error_code(one["error_code"], one.get("error_message"), doing):
                raise error

    def add_voter(self, cluster_id: str, voter: int, directory: str, listeners: Sequence[tuple[str, str, int]]) -> None:
        """Make a controller that observes the metadata log a voter (AddRaftVoter, Kafka 3.9).

        :param directory: the id of its log directory, as Kafka prints it
        :param listeners: name, host and port of each of its endpoints
        :raises OperationFailed: with the reason of the leader, when it refuses
        """
        self._change_voters(f"add controller {voter}", add_voter(cluster_id, voter, directory, listeners))

    def remove_voter(self, cluster_id: str, voter: int, directory: str) -> None:
        """Take the vote of a controller (RemoveRaftVoter, Kafka 3.9).

        :raises OperationFailed: with the reason of the leader, when it refuses
        """
        self._change_voters(f"remove controller {voter}", remove_voter(cluster_id, voter, directory))

    def _change_voters(self, doing: str, request: Any) -> None:
        answer = self._wire.ask(doing, partial(raw_answer, request=request), controllers=True)
        if error := translate_error_code(answer["error_code"], answer.get("error_message"), doing):
            raise error

    def client_quotas(self) -> tuple[Quota, ...]:
        """Return the quotas of users and client ids (DescribeClientQuotas, Kafka 2.6)."""
        answer = self._wire.ask("describe the client quotas", _ask_for_quotas, patient=True)
        return tuple(_quota(entry) for entry in answer["entries"] or ())

    def epoch_ends(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, EpochEnd]:
        """Return where leader epochs end in the logs as they are now (OffsetsForLeaderEpoch); without the partitions that do not answer.

        :param epochs: a leader epoch for each partition
        """
        topics = self._wire.ask(
            "find leaders", lambda admin: admin.describe_topics(sorted({place.topic for place in epochs})), patient=True
        )
        leaders = {
            TopicPartition(topic["name"], part["partition_index"]): (part["leader_id"], part.get("leader_epoch"))
            for topic in topics
            for part in topic["partitions"] or ()
            if part["leader_id"] >= 0
        }
        found: dict[TopicPartition, EpochEnd] = {}
        for broker in sorted({leaders[place][0] for place in epochs if place in leaders}):
            wanted = {place: epoch for place, epoch in epochs.items() if place in leaders and leaders[place][0] == broker}
            answer = self._wire.ask("find where leader epochs end", partial(_ask_for_epochs, broker=broker, epochs=wanted), patient=True)
            for topic in answer["topics"]:
                for one in topic["partitions"]:
                    place = TopicPartition(topic["topic"], one["partition"])
                    if not one["error_code"]:
                        found[place] = EpochEnd(one["end_offset"], leaders[place][1], broker)
        return found

    def registered_brokers(self) -> tuple[RegisteredBroker, ...]:
        """Return the brokers that the controllers know, including those that are down if the cluster reports them (Kafka 4.0).

        DescribeCluster itself requires Kafka 2.8.
        """
        answer = self._wire.ask("describe the registered brokers", _ask_for_brokers, patient=True)
        return tuple(
            RegisteredBroker(found["broker_id"], found["host"], found["port"], found["rack"], bool(found.get("is_fenced")))
            for found in sorted(answer["brokers"], key=lambda broker: broker["broker_id"])
        )

    def releases_or_errors(self, broker_ids: Iterable[int]) -> dict[int, Release | KopsError]:
        """Return what is known of each broker's release, by the features and requests that it supports (ApiVersions)."""
        found = self._wire.brokers_or_errors(broker_ids, "find the version of broker", _ask_for_release)
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


def _ask_for_features(admin: KafkaAdminClient, broker: int) -> dict[str, tuple[int, int]]:
    found = _api_versions(admin, broker).get("supported_features") or ()
    return {feature["name"]: (feature["min_version"], feature["max_version"]) for feature in found}


def _ask_for_requests(admin: KafkaAdminClient, broker: int) -> dict[int, tuple[int, int]]:
    return {each["api_key"]: (each["min_version"], each["max_version"]) for each in _api_versions(admin, broker)["api_keys"]}


def _ask_for_metadata_offset(admin: KafkaAdminClient, broker: int) -> int:
    return int(_api_versions(admin, broker).get("finalized_features_epoch", -1))


def _api_versions(admin: KafkaAdminClient, broker: int) -> dict[str, Any]:
    request = request_class("ApiVersionsRequest")
    return answer_of(admin, request(client_software_name="kops", client_software_version=__version__, min_version=3), broker)


def _update(
    admin: KafkaAdminClient, *, after: Mapping[str, int], before: Mapping[str, int], unsafe: bool, validate_only: bool
) -> dict[str, Any]:
    kind = request_class("UpdateFeaturesRequest")
    lower = _UNSAFE_DOWNGRADE if unsafe else _SAFE_DOWNGRADE
    updates = [
        kind.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=lower if level < before[name] else _UPGRADE)
        for name, level in after.items()
    ]
    request = kind(timeout_ms=_UPDATE_MILLISECONDS, feature_updates=updates, validate_only=validate_only, min_version=1)
    return raw_answer(admin, request)


def _ask_for_release(admin: KafkaAdminClient, broker: int) -> Release:
    found = _api_versions(admin, broker)
    levels = {feature["name"]: feature["max_version"] for feature in found.get("supported_features") or ()}
    requests = {each["api_key"]: (each["min_version"], each["max_version"]) for each in found["api_keys"]}
    return release_of(levels.get("metadata.version"), release_by_requests(requests))


def _ask_for_quotas(admin: KafkaAdminClient) -> dict[str, Any]:
    return answer_of(admin, request_class("DescribeClientQuotasRequest")(components=[], strict=False))


def _quota(entry: Mapping[str, Any]) -> Quota:
    entity = {one["entity_type"]: one["entity_name"] for one in entry["entity"]}
    values = {one["key"]: one["value"] for one in entry["values"]}
    return Quota({kind: DEFAULT_ENTITY if name is None else name for kind, name in entity.items()}, values)


def _ask_for_epochs(admin: KafkaAdminClient, *, broker: int, epochs: Mapping[TopicPartition, int]) -> dict[str, Any]:
    kind = request_class("OffsetForLeaderEpochRequest")
    part, topic = kind.OffsetForLeaderTopic.OffsetForLeaderPartition, kind.OffsetForLeaderTopic
    topics = [
        topic(
            topic=name,
            partitions=[
                part(partition=number, current_leader_epoch=-1, leader_epoch=epochs[TopicPartition(name, number)]) for number in numbers
            ],
        )
        for name, numbers in numbers_by_topic(epochs).items()
    ]
    return answer_of(admin, kind(replica_id=-1, topics=topics), broker)


def _replica(found: Mapping[str, Any]) -> QuorumReplica:
    return QuorumReplica(
        found["replica_id"],
        _known(found["log_end_offset"]),
        _known(found.get("last_fetch_timestamp")),
        _known(found.get("last_caught_up_timestamp")),
        directory_text(found.get("replica_directory_id")),
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

        :param partitions: list only the replicas of these; None lists all, also of topics that may not be described, which kafka-python's
            own method leaves out
        """
        topics = None if partitions is None else list(numbers_by_topic(partitions).items())
        doing, request = "describe the log directories of broker", request_class("DescribeLogDirsRequest")
        answers = self._wire.brokers_or_errors(broker_ids, doing, lambda admin, broker: raw_answer(admin, request(topics=topics), broker))
        return {broker: _as_silent(broker, _log_dirs(broker, f"{doing} {broker}", answer)) for broker, answer in answers.items()}


def _log_dirs(broker: int, doing: str, answer: Any) -> tuple[LogDir, ...] | KopsError:
    if isinstance(answer, KopsError):
        return answer
    if not answer["results"]:
        # Every broker has one: an empty answer means that the request was rejected; before Kafka 3.5 it has no error code.
        return Right("DESCRIBE", "the cluster").lacking(f"could not {doing}: it names none")
    return tuple(_log_dir(broker, one) for one in answer["results"])


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
