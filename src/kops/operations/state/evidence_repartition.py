"""What a repartition topic says about where new keys go, if no surviving keys of the changelog do.

Its records are purged once they are processed, but some often remain, and its log ends count all that it ever had.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kops.core.models import Bounds, TopicPartition
from kops.core.murmur2 import partition_for
from kops.core.records.models import OffsetRange
from kops.core.statefile import StateFile
from kops.operations.services import Services
from kops.operations.state.compute import Computed
from kops.operations.state.evidence import ENOUGH
from kops.operations.state.exactness import SURE, Exactness, contradicted

_MOST = 1_000
"""Records that are read of a partition, its oldest."""


@dataclass(frozen=True)
class Placing:
    """What is known of where new keys go.

    :param exactness: C if something contradicts the default partitioner
    :param is_shown: enough keys are where it puts them
    """

    exactness: Exactness = SURE
    is_shown: bool = False


def placing_of(services: Services, state_file: StateFile, found: Computed) -> Placing:
    """Return what is known of where a store's keys go, by its surviving keys, or else by its repartition topic."""
    store = found.facts.store
    if not store.moves or store.custom_partitioner:
        return Placing(is_shown=True)
    if store.repartition_topic is None or found.proof is None or not found.proof.partitions:
        return Placing()  # of other offsets, or of an application that is about to be created
    if found.proof.of_keys.proves_file:  # a key elsewhere would be a differing one (`places.of_places`)
        return Placing(is_shown=True)
    topic, tasks = store.repartition_topic, found.facts.tasks
    bounds = services.kafka.offsets.bounds([TopicPartition(topic, number) for number in range(tasks)], isolation=state_file.isolation)
    seen, reason = _held(services, state_file, bounds, tasks)
    reasons = [*([reason] if reason else []), *_too_few(found, {place.partition: bound.log_end_offset for place, bound in bounds.items()})]
    if reasons:
        return Placing(contradicted(reasons))
    return Placing(is_shown=seen >= max(1, min(ENOUGH, -(-found.counts.keys // 2))))


def _held(services: Services, state_file: StateFile, bounds: Mapping[TopicPartition, Bounds], tasks: int) -> tuple[int, str]:
    """Look at the records that a repartition topic still holds.

    :return: how many different keys they have, and what contradicts the default partitioner, if anything
    """
    ranges = {
        place: OffsetRange(bound.log_start_offset, min(bound.log_end_offset, bound.log_start_offset + _MOST))
        for place, bound in bounds.items()
        if bound.log_start_offset < bound.log_end_offset
    }
    keys: set[bytes] = set()
    for batch in services.kafka.records.read(ranges, isolation=state_file.isolation) if ranges else ():
        for record in batch:
            if record.key is None:
                continue
            keys.add(record.key)
            home = partition_for(record.key, tasks)
            if record.partition != home:
                what = f"{record.topic}:{record.partition} has a record with the key {record.key!r}, which the default partitioner puts in"
                return len(keys), f"{what} {home}: the application has a partitioner of its own (partitioner: custom), or another key"
    return len(keys), ""


def _too_few(found: Computed, ends: Mapping[int, int]) -> Iterator[str]:
    """Find partitions that had fewer records than the default partitioner puts keys there, in a topic that had all records."""
    facts, counts = found.facts, found.counts
    store = facts.store
    sent = counts.read - sum(counts.dropped.values())
    whole = facts.base is None and sum(ends.values()) >= sent  # else the topic was recreated, and counts from then
    if store.window is not None or store.table is not None or store.explode or not whole or found.proof is None:
        return
    for number, each in sorted(found.proof.partitions.items()):
        if number in ends and ends[number] < each.expected:
            what = f"{store.repartition_topic}:{number} never had more than {ends[number]:,} records"
            why = "the application has a partitioner of its own (partitioner: custom), or another key"
            yield f"{what}, and the default partitioner puts {each.expected:,} keys there: {why}"
