"""Whether the input still lies where the state of its keys is.

A topic that was given more partitions keeps its older records where they were, while the state of their keys may have been moved to where
the default partitioner puts them now (``state repartition --grow-inputs``). And an application that reads another topic from some day on
(``--input OLD=NEW``) holds what came of the older one. The journal of this machine has moves by kops; this is seen of any.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kops.core.findings import Finding, names_text
from kops.core.models import CommittedOffset, TopicPartition
from kops.core.murmur2 import positive_hash
from kops.core.records.models import OffsetRange
from kops.core.statefile import StateFile
from kops.core.streams.verdict import ALL_KEYS, doubt
from kops.operations.services import Services
from kops.operations.state.facts import StoreFacts
from kops.operations.state.input_offsets import InputOffsets

_MOST, _LEAST = 20_000, 10
"""Records that are read of a topic, the oldest of each partition; of a partition never fewer than these."""
_COMPARED, _NAMED = 2_000, 3


@dataclass(frozen=True)
class _MisplacedRecord:
    """A record that is not where the default partitioner puts its key among the partitions that there are now."""

    partition: int
    offset: int
    hash: int


def layout(
    services: Services,
    state_file: StateFile,
    facts: Sequence[StoreFacts],
    cut: InputOffsets,
    *,
    keyed: Mapping[str, Sequence[str]],
    read: Collection[str] | None,
) -> dict[str, list[Finding]]:
    """Return what speaks against computing stores from their input as it lies; equal keys settle it, where none is missing.

    :param keyed: store -> the topics by whose keys it is divided
    :param read: all topics that the application reads; None: they are not known, or a snapshot has what came of others
    """
    elsewhere = _other_topics(state_file.application, read, cut.committed) if read is not None else []
    grown: dict[str, list[Finding]] = {}
    findings: dict[str, list[Finding]] = {}
    for found in facts:
        topics = keyed[found.store.name]
        for topic in topics:
            if topic not in grown:
                grown[topic] = list(_of_growth(services, state_file, topic, cut.ranges(found, topic)))
        findings[found.store.name] = [*elsewhere, *(each for topic in topics for each in grown[topic])]
    return {name: some for name, some in findings.items() if some}


def _other_topics(application: str, read: Collection[str], committed: Mapping[TopicPartition, CommittedOffset]) -> list[Finding]:
    """Find topics that the application has read, and the program does not."""
    others = sorted({at.topic for at in committed} - set(read))
    others = [topic for topic in others if not topic.startswith(f"{application}-") or not topic.endswith("-repartition")]
    if not others:
        return []
    what = f"{application} has committed offsets of {names_text(others, _NAMED, of='topics')}"
    said = f"{what}, which the captured program does not read: what stores hold of that is not computed"
    return [doubt("other_input", said, settled_by=ALL_KEYS)]


def _of_growth(services: Services, state_file: StateFile, topic: str, ranges: Mapping[int, tuple[int, int]]) -> Iterator[Finding]:
    """Find records that lie where the default partitioner of fewer partitions puts them.

    :param ranges: what is read of the topic, by partition
    """
    now = len(ranges)
    away = list(_away(services, state_file, topic, ranges)) if now > 1 else []
    sizes = older_sizes([(each.hash, each.partition) for each in away], now)
    if not sizes:
        return
    first = min(away, key=lambda each: (each.partition, each.offset))
    where = f"{topic}:{first.partition} has a record at offset {first.offset} whose key belongs to partition {first.hash % now}"
    older = " or ".join(map(str, sizes))
    yield doubt(
        "grown_input",
        f"{where} of {now}: so the default partitioner placed it among {older}, before {topic} was given more partitions; where the state"
        " of its keys was moved then, it is not what follows from the input as it lies",
        settled_by=ALL_KEYS,
    )


def _away(services: Services, state_file: StateFile, topic: str, ranges: Mapping[int, tuple[int, int]]) -> Iterator[_MisplacedRecord]:
    places = {TopicPartition(topic, number): limits for number, limits in ranges.items()}
    bounds = services.kafka.offsets.bounds(places, isolation=state_file.isolation)
    most = max(_LEAST, _MOST // len(ranges))
    wanted = {}
    for at, (begin, end) in places.items():
        start = max(begin, bounds[at].log_start_offset)  # what comes before is in an archive
        if start < end:
            wanted[at] = OffsetRange(start, min(end, start + most))
    for batch in services.kafka.records.read(wanted, isolation=state_file.isolation):
        for record in batch:
            if record.key is not None and (number := positive_hash(record.key)) % len(ranges) != record.partition:
                yield _MisplacedRecord(record.partition, record.offset, number)


def older_sizes(away: Sequence[tuple[int, int]], now: int) -> tuple[int, ...]:
    """Return how many partitions a topic had when records were written, if one earlier number, or two, explain where they are. Pure.

    Other partitioners put keys where no two numbers explain it.

    :param away: hash and partition of records that are elsewhere than among as many as there are now
    """
    if not away:
        return ()
    away = away[:: len(away) // _COMPARED + 1]
    fit = {size: {at for at, (number, partition) in enumerate(away) if number % size == partition} for size in range(1, now)}
    best = max(fit, key=lambda size: (len(fit[size]), size))
    left = set(range(len(away))) - fit[best]
    if not left:
        return (best,)
    other = max((size for size in fit if left <= fit[size]), default=0)
    return tuple(sorted((best, other))) if other else ()
