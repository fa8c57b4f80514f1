"""Transactions that are open in partitions: by which producer, with which transactional id, since when.

confluent-kafka supports none of these requests (KIP-664), kafka-python 3 all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from kops.core.errors import KopsError, NotFound, Unreachable
from kops.core.groups.lag import OpenTransaction
from kops.core.models import TopicPartition
from kops.core.transactions import Left, ProducerState, Transaction
from kops.gateways.kafka.admin import Wire, answer_of
from kops.gateways.kafka.client import Client
from kops.gateways.wire.kafka_python import request_class, run, transaction_coordinator

if TYPE_CHECKING:
    from kafka import KafkaAdminClient

T = TypeVar("T")

Open = tuple[OpenTransaction, ...]


class Transactions:
    def __init__(self, client: Client) -> None:
        self._wire = Wire(client)

    def open_in(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Open | KopsError]:
        """Return the transactions that are open in partitions, the one that begins first at the front, or why they are not known.

        The first one determines the last stable offset. Needs READ on the topics, and DESCRIBE on transactional ids: the brokers silently
        leave out those that may not be seen.

        :raises Unreachable: when no broker answers
        :raises ConfigError: when kafka-python does not support this connection's settings
        """
        found = self._open_in(sorted(set(partitions)))
        hanging = {
            partition for partition, answer in found.items() if not isinstance(answer, KopsError) and any(one.hanging for one in answer)
        }
        # A transaction may end between the two requests: then the coordinator reports that, and the partition no longer has it.
        again = self._producers(sorted(hanging)) if hanging else {}
        return {**found, **{partition: _still(found[partition], again[partition]) for partition in hanging}}

    def listed(self) -> list[Transaction]:
        """Return every transactional id that this user may see, by its name (ListTransactions)."""
        answers = self._wire.ask("list the transactions", lambda admin: admin.list_transactions(), patient=True)
        found = [
            Transaction(one.transactional_id, one.producer_id, one.state.value, broker) for broker, some in answers.items() for one in some
        ]
        return sorted(found, key=lambda one: one.transactional_id)

    def described(self, ids: Iterable[str]) -> dict[str, Transaction | KopsError]:
        """Return what the coordinators of transactional ids know, or why it is not known (DescribeTransactions)."""

        def ask(some: Collection[str]) -> Mapping[Any, Any]:
            doing = f"describe transactional id {next(iter(some))}" if len(some) == 1 else "describe transactions"
            return self._wire.ask(doing, lambda admin: admin.describe_transactions(some), patient=True)  # type: ignore[no-any-return]

        answers = _each_or_all(ask, sorted(set(ids)))
        return {name: answer if isinstance(answer, KopsError) else _described(name, answer[name]) for name, answer in answers.items()}

    def producers(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[ProducerState, ...] | KopsError]:
        """Return what the leaders of partitions remember of producers, or why it is not known (DescribeProducers)."""
        answers = self._states(sorted(set(partitions)))
        return {place: answer if isinstance(answer, KopsError) else tuple(map(_remembered, answer)) for place, answer in answers.items()}

    def abort(self, left: Left) -> None:
        """Write the marker that aborts a transaction in a partition (WriteTxnMarkers), as ``kafka-transactions abort`` does.

        :raises KopsError: when its leader refuses
        """
        from kafka.admin import AbortTransactionSpec
        from kafka.structs import TopicPartition as KafkaPython

        wire = KafkaPython(left.topic, left.partition)
        spec = AbortTransactionSpec(wire, left.producer_id, left.producer_epoch, max(left.coordinator_epoch, 0))
        self._wire.ask(f"abort the transaction in {left.place}", lambda admin: admin.abort_transaction(spec))

    def fence(self, transactional_id: str) -> None:
        """Have the coordinator abort the transaction of an id, and refuse its producer (InitProducerId, as ``Admin.fenceProducers``)."""

        def ask(admin: KafkaAdminClient) -> None:
            from kafka.errors import ConcurrentTransactionsError

            request = request_class("InitProducerIdRequest")(transactional_id=transactional_id, transaction_timeout_ms=1)
            coordinator = run(admin, transaction_coordinator, admin, transactional_id)
            try:
                answer_of(admin, request, coordinator)
            except ConcurrentTransactionsError:
                return  # it aborts the transaction now; the read-back waits for that

        self._wire.ask(f"abort the transaction of transactional id {transactional_id}", ask)

    def _open_in(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Open | KopsError]:
        producers = self._producers(partitions)
        asked = {state.producer_id for found in producers.values() if not isinstance(found, KopsError) for state in found}
        known = self._by_producer(asked) if asked else {}
        return {
            partition: found if isinstance(found, KopsError) else tuple(_open(one, partition, known.get(one.producer_id)) for one in found)
            for partition, found in producers.items()
        }

    def _producers(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, list[Any] | KopsError]:
        """Return the producers with an open transaction in each partition, ordered by where it begins."""
        answers = self._states(partitions)
        return {place: answer if isinstance(answer, KopsError) else _transactional(answer) for place, answer in answers.items()}

    def _states(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, list[Any] | KopsError]:
        def ask(some: Collection[TopicPartition]) -> Mapping[Any, Any]:
            from kafka.structs import TopicPartition as KafkaPython

            wire = [KafkaPython(partition.topic, partition.partition) for partition in some]
            where = str(next(iter(some))) if len(some) == 1 else f"{len(some)} partitions"
            return self._wire.ask(f"list the producers of {where}", lambda admin: admin.describe_producers(wire), patient=True)  # type: ignore[no-any-return]

        return {partition: _active(answer, partition) for partition, answer in _each_or_all(ask, partitions).items()}

    def _by_producer(self, producer_ids: Collection[int]) -> dict[int, tuple[str, Any]]:
        """Return transactional id and description (None if it cannot be read) by producer id, for those that may be seen."""
        listed = self._wire.ask(
            "list the transactions", lambda admin: admin.list_transactions(producer_id_filters=sorted(producer_ids)), patient=True
        )
        ids = {one.transactional_id: one.producer_id for many in listed.values() for one in many}

        def ask(some: Collection[str]) -> Mapping[Any, Any]:
            return self._wire.ask("describe transactions", lambda admin: admin.describe_transactions(some), patient=True)  # type: ignore[no-any-return]

        described = _each_or_all(ask, list(ids))
        return {
            producer_id: (name, None if isinstance(answer := described[name], KopsError) else answer.get(name))
            for name, producer_id in ids.items()
        }


def _each_or_all(ask: Callable[[Collection[T]], Mapping[Any, Any]], wanted: Collection[T]) -> dict[T, Mapping[Any, Any] | KopsError]:
    """Query all at once; if one of them makes the request fail, each separately."""
    if not wanted:
        return {}
    try:
        everything = ask(wanted)
        return dict.fromkeys(wanted, everything)
    except Unreachable:
        raise
    except KopsError as error:
        if len(wanted) == 1:
            return {next(iter(wanted)): error}
    return {one: answer for one in wanted for answer in _each_or_all(ask, [one]).values()}


def _active(answer: Mapping[Any, Any] | KopsError, partition: TopicPartition) -> list[Any] | KopsError:
    if isinstance(answer, KopsError):
        return answer
    found = answer.get((partition.topic, partition.partition))
    if found is None:
        return NotFound(f"the leader of {partition} does not answer for it", hint="`kops topics describe` shows its leader")
    return list(found.active_producers)


def _transactional(producers: Iterable[Any]) -> list[Any]:
    transactional = [state for state in producers if state.current_transaction_start_offset >= 0]
    return sorted(transactional, key=lambda state: state.current_transaction_start_offset)


def _described(name: str, found: Any) -> Transaction:
    return Transaction(
        name,
        found.producer_id,
        found.state.value,
        found.coordinator_id,
        found.producer_epoch,
        found.transaction_timeout_ms,
        _known(found.transaction_start_time_ms),
        tuple(sorted(TopicPartition(*one) for one in found.topic_partitions)),
    )


def _remembered(state: Any) -> ProducerState:
    return ProducerState(
        state.producer_id,
        state.producer_epoch,
        _known(state.last_sequence),
        _known(state.last_timestamp),
        _known(state.coordinator_epoch),
        _known(state.current_transaction_start_offset),
    )


def _known(number: int) -> int | None:
    return number if number >= 0 else None


def _still(found: Open | KopsError, again: list[Any] | KopsError) -> Open | KopsError:
    """Return the transactions without those that seemed to hang and have ended."""
    if isinstance(found, KopsError) or isinstance(again, KopsError):
        return again if isinstance(again, KopsError) else found
    left = {(state.producer_id, state.current_transaction_start_offset) for state in again}
    return tuple(one for one in found if not one.hanging or (one.producer_id, one.start_offset) in left)


def _open(state: Any, partition: TopicPartition, known: tuple[str, Any] | None) -> OpenTransaction:
    name, described = known or (None, None)
    place = (partition.topic, partition.partition)
    return OpenTransaction(
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        start_offset=state.current_transaction_start_offset,
        last_timestamp=state.last_timestamp if state.last_timestamp >= 0 else None,
        transactional_id=name,
        state=described.state.value if described else None,
        started=described.transaction_start_time_ms if described and described.transaction_start_time_ms >= 0 else None,
        timeout_ms=described.transaction_timeout_ms if described else None,
        includes_partition=described is None or place in {tuple(one) for one in described.topic_partitions},
        coordinator_epoch=state.coordinator_epoch,
    )
