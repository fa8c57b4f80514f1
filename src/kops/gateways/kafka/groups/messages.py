"""Requests that neither client supports: share groups (KIP-932, KIP-1226), streams groups (KIP-1071), members that leave (KIP-848).

kafka-python builds a request class from a schema of its fields; these are the schemas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from kops.gateways.wire.kafka_python import by_coordinator, message_class, run, send

SHARE_GROUP_DESCRIBE = 77
SHARE_GROUP_OFFSETS = 90
STREAMS_GROUP_DESCRIBE = 89
CONSUMER_GROUP_HEARTBEAT, SHARE_GROUP_HEARTBEAT, STREAMS_GROUP_HEARTBEAT = 68, 76, 88
_EVERY = "0+"

Field = dict[str, Any]


def _field(name: str, kind: str, *fields: Field, nullable: bool = False) -> Field:
    body: Field = {"name": name, "type": kind, "versions": _EVERY}
    if fields:
        body["fields"] = list(fields)
    if nullable:
        body |= {"nullableVersions": _EVERY, "default": "null"}
    return body


def _texts(*names: str) -> list[Field]:
    return [_field(name, "string") for name in names]


def _described(*fields: Field) -> list[Field]:
    """Return the fields of an answer: per group those that all types have, then these."""
    head = [_field("ErrorCode", "int16"), _field("ErrorMessage", "string", nullable=True), *_texts("GroupId", "GroupState")]
    epochs = [_field("GroupEpoch", "int32"), _field("AssignmentEpoch", "int32")]
    tail = [_field("AuthorizedOperations", "int32") | {"default": "-2147483648"}]
    return [_field("ThrottleTimeMs", "int32"), _field("Groups", "[]DescribedGroup", *head, *epochs, *fields, *tail)]


def _share() -> list[Field]:
    partitions = _field(
        "TopicPartitions", "[]TopicPartitions", _field("TopicId", "uuid"), *_texts("TopicName"), _field("Partitions", "[]int32")
    )
    member = [
        *_texts("MemberId"),
        _field("RackId", "string", nullable=True),
        _field("MemberEpoch", "int32"),
        *_texts("ClientId", "ClientHost"),
        _field("SubscribedTopicNames", "[]string"),
        _field("Assignment", "Assignment", partitions),
    ]
    return _described(*_texts("AssignorName"), _field("Members", "[]Member", *member))


def _streams() -> list[Field]:
    pair = _texts("Key", "Value")
    topic = [
        *_texts("Name"),
        _field("Partitions", "int32"),
        _field("ReplicationFactor", "int16"),
        _field("TopicConfigs", "[]KeyValue", *pair),
    ]
    subtopology = [
        *_texts("SubtopologyId"),
        _field("SourceTopics", "[]string"),
        _field("RepartitionSinkTopics", "[]string"),
        _field("StateChangelogTopics", "[]TopicInfo", *topic),
        _field("RepartitionSourceTopics", "[]TopicInfo", *topic),
    ]
    topology = [_field("Epoch", "int32"), _field("Subtopologies", "[]Subtopology", *subtopology, nullable=True)]
    task_offset = [*_texts("SubtopologyId"), _field("Partition", "int32"), _field("Offset", "int64")]
    tasks = [*_texts("SubtopologyId"), _field("Partitions", "[]int32")]
    assignment = [_field(name, "[]TaskIds", *tasks) for name in ("ActiveTasks", "StandbyTasks", "WarmupTasks")]
    member = [
        *_texts("MemberId"),
        _field("MemberEpoch", "int32"),
        _field("InstanceId", "string", nullable=True),
        _field("RackId", "string", nullable=True),
        *_texts("ClientId", "ClientHost"),
        _field("TopologyEpoch", "int32"),
        *_texts("ProcessId"),
        _field("UserEndpoint", "Endpoint", *_texts("Host"), _field("Port", "uint16"), nullable=True),
        _field("ClientTags", "[]KeyValue", *pair),
        _field("TaskOffsets", "[]TaskOffset", *task_offset),
        _field("TaskEndOffsets", "[]TaskOffset", *task_offset),
        _field("Assignment", "Assignment", *assignment),
        _field("TargetAssignment", "Assignment", *assignment),
        _field("IsClassic", "bool"),
    ]
    return _described(_field("Topology", "Topology", *topology, nullable=True), _field("Members", "[]Member", *member))


def ask_coordinators(admin: Any, group_ids: Sequence[str], request: Callable[[list[str]], Any]) -> list[tuple[int, Any]]:
    """Send each coordinator a request about its groups; return the brokers with their answers.

    :param request: creates it from the ids of a broker's groups
    """

    async def ask_all() -> list[tuple[int, Any]]:
        return [(broker, await send(admin, request(some), broker)) for broker, some in (await by_coordinator(admin, group_ids)).items()]

    return list(run(admin, ask_all))


def describe_groups(admin: Any, api_key: int, group_ids: Sequence[str]) -> list[tuple[int, Any]]:
    """Describe share or streams groups, each by its coordinator; return the brokers with their answers."""
    request, _ = _messages(api_key)
    return ask_coordinators(admin, group_ids, lambda some: request(group_ids=some, include_authorized_operations=False))


def share_group_offsets(admin: Any, group_ids: Sequence[str]) -> list[tuple[int, Any]]:
    """Return the coordinators with the start offsets of share groups; from Kafka 4.2 on with their lag."""
    request, _ = _offset_messages()
    asked = request.DescribeShareGroupOffsetsRequestGroup
    return ask_coordinators(admin, group_ids, lambda some: request(groups=[asked(group_id=one, topics=None) for one in some]))


@cache
def _offset_messages() -> tuple[Any, Any]:
    error = [_field("ErrorCode", "int16"), _field("ErrorMessage", "string", nullable=True)]
    partition = [_field("PartitionIndex", "int32"), _field("StartOffset", "int64"), _field("LeaderEpoch", "int32")]
    partition.append({**_field("Lag", "int64"), "versions": "1+", "ignorable": True, "default": "-1"})
    topic = [
        *_texts("TopicName"),
        _field("TopicId", "uuid"),
        _field("Partitions", "[]DescribeShareGroupOffsetsResponsePartition", *partition, *error),
    ]
    group = [*_texts("GroupId"), _field("Topics", "[]DescribeShareGroupOffsetsResponseTopic", *topic), *error]
    topics = _field(
        "Topics", "[]DescribeShareGroupOffsetsRequestTopic", *_texts("TopicName"), _field("Partitions", "[]int32"), nullable=True
    )
    asked = [_field("Groups", "[]DescribeShareGroupOffsetsRequestGroup", *_texts("GroupId"), topics)]
    fields = [_field("ThrottleTimeMs", "int32"), _field("Groups", "[]DescribeShareGroupOffsetsResponseGroup", *group)]
    common = {"apiKey": SHARE_GROUP_OFFSETS, "validVersions": "0-1", "flexibleVersions": _EVERY}
    answer = message_class({**common, "type": "response", "name": "DescribeShareGroupOffsetsResponse", "fields": fields})
    return message_class({**common, "type": "request", "name": "DescribeShareGroupOffsetsRequest", "fields": asked}), answer


@cache
def _messages(api_key: int) -> tuple[Any, Any]:
    """Return the classes of request and answer. Both are kept, because kafka-python has only a weak reference to an answer's class."""
    name, versions, fields = ("ShareGroup", "1", _share()) if api_key == SHARE_GROUP_DESCRIBE else ("StreamsGroup", "0", _streams())
    asked = [_field("GroupIds", "[]string"), _field("IncludeAuthorizedOperations", "bool")]
    common = {"apiKey": api_key, "validVersions": versions, "flexibleVersions": _EVERY}
    answer = message_class({**common, "type": "response", "name": f"{name}DescribeResponse", "fields": fields})
    return message_class({**common, "type": "request", "name": f"{name}DescribeRequest", "fields": asked}), answer


