"""Transactions of whole record batches (KIP-98), including the position that they reach (KIP-447), through kafka-python.

One request per step, answered before the next; only batches are sent concurrently.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from kops.formats.batches.header import Producer
from kops.gateways.wire import transaction_requests as requests
from kops.gateways.wire.connections import PATIENCE_SECONDS, REQUEST_MILLISECONDS, Patience, await_quota, connected, patiently
from kops.gateways.wire.kafka_python import request_class
from kops.gateways.wire.producer import IdempotentProducer, ProduceAnswer, answers_of
from kops.gateways.wire.transaction_requests import Names, Position

_RETRY_SECONDS = 0.02
_IN_FLIGHT = 4  # one below kafka-python's limit per connection, and within the five that brokers remember per producer
_THROTTLED_SECONDS = 1.0
_TRANSACTION, _GROUP = 1, 0  # FindCoordinatorRequest: key_type
_AGAIN = (
    "CONCURRENT_TRANSACTIONS",  # the coordinator still writes the markers of the transaction before
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "UNSTABLE_OFFSET_COMMIT",  # a transaction has commits for this group that are not decided yet (KIP-447)
)
_FATAL = ("AUTHORIZATION", "INVALID_RECORD", "INVALID_TIMESTAMP", "CORRUPT", "POLICY", "UNSUPPORTED")

Encode = Callable[[Producer], bytes]


class BrokenTransaction(Exception):
    """The transaction cannot continue; its contents must be sent again."""


class RefusedBatch(Exception):
    """The broker rejects a batch.

    :ivar too_large: whether it may accept the batch in parts
    """

    def __init__(self, topic: str, partition: int, answer: ProduceAnswer) -> None:
        super().__init__(f"{topic}:{partition}: {answer.reason(topic)}")
        self.too_large = answer.is_too_large


class BatchWriter(IdempotentProducer):
    """Writes batches, and commits its progress.

    :param settings: librdkafka's
    """

    def __init__(self, settings: Mapping[str, Any], names: Names) -> None:
        super().__init__(patiently(lambda: connected(settings)), names.transactional_id)
        self.names = names
        self._in_transaction: set[tuple[str, int]] = set()
        self._in_flight: deque[tuple[Any, str, int]] = deque()
        self._coordinators: dict[int, int] = {}
        self._most_in_flight = 1
        self._throttled_seconds = 0.0
        self.answered: Callable[[], None] | None = None
        """Called when a batch was answered."""

    @property
    def throttled(self) -> bool:
        """Whether a quota throttles us so much that transactions must be kept short to stay within their time limit."""
        return self._throttled_seconds >= _THROTTLED_SECONDS

    def begin(self) -> Position | None:
        """Become the only writer with this name, abort what it left open, and return its progress."""
        self._in_flight.clear()
        kind = _TRANSACTION if self.transactional_id else None
        self._become(self._ask(kind, self._identity_request, _code, f"use transactional id {self.transactional_id}" if kind else ""))
        self._in_transaction, self._most_in_flight = set(), 1
        return self.position()

    def position(self) -> Position | None:
        """Return how far records were written, waiting for a transaction that is being completed."""

        def error(answer: Any) -> int:
            return int(answer.error_code or answer.topics[0].partitions[0].error_code)

        found = self._ask(_GROUP, lambda: requests.committed_position(self.names), error).topics[0].partitions[0]
        return None if found.committed_offset < 0 else Position(found.committed_offset, found.metadata or "")

    def send(self, topic: str, partition: int, records: int, encode: Encode) -> None:
        """Send a batch; ``flush`` reports its outcome.

        :raises BrokenTransaction: when everything since the last commit must be sent again
        :raises RefusedBatch: when the broker rejects a batch that was sent before
        """
        if self.transactional_id is not None and (topic, partition) not in self._in_transaction:
            self._add_partition(topic, partition)
        batch = encode(self._numbered(topic, partition, records))
        if self.transactional_id is None:
            self._deliver(topic, partition, batch)
            return
        while len(self._in_flight) >= self._most_in_flight:
            self._answered(*self._in_flight.popleft())
        self._in_flight.append((self._send_produce(topic, partition, batch), topic, partition))

    def flush(self) -> None:
        """Wait until everything that was sent is acknowledged; see ``send``."""
        while self._in_flight:
            self._answered(*self._in_flight.popleft())

    def commit(self, position: Position) -> None:
        """Commit what was sent, together with the position; without transactions, the position afterwards.

        :raises BrokenTransaction: when it is not known whether it was committed; ``begin`` shows that
        """
        self.flush()
        names, who = self.names, self._identity
        if self.transactional_id is None:
            self._ask(_GROUP, lambda: requests.commit_alone(names, position), _code_of_partition)
            return
        if names.progress_topic is not None:
            self._note(names.progress_topic, position)
        # First, as it makes the partition of __consumer_offsets a part of the transaction: markers are written only to its parts.
        self._ask(_TRANSACTION, lambda: requests.add_offsets(names, who), _code)
        self._ask(_GROUP, lambda: requests.commit_in_transaction(names, who, position), _code_of_partition)
        self._end(committed=True)

    def _note(self, topic: str, position: Position) -> None:
        """Write the position as a record of the transaction: committed offsets expire, a compacted topic keeps the newest record."""
        try:
            self.send(topic, 0, 1, partial(_position_batch, self.names.group, position))
            self.flush()
        except RefusedBatch as refused:
            raise ValueError(f"progress cannot be recorded in {topic}: {refused}") from refused

    def abort(self) -> None:
        while self._in_flight:
            future, *_ = self._in_flight.popleft()
            self._client.poll(timeout_ms=REQUEST_MILLISECONDS, future=future)
        if self.transactional_id is not None and self._in_transaction:
            self._end(committed=False)

    def _add_partition(self, topic: str, partition: int) -> None:
        self._ask(
            _TRANSACTION,
            lambda: requests.add_partition(self.names, self._identity, topic, partition),
            lambda answer: answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code,
            f"produce to {topic}",
        )
        self._in_transaction.add((topic, partition))

    def _end(self, *, committed: bool) -> None:
        self._ask(_TRANSACTION, lambda: requests.end_transaction(self.names, self._identity, committed=committed), _code)
        self._in_transaction = set()

    def _ask(self, kind: int | None, request: Callable[[], Any], code_of: Callable[[Any], int], doing: str = "") -> Any:
        """Send a request to a coordinator, and retry where that may help.

        :param kind: of coordinator; None: any broker
        :param doing: said by an error
        :raises BrokenTransaction: when the coordinator does not recognize this writer, or its transaction is in another state
        """
        from kafka.errors import KafkaError, for_code

        patience, wait = Patience(), _RETRY_SECONDS
        while True:
            problem: Any
            patience.extend(await_quota(self._client, self._coordinators.get(kind) if kind is not None else None))
            try:
                answer = self._client.send_and_receive(self._coordinator(kind), request(), timeout_ms=REQUEST_MILLISECONDS)
                code = code_of(answer)
                if not code:
                    return answer
                problem = for_code(code)(doing) if doing else for_code(code)()
            except KafkaError as error:
                problem = error
            name = getattr(problem, "message", None) or type(problem).__name__
            again = name in _AGAIN or problem.retriable or problem.invalid_metadata
            if not again and any(word in name for word in _FATAL):
                raise problem
            if not again:
                raise BrokenTransaction(f"{name}: {problem}")
            if patience.is_over:
                raise TimeoutError(f"{name}: {self.names.group} got no other answer within {PATIENCE_SECONDS:g} s")
            if name != "CONCURRENT_TRANSACTIONS":  # which only the right coordinator answers
                self._coordinators.clear()
            time.sleep(wait)
            wait = min(2 * wait, 1.0)

    def _coordinator(self, kind: int | None) -> int:
        from kafka.errors import NodeNotReadyError, for_code

        if kind is None or kind not in self._coordinators:
            node = self._client.least_loaded_node(bootstrap_fallback=True)
            if node is None:
                raise NodeNotReadyError("no broker")
            if kind is None:
                return int(node)
            key = self.transactional_id if kind == _TRANSACTION else self.names.group
            request = request_class("FindCoordinatorRequest")(key=key, key_type=kind, min_version=1, max_version=3)
            answer = self._client.send_and_receive(node, request, timeout_ms=REQUEST_MILLISECONDS)
            if answer.error_code:
                raise for_code(answer.error_code)(f"no coordinator for {key}")
            self._coordinators[kind] = answer.node_id
        return self._coordinators[kind]

    def _send_produce(self, topic: str, partition: int, batch: bytes) -> Any:
        from kafka.errors import KafkaError

        leader = self._leader(topic, partition)
        if leader is None:
            self._refresh(topic)
            raise BrokenTransaction(f"{topic}:{partition} has no leader")
        await_quota(self._client, leader)
        try:
            self._client.await_ready(leader, timeout_ms=REQUEST_MILLISECONDS)
        except KafkaError as error:
            self._refresh(topic)
            raise BrokenTransaction(str(error)) from error
        return self._client.send(leader, self._produce_request(topic, {partition: batch}))

    def _answered(self, future: Any, topic: str, partition: int) -> None:
        self._client.poll(timeout_ms=REQUEST_MILLISECONDS, future=future)
        if not future.succeeded():
            self._refresh(topic)
            raise BrokenTransaction(f"{topic}:{partition}: {future.exception if future.failed() else 'no answer in time'}")
        self._throttled_seconds = future.value.throttle_time_ms / 1000
        # A broker holds back all that a throttled client has in flight, and the transaction has a time limit.
        self._most_in_flight = 1 if self._throttled_seconds else min(2 * self._most_in_flight, _IN_FLIGHT)
        if self.answered is not None:
            self.answered()
        answer = answers_of(future.value)[partition]
        if answer.error is None:
            return
        if answer.is_too_large or any(word in answer.error.message for word in _FATAL):
            raise RefusedBatch(topic, partition, answer)
        self._refresh(topic)
        raise BrokenTransaction(f"{topic}:{partition}: {answer.error.message}")

    def _deliver(self, topic: str, partition: int, batch: bytes) -> None:
        """Send a batch until it is acknowledged: the broker recognizes it by its sequence number."""

        def broken(error: BaseException) -> bool:
            return isinstance(error, BrokenTransaction)

        patiently(
            lambda: self._answered(self._send_produce(topic, partition, batch), topic, partition), again=broken, wait=5 * _RETRY_SECONDS
        )


def _code(answer: Any) -> Any:
    return answer.error_code


def _code_of_partition(answer: Any) -> Any:
    return answer.topics[0].partitions[0].error_code


def _position_batch(group: str, position: Position, producer: Producer) -> bytes:
    """Return a batch of one record: the position as ``operations.replay.progress`` reads it."""
    from kops.formats.batches.encode import encode, one_record

    value = json.dumps({"offset": position.offset, "note": position.note}).encode()
    return encode(one_record(group.encode(), value, int(time.time() * 1000)), producer)
