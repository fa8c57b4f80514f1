"""The subcommands of ``kops changelog`` with Spark: the same answers for topics that are too big for this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from kops.core.changelog.stats import LARGEST, NAMED, BadRecord, Counts, LargeEntry, Stats
from kops.core.errors import UndecodableRecord
from kops.core.models import TopicPartition
from kops.core.records.models import OffsetRange, Record
from kops.core.schemas.models import RegisteredSchema
from kops.core.statefile import Form
from kops.core.times import Times
from kops.formats.base import Format
from kops.operations.changelog.check import Check, checker_named, ids_seen, wrong_sql
from kops.operations.changelog.layouts import Layout
from kops.operations.changelog.rows import Shape
from kops.operations.changelog.target import FrozenChangelog
from kops.operations.changelog.view import CompactedView, KeyQuery, RowFilter, Version, Versions, View
from kops.operations.engine.spark import Engine
from kops.operations.services import Services

if TYPE_CHECKING:
    from kops.spark.reading.ranges import TopicRange
    from kops.spark.types import DataFrame


@dataclass(frozen=True)
class SparkRead:
    """Some partitions, as Spark reads them.

    :param ranges: up to where it can read: an open transaction ends the reading
    :param unstable: partitions where an open transaction does so, and its offset
    """

    engine: Engine
    target: FrozenChangelog
    ranges: dict[TopicPartition, OffsetRange]
    unstable: dict[TopicPartition, int]

    @property
    def topic_range(self) -> TopicRange:
        from kops.spark.reading.ranges import TopicRange

        bounds = {place.partition: (wanted.start, wanted.end) for place, wanted in self.ranges.items()}
        return TopicRange(self.target.topic, bounds, self.target.isolation == "read_committed", headers=True)

    def records(self) -> DataFrame:
        return self.engine.kafka().read(self.topic_range)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Show Spark's progress, and explain failures."""
        from kops.spark.driver.failures import explained

        with explained(f"read {self.target.topic}"), self.engine.reading(self.topic_range):
            yield


def prepare_read(services: Services, engine: Engine, target: FrozenChangelog, partitions: Sequence[int] | None = None) -> SparkRead:
    """Return some partitions as Spark is to read them; it would wait in vain for uncommitted records."""
    ranges = target.ranges_of(partitions)
    services.progress.step(f"reading {target.topic} with Spark")
    if target.isolation != "read_committed":
        return SparkRead(engine, target, ranges, {})
    stable = services.kafka.offsets.bounds(ranges, isolation="read_committed")
    ends = {place: min(wanted.end, stable[place].log_end_offset) for place, wanted in ranges.items()}
    unstable = {place: end for place, end in ends.items() if end < ranges[place].end}
    return SparkRead(
        engine, target, {place: OffsetRange(wanted.start, max(wanted.start, ends[place])) for place, wanted in ranges.items()}, unstable
    )


@contextmanager
def big_view(read: SparkRead, layout: Layout, wanted: RowFilter, limit: int | None) -> Iterator[CompactedView]:
    """Compact with Spark, where the view stays: it has no records, and those that are wanted come one by one."""
    records = read.records()  # waits for the session, whose thread must not import pyspark at the same time
    from kops.spark.driver.observing import watched
    from kops.spark.frames import kept_on_disk
    from kops.spark.stores.changelog import as_record, latest, matching, summed, with_home

    counted, counts = watched(records, {"read": "count(*)", "unkeyed": "count_if(key is null)"})
    by_key = [wanted.windows.sql(layout.time_sql())] if wanted.windows != Times() else []
    last = latest(matching(counted, by_key, inner=layout.inner_sql(), key=wanted.key), versions=layout.versions)
    fitting = last.where(wanted.times.sql("timestamp_ms"))
    placed = (
        with_home(fitting, layout.inner_sql(), read.target.partitions) if wanted.is_all else fitting.selectExpr("*", "partition as home")
    )
    with kept_on_disk(placed) as kept:
        with read.reading():
            found = summed(
                kept,
                keys="count_if(value is not null)",
                tombstones="count_if(value is null)",
                misplaced="count_if(value is not null and home != partition)",
            )
        shown = kept.drop("home").where("true" if wanted.tombstones else "value is not null").orderBy("partition", "offset")
        rows = shown.limit(limit).collect() if limit else shown.toLocalIterator()
        seen = counts.get if read.topic_range.records else {"read": 0, "unkeyed": 0}
        view = View(read.target, layout, (), seen["unkeyed"], seen["read"], read.unstable)
        yield CompactedView(view, found.keys, found.tombstones, found.misplaced, (as_record(row, read.target.topic) for row in rows))


