"""Share, streams and Connect groups with their members, which confluent-kafka does not support."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kops.core.errors import KopsError, OperationFailed, UndecodableRecord, Unreachable, answer_or_error
from kops.core.models import Broker, Group, Member, ShareOffset, Subtopology, TopicPartition, WorkingGroup, WorkingMember
from kops.formats.groups.streams_assignment import assignment_data
from kops.formats.kafka_types import INT, LONG, SHORT, Reader
from kops.gateways.kafka.admin import Wire, can_express, settled
from kops.gateways.kafka.groups.answers import in_order, kafka_words
from kops.gateways.kafka.groups.messages import (
    SHARE_GROUP_DESCRIBE,
    STREAMS_GROUP_DESCRIBE,
    ask_coordinators,
    describe_groups,
    share_group_offsets,
    share_offsets_change,
    share_offsets_deletion,
)
from kops.gateways.kafka.groups.streams import parts_of, tasks_of
from kops.gateways.kafka.translate import translate_error_code
from kops.gateways.wire.kafka_python import known_brokers, request_class

TYPES = ("share", "streams", "connect")
_CONNECTOR_ITSELF = -1
"""In a list of a connector's tasks, Connect's number for the connector itself."""


def describe(wire: Wire, groups: Iterable[Group]) -> dict[str, Group]:
    """Return groups of these types with their members; as they were listed, if the broker or the client cannot describe them.

    :raises Unreachable: when no broker answers
    """
    wanted = [group for group in groups if group.type in TYPES]
    found = {group.group_id: group for group in wanted}
    if not wanted or not can_express(wire.connection):
        return found
    for kind in TYPES:
        ids = [group.group_id for group in wanted if group.type == kind]
        if ids:
            try:
                found |= wire.ask(f"describe {kind} groups", lambda admin, kind=kind, ids=ids: _ask(admin, kind, ids))  # type: ignore[misc]
            except Unreachable:
                raise
            except KopsError:
                continue
    return found


def share_offsets(wire: Wire, group_ids: Sequence[str]) -> dict[str, dict[TopicPartition, ShareOffset] | KopsError]:
    """Return where share groups are, by group, or why it is not known.

    :raises KopsError: when the brokers do not know the request, before Kafka 4.1, or do not answer
    """
    doing = f"describe the offsets of group {group_ids[0]}" if len(group_ids) == 1 else "describe the offsets of share groups"
    answers = wire.ask(doing, lambda admin: share_group_offsets(admin, group_ids), patient=True)
    found: dict[str, dict[TopicPartition, ShareOffset] | KopsError] = {}
    for _, answer in answers:
        for one in answer.groups:
            if one.error_code:
                reason = one.error_message or f"error {one.error_code}"
                found[one.group_id] = OperationFailed(f"could not describe the offsets of {one.group_id}: {reason}", group=one.group_id)
                continue
            found[one.group_id] = {
                TopicPartition(topic.topic_name, part.partition_index): ShareOffset(
                    part.start_offset if part.start_offset >= 0 else None, part.lag if part.lag is not None and part.lag >= 0 else None
                )
                for topic in one.topics
                for part in topic.partitions
                if not part.error_code
            }
    return found


def move_share_offsets(wire: Wire, group_id: str, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, KopsError | None]:
    """Set start offsets of a share group without members; return the error of each partition, or None (Kafka 4.1)."""
    by_topic: dict[str, dict[int, int]] = {}
    for place, offset in offsets.items():
        by_topic.setdefault(place.topic, {})[place.partition] = offset
    doing = f"move the start offsets of group {group_id}"
    answer = _change(wire, group_id, doing, share_offsets_change(group_id, by_topic))
    return {
        TopicPartition(topic.topic_name, one.partition_index): translate_error_code(
            one.error_code, one.error_message, f"{doing} in {topic.topic_name}"
        )
        for topic in answer.responses
        for one in topic.partitions
    }


def delete_share_offsets(wire: Wire, group_id: str, topics: Sequence[str]) -> dict[str, KopsError | None]:
    """Delete the start offsets of a share group without members in topics; return the error of each, or None (Kafka 4.1)."""
    doing = f"delete the start offsets of group {group_id}"
    answer = _change(wire, group_id, doing, share_offsets_deletion(group_id, topics))
    return {
        one.topic_name: translate_error_code(one.error_code, one.error_message, f"{doing} in {one.topic_name}") for one in answer.responses
    }


def _change(wire: Wire, group_id: str, doing: str, request: Any) -> Any:
    """Send a request to the group's coordinator.

    :raises KopsError: when it refuses all of it
    """
    from kafka.errors import for_code

    def ask(admin: Any) -> Any:
        ((_, answer),) = ask_coordinators(admin, [group_id], lambda _: request)
        settled({group_id: for_code(answer.error_code)})
        return answer

    answer = wire.ask(doing, ask)
    if error := translate_error_code(answer.error_code, answer.error_message, doing):
        raise error
    return answer


def describe_unparsed(wire: Wire, group_id: str) -> Group | KopsError:
    """Describe a classic group whose members have metadata or assignments that librdkafka rejects, and with them the whole answer."""

    def ask(admin: Any) -> Group:
        request = request_class("DescribeGroupsRequest")
        ((broker, answer),) = ask_coordinators(admin, [group_id], lambda some: request(groups=some, include_authorized_operations=False))
        (one,) = answer.groups
        coordinator = next((each for each in known_brokers(admin) if each.node_id == broker), None)
        at = coordinator and Broker(coordinator.node_id, coordinator.host, coordinator.port, coordinator.rack)
        members = in_order(
            Member(each.member_id, each.client_id, each.client_host.removeprefix("/"), _assigned(each), each.group_instance_id)
            for each in one.members
        )
        return Group(one.group_id, kafka_words(one.group_state), "classic", one.protocol_data or "", at, members)

    return answer_or_error(lambda: wire.ask(f"describe group {group_id}", ask))


def _assigned(member: Any) -> tuple[TopicPartition, ...]:
    """Return a member's assignment; empty if the bytes are not one, which is up to the client."""
    try:
        return tuple(sorted(assignment_data(bytes(member.member_assignment or b""))[0]))
    except UndecodableRecord:
        return ()


