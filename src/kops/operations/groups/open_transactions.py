"""Which open transactions hold the last stable offset of partitions: below it is all that readers of committed data can see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kops.core.errors import KopsError, NotFound
from kops.core.groups.lag import OpenTransaction
from kops.core.models import READ_COMMITTED, Bounds, TopicPartition
from kops.operations.services import Services


@dataclass(frozen=True)
class HeldBack:
    """What is known of open transactions in some partitions.

    :param stable: the last stable offsets, of partitions that answered
    :param open: the transaction that begins first, of partitions where one is open
    :param unknown: partitions where one is open, or was a moment ago, and why it is not known which
    """

    stable: Mapping[TopicPartition, int] = field(default_factory=dict)
    open: Mapping[TopicPartition, OpenTransaction] = field(default_factory=dict)
    unknown: Mapping[TopicPartition, KopsError] = field(default_factory=dict)

    def may_be_open(self, partition: TopicPartition) -> bool:
        """Tell whether a transaction is open in a partition, or that could not be ruled out."""
        return partition in self.open or partition in self.unknown or partition not in self.stable


NOTHING_HELD = HeldBack()


def stable_offsets(services: Services, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the last stable offsets of those that answer."""
    answers = services.kafka.offsets.bounds_or_errors(partitions, isolation=READ_COMMITTED)
    return {partition: found.log_end_offset for partition, found in answers.items() if isinstance(found, Bounds)}


def held_back(
    services: Services, stable: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, Bounds | KopsError]
) -> tuple[HeldBack, KopsError | None]:
    """Return the open transactions of partitions whose last stable offset lies below their end.

    :param stable: last stable offsets
    :param ends: high watermarks, asked for afterwards or at the same time
    :return: what is known, and why nothing is where the whole request failed
    """
    below = [p for p, offset in stable.items() if isinstance(found := ends.get(p), Bounds) and offset < found.log_end_offset]
    if not below:
        return HeldBack(stable), None
    try:
        answers = services.kafka.transactions.open_in(below)
    except KopsError as problem:
        return HeldBack(stable, unknown=dict.fromkeys(below, problem)), problem
    opened: dict[TopicPartition, OpenTransaction] = {}
    unknown: dict[TopicPartition, KopsError] = {}
    for partition, answer in answers.items():
        if isinstance(answer, KopsError):
            if not isinstance(answer, NotFound):
                unknown[partition] = answer
        elif answer:
            opened[partition] = answer[0]
    return HeldBack(stable, opened, unknown), None


def transactions_in(services: Services, partitions: Iterable[TopicPartition]) -> HeldBack:
    """Return the open transactions of some partitions: two requests, and a third where some are open."""
    places = sorted(set(partitions))
    stable = stable_offsets(services, places)
    return held_back(services, stable, services.kafka.offsets.bounds_or_errors(places))[0]