def versions_by_spark(read: SparkRead, layout: Layout, query: KeyQuery, limit: int | None) -> Versions:
    """Return all that is left of a key, as ``find.read_versions`` does."""
    from kops.spark.stores.changelog import as_record, in_between, matching

    conditions = [query.windows.sql(layout.time_sql())] if query.windows != Times() else []
    found = matching(read.records(), ["key is not null", *conditions], inner=layout.inner_sql(), key=query.key)
    kept: dict[int, list[Record]] = {place.partition: [] for place in read.ranges}
    with read.reading():
        for number, records in kept.items() if limit else ():
            rows = found.where(f"partition = {number}").orderBy("offset", ascending=False).limit((limit or 0) + 1).collect()
            records.extend(as_record(row, read.target.topic) for row in reversed(rows))
        for row in () if limit else found.orderBy("partition", "offset").collect():
            kept[row.partition].append(as_record(row, read.target.topic))
        slots = in_between(read.records(), {number: [record.offset for record in records] for number, records in kept.items()}).collect()
    between = {(row.partition, row.slot): row.records for row in slots}
    versions: list[Version] = []
    missing: dict[TopicPartition, int] = {}
    for place, wanted in read.ranges.items():
        records, before, gaps = kept[place.partition], wanted.start - 1, []
        for slot, offset in enumerate([*(record.offset for record in records), wanted.end - 1]):
            gaps.append(offset - before - between.get((place.partition, slot), 0))
            before = offset
        missing[place] = sum(gaps)
        pairs = [Version(record, gap) for record, gap in zip(records, gaps, strict=False)]
        versions += pairs[-limit:] if limit else pairs
    return Versions(tuple(versions), dict(read.ranges), missing, read.unstable)


def count_by_spark(read: SparkRead, shape: Shape) -> Stats:
    """Return what ``stats.count`` does."""
    layout = shape.layout
    every = read.records()
    from kops.spark.frames import kept_on_disk
    from kops.spark.stores.changelog import as_record, per_key, per_partition, with_home, with_wrong

    forms = _forms(every, shape)
    records = with_wrong(every, wrong_sql(layout, shape.key.name, shape.value.name), partial(checker_named, layout.name, *forms))
    with kept_on_disk(with_home(per_key(records, versions=layout.versions), layout.inner_sql(), read.target.partitions)) as keys:
        with read.reading():
            sums = {row.partition: row for row in per_partition(keys).collect()}
        live = keys.where("key is not null and not gone").selectExpr("partition", "offset", "key", "length(key) as key_bytes", "bytes")
        by_key, by_value = (
            live.orderBy(live[column].desc(), "partition", "offset").limit(LARGEST).collect() for column in ("key_bytes", "bytes")
        )
    bad: tuple[BadRecord, ...] = ()
    if any(row.undecodable for row in sums.values()):
        check = checker_named(layout.name, *forms)
        rows = records.where("wrong").orderBy("partition", "offset").limit(NAMED).collect()
        bad = tuple(_bad(as_record(row, read.target.topic), check) for row in rows)
    counts = {}
    for place, wanted in read.ranges.items():
        counts[place.partition] = _counts(sums.get(place.partition), wanted)
    return Stats(
        counts,
        tuple(LargeEntry(-row.key_bytes, row.partition, row.offset, bytes(row.key)) for row in by_key),
        tuple(LargeEntry(-row.bytes, row.partition, row.offset, bytes(row.key)) for row in by_value),
        bad,
        {place.partition: offset for place, offset in read.unstable.items()},
    )


def _forms(records: DataFrame, shape: Shape) -> list[Form]:
    """Return the formats of a changelog with the schemas that its records have, since tasks cannot query a registry."""
    from kops.formats.confluent import RegistryFormat
    from kops.spark.stores.changelog import ids_in

    formats = (shape.key, shape.value, shape.right)
    registered = tuple(isinstance(one, RegistryFormat) for one in formats)
    seen = ids_in(records, partial(ids_seen, shape.layout.name, registered)) if any(registered) else {}
    return [Form(one.name, registered=_known(one, seen.get(part, ()))) for part, one in enumerate(formats)]


def _known(form: Format, ids: Iterable[int]) -> tuple[RegisteredSchema, ...]:
    found = []
    for number in sorted(ids):
        with suppress(UndecodableRecord):  # the registry does not have that id: its records count as undecodable
            found.append(form.lookup(number))  # type: ignore[attr-defined]  # only formats of a registry have ids
    return tuple(found)


def _bad(record: Record, check: Check) -> BadRecord:
    part, reason = check(record.key or b"", record.value, record.headers) or ("value", "is not of its format")
    return BadRecord(record.partition, record.offset, part, reason)


def _counts(row: Any, wanted: OffsetRange) -> Counts:
    offsets = wanted.end - wanted.start
    if row is None:
        return Counts(offsets=offsets)
    return Counts(
        offsets=offsets,
        records=row.records,
        keys=row.keys,
        tombstones=row.distinct - row.keys,
        superseded=row.records - row.unkeyed - row.distinct,
        unkeyed=row.unkeyed,
        wrong_partition=row.wrong_partition,
        undecodable=row.undecodable,
        key_bytes=row.key_bytes,
        value_bytes=row.value_bytes,
        oldest_ms=row.oldest,
        newest_ms=row.newest,
    )
