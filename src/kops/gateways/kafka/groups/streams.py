"""The groups of Kafka Streams applications with what their members report, by both protocols. Nothing joins a group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from kops.core.errors import KopsError, OperationFailed, UndecodableRecord
from kops.core.models import TopicPartition
from kops.core.streams.models import CLASSIC, STREAMS, Application, Part, StreamsMember, Task
from kops.core.streams.topics import is_named_of
from kops.formats.groups.streams_assignment import assignment_data, decode_assignment, decode_subscription, subscription_data
from kops.gateways.kafka.admin import Wire, can_express
from kops.gateways.kafka.client import Client
from kops.gateways.kafka.groups.answers import in_order, kafka_words
from kops.gateways.kafka.groups.messages import STREAMS_GROUP_DESCRIBE, describe_groups
from kops.gateways.kafka.translate import group_not_found, translate


class StreamsGroups:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._wire = Wire(client)

    @property
    def can_describe(self) -> bool:
        """Whether kafka-python, the only client that has the request for the streams protocol, can connect."""
        return can_express(self._client.connection)

    def classic(self, group_id: str) -> Application:
        """Return an application of the classic protocol, from the bytes of its assignor.

        All of it comes from running members: an empty group has neither members nor sub-topologies.

        :raises NotFound: when there is no such group
        :raises KopsError: when the brokers do not answer
        """
        from confluent_kafka import KafkaException

        try:
            found = self._client.list_groups(group_id, timeout=self._client.timeout)
        except KafkaException as error:
            raise translate(error.args[0], f"describe group {group_id}", self._client.connection.bootstrap_servers) from error
        if not found:
            raise group_not_found(group_id)
        answer = found[0]
        if answer.error is not None:
            raise translate(answer.error, f"describe group {group_id}", self._client.connection.bootstrap_servers)
        members, sources, unknown = [], defaultdict[str, set[str]](set), []
        for one in answer.members:
            try:
                member, reads = _classic_member(one)
            except UndecodableRecord as wrong:
                unknown.append(f"what {one.client_id} was assigned could not be read: {wrong.message}")
                member, reads = StreamsMember(one.id, one.client_id, one.client_host.removeprefix("/")), {}
            members.append(member)
            for number, topics in reads.items():
                sources[number] |= topics
        parts = tuple(_classic_part(number, sorted(sources[number]), group_id) for number in sorted(sources, key=_by_number))
        return Application(group_id, CLASSIC, kafka_words(answer.state), in_order(members), parts, unknown=tuple(unknown))

    def streams(self, group_ids: Sequence[str]) -> dict[str, Application | KopsError]:
        """Return applications of the streams protocol, as their coordinators describe them (``StreamsGroupDescribe``).

        :raises KopsError: when the broker does not support the request, or does not answer
        """
        found: dict[str, Application | KopsError] = self._wire.ask(
            "describe streams groups", lambda admin: _described(admin, group_ids), patient=True
        )
        return found


def _classic_member(answer: Any) -> tuple[StreamsMember, dict[str, set[str]]]:
    """Return a member, and the topics that its sub-topologies read."""
    subscription = decode_subscription(subscription_data(answer.metadata)) if answer.metadata else None
    partitions, data = assignment_data(answer.assignment) if answer.assignment else ((), b"")
    given = decode_assignment(data) if data else None
    reads: dict[str, set[str]] = defaultdict(set)
    if given and len(given.active) == len(partitions):
        for task, partition in zip(given.active, partitions, strict=True):
            reads[task.subtopology].add(partition.topic)
    for task, some in (given.standby if given else {}).items():
        reads[task.subtopology] |= {partition.topic for partition in some}
    member = StreamsMember(
        answer.id,
        answer.client_id,
        answer.client_host.removeprefix("/"),
        subscription.process_id if subscription else "",
        subscription.application_server if subscription else None,
        tuple(sorted(set(given.active))) if given else (),
        tuple(sorted(given.standby)) if given else (),
        partitions=tuple(sorted(partitions)),
    )
    return member, reads


def _classic_part(number: str, topics: Sequence[str], group_id: str) -> Part:
    internal = tuple(topic for topic in topics if is_named_of(topic, group_id))
    return Part(number, tuple(topic for topic in topics if topic not in internal), repartition_topics=internal)


def _by_number(name: str) -> tuple[int, str]:
    return (int(name), "") if name.isdigit() else (1 << 30, name)


def _described(admin: Any, group_ids: Sequence[str]) -> dict[str, Application | KopsError]:
    answers = describe_groups(admin, STREAMS_GROUP_DESCRIBE, group_ids)
    return {one.group_id: _application(one) for _, answer in answers for one in answer.groups}


def _application(answer: Any) -> Application | KopsError:
    if answer.error_code:
        reason = answer.error_message or f"error {answer.error_code}"
        return OperationFailed(f"could not describe group {answer.group_id}: {reason}", group=answer.group_id)
    parts = parts_of(answer)
    members = in_order(_streams_member(one, parts) for one in answer.members)
    return Application(answer.group_id, STREAMS, kafka_words(answer.group_state), members, parts, complete=bool(parts))


def parts_of(answer: Any) -> tuple[Part, ...]:
    """Return the sub-topologies of a described group; none before its application has registered its topology."""
    return tuple(
        Part(
            one.subtopology_id,
            tuple(one.source_topics),
            repartition_topics=tuple(topic.name for topic in one.repartition_source_topics),
            changelog_topics=tuple(topic.name for topic in one.state_changelog_topics),
            repartition_sinks=tuple(one.repartition_sink_topics),
        )
        for one in ((answer.topology.subtopologies or ()) if answer.topology else ())
    )


def _streams_member(one: Any, parts: Sequence[Part]) -> StreamsMember:
    active = tasks_of(one.assignment.active_tasks)
    reads = {part.subtopology: (*part.source_topics, *part.repartition_topics) for part in parts}
    return StreamsMember(
        one.member_id,
        one.client_id,
        one.client_host.removeprefix("/"),
        one.process_id,
        f"{one.user_endpoint.host}:{one.user_endpoint.port}" if one.user_endpoint else None,
        active,
        tasks_of(one.assignment.standby_tasks),
        tasks_of(one.assignment.warmup_tasks),
        tuple(sorted(TopicPartition(topic, task.partition) for task in active for topic in reads.get(task.subtopology, ()))),
    )


def tasks_of(some: Iterable[Any]) -> tuple[Task, ...]:
    return tuple(sorted(Task(one.subtopology_id, number) for one in some for number in one.partitions))
