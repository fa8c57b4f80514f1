"""Reading records: which ones, from where to where, as a stream of batches with bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kops.core.errors import UndecodableRecord, UsageProblem
from kops.core.models import Bounds, TopicPartition
from kops.core.progress import NoProgress, Progress
from kops.core.records.filters import Filter, compile_filters
from kops.core.records.models import Ranges, Record, latest_by_key, newest
from kops.core.records.ranges import END, Span, resolve_span
from kops.core.selection import Selection, partitions_selected
from kops.core.times import ANY_TIME, Times
from kops.formats.base import Format
from kops.gateways.kafka.records import RangeReader
from kops.gateways.kafka.records_ends import read_last
from kops.operations.clock import clock_notes
from kops.operations.records.rows import Subject, unstable_notes
from kops.operations.services import Services

T = TypeVar("T")
DEFAULT_LAST = 10
"""Enough to see what a topic holds, without any load on brokers."""
MOST_SORTED, MOST_SORTED_BYTES = 100_000, 64 << 20
"""Up to as many records, and as many bytes of keys and values, are sorted by time."""
MOST_LAST = 10_000
"""The last records are kept in memory, up to this many per partition."""


@dataclass(frozen=True)
class ReadRequest:
    """Which records to read.

    :param span: FROM..TO; None: the last records
    :param last: number of the newest records of all partitions together, if there is no span
    :param follow: continue with new records
    :param by_time: yield a range of time in the order of timestamps, if it is small enough to be held; otherwise in log order
    """

    selection: Selection
    span: Span | None
    last: int
    follow: bool
    isolation: str
    by_time: bool = True

    @property
    def times(self) -> Times:
        return ANY_TIME if self.span is None else self.span.times

    @property
    def is_offsets(self) -> bool:
        """Whether the records are those of a range of offsets, whatever their timestamps."""
        return self.span is not None and not self.follow and self.times == ANY_TIME


@dataclass
class Stream:
    """The progress and the notes of one reading.

    :ivar read: number of records that came from Kafka
    :ivar given: number of those that were passed on
    :ivar notes: sentences for the reader, complete when the reading has ended
    :ivar broken: the record that ended the writing
    :ivar undecodable: how many records were skipped, and the reason for the first one
    """

    topic: str
    progress: Progress = field(default_factory=NoProgress)
    read: int = 0
    given: int = 0
    notes: list[str] = field(default_factory=list)
    undecodable: tuple[int, str] = (0, "")
    broken: UndecodableRecord | None = None

    def count(self, records: int) -> None:
        self.read += records

    def skip(self, wrong: UndecodableRecord) -> None:
        count, first = self.undecodable
        self.undecodable = (count + 1, first or wrong.message)


def choose(
    selection: Selection,
    *,
    span: Span | None,
    last: int | None,
    limit: int | None,
    follow: bool,
    latest: bool,
    filtered: bool,
    isolation: str,
) -> ReadRequest:
    """Return which records to read, with defaults.

    Without a range: the last ten records of the topic, or ``limit`` of them; all records if a filter searches or the last record of each
    key is requested.

    :raises UsageProblem: for contradictory options
    """
    if span is not None and last is not None:
        raise UsageProblem("a range and --last are mutually exclusive", hint="--last counts back from the end")
    if latest and (last is not None or follow):
        raise UsageProblem(
            "--latest cannot be combined with --last or --follow", hint="it reads a range to its end, then shows the last of each key"
        )
    if follow and span is not None and span.end != END:
        raise UsageProblem("--follow never ends, and this range does", hint="leave TO out: @-1h.. or start..")
    if span is None and last is None and (latest or (filtered and not follow)):
        span = Span()
    chosen = last if last is not None else min(limit, MOST_LAST) if limit else DEFAULT_LAST
    return ReadRequest(selection, span, chosen, follow, isolation, by_time=not latest)


def read(services: Services, wanted: ReadRequest, stream: Stream) -> Iterator[list[Record]]:
    """Yield the wanted records in batches; empty ones while no records arrive.

    :raises NotFound: when the topic or partition does not exist
    """
    ranges, bounds = ranges_of(services, wanted, stream)
    if wanted.span is None:
        ends = services.kafka.offsets.bounds(bounds, isolation=wanted.isolation)
        last = read_last(services.kafka.records, ends, wanted.last, wanted.isolation, stream.count)
        stream.notes.extend(_older_records_note(wanted, bounds))
        stream.notes.extend(_held_back(ends, bounds))
        yield newest(last.values(), wanted.last)
        starts = {partition: end.log_end_offset for partition, end in ends.items()}
    elif not wanted.follow:
        found = _ranges(services.kafka.records.read(ranges, isolation=wanted.isolation), wanted.times, stream)
        yield from in_time_order(found, stream) if wanted.times != ANY_TIME and wanted.by_time else found
    else:
        starts = {partition: found.start for partition, found in ranges.items()}
    if wanted.follow:
        whole = wanted.selection.topic if wanted.selection.partitions is None else None
        for batch in services.kafka.records.follow(starts, isolation=wanted.isolation, whole=whole):
            stream.read += len(batch)
            yield _within(batch, wanted.times)


def read_values(services: Services, wanted: ReadRequest, stream: Stream) -> Iterator[list[bytes | None]]:
    """Yield only the values of the wanted records: for a range, several times as fast as :func:`read`."""
    if not wanted.is_offsets:
        for batch in read(services, wanted, stream):
            yield [record.value for record in batch]
        return
    ranges, _ = ranges_of(services, wanted, stream)
    yield from _counted(services.kafka.records.values(ranges, isolation=wanted.isolation), stream)


def read_parts(services: Services, wanted: ReadRequest, names: Sequence[str], stream: Stream) -> Iterator[list[tuple[Any, ...]]]:
    """Yield some fields of the wanted records: for a range, up to three times as fast as :func:`read`."""
    if not wanted.is_offsets:
        for batch in read(services, wanted, stream):
            yield [tuple([getattr(record, name) for name in names]) for record in batch]
        return
    ranges, _ = ranges_of(services, wanted, stream)
    yield from _counted(services.kafka.records.parts(ranges, names, isolation=wanted.isolation), stream)


def ranges_of(services: Services, wanted: ReadRequest, stream: Stream) -> tuple[Ranges, dict[TopicPartition, Bounds]]:
    """Return the offset ranges to read, and the current bounds of their partitions, including open transactions."""
    topic = wanted.selection.topic
    partitions = partitions_selected([wanted.selection], services.kafka.offsets.partitions_of([topic]))
    bounds = services.kafka.offsets.bounds(partitions)
    if wanted.span is None:
        return {}, bounds
    since = wanted.times.first
    ranges, notes = resolve_span(wanted.span, bounds, {} if since is None else services.kafka.offsets.at_time(partitions, since))
    stream.notes.extend([*notes, *(clock_notes(services) if wanted.span.is_relative else ())])
    return ranges, bounds


def latest(batches: Iterator[list[Record]], *, tombstones: bool, stream: Stream) -> Iterator[list[Record]]:
    """Yield the last record of each key, as compaction would leave them, in log order. Memory: one record per key.

    :param tombstones: include deleted keys
    """
    unkeyed = 0

    def counted() -> Iterator[list[Record]]:
        nonlocal unkeyed
        for batch in batches:
            unkeyed += sum(record.key is None for record in batch)
            yield batch

    view = list(latest_by_key(counted()).values())
    deleted = sum(record.value is None for record in view)
    if deleted and not tombstones:
        stream.notes.append(f"left out, for their key is deleted: {deleted:,} (--tombstones shows them)")
    if unkeyed:
        stream.notes.append(f"left out, for they have no key: {unkeyed:,}")
    yield [record for record in view if tombstones or record.value is not None]


def filtered(
    batches: Iterator[list[Record]], filters: Sequence[Filter], key: Format, value: Format, *, skip: bool, stream: Stream
) -> Iterator[list[Record]]:
    """Yield the records that match all filters.

    :param skip: skip records that a filter cannot decode in their format
    :raises UndecodableRecord: for such a record, unless it is skipped
    """
    fits = compile_filters(filters)

    def fitting(record: Record) -> bool:
        try:
            return fits(Subject(record, key, value))
        except UndecodableRecord as wrong:
            if not skip:
                raise
            stream.skip(wrong)
            return False

    for batch in batches:
        yield [record for record in batch if fitting(record)]


def limited(batches: Iterator[list[T]], limit: int | None, stream: Stream) -> Iterator[list[T]]:
    """Yield up to ``limit`` records in total, then end the reading."""
    for batch in batches:
        part = batch if limit is None else batch[: limit - stream.given]
        stream.given += len(part)
        yield part
        if limit is not None and stream.given >= limit:
            return


def _ranges(reader: RangeReader[Record], times: Times, stream: Stream) -> Iterator[list[Record]]:
    """Yield the records of a range that was read up to where the last of them may be."""
    if times == ANY_TIME:
        yield from _counted(reader, stream)
        return
    inside = 0
    for batch in _counted(reader, stream):
        found = _within(batch, times)
        inside += len(found)
        yield found
    if times.end is not None and reader.total:
        stream.notes.append(
            f"{reader.total:,} offsets were checked, up to the end: any later record may be of that time, as timestamps can be out of order"
        )
    elif inside < reader.records:
        stream.notes.append(f"left out, for their timestamps are earlier: {reader.records - inside:,}")


def in_time_order(batches: Iterator[list[Record]], stream: Stream) -> Iterator[list[Record]]:
    """Yield the records of a range of time by timestamp; if they are too many to be held, as they come, with a note.

    Memory: ``MOST_SORTED`` records of ``MOST_SORTED_BYTES``.
    """
    held: list[Record] = []
    size = 0
    for batch in batches:
        held += batch
        size += sum(len(record.key or b"") + len(record.value or b"") for record in batch)
        if len(held) > MOST_SORTED or size > MOST_SORTED_BYTES:
            stream.notes.append(f"not in the order of time: more than {MOST_SORTED:,} records, or {MOST_SORTED_BYTES >> 20} MiB")
            yield held
            yield from batches
            return
    held.sort(key=lambda record: (record.timestamp or 0, record.partition, record.offset))
    yield held


def _within(batch: list[Record], times: Times) -> list[Record]:
    return batch if times == ANY_TIME else [record for record in batch if times.include(record.timestamp)]


def _counted(reader: RangeReader[T], stream: Stream) -> Iterator[list[T]]:
    for batch in reader:
        stream.read = reader.records
        stream.progress.advance(reader.done, reader.total, "offsets")
        yield batch
    stream.notes.extend(unstable_notes(reader.stable_until))


def _held_back(ends: Mapping[TopicPartition, Bounds], bounds: Mapping[TopicPartition, Bounds]) -> list[str]:
    stable = {partition: end.log_end_offset for partition, end in ends.items()}
    return unstable_notes({partition: stable[partition] for partition, bound in bounds.items() if stable[partition] < bound.log_end_offset})


def _older_records_note(wanted: ReadRequest, bounds: Mapping[TopicPartition, Bounds]) -> list[str]:
    offsets = sum(bound.offsets for bound in bounds.values())
    return [f"the newest of {offsets:,} offsets; a range such as start..end or @-1h.. shows others"] if offsets > wanted.last else []
