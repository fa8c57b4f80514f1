"""Committed offsets of many groups: so many requests at once, and answers as they come, so that memory does not grow with the groups."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Any

from kops.core.errors import KopsError
from kops.core.models import Committed, TopicPartition
from kops.formats.groups.offset_fetch import TopicCommits
from kops.gateways.kafka.admin import RETRY_SECONDS, Wire, can_express
from kops.gateways.kafka.client import Client
from kops.gateways.kafka.groups.committed import empty_or_unread, is_unstable, still_open
from kops.gateways.kafka.groups.offsets_fetch import fetched, fetched_alone
from kops.gateways.kafka.translate import translate

AT_ONCE = 48
"""Groups that are asked at once: enough to keep a broker busy while the answers before are looked at."""

_TOPIC, _PARTITION, _OFFSET = attrgetter("topic"), attrgetter("partition"), attrgetter("offset")
_ERROR, _EPOCH, _METADATA = attrgetter("error"), attrgetter("leader_epoch"), attrgetter("metadata")


@dataclass(frozen=True, slots=True)
class GroupOffsets:
    """What a group has committed, by topic and partition.

    :param offsets: of every commit
    :param epochs: leader epochs, where a commit has one
    :param metadata: where it is not empty; None where it could not be read
    """

    offsets: dict[str, dict[int, int]] = field(default_factory=dict)
    epochs: dict[str, dict[int, int]] = field(default_factory=dict)
    metadata: dict[str, dict[int, str | None]] = field(default_factory=dict)

    def columns(self) -> Iterator[tuple[str, tuple[int, ...], tuple[int, ...]]]:
        """Yield each topic with the partitions that have a commit, and their offsets; in order."""
        for topic in sorted(self.offsets):
            offsets = self.offsets[topic]
            partitions = tuple(sorted(offsets))
            yield topic, partitions, tuple(map(offsets.__getitem__, partitions))

    def commits(self) -> Iterator[tuple[TopicPartition, Committed]]:
        """Yield each commit, in the order of partitions."""
        for topic, partitions, offsets in self.columns():
            epochs, metadata = self.epochs.get(topic, {}), self.metadata.get(topic, {})
            for partition, offset in zip(partitions, offsets, strict=True):
                yield TopicPartition(topic, partition), Committed(offset, metadata.get(partition, ""), epochs.get(partition))


class ManyOffsets:
    """Reads and writes the committed offsets of many groups. Nothing joins them."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._wire = Wire(client)

    def read(self, group_ids: Iterable[str], *, stable: bool = False) -> Iterator[tuple[str, GroupOffsets | KopsError]]:
        """Yield each group with what it has committed, or why that is not known; in their order, but for those that are asked again.

        :param stable: wait for open transactions that have offsets to commit
        """
        deadline = time.monotonic() + self._client.timeout
        waiting: list[str] = []
        for group_id, answer in self._pass(group_ids, stable=stable):
            if stable and is_unstable(answer):
                waiting.append(group_id)
            else:
                yield group_id, answer
        while waiting:
            if time.monotonic() > deadline:
                yield from ((group_id, still_open(group_id)) for group_id in waiting)
                return
            time.sleep(RETRY_SECONDS)
            asked, waiting = waiting, []
            for group_id, answer in self._pass(asked, stable=True):
                if is_unstable(answer):
                    waiting.append(group_id)
                else:
                    yield group_id, answer

    def commit(self, group_id: str, offsets: Mapping[str, Iterable[tuple[int, int]]]) -> PendingCommit:
        """Begin to commit plain offsets for a group without members; nothing waits for the broker.

        :param offsets: by topic, partitions and offsets
        """
        from confluent_kafka import ConsumerGroupTopicPartitions
        from confluent_kafka import TopicPartition as Librdkafka

        asked = [Librdkafka(topic, partition, offset) for topic, pairs in offsets.items() for partition, offset in pairs]
        request = [ConsumerGroupTopicPartitions(group_id, asked)]
        future = self._client.admin.alter_consumer_group_offsets(request, request_timeout=self._client.timeout)[group_id]
        return PendingCommit(self._client, group_id, future)

    def _pass(self, group_ids: Iterable[str], *, stable: bool) -> Iterator[tuple[str, GroupOffsets | KopsError]]:
        """Ask for each group once: in few requests where the client for that is there already, as after groups were listed."""
        left = dict.fromkeys(group_ids)
        if self._client.second is not None:
            for answers in fetched(self._client, self._client.second, list(left), stable=stable):
                for group_id, commits in answers.items():
                    del left[group_id]
                    yield group_id, _gathered(commits)
        yield from self._one_by_one(left, stable=stable)

    def _one_by_one(self, group_ids: Iterable[str], *, stable: bool) -> Iterator[tuple[str, GroupOffsets | KopsError]]:
        if not can_express(self._client.connection):
            yield from self._by_librdkafka(group_ids, stable=stable)
            return
        for group_id in group_ids:
            answer = fetched_alone(self._wire, group_id, stable=stable)
            yield group_id, answer if isinstance(answer, KopsError) else _gathered(answer)

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
        return group_id, outcome if isinstance(outcome, KopsError) else _offsets(outcome.topic_partitions, doing)


