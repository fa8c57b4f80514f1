"""Committed offsets: read, written and deleted without joining the group."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from operator import attrgetter, itemgetter
from typing import Any

from kops.core.errors import KopsError, Refused
from kops.core.models import Committed, TopicPartition
from kops.formats.groups.offset_fetch import TopicCommits
from kops.gateways.kafka.admin import RETRY_SECONDS, Wire, can_express, settled
from kops.gateways.kafka.client import Client
from kops.gateways.kafka.groups.offsets_fetch import fetched_alone
from kops.gateways.kafka.translate import coordinator_moves, translate, translate_kafka_python

Offsets = dict[TopicPartition, Committed]
"""The committed offsets of one group."""

_NUMBER = itemgetter(0)


class CommittedOffsets:
    """Committed offsets of groups."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._wire = Wire(client)
        self._known: dict[str, dict[int, TopicPartition]] = defaultdict(dict)

    def committed(self, group_ids: Iterable[str], *, stable: bool = False) -> dict[str, Offsets]:
        """Return the committed offsets of some groups; a group that has none, or does not exist, has an empty dictionary.

        Metadata is None where there is some and the connection is one that only librdkafka can make.

        :param stable: wait for open transactions that have offsets to commit (an exactly-once application that just stopped)
        :raises KopsError: of the first group or partition that cannot be read
        """
        return all_good(self.committed_or_errors(group_ids, stable=stable))

    def committed_or_errors(self, group_ids: Iterable[str], *, stable: bool = False) -> dict[str, Offsets | KopsError]:
        """Return each group's committed offsets, or why they are not known."""
        answers = self._read(sorted(set(group_ids)), stable=stable)
        deadline = time.monotonic() + self._client.timeout
        while stable and (unstable := [group_id for group_id, answer in answers.items() if is_unstable(answer)]):
            if time.monotonic() > deadline:
                answers |= {group_id: still_open(group_id) for group_id in unstable}
                break
            time.sleep(RETRY_SECONDS)
            answers |= self._read(unstable, stable=True)
        return answers

    def _read(self, group_ids: list[str], *, stable: bool) -> dict[str, Offsets | KopsError]:
        if not can_express(self._client.connection):
            return self._read_by_librdkafka(group_ids, stable=stable)
        answers = {group_id: fetched_alone(self._wire, group_id, stable=stable) for group_id in group_ids}
        return {group_id: answer if isinstance(answer, KopsError) else _commits(answer) for group_id, answer in answers.items()}

    def _read_by_librdkafka(self, group_ids: list[str], *, stable: bool) -> dict[str, Offsets | KopsError]:
        """Ask all groups at once; see ``offsets_fetch`` for why this is only for connections that kafka-python cannot make."""
        from confluent_kafka import ConsumerGroupTopicPartitions

        def ask(admin: Any, group_id: str) -> Any:
            request = [ConsumerGroupTopicPartitions(group_id)]
            return admin.list_consumer_group_offsets(request, require_stable=stable, request_timeout=self._client.timeout)[group_id]

        futures = {group_id: ask(self._client.admin, group_id) for group_id in group_ids}
        answers: dict[str, Offsets | KopsError] = {}
        for group_id, future in futures.items():
            again = partial(ask, group_id=group_id)
            outcome = self._client.outcome(future, f"read the committed offsets of group {group_id}", again=again)
            answers[group_id] = outcome if isinstance(outcome, KopsError) else self._offsets(group_id, outcome.topic_partitions)
        return answers

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, Committed]) -> dict[TopicPartition, KopsError | None]:
        """Commit offsets for a group without members, which is made when it does not exist. Nothing joins the group.

        :return: the error of each partition, None where it is committed
        :raises GroupActive: when the group has members: the broker decides, whatever was read before
        """
        if not offsets:
            return {}
        if any(committed.metadata or committed.leader_epoch is not None for committed in offsets.values()):
            return self._commit_on_the_wire(group_id, offsets)
        return self._commit_plainly(group_id, offsets)

    def delete_offsets(self, group_id: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, KopsError | None]:
        """Delete committed offsets of a group, as if they had never been.

        :raises GroupActive: when the group is subscribed to their topics
        """
        from kafka.structs import TopicPartition as KafkaPython

        if not partitions:
            return {}
        wire = [KafkaPython(partition.topic, partition.partition) for partition in partitions]
        doing = f"delete committed offsets of group {group_id}"
        return self._errors_by_partition(doing, self._wire.ask(doing, lambda admin: admin.delete_group_offsets(group_id, wire)))

    def _offsets(self, group_id: str, answers: Iterable[Any]) -> Offsets | KopsError:
        # Many groups name the same partitions: each gets one object, and a dictionary finds that without comparing. By topic, because
        # sorting numbers is so much faster than sorting pairs.
        by_topic: dict[str, list[tuple[int, Committed]]] = defaultdict(list)
        for answer in answers:
            if answer.error is not None:
                return translate(answer.error, f"read the committed offset of {answer.topic}:{answer.partition} of group {group_id}")
            offset = answer.offset
            if offset >= 0:
                by_topic[answer.topic].append((answer.partition, Committed(offset, empty_or_unread(answer), answer.leader_epoch)))
        found: Offsets = {}
        for topic in sorted(by_topic):
            known = self._known[topic]
            for number, committed in sorted(by_topic[topic], key=_NUMBER):
                partition = known.get(number)
                if partition is None:
                    partition = known[number] = TopicPartition(topic, number)
                found[partition] = committed
        return found

    def _commit_plainly(self, group_id: str, offsets: Mapping[TopicPartition, Committed]) -> dict[TopicPartition, KopsError | None]:
        """Commit by librdkafka; while the coordinator moves, by kafka-python, which looks it up again each time."""
        deadline = time.monotonic() + self._client.timeout
        while True:
            answer = self._commit_by_librdkafka(group_id, offsets)
            if not any(map(coordinator_moves, answer.values())) or time.monotonic() > deadline:
                return answer
            if can_express(self._client.connection):
                return self._commit_on_the_wire(group_id, offsets)
            time.sleep(RETRY_SECONDS)

    def _commit_by_librdkafka(self, group_id: str, offsets: Mapping[TopicPartition, Committed]) -> dict[TopicPartition, KopsError | None]:
        from confluent_kafka import ConsumerGroupTopicPartitions
        from confluent_kafka import TopicPartition as Librdkafka

        asked = [Librdkafka(partition.topic, partition.partition, committed.offset) for partition, committed in offsets.items()]
        request = [ConsumerGroupTopicPartitions(group_id, asked)]
        future = self._client.admin.alter_consumer_group_offsets(request, request_timeout=self._client.timeout)[group_id]
        answer = self._client.wait(future, f"commit offsets of group {group_id}")
        return {
            TopicPartition(one.topic, one.partition): translate(one.error, f"commit {one.topic}:{one.partition} of group {group_id}")
            if one.error is not None
            else None
            for one in answer.topic_partitions
        }

    def _commit_on_the_wire(self, group_id: str, offsets: Mapping[TopicPartition, Committed]) -> dict[TopicPartition, KopsError | None]:
        from kafka.structs import OffsetAndMetadata
        from kafka.structs import TopicPartition as KafkaPython

        asked = {
            KafkaPython(partition.topic, partition.partition): OffsetAndMetadata(
                committed.offset, committed.metadata or "", -1 if committed.leader_epoch is None else committed.leader_epoch
            )
            for partition, committed in offsets.items()
        }
        doing = f"commit offsets of group {group_id}"
        return self._errors_by_partition(doing, self._wire.ask(doing, lambda admin: settled(admin.alter_group_offsets(group_id, asked))))

    def _errors_by_partition(self, doing: str, answer: Mapping[Any, Any]) -> dict[TopicPartition, KopsError | None]:
        return {
            TopicPartition(partition.topic, partition.partition): translate_kafka_python(
                error, f"{doing} ({partition.topic}:{partition.partition})", self._client.connection.bootstrap_servers
            )
            if error.errno
            else None
            for partition, error in answer.items()
        }


