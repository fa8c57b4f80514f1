"""`kops transactions list`, `describe` and `producers`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from kops.core.diagnosis.transactions import is_hanging
from kops.core.errors import KopsError, NotFound, UsageProblem, without_errors
from kops.core.groups.lag import OpenTransaction
from kops.core.models import Bounds, TopicPartition
from kops.core.selection import names_matching
from kops.core.times import time_text, to_milliseconds
from kops.core.transactions import ONGOING, ProducerState, Transaction
from kops.operations.groups.open_transactions import held_back, stable_offsets
from kops.operations.services import Services
from kops.operations.topics.listing import select, select_partitions

Row = dict[str, Any]
Open = Mapping[TopicPartition, Sequence[OpenTransaction]]
STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence")
UNDER_WAY = (ONGOING, "PrepareCommit", "PrepareAbort", "PrepareEpochFence")


def list_transactions(services: Services, patterns: Sequence[str], states: Collection[str], problems: dict[str, KopsError]) -> list[Row]:
    """Return a row per transactional id.

    :param patterns: names or globs of transactional ids
    :param states: only those in these states, by Kafka's names
    :param problems: receives why one that is under way could not be described
    """
    wanted = {_state(text) for text in states}
    listed = {one.transactional_id: one for one in services.kafka.transactions.listed()}
    shown = [
        listed[name]
        for name in names_matching(patterns, listed, regex=False, what="transaction")
        if not wanted or listed[name].state in wanted
    ]
    open_now = [one.transactional_id for one in shown if one.state in UNDER_WAY]
    known = without_errors(services.kafka.transactions.described(open_now), problems)
    return [_row(known.get(one.transactional_id, one), services) for one in shown]


def describe(services: Services, ids: Sequence[str], problems: dict[str, KopsError]) -> list[Row]:
    """Return transactional ids with the partitions of their open transactions.

    :raises NotFound: when the only one is unknown to its coordinator
    """
    answers = services.kafka.transactions.described(ids)
    if len(ids) == 1 and isinstance(only := answers[ids[0]], KopsError):
        raise only
    found = without_errors(answers, problems)
    return [_row(one, services) | {"partitions": [str(place) for place in one.partitions]} for one in found.values()]


def open_transactions(services: Services, texts: Sequence[str], problems: dict[str, KopsError]) -> Open:
    """Return every transaction that is open in some partitions.

    :param texts: topics with or without partitions; empty: all of the cluster, the brokers' own topics too
    :param problems: receives why it is not known for a partition, by its name
    """
    if texts:
        _, places = select_partitions(services, texts)
    else:
        places = tuple(place for topic in select(services, (), internal=True).values() for place in topic.places)
    stable = stable_offsets(services, places)
    ends = services.kafka.offsets.bounds_or_errors(places)
    problems.update({str(place): found for place, found in ends.items() if not isinstance(found, Bounds)})
    answers = services.kafka.transactions.open_in(held_back(stable, ends))
    problems.update({str(place): found for place, found in answers.items() if isinstance(found, KopsError)})
    return {place: found for place, found in answers.items() if not isinstance(found, KopsError)}


def open_rows(services: Services, found: Open, *, hanging: bool) -> list[Row]:
    """Return a row per open transaction and partition.

    :param hanging: only those that no coordinator will end
    """
    now = to_milliseconds(services.now())
    return [
        {
            "topic": place.topic,
            "partition": place.partition,
            "start_offset": one.start_offset,
            "transactional_id": one.transactional_id,
            "producer_id": one.producer_id,
            "producer_epoch": one.producer_epoch,
            "state": one.state,
            "age_ms": one.age(now),
            "timeout_ms": one.timeout_ms,
            "hanging": is_hanging(one, now),
        }
        for place, some in sorted(found.items())
        for one in some
        if not hanging or is_hanging(one, now)
    ]


def producer_rows(services: Services, texts: Sequence[str], problems: dict[str, KopsError]) -> list[Row]:
    """Return a row per producer that the leaders of partitions remember (DescribeProducers)."""
    _, places = select_partitions(services, texts)
    answers = services.kafka.transactions.producers(places)
    problems.update({str(place): found for place, found in answers.items() if isinstance(found, KopsError)})
    return [_producer(place, one) for place, some in answers.items() if not isinstance(some, KopsError) for one in some]


def _producer(place: TopicPartition, one: ProducerState) -> Row:
    return {
        "topic": place.topic,
        "partition": place.partition,
        "producer_id": one.producer_id,
        "producer_epoch": one.producer_epoch,
        "last_sequence": one.last_sequence,
        "last_timestamp": None if one.last_timestamp is None else time_text(one.last_timestamp),
        "coordinator_epoch": one.coordinator_epoch,
        "transaction_start_offset": one.start_offset,
    }


def _row(one: Transaction, services: Services) -> Row:
    now = to_milliseconds(services.now())
    return {
        "transactional_id": one.transactional_id,
        "state": one.state,
        "producer_id": one.producer_id,
        "producer_epoch": one.producer_epoch,
        "coordinator": one.coordinator,
        "age_ms": None if one.started is None else max(0, now - one.started),
        "timeout_ms": one.timeout_ms,
    }


def _state(text: str) -> str:
    found = next((state for state in STATES if state.lower() == text.strip().lower()), None)
    if found is None:
        raise UsageProblem(f"{text!r} is not a state of a transaction", hint=f"one of {', '.join(STATES)}")
    return found


def not_open(place: str) -> NotFound:
    return NotFound(f"no transaction is open in {place}", hint=f"`kops transactions list --open --topic {place}` shows those that are")
