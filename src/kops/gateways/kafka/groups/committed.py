"""Committed offsets: read, written and deleted without joining the group.

Many groups take few requests, and answers are passed on as they arrive, so memory does not grow with the number of groups.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any

from kops.core.errors import KopsError, Refused, answer_or_error
from kops.core.models import CommittedOffset, GroupOffsets, TopicPartition
from kops.gateways.kafka.admin import RETRY_SECONDS, Wire, can_express, settled
from kops.gateways.kafka.client import Client
from kops.gateways.kafka.groups.answers import gathered, offsets_of
from kops.gateways.kafka.groups.offsets_fetch import fetch_offsets, fetch_offsets_alone
from kops.gateways.kafka.translate import all_good, coordinator_moves, translate, translate_kafka_python

Offsets = dict[TopicPartition, CommittedOffset]
"""The committed offsets of one group."""

AT_ONCE = 48
"""Groups requested from librdkafka at once: enough to keep a broker busy while earlier answers are processed."""


class CommittedOffsets:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._wire = Wire(client)

    def committed(self, group_ids: Iterable[str], *, stable: bool = False) -> dict[str, Offsets]:
        """Return the committed offsets of groups; a group that has none, or does not exist, has an empty dictionary.

        Metadata is None if there is some but only librdkafka can make this connection.

        :param stable: wait for open transactions that have offsets to commit (an exactly-once application that just stopped)
        :raises KopsError: for the first group or partition that cannot be read
        """
        return all_good(self.committed_or_errors(group_ids, stable=stable))

    def committed_or_errors(self, group_ids: Iterable[str], *, stable: bool = False) -> dict[str, Offsets | KopsError]:
        wanted = sorted(set(group_ids))
        found = dict(self.read_offsets(wanted, stable=stable))
        return {name: one if isinstance(one := found[name], KopsError) else dict(one.commits()) for name in wanted}

    def read_offsets(self, group_ids: Iterable[str], *, stable: bool = False) -> Iterator[tuple[str, GroupOffsets | KopsError]]:
        """Yield what each group has committed, or why that is not known; in their order, except for groups that are requested again.

        :param stable: wait for open transactions that have offsets to commit
        """
        deadline = time.monotonic() + self._client.timeout
        while True:
            waiting: list[str] = []
            for group_id, answer in self._pass(group_ids, stable=stable):
                if stable and is_unstable(answer):
                    waiting.append(group_id)
                else:
                    yield group_id, answer
            if not waiting:
                return
            if time.monotonic() > deadline:
                yield from ((group_id, still_open(group_id)) for group_id in waiting)
                return
            time.sleep(RETRY_SECONDS)
            group_ids = waiting

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]) -> dict[TopicPartition, KopsError | None]:
        """Commit offsets for a group without members, which is created if it does not exist. Nothing joins the group.

        :return: the error of each partition, None if it is committed
        :raises GroupActive: when the group has members: the broker decides, whatever was read before
        """
        if not offsets:
            return {}
        if any(committed.metadata or committed.leader_epoch is not None for committed in offsets.values()):
            return self.commit_on_the_wire(group_id, offsets)
        plain: dict[str, list[tuple[int, int]]] = {}
        for partition, committed in offsets.items():
            plain.setdefault(partition.topic, []).append((partition.partition, committed.offset))
        errors = self.begin_commit(group_id, plain).errors()
        if isinstance(errors, KopsError):
            raise errors
        return {partition: errors.get(partition) for partition in offsets}

    def begin_commit(self, group_id: str, offsets: Mapping[str, Iterable[tuple[int, int]]]) -> PendingCommit:
        """Start to commit plain offsets for a group without members, without waiting for the broker.

        :param offsets: by topic, partitions and offsets
        """
        from confluent_kafka import TopicPartition as Librdkafka

        asked = [Librdkafka(topic, partition, offset) for topic, pairs in offsets.items() for partition, offset in pairs]
        return PendingCommit(self, self._client, group_id, asked)

    def commit_on_the_wire(
        self, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> dict[TopicPartition, KopsError | None]:
        """Commit through kafka-python, with metadata and leader epochs; see ``commit``."""
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

    def delete_offsets(self, group_id: str, partitions: Collection[TopicPartition]) -> dict[TopicPartition, KopsError | None]:
        """Delete committed offsets of a group.

        :raises GroupActive: when the group is subscribed to their topics
        """
        from kafka.structs import TopicPartition as KafkaPython

        if not partitions:
            return {}
        wire = [KafkaPython(partition.topic, partition.partition) for partition in partitions]
        doing = f"delete committed offsets of group {group_id}"
        return self._errors_by_partition(doing, self._wire.ask(doing, lambda admin: admin.delete_group_offsets(group_id, wire)))

    def _pass(self, group_ids: Iterable[str], *, stable: bool) -> Iterator[tuple[str, GroupOffsets | KopsError]]:
        """Request each group once: in few requests if the client for that exists already, as after groups were listed."""
        left = dict.fromkeys(group_ids)
        stranded = self._wire.stranded(left)
        for group_id, problem in stranded.items():
            del left[group_id]
            yield group_id, problem
        if self._client.second is not None:
            for answers in fetch_offsets(self._client, self._client.second, list(left), stable=stable):
                for group_id, commits in answers.items():
                    del left[group_id]
                    yield group_id, gathered(commits)
        yield from self._one_by_one(left, stable=stable)

    def _one_by_one(self, group_ids: Iterable[str], *, stable: bool) -> Iterator[tuple[str, GroupOffsets | KopsError]]:
        if not can_express(self._client.connection):
            yield from self._by_librdkafka(group_ids, stable=stable)
            return
        for group_id in group_ids:
            answer = fetch_offsets_alone(self._wire, group_id, stable=stable)
            yield group_id, answer if isinstance(answer, KopsError) else gathered(answer)

    def _by_librdkafka(self, group_ids: Iterable[str], *, stable: bool) -> Iterator[tuple[str, GroupOffsets | KopsError]]:
        from confluent_kafka import ConsumerGroupTopicPartitions

        def ask(admin: Any, group_id: str) -> Any:
            request = [ConsumerGroupTopicPartitions(group_id)]
            return admin.list_consumer_group_offsets(request, require_stable=stable, request_timeout=self._client.timeout)[group_id]

        under_way: deque[tuple[str, Future[Any]]] = deque()
        for group_id in group_ids:
            under_way.append((group_id, ask(self._client.admin, group_id)))
            if len(under_way) >= AT_ONCE:
                yield self._answer(*under_way.popleft(), ask)
        while under_way:
            yield self._answer(*under_way.popleft(), ask)

    def _answer(self, group_id: str, future: Future[Any], ask: Callable[[Any, str], Future[Any]]) -> tuple[str, GroupOffsets | KopsError]:
        doing = f"read the committed offsets of group {group_id}"
        outcome = self._client.outcome(future, doing, again=lambda admin: ask(admin, group_id))
        return group_id, outcome if isinstance(outcome, KopsError) else offsets_of(outcome.topic_partitions, doing)

    def _errors_by_partition(self, doing: str, answer: Mapping[Any, Any]) -> dict[TopicPartition, KopsError | None]:
        return {
            TopicPartition(partition.topic, partition.partition): translate_kafka_python(
                error, f"{doing} ({partition.topic}:{partition.partition})", self._client.connection.bootstrap_servers
            )
            if error.errno
            else None
            for partition, error in answer.items()
        }


class PendingCommit:
    """A commit of plain offsets that is in flight.

    :param asked: what is committed, as librdkafka's own type
    """

    def __init__(self, offsets: CommittedOffsets, client: Client, group_id: str, asked: list[Any]) -> None:
        self._offsets = offsets
        self._client = client
        self._group_id = group_id
        self._asked = asked
        self._future = self._ask()

    def errors(self) -> dict[TopicPartition, KopsError] | KopsError:
        """Wait for the commit; return the partitions that were not committed, or why none was.

        While the coordinator is moving it is repeated, through kafka-python if that can connect: it looks up the coordinator each time.
        """
        deadline = time.monotonic() + self._client.timeout
        while True:
            outcome = self._client.outcome(self._future, f"commit offsets of group {self._group_id}")
            if isinstance(outcome, KopsError):
                return outcome
            doing = {TopicPartition(one.topic, one.partition): one.error for one in outcome.topic_partitions if one.error is not None}
            errors = {at: translate(error, f"commit {at} of group {self._group_id}") for at, error in doing.items()}
            if not any(map(coordinator_moves, errors.values())) or time.monotonic() > deadline:
                return errors
            if can_express(self._client.connection):
                return self._repeat()
            time.sleep(RETRY_SECONDS)
            self._future = self._ask()

    def _ask(self) -> Future[Any]:
        from confluent_kafka import ConsumerGroupTopicPartitions

        request = [ConsumerGroupTopicPartitions(self._group_id, self._asked)]
        future: Future[Any] = self._client.admin.alter_consumer_group_offsets(request, request_timeout=self._client.timeout)[self._group_id]
        return future

    def _repeat(self) -> dict[TopicPartition, KopsError] | KopsError:
        commits = {TopicPartition(one.topic, one.partition): CommittedOffset(one.offset) for one in self._asked}
        outcome = answer_or_error(lambda: self._offsets.commit_on_the_wire(self._group_id, commits))
        if isinstance(outcome, KopsError):
            return outcome
        return {partition: error for partition, error in outcome.items() if error is not None}


def is_unstable(answer: object) -> bool:
    """Whether the offsets of a group cannot be known because of an open transaction."""
    return isinstance(answer, KopsError) and answer.details.get("kafka_error") == "UNSTABLE_OFFSET_COMMIT"


def still_open(group_id: str) -> KopsError:
    return Refused(
        f"an open transaction has offsets of group {group_id} to commit, and may yet",
        hint="an exactly-once application that was killed leaves it open until its transaction.timeout.ms is over: try again then",
        group=group_id,
    )