def _ask(admin: Any, kind: str, ids: Sequence[str]) -> dict[str, Group]:
    """Describe each group at its coordinator. kafka-python's own ``describe_groups`` parses every member as a consumer."""
    if kind == "connect":
        request = request_class("DescribeGroupsRequest")
        answers = ask_coordinators(admin, ids, lambda some: request(groups=some, include_authorized_operations=False))
    else:
        answers = describe_groups(admin, SHARE_GROUP_DESCRIBE if kind == "share" else STREAMS_GROUP_DESCRIBE, ids)
    make = {"share": _share, "streams": _streams, "connect": _connect}[kind]
    brokers = {broker.node_id: Broker(broker.node_id, broker.host, broker.port, broker.rack) for broker in known_brokers(admin)}
    return {one.group_id: make(one, brokers.get(broker)) for broker, answer in answers for one in answer.groups if not one.error_code}


def _share(answer: Any, coordinator: Broker | None) -> Group:
    members = []
    for one in answer.members:
        topics = one.assignment.topic_partitions
        partitions = sorted(TopicPartition(topic.topic_name, number) for topic in topics for number in topic.partitions)
        members.append(_member(one, assignment=tuple(partitions), epoch=one.member_epoch))
    return WorkingGroup(
        answer.group_id, kafka_words(answer.group_state), "share", answer.assignor_name, coordinator, in_order(members), answer.group_epoch
    )


def _streams(answer: Any, coordinator: Broker | None) -> Group:
    members = [
        _member(one, group_instance_id=one.instance_id, epoch=one.member_epoch, work=tuple(_work(one.assignment))) for one in answer.members
    ]
    subtopologies = tuple(
        Subtopology(part.subtopology, part.source_topics, part.repartition_topics, part.changelog_topics) for part in parts_of(answer)
    )
    state = kafka_words(answer.group_state)
    return WorkingGroup(answer.group_id, state, "streams", "", coordinator, in_order(members), answer.group_epoch, subtopologies)


def _work(assignment: Any) -> Iterator[str]:
    for role in ("active", "standby", "warmup"):
        yield from (f"{role} {task}" for task in tasks_of(getattr(assignment, f"{role}_tasks")))


def _connect(answer: Any, coordinator: Broker | None) -> Group:
    members = [_member(one, work=connect_work(bytes(one.member_assignment or b""))) for one in answer.members]
    return WorkingGroup(
        answer.group_id, kafka_words(answer.group_state), "connect", answer.protocol_data or "", coordinator, in_order(members)
    )


def _member(answer: Any, **known: Any) -> WorkingMember:
    return WorkingMember(answer.member_id, answer.client_id, answer.client_host.removeprefix("/"), **known)


def connect_work(assignment: bytes) -> tuple[str, ...]:
    """Return the connectors and tasks in a worker's assignment (``ConnectProtocol`` and ``IncrementalCooperativeConnectProtocol``).

    Both start in the same way: version, error, the leader's id and address, the offset of its configuration, and the connectors with
    their tasks.
    """
    try:
        return tuple(_connect_work(Reader(assignment)))
    except UndecodableRecord:
        return ()


def _connect_work(reader: Reader) -> Iterator[str]:
    reader.raw(2 * SHORT.size)
    reader.text()
    reader.text()
    reader.raw(LONG.size)
    for connector, tasks in reader.array(lambda: (reader.text(), reader.array(lambda: reader.number(INT)))):
        for task in tasks:
            yield f"connector {connector}" if task == _CONNECTOR_ITSELF else f"task {connector}-{task}"
