"""Where partitions begin and end, and the offset at a given time."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from kops.core.errors import BrokerDown, KopsError, NotFound
from kops.core.models import READ_COMMITTED, READ_UNCOMMITTED, Bounds, TopicPartition
from kops.core.topics.names import name_problem, topics_not_found
from kops.gateways.kafka.admin import PATIENCE_SECONDS, Wire, answer_of
from kops.gateways.kafka.client import Client
from kops.gateways.kafka.translate import all_good, has_no_leader, leader_moved, translate_error_code
from kops.gateways.wire.kafka_python import request_class

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient
    from kafka import KafkaAdminClient

RETRY_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 1.0
NO_LEADER_SECONDS = 1.5
"""If a replica is available, a leader is elected within this time; otherwise a broker that is down is not worth waiting for."""
EARLIEST_LOCAL, LATEST_TIERED = "earliest-local", "latest-tiered"
SPECS = {"max-timestamp": (-3, 7), EARLIEST_LOCAL: (-4, 8), LATEST_TIERED: (-5, 9), "earliest-pending-upload": (-6, 11)}
"""By the names that Apache's tool has for them: the timestamp that ListOffsets takes, and the first version that does (KIP-734, KIP-405,
KIP-1005, KIP-1023)."""
_LEADER_NOT_AVAILABLE = 5


class FoundOffset(NamedTuple):
    """An answer of ListOffsets; the timestamp only has a meaning for a time that was asked for."""

    offset: int
    timestamp: int


class Offsets:
    """Offsets of partitions. Many partitions take one request per leader."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._wire = Wire(client)

    def bounds(self, partitions: Iterable[TopicPartition], *, isolation: str = READ_UNCOMMITTED) -> dict[TopicPartition, Bounds]:
        """Return the log start and log end offsets of partitions.

        :param isolation: with ``read_committed`` the end is the last stable offset: where an open transaction begins
        :raises KopsError: for the first partition that has none (NotFound for an unknown topic or partition)
        """
        return all_good(self.bounds_or_errors(partitions, isolation=isolation))

    def bounds_or_errors(
        self, partitions: Iterable[TopicPartition], *, isolation: str = READ_UNCOMMITTED
    ) -> dict[TopicPartition, Bounds | KopsError]:
        """Return the bounds of each partition, or why they are not known: a deleted topic affects only its own rows."""
        from confluent_kafka.admin import OffsetSpec

        wanted = sorted(set(partitions))
        start_offsets = self._found(wanted, OffsetSpec.earliest(), READ_UNCOMMITTED, "find the log start offset")
        begun = [partition for partition in wanted if not isinstance(start_offsets[partition], KopsError)]
        end_offsets = self._found(begun, OffsetSpec.latest(), isolation, "find the log end offset")
        bounds = {partition: _bounds(start, end_offsets.get(partition, start)) for partition, start in start_offsets.items()}
        return bounds | self._missing([partition for partition, found in bounds.items() if isinstance(found, KopsError)])

    def _missing(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, KopsError]:
        """Return the partitions that do not exist: if all are missing, the client reports only that they have no leaders."""
        existing, problems = self.partitions_or_errors({partition.topic for partition in partitions})
        return {
            partition: _absent(partition)
            for partition in partitions
            if isinstance(problems.get(partition.topic), NotFound) or partition not in existing.get(partition.topic, (partition,))
        }

    def at_time(self, partitions: Iterable[TopicPartition], milliseconds: int) -> dict[TopicPartition, int | None]:
        """Return the first offset with this timestamp or a later one; None if the last record is older.

        :param milliseconds: since the epoch
        :raises KopsError: for the first partition that cannot be queried
        """
        found = self.found_at(partitions, milliseconds)
        return {partition: None if at is None else at.offset for partition, at in found.items()}

    def found_at(self, partitions: Iterable[TopicPartition], milliseconds: int) -> dict[TopicPartition, FoundOffset | None]:
        """Return the same with the timestamp of what is at that offset: a record, or a transaction marker."""
        from confluent_kafka.admin import OffsetSpec

        wanted = sorted(set(partitions))
        answers = self._found(wanted, OffsetSpec.for_timestamp(milliseconds), READ_UNCOMMITTED, "find the offset of a time")
        # The broker answers -1 for "none"; if that were committed, the group would follow auto.offset.reset.
        return {partition: None if found.offset < 0 else found for partition, found in all_good(answers).items()}

    def at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """Return the same for a time per partition, with one request per distinct time."""
        found: dict[TopicPartition, int | None] = {}
        for milliseconds in set(times.values()):
            found |= self.at_time([partition for partition, wanted in times.items() if wanted == milliseconds], milliseconds)
        return found

    def newest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, FoundOffset]:
        """Return the record with the largest timestamp (KIP-734, Kafka 3.0).

        Partitions without records are left out, and so are those whose broker does not answer this.
        """
        from confluent_kafka.admin import OffsetSpec

        answers = self._asked(sorted(set(partitions)), OffsetSpec.max_timestamp(), READ_UNCOMMITTED, "find the newest record")
        return {at: found for at, found in answers.items() if not isinstance(found, KopsError) and found.offset >= 0}

    def by_spec(self, partitions: Iterable[TopicPartition], name: str) -> dict[TopicPartition, FoundOffset | KopsError | None]:
        """Return an offset that librdkafka does not know, None where the partition has none, or why it is not known.

        :param partitions: those that exist
        :param name: one of ``SPECS``; latest-tiered is the last offset in remote storage, not the one after it
        :raises BrokersTooOld: naming the release that is needed
        """
        wanted, (_, version) = sorted(set(partitions)), SPECS[name]
        doing = f"find the {name} offset"
        self._wire.require(doing, "ListOffsets", version)
        answers = self._found(wanted, name, READ_UNCOMMITTED, doing)
        return {at: None if isinstance(found, FoundOffset) and found.offset < 0 else found for at, found in answers.items()}

    def partitions_of(self, topics: Collection[str]) -> dict[str, tuple[TopicPartition, ...]]:
        """Return the partitions of each topic.

        :raises NotFound: when a topic does not exist
        """
        partitions, problems = self.partitions_or_errors(topics)
        for name, problem in problems.items():
            if isinstance(problem, NotFound):
                raise topics_not_found([name])
            raise problem
        return partitions

    def partitions_or_errors(self, topics: Collection[str]) -> tuple[dict[str, tuple[TopicPartition, ...]], dict[str, KopsError]]:
        if not topics:
            return {}, {}
        found = self._client.describe_topics(sorted(set(topics)))
        problems = {name: answer for name, answer in found.items() if isinstance(answer, KopsError)}
        partitions = {
            name: tuple(TopicPartition(name, partition.id) for partition in answer.partitions)
            for name, answer in found.items()
            if not isinstance(answer, KopsError)
        }
        return partitions, problems

    def _found(
        self, partitions: Sequence[TopicPartition], spec: Any, isolation: str, doing: str
    ) -> dict[TopicPartition, FoundOffset | KopsError]:
        """List offsets, and retry where a leader has moved: librdkafka reports that, but keeps asking the old leader."""
        pause, since = RETRY_SECONDS, dict[tuple[TopicPartition, float], float]()
        # A member may claim to read anything, and librdkafka then refuses the whole request.
        possible = [partition for partition in partitions if partition.partition >= 0 and not name_problem(partition.topic)]
        impossible = {partition: _absent(partition) for partition in partitions if partition not in set(possible)}
        answers = impossible | self._asked(possible, spec, isolation, doing)
        while True:
            now, left = time.monotonic(), []
            for partition, answer in answers.items():
                patience = self._patience(answer)
                # Counted from the first such answer: a slow answer does not use up patience.
                if now + pause - since.setdefault((partition, patience), now) < patience:
                    left.append(partition)
            if not left:
                return answers
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
            metadata = self._client.metadata()
            if metadata is not None and all(partition.topic not in metadata.topics for partition in left):
                return answers  # for topics that do not exist librdkafka also reports that they have no leaders
            answers |= self._asked(left, spec, isolation, doing)

    def _led_by_the_dead(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, KopsError]:
        """Return the partitions whose leaders do not accept connections: librdkafka would wait for those, and then fail all."""
        presence = self._client.presence
        if not presence.down():
            return {}
        leaders = self._leaders(partitions)
        problems = {partition: presence.problem(leaders.get(partition), "its leader, ") for partition in partitions}
        return {partition: problem for partition, problem in problems.items() if problem is not None}

    def _leaders(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        found = self._client.describe_topics({partition.topic for partition in partitions})
        return {
            TopicPartition(name, partition.id): partition.leader.id
            for name, answer in found.items()
            if not isinstance(answer, KopsError)
            for partition in answer.partitions
            if partition.leader is not None
        }

    def _by_leader(self, partitions: Sequence[TopicPartition], name: str, doing: str) -> dict[TopicPartition, FoundOffset | KopsError]:
        """List offsets of one of ``SPECS`` once."""
        leaders = self._leaders(partitions)
        led: dict[int, list[TopicPartition]] = {}
        for partition in partitions:
            led.setdefault(leaders.get(partition, -1), []).append(partition)
        answers: dict[TopicPartition, FoundOffset | KopsError] = {}
        for place in led.pop(-1, ()):
            if problem := translate_error_code(_LEADER_NOT_AVAILABLE, None, f"{doing} of {place}"):
                answers[place] = problem

        def ask(admin: KafkaAdminClient, broker: int) -> dict[TopicPartition, FoundOffset | KopsError]:
            found = answer_of(admin, _request(led[broker], name, int(self._client.timeout * 1000)), broker)
            return _by_partition(found, doing)

        for broker, found in self._wire.brokers_or_errors(led, f"{doing} of partitions of broker", ask).items():
            answers |= dict.fromkeys(led[broker], found) if isinstance(found, KopsError) else found
        return answers

    def _patience(self, answer: FoundOffset | KopsError) -> float:
        if not isinstance(answer, KopsError):
            return 0
        timeout = self._client.timeout
        if isinstance(answer, BrokerDown):
            return min(PATIENCE_SECONDS, timeout) if self._wire.elects() else 0
        return timeout if leader_moved(answer) else min(NO_LEADER_SECONDS, timeout) if has_no_leader(answer) else 0

    def _asked(
        self, partitions: Sequence[TopicPartition], spec: Any, isolation: str, doing: str
    ) -> dict[TopicPartition, FoundOffset | KopsError]:
        """List offsets once, and wait for all of them.

        No other request about topics runs meanwhile: librdkafka looks up unknown leaders in the calling thread, and its own thread frees
        that work if metadata for an earlier request arrives just then. Two concurrent requests about a topic new to a client end the
        process, once in some thousand times (librdkafka 2.16, ``rd_kafka_topic_partition_list_query_leaders_async``).
        """
        if isinstance(spec, str):
            return self._by_leader(partitions, spec, doing)
        from confluent_kafka import IsolationLevel
        from confluent_kafka import TopicPartition as Librdkafka

        level = IsolationLevel.READ_COMMITTED if isolation == READ_COMMITTED else IsolationLevel.READ_UNCOMMITTED
        asked = {Librdkafka(partition.topic, partition.partition): spec for partition in partitions}
        if not asked:
            return {}
        answers: dict[TopicPartition, FoundOffset | KopsError] = {**self._led_by_the_dead(partitions)}
        with self._client.asking_about_topics:
            self._client.settle()
            futures = self._listed(asked, answers, level)
            if not answers and self._client.late(futures.values()) and (dead := self._led_by_the_dead(partitions)):
                answers |= dead
                # Over connections of its own, as librdkafka may still look up leaders for the first request.
                futures = self._listed(asked, answers, level, self._client.fresh_admin())
            for at, future in futures.items():
                partition = TopicPartition(at.topic, at.partition)
                outcome = self._client.outcome(future, f"{doing} of {partition}")
                answers[partition] = outcome if isinstance(outcome, KopsError) else FoundOffset(int(outcome.offset), int(outcome.timestamp))
        return answers

    def _listed(
        self, asked: Mapping[Any, Any], answers: Collection[TopicPartition], level: Any, admin: AdminClient | None = None
    ) -> Mapping[Any, Future[Any]]:
        """Request the offsets that have no answer yet."""
        left = {at: spec for at, spec in asked.items() if TopicPartition(at.topic, at.partition) not in answers}
        client = admin or self._client.admin
        return client.list_offsets(left, isolation_level=level, request_timeout=self._client.timeout) if left else {}


def _request(partitions: Iterable[TopicPartition], name: str, milliseconds: int) -> Any:
    """Return a request to the leader of partitions; kafka-python's own method fails as a whole where one of them does."""
    timestamp, version = SPECS[name]
    request = request_class("ListOffsetsRequest")
    one = request.ListOffsetsTopic
    topics = [
        one(name=topic, partitions=[one.ListOffsetsPartition(partition_index=at.partition, timestamp=timestamp) for at in some])
        for topic, some in groupby(partitions, attrgetter("topic"))
    ]
    return request(isolation_level=0, topics=topics, timeout_ms=milliseconds, min_version=version)


def _by_partition(found: Mapping[str, Any], doing: str) -> dict[TopicPartition, FoundOffset | KopsError]:
    answers: dict[TopicPartition, FoundOffset | KopsError] = {}
    for topic in found["topics"]:
        for each in topic["partitions"]:
            at = TopicPartition(topic["name"], each["partition_index"])
            problem = translate_error_code(each["error_code"], None, f"{doing} of {at}")
            answers[at] = problem or FoundOffset(each["offset"], each["timestamp"])
    return answers


def _absent(partition: TopicPartition) -> NotFound:
    return NotFound(f"there is no partition {partition}", topic=partition.topic, partition=partition.partition)


def _bounds(start: FoundOffset | KopsError, end: FoundOffset | KopsError) -> Bounds | KopsError:
    if isinstance(start, KopsError):
        return start
    if isinstance(end, KopsError):
        return end
    return Bounds(start.offset, max(start.offset, end.offset))
