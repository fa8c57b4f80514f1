"""Requests that neither client supports: share groups (KIP-932, KIP-1226), streams groups (KIP-1071), members that leave (KIP-848).

kafka-python builds a request class from a schema of its fields; these are the schemas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from kops.gateways.wire.kafka_python import by_coordinator, message_class, run, send

SHARE_GROUP_DESCRIBE = 77
SHARE_GROUP_OFFSETS = 90
STREAMS_GROUP_DESCRIBE = 89
ALTER_SHARE_GROUP_OFFSETS, DELETE_SHARE_GROUP_OFFSETS = 91, 92
CONSUMER_GROUP_HEARTBEAT, SHARE_GROUP_HEARTBEAT, STREAMS_GROUP_HEARTBEAT = 68, 76, 88
_EVERY = "0+"

Field = dict[str, Any]


def field(name: str, kind: str, *fields: Field, nullable: bool = False) -> Field:
    body: Field = {"name": name, "type": kind, "versions": _EVERY}
    if fields:
        body["fields"] = list(fields)
    if nullable:
        body |= {"nullableVersions": _EVERY, "default": "null"}
    return body


def texts(*names: str) -> list[Field]:
    return [field(name, "string") for name in names]


def _described(*fields: Field) -> list[Field]:
    """Return the fields of an answer: per group those that all types have, then these."""
    head = [field("ErrorCode", "int16"), field("ErrorMessage", "string", nullable=True), *texts("GroupId", "GroupState")]
    epochs = [field("GroupEpoch", "int32"), field("AssignmentEpoch", "int32")]
    tail = [field("AuthorizedOperations", "int32") | {"default": "-2147483648"}]
    return [field("ThrottleTimeMs", "int32"), field("Groups", "[]DescribedGroup", *head, *epochs, *fields, *tail)]


def _share() -> list[Field]:
    partitions = field(
        "TopicPartitions", "[]TopicPartitions", field("TopicId", "uuid"), *texts("TopicName"), field("Partitions", "[]int32")
    )
    member = [
        *texts("MemberId"),
        field("RackId", "string", nullable=True),
        field("MemberEpoch", "int32"),
        *texts("ClientId", "ClientHost"),
        field("SubscribedTopicNames", "[]string"),
        field("Assignment", "Assignment", partitions),
    ]
    return _described(*texts("AssignorName"), field("Members", "[]Member", *member))


def _streams() -> list[Field]:
    pair = texts("Key", "Value")
    topic = [
        *texts("Name"),
        field("Partitions", "int32"),
        field("ReplicationFactor", "int16"),
        field("TopicConfigs", "[]KeyValue", *pair),
    ]
    subtopology = [
        *texts("SubtopologyId"),
        field("SourceTopics", "[]string"),
        field("RepartitionSinkTopics", "[]string"),
        field("StateChangelogTopics", "[]TopicInfo", *topic),
        field("RepartitionSourceTopics", "[]TopicInfo", *topic),
    ]
    topology = [field("Epoch", "int32"), field("Subtopologies", "[]Subtopology", *subtopology, nullable=True)]
    task_offset = [*texts("SubtopologyId"), field("Partition", "int32"), field("Offset", "int64")]
    tasks = [*texts("SubtopologyId"), field("Partitions", "[]int32")]
    assignment = [field(name, "[]TaskIds", *tasks) for name in ("ActiveTasks", "StandbyTasks", "WarmupTasks")]
    member = [
        *texts("MemberId"),
        field("MemberEpoch", "int32"),
        field("InstanceId", "string", nullable=True),
        field("RackId", "string", nullable=True),
        *texts("ClientId", "ClientHost"),
        field("TopologyEpoch", "int32"),
        *texts("ProcessId"),
        field("UserEndpoint", "Endpoint", *texts("Host"), field("Port", "uint16"), nullable=True),
        field("ClientTags", "[]KeyValue", *pair),
        field("TaskOffsets", "[]TaskOffset", *task_offset),
        field("TaskEndOffsets", "[]TaskOffset", *task_offset),
        field("Assignment", "Assignment", *assignment),
        field("TargetAssignment", "Assignment", *assignment),
        field("IsClassic", "bool"),
    ]
    return _described(field("Topology", "Topology", *topology, nullable=True), field("Members", "[]Member", *member))


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
    error = [field("ErrorCode", "int16"), field("ErrorMessage", "string", nullable=True)]
    partition = [field("PartitionIndex", "int32"), field("StartOffset", "int64"), field("LeaderEpoch", "int32")]
    partition.append({**field("Lag", "int64"), "versions": "1+", "ignorable": True, "default": "-1"})
    topic = [
        *texts("TopicName"),
        field("TopicId", "uuid"),
        field("Partitions", "[]DescribeShareGroupOffsetsResponsePartition", *partition, *error),
    ]
    group = [*texts("GroupId"), field("Topics", "[]DescribeShareGroupOffsetsResponseTopic", *topic), *error]
    topics = field("Topics", "[]DescribeShareGroupOffsetsRequestTopic", *texts("TopicName"), field("Partitions", "[]int32"), nullable=True)
    asked = [field("Groups", "[]DescribeShareGroupOffsetsRequestGroup", *texts("GroupId"), topics)]
    fields = [field("ThrottleTimeMs", "int32"), field("Groups", "[]DescribeShareGroupOffsetsResponseGroup", *group)]
    common = {"apiKey": SHARE_GROUP_OFFSETS, "validVersions": "0-1", "flexibleVersions": _EVERY}
    answer = message_class({**common, "type": "response", "name": "DescribeShareGroupOffsetsResponse", "fields": fields})
    return message_class({**common, "type": "request", "name": "DescribeShareGroupOffsetsRequest", "fields": asked}), answer


@cache
def _messages(api_key: int) -> tuple[Any, Any]:
    """Return the classes of request and answer. Both are kept, because kafka-python has only a weak reference to an answer's class."""
    name, versions, fields = ("ShareGroup", "1", _share()) if api_key == SHARE_GROUP_DESCRIBE else ("StreamsGroup", "0", _streams())
    asked = [field("GroupIds", "[]string"), field("IncludeAuthorizedOperations", "bool")]
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
    asked = [*texts("GroupId", "MemberId"), field("MemberEpoch", "int32")]
    answered = [
        field("ThrottleTimeMs", "int32"),
        field("ErrorCode", "int16"),
        field("ErrorMessage", "string", nullable=True),
        field("MemberId", "string", nullable=True),
        field("MemberEpoch", "int32"),
        field("HeartbeatIntervalMs", "int32"),
    ]
    instance, rack, timeout = (
        field("InstanceId", "string", nullable=True),
        field("RackId", "string", nullable=True),
        field("RebalanceTimeoutMs", "int32") | {"default": -1},
    )
    if api_key == STREAMS_GROUP_HEARTBEAT:
        name, versions = "StreamsGroup", "0"
        asked += [field("EndpointInformationEpoch", "int32"), instance, rack, timeout, field("Topology", "int8") | {"default": -1}]
        asked += [field(one, "[]int32", nullable=True) for one in ("ActiveTasks", "StandbyTasks", "WarmupTasks")]
        asked += [field("ProcessId", "string", nullable=True), field("UserEndpoint", "int8") | {"default": -1}]
        asked += [field(one, "[]int32", nullable=True) for one in ("ClientTags", "TaskOffsets", "TaskEndOffsets")]
        asked.append(field("ShutdownApplication", "bool"))
        answered += [field("AcceptableRecoveryLag", "int32"), field("TaskOffsetIntervalMs", "int32")]
        answered.append(field("Status", "[]Status", field("StatusCode", "int8"), *texts("StatusDetail"), nullable=True))
        answered += [field(one, "[]int32", nullable=True) for one in ("ActiveTasks", "StandbyTasks", "WarmupTasks")]
        answered += [field("EndpointInformationEpoch", "int32"), field("PartitionsByUserEndpoint", "[]int32", nullable=True)]
    else:
        is_share = api_key == SHARE_GROUP_HEARTBEAT
        name, versions = ("ShareGroup", "1") if is_share else ("ConsumerGroup", "0")
        asked += [rack] if is_share else [instance, rack, timeout]
        asked.append(field("SubscribedTopicNames", "[]string", nullable=True))
        asked += [] if is_share else [field("ServerAssignor", "string", nullable=True), field("TopicPartitions", "[]int32", nullable=True)]
        answered.append(field("Assignment", "int8") | {"default": -1})
    common = {"apiKey": api_key, "validVersions": versions, "flexibleVersions": _EVERY}
    answer = message_class({**common, "type": "response", "name": f"{name}HeartbeatResponse", "fields": answered})
    return message_class({**common, "type": "request", "name": f"{name}HeartbeatRequest", "fields": asked}, changes=True), answer