def leaving(api_key: int, group_id: str, member_id: str, instance_id: str | None) -> Any:
    """Return the heartbeat by which a member of a consumer, share or streams group leaves for good, with the epoch -1."""
    request, _ = _heartbeat(api_key)
    static = {} if api_key == SHARE_GROUP_HEARTBEAT else {"instance_id": instance_id}
    return request(group_id=group_id, member_id=member_id, member_epoch=-1, **static)


@cache
def _heartbeat(api_key: int) -> tuple[Any, Any]:
    """Return the classes of request and answer; of what is null when a member leaves, only as much as null takes."""
    asked = [*_texts("GroupId", "MemberId"), _field("MemberEpoch", "int32")]
    answered = [
        _field("ThrottleTimeMs", "int32"),
        _field("ErrorCode", "int16"),
        _field("ErrorMessage", "string", nullable=True),
        _field("MemberId", "string", nullable=True),
        _field("MemberEpoch", "int32"),
        _field("HeartbeatIntervalMs", "int32"),
    ]
    instance, rack, timeout = (
        _field("InstanceId", "string", nullable=True),
        _field("RackId", "string", nullable=True),
        _field("RebalanceTimeoutMs", "int32") | {"default": -1},
    )
    if api_key == STREAMS_GROUP_HEARTBEAT:
        name, versions = "StreamsGroup", "0"
        asked += [_field("EndpointInformationEpoch", "int32"), instance, rack, timeout, _field("Topology", "int8") | {"default": -1}]
        asked += [_field(one, "[]int32", nullable=True) for one in ("ActiveTasks", "StandbyTasks", "WarmupTasks")]
        asked += [_field("ProcessId", "string", nullable=True), _field("UserEndpoint", "int8") | {"default": -1}]
        asked += [_field(one, "[]int32", nullable=True) for one in ("ClientTags", "TaskOffsets", "TaskEndOffsets")]
        asked.append(_field("ShutdownApplication", "bool"))
        answered += [_field("AcceptableRecoveryLag", "int32"), _field("TaskOffsetIntervalMs", "int32")]
        answered.append(_field("Status", "[]Status", _field("StatusCode", "int8"), *_texts("StatusDetail"), nullable=True))
        answered += [_field(one, "[]int32", nullable=True) for one in ("ActiveTasks", "StandbyTasks", "WarmupTasks")]
        answered += [_field("EndpointInformationEpoch", "int32"), _field("PartitionsByUserEndpoint", "[]int32", nullable=True)]
    else:
        is_share = api_key == SHARE_GROUP_HEARTBEAT
        name, versions = ("ShareGroup", "1") if is_share else ("ConsumerGroup", "0")
        asked += [rack] if is_share else [instance, rack, timeout]
        asked.append(_field("SubscribedTopicNames", "[]string", nullable=True))
        asked += (
            [] if is_share else [_field("ServerAssignor", "string", nullable=True), _field("TopicPartitions", "[]int32", nullable=True)]
        )
        answered.append(_field("Assignment", "int8") | {"default": -1})
    common = {"apiKey": api_key, "validVersions": versions, "flexibleVersions": _EVERY}
    answer = message_class({**common, "type": "response", "name": f"{name}HeartbeatResponse", "fields": answered})
    return message_class({**common, "type": "request", "name": f"{name}HeartbeatRequest", "fields": asked}, changes=True), answer
