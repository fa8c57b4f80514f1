"""Open transactions that hold back the last stable offset of partitions: ``read_committed`` consumers see only what is below it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kops.core.errors import KopsError, NotFound
from kops.core.groups.lag import OpenTransaction
from kops.core.models import READ_COMMITTED, Bounds, TopicPartition
from kops.operations.services import Services


@dataclass(frozen=True)
class OpenTransactions:
    """Open transactions in some partitions.

    :param stable: the last stable offsets of the partitions that answered
    :param open: the first open transaction of each partition that has one
    :param unknown: partitions where a transaction is open, or was a moment ago, and why it is not known which
    """

    stable: Mapping[TopicPartition, int] = field(default_factory=dict)
    open: Mapping[TopicPartition, OpenTransaction] = field(default_factory=dict)
    unknown: Mapping[TopicPartition, KopsError] = field(default_factory=dict)

    def may_be_open(self, partition: TopicPartition) -> bool:
        """Whether a transaction is open in a partition, or an open one could not be ruled out."""
        return partition in self.open or partition in self.unknown or partition not in self.stable


def stable_offsets(services: Services, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the last stable offsets of the partitions that answer."""
    answers = services.kafka.offsets.bounds_or_errors(partitions, isolation=READ_COMMITTED)
    return {partition: found.log_end_offset for partition, found in answers.items() if isinstance(found, Bounds)}


def held_back(stable: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, Bounds | KopsError]) -> list[TopicPartition]:
    """Return the partitions whose last stable offset is below their end."""
    return [p for p, offset in stable.items() if isinstance(found := ends.get(p), Bounds) and offset < found.log_end_offset]


def find_open_transactions(
    services: Services, stable: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, Bounds | KopsError]
) -> tuple[OpenTransactions, KopsError | None]:
    """Return the open transactions of partitions whose last stable offset is below their end.

    :param stable: last stable offsets
    :param ends: high watermarks, requested afterwards or at the same time
    :return: what is known, and the error if the whole request failed
    """
    below = held_back(stable, ends)
    if not below:
        return OpenTransactions(stable), None
    try:
        answers = services.kafka.transactions.open_in(below)
    except KopsError as problem:
        return OpenTransactions(stable, unknown=dict.fromkeys(below, problem)), problem
    opened: dict[TopicPartition, OpenTransaction] = {}
    unknown: dict[TopicPartition, KopsError] = {}
    for partition, answer in answers.items():
        if isinstance(answer, KopsError):
            if not isinstance(answer, NotFound):  # the partition was deleted meanwhile, and with it what was open
                unknown[partition] = answer
        elif answer:
            opened[partition] = answer[0]
    return OpenTransactions(stable, opened, unknown), None


def transactions_in(services: Services, partitions: Iterable[TopicPartition]) -> OpenTransactions:
    """Return the open transactions of some partitions: two requests, and a third one if any are open."""
    places = sorted(set(partitions))
    stable = stable_offsets(services, places)
    return find_open_transactions(services, stable, services.kafka.offsets.bounds_or_errors(places))[0]