def share_offsets_change(group_id: str, offsets: Mapping[str, Mapping[int, int]]) -> Any:
    """Return the request that moves the start offsets of a share group, by topic and partition."""
    request, _ = _share_change(ALTER_SHARE_GROUP_OFFSETS)
    topic = request.AlterShareGroupOffsetsRequestTopic
    part = topic.AlterShareGroupOffsetsRequestPartition
    topics = [
        topic(topic_name=name, partitions=[part(partition_index=number, start_offset=offset) for number, offset in some.items()])
        for name, some in offsets.items()
    ]
    return request(group_id=group_id, topics=topics)


def share_offsets_deletion(group_id: str, topics: Iterable[str]) -> Any:
    """Return the request that deletes the start offsets of a share group in topics."""
    request, _ = _share_change(DELETE_SHARE_GROUP_OFFSETS)
    return request(group_id=group_id, topics=[request.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics])


@cache
def _share_change(api_key: int) -> tuple[Any, Any]:
    error = [field("ErrorCode", "int16"), field("ErrorMessage", "string", nullable=True)]
    answered = [*texts("TopicName"), field("TopicId", "uuid")]
    if api_key == ALTER_SHARE_GROUP_OFFSETS:
        name = "AlterShareGroupOffsets"
        parts = [field("PartitionIndex", "int32"), field("StartOffset", "int64")]
        asked = [*texts("TopicName"), field("Partitions", f"[]{name}RequestPartition", *parts)]
        answered.append(field("Partitions", f"[]{name}ResponsePartition", parts[0], *error))
    else:
        name, asked = "DeleteShareGroupOffsets", texts("TopicName")
        answered += error
    common = {"apiKey": api_key, "validVersions": "0", "flexibleVersions": _EVERY}
    body = [field("ThrottleTimeMs", "int32"), *error, field("Responses", f"[]{name}ResponseTopic", *answered)]
    answer = message_class({**common, "type": "response", "name": f"{name}Response", "fields": body})
    fields = [*texts("GroupId"), field("Topics", f"[]{name}RequestTopic", *asked)]
    return message_class({**common, "type": "request", "name": f"{name}Request", "fields": fields}, changes=True), answer
