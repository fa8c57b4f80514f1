"""``changelog stats``: every record is read and counted. Memory: a few numbers per key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import TYPE_CHECKING, Any

from kops.core.changelog.stats import LARGEST, NAMED, BadRecord, Counts, LargeEntry, Stats, total
from kops.core.records.models import Record
from kops.formats.base import as_text_or_base64
from kops.operations.changelog.check import Check, checker
from kops.operations.changelog.detect import Detection
from kops.operations.changelog.layouts import Layout
from kops.operations.changelog.rows import NamedFormats, Shape, choose_shape
from kops.operations.changelog.target import FrozenChangelog
from kops.operations.changelog.view import MOST_BYTES, count_misplaced, misplaced_note, settings_notes, too_much
from kops.operations.services import Services

if TYPE_CHECKING:
    from kops.operations.engine.spark import Engine

KEY_OVERHEAD = 300
"""Bytes that a key takes in memory besides itself, in CPython."""


@dataclass
class _Tally:
    """What was counted in a partition so far.

    :param last: for each key the offset of its last record and the bytes of its value, -1 for a tombstone
    :param bad: the first undecodable records
    """

    records: int = 0
    unkeyed: int = 0
    undecodable: int = 0
    key_bytes: int = 0
    value_bytes: int = 0
    oldest: int | None = None
    newest: int | None = None
    last: dict[Any, tuple[int, int]] = field(default_factory=dict)
    bad: list[BadRecord] = field(default_factory=list)


def count(services: Services, target: FrozenChangelog, shape: Shape, engine: Engine | None = None) -> Stats:
    """Read the chosen partitions and count.

    :param engine: Spark; None to count in this process
    :raises Refused: when their keys do not fit in memory
    """
    if engine is not None:
        from kops.operations.changelog.by_spark import count_by_spark, prepare_read

        return count_by_spark(prepare_read(services, engine, target), shape)
    check = checker(shape.layout, shape.key, shape.value, shape.right)
    ranges = target.ranges_of()
    tallies = {place.partition: _Tally() for place in ranges}
    reader = services.kafka.records.read(ranges, isolation=target.isolation)
    services.progress.step(f"reading {target.topic}")
    held = 0
    for batch in reader:
        services.progress.advance(reader.done, reader.total, "offsets")
        held += _count_batch(batch, tallies, check, versions=shape.layout.versions)
        if held > MOST_BYTES:
            hint = "--spark counts it without that limit; or count some partitions: {}:0"
            raise too_much(target, sum(len(tally.last) for tally in tallies.values()), hint)
    unstable = {place.partition: offset for place, offset in reader.stable_until.items()}
    offsets = {place.partition: unstable.get(place.partition, wanted.end) - wanted.start for place, wanted in ranges.items()}
    counts = {number: _counts(tally, offsets[number], target.partitions, number, shape.layout) for number, tally in tallies.items()}
    return Stats(
        counts,
        *_largest(tallies, shape.layout),
        tuple(nsmallest(NAMED, (one for tally in tallies.values() for one in tally.bad))),
        unstable,
    )


def _count_batch(batch: Iterable[Record], tallies: Mapping[int, _Tally], check: Check, *, versions: bool) -> int:
    """Count some records; return how many more bytes are held."""
    more = 0
    for record in batch:
        tally, key, value, timestamp = tallies[record.partition], record.key, record.value, record.timestamp
        tally.records += 1
        if timestamp is not None:
            tally.oldest = timestamp if tally.oldest is None or timestamp < tally.oldest else tally.oldest
            tally.newest = timestamp if tally.newest is None or timestamp > tally.newest else tally.newest
        tally.value_bytes += len(value or b"")
        if key is None:
            tally.unkeyed += 1
            continue
        tally.key_bytes += len(key)
        identity = (key, timestamp) if versions else key
        if identity not in tally.last:
            more += KEY_OVERHEAD + len(key)
        tally.last[identity] = (record.offset, -1 if value is None else len(value))
        wrong = check(key, value, record.headers)
        if wrong is not None:
            tally.undecodable += 1
            if len(tally.bad) < NAMED:
                tally.bad.append(BadRecord(record.partition, record.offset, *wrong))
    return more


def _counts(tally: _Tally, offsets: int, partitions: int, number: int, layout: Layout) -> Counts:
    live = [key[0] if layout.versions else key for key, (_, size) in tally.last.items() if size >= 0]
    return Counts(
        offsets=offsets,
        records=tally.records,
        keys=len(live),
        tombstones=len(tally.last) - len(live),
        superseded=tally.records - tally.unkeyed - len(tally.last),
        unkeyed=tally.unkeyed,
        wrong_partition=count_misplaced(((inner, number) for key in live if (inner := layout.inner(key)) is not None), partitions),
        undecodable=tally.undecodable,
        key_bytes=tally.key_bytes,
        value_bytes=tally.value_bytes,
        oldest_ms=tally.oldest,
        newest_ms=tally.newest,
    )


def _largest(tallies: Mapping[int, _Tally], layout: Layout) -> tuple[tuple[LargeEntry, ...], tuple[LargeEntry, ...]]:
    live = [
        (number, key[0] if layout.versions else key, offset, size)
        for number, tally in tallies.items()
        for key, (offset, size) in tally.last.items()
        if size >= 0
    ]
    by_key = nsmallest(LARGEST, (LargeEntry(-len(key), number, offset, key) for number, key, offset, _ in live))
    by_value = nsmallest(LARGEST, (LargeEntry(-size, number, offset, key) for number, key, offset, size in live))
    return tuple(by_key), tuple(by_value)


def shape_for(detected: Detection, named: NamedFormats) -> tuple[Shape, str]:
    """Return the formats that records are checked with, those given or those that the sample suggests, and a sentence."""
    shape, sentence = choose_shape(detected.sample, detected, named)
    return shape, sentence.replace("shown as", "taken as")


def body_of(target: FrozenChangelog, detected: Detection, shape: Shape, stats: Stats) -> dict[str, Any]:
    return {
        "topic": target.topic,
        "type": detected.layout.name,
        "type_confidence": detected.guess.confidence,
        "type_reasons": list(detected.guess.reasons),
        "total": total(stats.partitions.values()).as_json(),
        "partitions": [{"partition": number, **counts.as_json()} for number, counts in sorted(stats.partitions.items())],
        "largest_keys": [_large(one, "key_bytes", shape) for one in stats.largest_keys],
        "largest_values": [_large(one, "value_bytes", shape) for one in stats.largest_values],
        "undecodable": [{"partition": one.partition, "offset": one.offset, "part": one.part, "reason": one.reason} for one in stats.bad],
    }


def notes_of(target: FrozenChangelog, detected: Detection, stats: Stats) -> list[str]:
    """Return what the numbers show, one sentence each."""
    found = settings_notes(target, detected.layout)
    counts = total(stats.partitions.values())
    if counts.wrong_partition:
        found.append(misplaced_note(counts.wrong_partition, counts.keys))
    if counts.undecodable:
        one = stats.bad[0]
        place = f"the {one.part} of {target.topic}:{one.partition} at offset {one.offset}"
        found.append(f"{counts.undecodable:,} undecodable; the first: {place}: {one.reason}")
    found += [
        f"{target.topic}:{number} has an open transaction at offset {offset}: nothing from there on is counted"
        for number, offset in sorted(stats.unstable.items())
    ]
    return found


def _large(one: LargeEntry, name: str, shape: Shape) -> dict[str, Any]:
    inner = shape.layout.inner(one.key)
    shown = as_text_or_base64(one.key if inner is None else inner)
    return {
        "partition": one.partition,
        "offset": one.offset,
        "key": shown["data"],
        "key_encoding": shown["encoding"],
        name: -one.negative_size,
    }
