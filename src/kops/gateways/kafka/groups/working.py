"""Share, streams and Connect groups with their members, of which confluent-kafka knows nothing."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kops.core.errors import KopsError, Unreachable
from kops.core.groups.models import Subtopology, WorkingGroup, WorkingMember
from kops.core.models import Broker, Group, TopicPartition
from kops.gateways.kafka.admin import Wire, can_express
from kops.gateways.kafka.groups.answers import kafka_words
from kops.gateways.kafka.groups.messages import SHARE_GROUP_DESCRIBE, STREAMS_GROUP_DESCRIBE, describe_request
from kops.gateways.wire.kafka_python import by_coordinator, known_brokers, request_class, run, send

TYPES = ("share", "streams", "connect")
_CONNECTOR_ITSELF = -1
"""Among a connector's tasks, Connect's sign for the connector."""


def describe(wire: Wire, groups: Iterable[Group]) -> dict[str, Group]:
    """Return groups of these types with their members; as they were listed, when the broker or the client cannot tell more.

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


def _ask(admin: Any, kind: str, ids: Sequence[str]) -> dict[str, Group]:
    """Ask each coordinator for its groups. kafka-python's own ``describe_groups`` takes every member for a consumer."""

    async def ask_all() -> list[tuple[int, Any]]:
        answers = []
        for broker, some in (await by_coordinator(admin, ids)).items():
            if kind == "connect":
                request = request_class("DescribeGroupsRequest")(groups=some, include_authorized_operations=False)
            else:
                number = SHARE_GROUP_DESCRIBE if kind == "share" else STREAMS_GROUP_DESCRIBE
                request = describe_request(number)(group_ids=some, include_authorized_operations=False)
            answers.append((broker, await send(admin, request, broker)))
        return answers

    make = {"share": _share, "streams": _streams, "connect": _connect}[kind]
    brokers = {broker.node_id: Broker(broker.node_id, broker.host, broker.port, broker.rack) for broker in known_brokers(admin)}
    return {
        one.group_id: make(one, brokers.get(broker))
        for broker, answer in run(admin, ask_all)
        for one in answer.groups
        if not one.error_code
    }


def _share(answer: Any, coordinator: Broker | None) -> Group:
    members = [
        WorkingMember(
            one.member_id,
            one.client_id,
            one.client_host.removeprefix("/"),
            tuple(
                sorted(TopicPartition(part.topic_name, number) for part in one.assignment.topic_partitions for number in part.partitions)
            ),
            epoch=one.member_epoch,
        )
        for one in answer.members
    ]
    return WorkingGroup(
        answer.group_id, kafka_words(answer.group_state), "share", answer.assignor_name, coordinator, _sorted(members), answer.group_epoch
    )


def _streams(answer: Any, coordinator: Broker | None) -> Group:
    members = [
        WorkingMember(
            one.member_id,
            one.client_id,
            one.client_host.removeprefix("/"),
            group_instance_id=one.instance_id,
            epoch=one.member_epoch,
            work=tuple(_tasks(one.assignment)),
        )
        for one in answer.members
    ]
    parts = (answer.topology.subtopologies or ()) if answer.topology else ()
    subtopologies = [
        Subtopology(
            one.subtopology_id,
            tuple(one.source_topics),
            tuple(topic.name for topic in one.repartition_source_topics),
            tuple(topic.name for topic in one.state_changelog_topics),
        )
        for one in parts
    ]
    state = kafka_words(answer.group_state)
    return WorkingGroup(answer.group_id, state, "streams", "", coordinator, _sorted(members), answer.group_epoch, tuple(subtopologies))


def _tasks(assignment: Any) -> Iterator[str]:
    roles = (("active", assignment.active_tasks), ("standby", assignment.standby_tasks), ("warmup", assignment.warmup_tasks))
    for role, tasks in roles:
        for task in tasks:
            yield from (f"{role} {task.subtopology_id}_{number}" for number in sorted(task.partitions))


def _connect(answer: Any, coordinator: Broker | None) -> Group:
    members = [
        WorkingMember(
            one.member_id, one.client_id, one.client_host.removeprefix("/"), work=connect_work(bytes(one.member_assignment or b""))
        )
        for one in answer.members
    ]
    return WorkingGroup(
        answer.group_id, kafka_words(answer.group_state), "connect", answer.protocol_data or "", coordinator, _sorted(members)
    )


def _sorted(members: Iterable[WorkingMember]) -> tuple[WorkingMember, ...]:
    return tuple(sorted(members, key=lambda member: (member.client_id, member.member_id)))


def connect_work(assignment: bytes) -> tuple[str, ...]:
    """Return the connectors and tasks in a worker's assignment (``ConnectProtocol`` and ``IncrementalCooperativeConnectProtocol``).

    Both begin alike: version, error, the leader's id and address, the offset of its configuration, and the connectors with their tasks.
    """
    try:
        return tuple(_connect_work(_Reader(assignment)))
    except (struct.error, UnicodeDecodeError):
        return ()


def _connect_work(reader: _Reader) -> Iterator[str]:
    reader.number(">hh")
    reader.text()
    reader.text()
    reader.number(">q")
    for _ in range(max(0, reader.number(">i"))):
        connector = reader.text()
        for _ in range(max(0, reader.number(">i"))):
            task = reader.number(">i")
            yield f"connector {connector}" if task == _CONNECTOR_ITSELF else f"task {connector}-{task}"


class _Reader:
    """Reads Kafka's primitive types one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, layout: str) -> int:
        """Return the last of some numbers."""
        values = struct.unpack_from(layout, self._data, self._at)
        self._at += struct.calcsize(layout)
        return int(values[-1])

    def text(self) -> str:
        """Return a string with its length in front; empty for null."""
        size = max(0, self.number(">h"))
        part = self._data[self._at : self._at + size]
        if len(part) < size:
            raise struct.error("the text is cut off")
        self._at += size
        return part.decode("utf-8")