def empty_or_unread(answer: Any) -> str | None:
    """Return "" when there is no metadata, else None.

    The text itself is not to be trusted: confluent-kafka reads past its end, into whatever lies there, until a NUL.
    """
    try:
        return None if answer.metadata else ""
    except UnicodeDecodeError:
        return None


def _commits(topics: Iterable[TopicCommits]) -> Offsets:
    return {
        TopicPartition(topic.topic, partition): Committed(offset, topic.metadata.get(partition, ""), topic.epochs.get(partition))
        for topic in sorted(topics, key=attrgetter("topic"))
        for partition, offset in sorted(zip(topic.partitions, topic.offsets, strict=True))
    }


def is_unstable(answer: object) -> bool:
    """Tell whether an open transaction keeps the offsets of a group from being known."""
    return isinstance(answer, KopsError) and answer.details.get("kafka_error") == "UNSTABLE_OFFSET_COMMIT"


def still_open(group_id: str) -> KopsError:
    """Return the error for a group of which a transaction stays open."""
    return Refused(
        f"an open transaction has offsets of group {group_id} to commit, and may yet",
        hint="an exactly-once application that was killed leaves it open until its transaction.timeout.ms is over: try again then",
        group=group_id,
    )


def all_good(answers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answers, or raise the first that is an error."""
    for answer in answers.values():
        if isinstance(answer, KopsError):
            raise answer
    return dict(answers)
