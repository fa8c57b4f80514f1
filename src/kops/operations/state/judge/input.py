"""What the logs of a store's input show: gaps, the latest time, and where new keys go.

A log that was compacted has offsets without a record that no transaction marker explains, even if it is no longer compacted. Kafka
Streams commits with each offset the greatest timestamp that it has seen in the partition, by its own extractor, of the records that it
has read. A repartition topic shows where new keys go, if no surviving keys of the changelog do: its records are purged once they are
processed, but some often remain, and its log ends count all that it ever had.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kops.core.errors import UndecodableRecord
from kops.core.findings import Finding, names_text
from kops.core.models import Bounds, CommittedOffset, TopicPartition
from kops.core.murmur2 import partition_for
from kops.core.records.models import OffsetRange
from kops.core.statefile import StateFile
from kops.core.statefile.models import FAUST
from kops.core.statefile.sources import WALL_CLOCK
from kops.core.streams.verdict import ALL_KEYS, KEYS_THERE, doubt
from kops.core.times import time_text
from kops.formats.streams.offset_metadata import UNKNOWN_TIME, decode
from kops.operations.engine.spark import Engine
from kops.operations.services import Services
from kops.operations.state.compute import ComputedStore
from kops.operations.state.input_offsets import InputOffsets
from kops.operations.state.rules.statement import input_gaps
from kops.operations.state.rules.witnesses import ENOUGH

_NAMED = 3
_MOST = 1_000
"""Records that are read per partition, the oldest ones."""


def gaps(engine: Engine, found: ComputedStore, cut: InputOffsets) -> Iterator[Finding]:
    """Judge a store by the gaps in its input."""
    facts = found.facts
    if not facts.store.reuses_source and _lacks_some(found, cut):
        for source in facts.store.inputs:
            engine.scan(source.topic, cut.ranges(facts, source.topic))
    for source in facts.store.inputs:
        places = [
            f"{source.topic}:{number} {_offsets(seen.gaps)}"
            for number, (start, end) in sorted(cut.ranges(facts, source.topic).items())
            if (seen := engine.seen(source.topic, number, start, end)) and seen.gaps
        ]
        if places:
            yield from input_gaps(facts.store, names_text(places, _NAMED, of="partitions"))


def _lacks_some(found: ComputedStore, cut: InputOffsets) -> bool:
    """Whether fewer records were read than there are offsets: because of transaction markers, aborted records, or gaps."""
    facts = found.facts
    offsets = sum(end - start for source in facts.store.inputs for start, end in cut.ranges(facts, source.topic).values())
    return facts.base is None and not cut.archived and found.counts.read + sum(map(len, facts.waiting.values())) < offsets


def _offsets(gaps: tuple[tuple[int, int], ...]) -> str:
    first, last = gaps[0]
    return (f"at offset {first}" if first == last else f"among the offsets {first} to {last}") + (" and others" if len(gaps) > 1 else "")


def aborted_transactions(engine: Engine, state_file: StateFile, found: ComputedStore, cut: InputOffsets) -> Iterator[Finding]:
    """Return where transactions were aborted and the state file does not say whether their records counted."""
    if state_file.says_isolation or state_file.library == FAUST:
        return
    places = [
        str(TopicPartition(source.topic, number))
        for source in found.facts.store.inputs
        for number, (start, end) in sorted(cut.ranges(found.facts, source.topic).items())
        if (seen := engine.seen(source.topic, number, start, end)) and seen.aborted
    ]
    if not places:
        return
    where = names_text(places, _NAMED, of="partitions")
    what = f"transactions were aborted in {where}, and the state file does not say whether their records count"
    yield doubt("aborted_transactions", f"{what} (streams.isolation)", settled_by=ALL_KEYS)


def partition_times(
    engine: Engine, state_file: StateFile, found: ComputedStore, cut: InputOffsets, made: Mapping[TopicPartition, object]
) -> Iterator[Finding]:
    """Return where the partition times that the application has committed are not those of what was computed.

    :param made: partitions whose offsets kops has moved: the time that it committed need not be that of the records before
    """
    facts = found.facts
    if state_file.library == FAUST or cut.is_new or facts.base is not None or facts.waiting:
        return
    may_skip = found.counts.dropped.get("undecodable", 0) > 0
    for source in facts.store.inputs:
        read = {
            TopicPartition(source.topic, number): (start, end)
            for number, (start, end) in sorted(cut.ranges(facts, source.topic).items())
            if start < end
        }
        if source.timestamp == WALL_CLOCK or any(at in made or start > facts.starts.get(at, 0) for at, (start, _) in read.items()):
            continue
        known = {at: _partition_time(cut.committed.get(at)) for at in read}
        latest = {
            at: seen.latest for at, ends in read.items() if (seen := engine.seen(at.topic, at.partition, *ends)) and seen.latest is not None
        }
        if source.timestamp is None and latest:
            compared = [(str(at), known[at], latest.get(at)) for at in read]
        elif not facts.store.others and UNKNOWN_TIME not in known.values():
            compared = [(source.topic, max(known.values(), default=UNKNOWN_TIME), found.counts.latest)]
        else:
            continue
        from_elsewhere = "it takes times from elsewhere (a timestamp extractor; `timestamp` in a state file)"
        for where, seen_by_it, by_kops in compared:
            yield from _compared(where, seen_by_it, by_kops, from_elsewhere, may_skip=may_skip)


def _partition_time(committed: CommittedOffset | None) -> int:
    try:
        return decode(committed.metadata or "").partition_time_ms if committed else UNKNOWN_TIME
    except UndecodableRecord:
        return UNKNOWN_TIME


def _compared(where: str, known: int, latest: int | None, from_elsewhere: str, *, may_skip: bool) -> Iterator[Finding]:
    """Compare two times of a partition, or of a whole topic.

    :param known: what Kafka Streams has seen
    :param latest: what kops has seen; None: nothing
    :param from_elsewhere: where its times may come from, in words
    """
    if latest is None or known in (UNKNOWN_TIME, latest) or (may_skip and known < latest):
        return
    what = f"Kafka Streams has seen the time {time_text(known)} in {where}, and the latest record there is of {time_text(latest)}"
    if known > latest:
        yield doubt("partition_time", f"{what}: {from_elsewhere}, or has read records that are gone", settled_by=KEYS_THERE)
    else:
        yield doubt("partition_time", f"{what}: {from_elsewhere}, or that record never counted", settled_by=ALL_KEYS)


@dataclass(frozen=True)
class KeyPlacement:
    """What is known about where new keys go.

    :param findings: what contradicts the default partitioner
    :param is_shown: enough keys are where it puts them
    """

    findings: tuple[Finding, ...] = ()
    is_shown: bool = False


def placing_of(services: Services, state_file: StateFile, found: ComputedStore) -> KeyPlacement:
    """Return what is known about where a store's keys go, by its surviving keys, or otherwise by its repartition topic."""
    store = found.facts.store
    if not store.moves or store.custom_partitioner:
        return KeyPlacement(is_shown=True)
    if store.repartition_topic is None or found.witnesses is None or not found.witnesses.partitions:
        return KeyPlacement()  # reflects other offsets, or belongs to an application that is about to be created
    if found.witnesses.show_code:  # a key elsewhere would be a differing one (``places.misplaced``)
        return KeyPlacement(is_shown=True)
    topic, tasks = store.repartition_topic, found.facts.tasks
    bounds = services.kafka.offsets.bounds([TopicPartition(topic, number) for number in range(tasks)], isolation=state_file.isolation)
    seen, reason = _held(services, state_file, bounds, tasks)
    reasons = [*([reason] if reason else []), *_too_few(found, {place.partition: bound.log_end_offset for place, bound in bounds.items()})]
    if reasons:
        return KeyPlacement(tuple(doubt("key_placement", reason) for reason in reasons))
    return KeyPlacement(is_shown=seen >= max(1, min(ENOUGH, -(-found.counts.keys // 2))))


def _held(services: Services, state_file: StateFile, bounds: Mapping[TopicPartition, Bounds], tasks: int) -> tuple[int, str]:
    """Read the records that a repartition topic still holds.

    :return: how many different keys they have, and what contradicts the default partitioner, if anything
    """
    ranges = {
        place: OffsetRange(bound.log_start_offset, min(bound.log_end_offset, bound.log_start_offset + _MOST))
        for place, bound in bounds.items()
        if not bound.empty
    }
    keys: set[bytes] = set()
    for batch in services.kafka.records.read(ranges, isolation=state_file.isolation):
        for record in batch:
            if record.key is None:
                continue
            keys.add(record.key)
            home = partition_for(record.key, tasks)
            if record.partition != home:
                what = f"{record.topic}:{record.partition} has a record with the key {record.key!r}, which the default partitioner puts in"
                return len(keys), f"{what} {home}: the application has a partitioner of its own (partitioner: custom), or another key"
    return len(keys), ""


def _too_few(found: ComputedStore, ends: Mapping[int, int]) -> Iterator[str]:
    """Find partitions that had fewer records than the default partitioner puts keys there, in a topic that had all records."""
    facts, counts = found.facts, found.counts
    store = facts.store
    sent = counts.read - sum(counts.dropped.values())
    whole = facts.base is None and sum(ends.values()) >= sent  # otherwise the topic was recreated, and counts from then
    if store.window is not None or store.table is not None or store.explode or not whole or found.witnesses is None:
        return
    for number, each in sorted(found.witnesses.partitions.items()):
        if number in ends and ends[number] < each.expected:
            what = f"{store.repartition_topic}:{number} never had more than {ends[number]:,} records"
            why = "the application has a partitioner of its own (partitioner: custom), or another key"
            yield f"{what}, and the default partitioner puts {each.expected:,} keys there: {why}"