class PendingCommit:
    """A commit that is under way."""

    def __init__(self, client: Client, group_id: str, future: Future[Any]) -> None:
        self._client = client
        self._group_id = group_id
        self._future = future

    def errors(self) -> dict[TopicPartition, KopsError] | KopsError:
        """Wait for it; return the partitions that were not committed, or why none was."""
        outcome = self._client.outcome(self._future, f"commit offsets of group {self._group_id}")
        if isinstance(outcome, KopsError):
            return outcome
        return {
            TopicPartition(one.topic, one.partition): translate(one.error, f"commit {one.topic}:{one.partition} of group {self._group_id}")
            for one in outcome.topic_partitions
            if one.error is not None
        }


def _gathered(commits: Iterable[TopicCommits]) -> GroupOffsets:
    """Return what a group has committed in each topic."""
    found = GroupOffsets()
    for one in commits:
        if one.partitions:
            found.offsets[one.topic] = dict(zip(one.partitions, one.offsets, strict=True))
        if one.epochs:
            found.epochs[one.topic] = dict(one.epochs)
        if one.metadata:
            found.metadata[one.topic] = dict(one.metadata)
    return found


def _offsets(answers: Sequence[Any], doing: str) -> GroupOffsets | KopsError:
    """Return an answer in columns; what is done for each partition is done in C."""
    if any(map(_ERROR, answers)):
        failed = next(answer for answer in answers if answer.error is not None)
        return translate(failed.error, f"{doing} ({failed.topic}:{failed.partition})")
    found = GroupOffsets()
    for topic, some in groupby(answers, _TOPIC):
        parts = list(some)
        offsets = list(map(_OFFSET, parts))
        if min(offsets) < 0:  # asked for by name, and without a commit
            parts, offsets = [part for part in parts if part.offset >= 0], [offset for offset in offsets if offset >= 0]
        if not parts:
            continue
        partitions = list(map(_PARTITION, parts))
        found.offsets.setdefault(topic, {}).update(zip(partitions, offsets, strict=True))
        epochs = list(map(_EPOCH, parts))
        if epochs.count(None) < len(epochs):
            known = {partition: epoch for partition, epoch in zip(partitions, epochs, strict=True) if epoch is not None}
            found.epochs.setdefault(topic, {}).update(known)
        if unread := _unread(parts):
            found.metadata.setdefault(topic, {}).update(dict.fromkeys(unread))
    return found


def _unread(answers: Sequence[Any]) -> list[int]:
    """Return the partitions whose commit has metadata."""
    try:
        if not any(map(_METADATA, answers)):
            return []
    except UnicodeDecodeError:
        pass
    return [answer.partition for answer in answers if empty_or_unread(answer) is None]
