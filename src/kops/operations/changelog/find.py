"""One key of a changelog: what it holds now, and each version that is left of it. Only the key's own partition is read."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kops.core.errors import NotFound, Refused, UsageProblem
from kops.core.findings import counted
from kops.core.murmur2 import partition_for
from kops.core.records.models import OffsetRange, Record, timestamp_text
from kops.core.times import Times
from kops.formats.base import Format, readable_text
from kops.operations.changelog.detect import Detection
from kops.operations.changelog.layouts import Layout
from kops.operations.changelog.rows import NamedFormats, NotedRows, SkippedRecords, choose_format, choose_shape, key_bytes, rows_of
from kops.operations.changelog.target import FrozenChangelog
from kops.operations.changelog.view import MOST_BYTES, OVERHEAD, KeyQuery, Version, Versions, compacted, require_times
from kops.operations.records.rows import unstable_notes
from kops.operations.services import Services

if TYPE_CHECKING:
    from kops.operations.engine.spark import Engine


def seek(
    target: FrozenChangelog, detected: Detection, typed: str, named: NamedFormats, *, everywhere: bool, windows: Times
) -> tuple[KeyQuery, NamedFormats]:
    """Return the key to look for, and the formats that were given or, for the key, detected.

    :param everywhere: in all partitions, not only in the one that murmur2 gives
    :raises UsageProblem: when the key cannot be written in the format, the format is needed, or there are no windows
    """
    require_times(detected.layout, windows)
    form = named.key or _seen_format(detected, typed)
    key = key_bytes(form, typed)
    chosen = len(target.chosen) < target.partitions
    partitions = target.chosen if chosen or everywhere else (partition_for(key, target.partitions),)
    return KeyQuery(key, typed, partitions, chosen or everywhere, windows), replace(named, key=form)


def _seen_format(detected: Detection, typed: str) -> Format:
    inner = [detected.layout.inner(record.key) for record in detected.sample if record.key is not None]
    form, sentence = choose_format("key", inner, None)
    if form.name == "bytes" and not typed.startswith("base64:") and not any(key == typed.encode() for key in inner):
        readable = sum(key is not None and readable_text(key) is not None for key in inner)
        if readable * 2 < len(inner):
            raise UsageProblem(f"the format of the keys is needed to find {typed!r}: {sentence}", hint="such as --key long, or base64:...")
    return form


def read_versions(
    services: Services, target: FrozenChangelog, layout: Layout, query: KeyQuery, *, limit: int | None = None, engine: Engine | None = None
) -> Versions:
    """Read a key's partitions and return every record of it.

    :param limit: keep this many of each partition, the newest
    :param engine: Spark; None to read in this process
    :raises Refused: when they do not fit in memory
    """
    if engine is not None:
        from kops.operations.changelog.by_spark import prepare_read, versions_by_spark

        return versions_by_spark(prepare_read(services, engine, target, query.partitions), layout, query, limit)
    ranges = target.ranges_of(query.partitions)
    reader = services.kafka.records.read(ranges, isolation=target.isolation)
    services.progress.step(f"reading {target.topic}")
    found: dict[int, deque[Version]] = {place.partition: deque(maxlen=limit) for place in ranges}
    following = {place.partition: wanted.start for place, wanted in ranges.items()}
    missing = dict.fromkeys(following, 0)
    since = dict.fromkeys(following, 0)
    inner, key, windows, held = layout.inner, query.key, query.windows, 0
    for batch in reader:
        services.progress.advance(reader.done, reader.total, "offsets")
        for record in batch:
            partition, offset = record.partition, record.offset
            if gap := offset - following[partition]:
                missing[partition] += gap
                since[partition] += gap
            following[partition] = offset + 1
            if record.key is not None and inner(record.key) == key and windows.include(layout.time(record.key)):
                found[partition].append(Version(record, since[partition]))
                since[partition] = 0
                held += OVERHEAD + len(record.value or b"")
        if limit is None and held > MOST_BYTES:
            raise _too_many(target, query, sum(map(len, found.values())))
    stable = reader.stable_until
    ends = {place: stable.get(place, wanted.end) for place, wanted in ranges.items()}
    for place, end in ends.items():
        missing[place.partition] += end - following[place.partition]
    return Versions(
        tuple(version for _, versions in sorted(found.items()) for version in versions),
        {place: OffsetRange(wanted.start, ends[place]) for place, wanted in ranges.items()},
        {place: missing[place.partition] for place in ranges},
        stable,
    )


def current(versions: Iterable[Version], layout: Layout) -> list[Record]:
    """Return what the key holds now: its last record per window, side or time; in a versioned store the newest version."""
    latest = compacted([[version.record for version in versions]], versions=layout.versions, refuse=lambda _: Refused("unreachable"))
    if layout.versions:
        newest: dict[int, Record] = {}
        for record in latest:
            before = newest.get(record.partition)
            if before is None or (record.timestamp or 0) >= (before.timestamp or 0):
                newest[record.partition] = record
        return list(newest.values())
    return list(latest)


def get(target: FrozenChangelog, detected: Detection, query: KeyQuery, versions: Versions, named: NamedFormats, *, skip: bool) -> NotedRows:
    """Return the live records of a key.

    :raises NotFound: when there is none, with the partitions that were read and up to where
    """
    records = current(versions.found, detected.layout)
    live = [record for record in records if record.value is not None]
    if not live:
        raise _not_there(target, query, versions, records)
    rows, notes = _shown(live, detected, named, skip=skip)
    places = sorted({record.partition for record in live})
    usual = partition_for(query.key, target.partitions)
    if places != [usual]:
        notes.append(f"note: {query.shown} is in partition {', '.join(map(str, places))}; murmur2 of the key gives {usual}")
    return NotedRows(rows, [*notes, *(f"note: {sentence}" for sentence in unstable_notes(versions.unstable))])


def history(
    target: FrozenChangelog, detected: Detection, query: KeyQuery, versions: Versions, named: NamedFormats, *, skip: bool
) -> NotedRows:
    if not versions.found:
        raise _not_there(target, query, versions, [])
    gaps = {(version.record.partition, version.record.offset): version.missing_before for version in versions.found}
    rows, notes = _shown([version.record for version in versions.found], detected, named, skip=skip)
    rows = [row | {"missing_before": gaps[row["partition"], row["offset"]]} for row in rows]
    tombstones = sum(row["tombstone"] for row in rows)
    summary = f"{target.topic}: {counted(len(rows), 'version')} of {query.shown}, {counted(tombstones, 'tombstone')}; {_read(versions)}"
    gone = [f"note: {sentence}" for sentence in _gone(versions)]
    return NotedRows(rows, [summary, *notes, *gone, *(f"note: {sentence}" for sentence in unstable_notes(versions.unstable))])


def _shown(records: Sequence[Record], detected: Detection, named: NamedFormats, *, skip: bool) -> tuple[list[dict[str, Any]], list[str]]:
    shape, sentence = choose_shape(records, detected, named)
    skipped = SkippedRecords()
    rows = list(rows_of(records, shape, skipped, skip=skip))
    if skipped.first is not None and not rows:
        raise skipped.first
    return rows, [note for note in (f"note: {sentence}" if sentence else "", skipped.sentence) if note]


def _gone(versions: Versions) -> list[str]:
    sentences = []
    for place, wanted in versions.read.items():
        if wanted.start:
            sentences.append(f"{place} begins at offset {wanted.start:,}: what was before is gone")
        if count := versions.missing[place]:
            sentences.append(
                f"{count:,} of the {wanted.end - wanted.start:,} offsets of {place} no longer have a record, "
                "by compaction or transactions: versions of this key may have been there"
            )
        elif not wanted.start:
            sentences.append(f"no offset of {place} is without a record: nothing was compacted yet, and this is all that was written")
    return sentences


def _read(versions: Versions) -> str:
    return ", ".join(f"partition {place.partition} was read up to offset {wanted.end:,}" for place, wanted in versions.read.items())


def _not_there(target: FrozenChangelog, query: KeyQuery, versions: Versions, records: Sequence[Record]) -> NotFound:
    read = _read(versions)
    last = max(records, key=lambda record: record.offset, default=None)
    details = {"topic": target.topic, "key": query.shown, "read_up_to": {str(p.partition): r.end for p, r in versions.read.items()}}
    if last is not None:
        when = timestamp_text(last.timestamp)
        return NotFound(
            f"{query.shown} is deleted in {target.topic}: its last record, at offset {last.offset} of partition {last.partition} "
            f"({when}), is a tombstone; {read}",
            hint="`kops changelog history` shows what it held before, as far as it is still there",
            **details,
        )
    elsewhere = "" if query.chosen else "; --all-partitions looks in the others too, where the application has its own partitioner"
    why = "" if query.chosen else ", to which murmur2 of the key leads"
    return NotFound(f"{query.shown} is not in {target.topic}{why}; {read}", hint=f"see whether --key is its format{elsewhere}", **details)


def _too_many(target: FrozenChangelog, query: KeyQuery, count: int) -> Refused:
    return Refused(
        f"the versions of {query.shown} do not fit in memory: the first {count:,} take {MOST_BYTES >> 20:,} MiB already",
        hint="--limit keeps the newest only",
        topic=target.topic,
    )
