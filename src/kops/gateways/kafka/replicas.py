"""Where replicas lie: reassignments, elections of leaders, moves between log directories, brokers that are unregistered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from kops.core.errors import KopsError
from kops.core.models import TopicPartition, numbers_by_topic
from kops.core.replicas.planner import Replicas
from kops.core.replicas.reassignment import Moving
from kops.gateways.kafka.admin import Wire, answer_of
from kops.gateways.kafka.client import Client
from kops.gateways.kafka.translate import translate_error_code
from kops.gateways.wire.kafka_python import message_class, request_class

if TYPE_CHECKING:
    from kafka import KafkaAdminClient

Errors = dict[TopicPartition, "KopsError | None"]
_PREFERRED, _UNCLEAN = 0, 1
NOT_NEEDED = "ELECTION_NOT_NEEDED"


class ReplicaRequests:
    """Requests about replicas; every method waits for the answer."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._wire = Wire(client)

    def moving(self) -> dict[TopicPartition, Moving]:
        """Return the partitions that are being reassigned, whoever began it."""
        answer = self._wire.ask(
            "list the partitions that are being moved", lambda admin: admin.list_partition_reassignments(), patient=True, controllers=True
        )
        return {
            TopicPartition(place.topic, place.partition): Moving(
                tuple(found["replicas"]), tuple(found["adding_replicas"]), tuple(found["removing_replicas"])
            )
            for place, found in sorted(answer.items())
        }

    def reassign(self, targets: Mapping[TopicPartition, Replicas | None]) -> Errors:
        """Begin to reassign partitions; None cancels what is under way.

        :returns: the error of each, or None
        """
        kind = request_class("AlterPartitionReassignmentsRequest")
        topic = kind.ReassignableTopic
        topics = [
            topic(
                name=name,
                partitions=[
                    topic.ReassignablePartition(partition_index=number, replicas=None if replicas is None else list(replicas))
                    for number in numbers
                    for replicas in [targets[TopicPartition(name, number)]]
                ],
            )
            for name, numbers in numbers_by_topic(targets).items()
        ]
        milliseconds = int(self._client.timeout * 1000)
        answer = self._ask("reassign partitions", kind(timeout_ms=milliseconds, topics=topics))
        return _by_partition(answer["responses"], "name", "partitions", "partition_index", "reassign")

    def elect(self, places: Iterable[TopicPartition], *, unclean: bool = False) -> Errors:
        """Elect leaders: the preferred replica, or with ``unclean`` any that is up, where none is in sync.

        :returns: the error of each, or None; also where there was no need to, see ``NOT_NEEDED``
        """
        kind = request_class("ElectLeadersRequest")
        topics = [kind.TopicPartitions(topic=name, partitions=numbers) for name, numbers in numbers_by_topic(places).items()]
        milliseconds = int(self._client.timeout * 1000)
        request = kind(election_type=_UNCLEAN if unclean else _PREFERRED, topic_partitions=topics, timeout_ms=milliseconds, min_version=1)
        answer = self._ask("elect leaders", request)
        return _by_partition(answer["replica_election_results"], "topic", "partition_result", "partition_id", "elect a leader of")

    def to_log_dirs(self, broker: int, targets: Mapping[TopicPartition, str]) -> Errors:
        """Begin to move replicas of a broker to other log directories of the same broker.

        :returns: the error of each, or None
        """
        kind = request_class("AlterReplicaLogDirsRequest")
        log_dir = kind.AlterReplicaLogDir
        dirs = [
            log_dir(
                path=path,
                topics=[
                    log_dir.AlterReplicaLogDirTopic(name=name, partitions=numbers)
                    for name, numbers in numbers_by_topic(place for place, to in targets.items() if to == path).items()
                ],
            )
            for path in sorted(set(targets.values()))
        ]
        answer = self._wire.ask(f"move replicas of broker {broker}", lambda admin: answer_of(admin, kind(dirs=dirs), broker))
        return _by_partition(answer["results"], "topic_name", "partitions", "partition_index", f"move on broker {broker}")

    def unregister(self, broker: int) -> None:
        """Make the controllers forget a broker that is down (UnregisterBroker, KRaft only)."""
        self._client.permit.require("UnregisterBrokerRequest")  # a message of our own does not show what it does
        request, _ = _unregister_broker()
        self._ask(f"unregister broker {broker}", request(broker_id=broker))

    def _ask(self, doing: str, request: Any) -> dict[str, Any]:
        """Send a request that brokers hand on to the controllers, and before KRaft only the controller itself answers."""
        from kafka.errors import NotControllerError

        def send(admin: KafkaAdminClient) -> dict[str, Any]:
            try:
                return answer_of(admin, request)
            except NotControllerError:
                return answer_of(admin, request, self._client.cluster().controller)

        found: dict[str, Any] = self._wire.ask(doing, send, controllers=True)
        return found


@cache
def _unregister_broker() -> tuple[Any, Any]:
    """Return the classes of a request that kafka-python does not have, and of its answer (``UnregisterBrokerRequest.json`` of Kafka)."""
    common = {"apiKey": 64, "validVersions": "0", "flexibleVersions": "0+"}
    every = {"versions": "0+"}
    fields = [{"name": "ThrottleTimeMs", "type": "int32", **every}, {"name": "ErrorCode", "type": "int16", **every}]
    fields += [{"name": "ErrorMessage", "type": "string", **every, "nullableVersions": "0+", "default": "null"}]
    answer = message_class({**common, "type": "response", "name": "UnregisterBrokerResponse", "fields": fields})
    asked = [{"name": "BrokerId", "type": "int32", **every}]
    return message_class({**common, "type": "request", "name": "UnregisterBrokerRequest", "fields": asked}), answer


def _by_partition(topics: Iterable[Mapping[str, Any]], name: str, parts: str, number: str, doing: str) -> Errors:
    return {
        (place := TopicPartition(topic[name], part[number])): translate_error_code(
            part["error_code"], part.get("error_message"), f"{doing} {place}"
        )
        for topic in topics
        for part in topic[parts]
    }
