"""The compacted view of a changelog: the last record of every key, which is what Kafka Streams would restore."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kops.core.errors import Refused, UsageProblem
from kops.core.extras import installed
from kops.core.findings import counted
from kops.core.models import TopicPartition
from kops.core.murmur2 import partition_for
from kops.core.records.models import OffsetRange, Record
from kops.core.times import Times
from kops.formats.streams import store_types as types
from kops.operations.changelog.layouts import Layout
from kops.operations.changelog.target import FrozenChangelog
from kops.operations.records.rows import unstable_notes
from kops.operations.services import Services

MOST_BYTES = 1 << 30
"""Memory that the last records may take before kops refuses to continue without Spark."""
OVERHEAD = 500
"""Bytes that a record takes besides its key and value, in CPython."""
_NARROWER = "--spark reads it without that limit; or narrow it down: {}:0, --key-equals, --window"
ADVISABLE = 3_000_000
"""From this many offsets on Spark is recommended: counting a million records takes this process 6 s of CPU, and Spark 6 s to start."""


@dataclass(frozen=True)
class RowFilter:
    """Which rows of a changelog are wanted.

    :param key: the application's own key, as bytes
    :param windows: times at which their windows begin; in a join, the records' own times
    :param times: timestamps of their records
    """

    key: bytes | None = None
    windows: Times = field(default_factory=Times)
    times: Times = field(default_factory=Times)
    tombstones: bool = False

    def fits_key(self, layout: Layout) -> Callable[[bytes], bool]:
        """Return a function: whether a changelog's key is wanted, whatever its record holds."""
        key, windows = self.key, self.windows
        if windows == Times():
            return (lambda _data: True) if key is None else (lambda data: layout.inner(data) == key)
        return lambda data: (key is None or layout.inner(data) == key) and windows.include(layout.time(data))

    @property
    def is_all(self) -> bool:
        """Whether every key is wanted, so that only deleted keys are left out."""
        return self.key is None and self.windows == Times() and self.times == Times()


@dataclass(frozen=True)
class View:
    """The last record of every key, in log order, and what was read for it.

    :param latest: those that are wanted, tombstones included
    :param unkeyed: records without a key, which belong to no store
    :param read: records read
    :param unstable: partitions whose end an open transaction hides, and the offset where it begins
    """

    target: FrozenChangelog
    layout: Layout
    latest: tuple[Record, ...]
    unkeyed: int
    read: int
    unstable: dict[TopicPartition, int]

    @property
    def tombstones(self) -> int:
        """The number of deleted keys that the log still has a tombstone for."""
        return sum(record.value is None for record in self.latest)


@dataclass(frozen=True)
class CompactedView:
    """A compacted view, and the records of it that are shown.

    :param misplaced: keys in another partition than murmur2 of the key gives
    :param records: those that are wanted, in log order
    """

    view: View
    keys: int
    tombstones: int
    misplaced: int
    records: Iterable[Record]


class Version(NamedTuple):
    """A record of the key, and how many offsets between it and the previous one no longer have a record."""

    record: Record
    missing_before: int


@dataclass(frozen=True)
class Versions:
    """All that is left of a key, partition by partition in log order.

    :param read: where the reading began and ended in each partition
    :param missing: offsets of each partition that have no record
    """

    found: tuple[Version, ...]
    read: dict[TopicPartition, OffsetRange]
    missing: dict[TopicPartition, int]
    unstable: dict[TopicPartition, int]


@dataclass(frozen=True)
class KeyQuery:
    """One key, and where it is looked up.

    :param key: the application's own key, as bytes
    :param shown: as it was typed
    :param partitions: in which it is looked up
    :param chosen: whether they were given, and not computed from the key
    """

    key: bytes
    shown: str
    partitions: tuple[int, ...]
    chosen: bool
    windows: Times


def read_view(services: Services, target: FrozenChangelog, layout: Layout, wanted: RowFilter) -> View:
    """Read the chosen partitions of a changelog. Memory: the last record of each wanted key.

    :raises Refused: when that is too much
    """
    reader = services.kafka.records.read(target.ranges_of(), isolation=target.isolation)
    services.progress.step(f"reading {target.topic}")
    fits, everything = wanted.fits_key(layout), wanted.key is None and wanted.windows == Times()
    unkeyed = 0

    def batches() -> Iterator[Iterable[Record]]:
        nonlocal unkeyed
        for batch in reader:
            keyed = [record for record in batch if record.key is not None]
            unkeyed += len(batch) - len(keyed)
            services.progress.advance(reader.done, reader.total, "offsets")
            yield keyed if everything else [record for record in keyed if fits(record.key or b"")]

    latest = compacted(batches(), versions=layout.versions, refuse=lambda keys: too_much(target, keys, _NARROWER))
    if wanted.times != Times():
        latest = tuple(record for record in latest if wanted.times.include(record.timestamp))
    return View(target, layout, latest, unkeyed, reader.records, reader.stable_until)


def compacted(batches: Iterable[Iterable[Record]], *, versions: bool, refuse: Callable[[int], Refused]) -> tuple[Record, ...]:
    """Return what log compaction would leave, in log order.

    :param versions: keep the last record of every version of a key: one per timestamp
    :param refuse: makes the error for too many keys
    """
    latest: dict[Any, Record] = {}
    held = 0
    for batch in batches:
        for record in batch:
            identity = (record.partition, record.key, record.timestamp) if versions else (record.partition, record.key)
            before = latest.get(identity)
            latest[identity] = record
            held += len(record.value or b"") + (OVERHEAD + len(record.key or b"") if before is None else -len(before.value or b""))
        if held > MOST_BYTES:
            raise refuse(len(latest))
    return tuple(sorted(latest.values(), key=lambda record: (record.partition, record.offset)))


def require_times(layout: Layout, windows: Times) -> None:
    """Check that keys have the requested kind of times.

    :raises UsageProblem: when they have none
    """
    if windows != Times() and not layout.has_time:
        raise UsageProblem(f"the keys of a {layout.name} store have no window", hint="leave --window out, or name another --type")


def too_much(target: FrozenChangelog, keys: int, hint: str) -> Refused:
    message = f"{target.topic} does not fit in memory: its first {keys:,} keys take {MOST_BYTES >> 20:,} MiB already"
    return Refused(message, hint=hint.format(target.topic), topic=target.topic, keys=keys)


def advice(target: FrozenChangelog) -> str:
    """Return a sentence that recommends Spark for a big topic; empty for others."""
    if target.offsets < ADVISABLE:
        return ""
    return f"{target.topic} has up to {target.offsets:,} records to read; --spark is faster with that many, and not limited by memory"


COLUMNS_FROM = 20_000
"""From this many keys on, hashing them as an Arrow column is worth importing Arrow, where it is installed."""


def warnings_of(view: View) -> list[str]:
    """Return what is unusual about a view, except keys in wrong partitions."""
    found = settings_notes(view.target, view.layout)
    if not any("LogAppendTime" in sentence for sentence in found) and any(record.log_append_time for record in view.latest):
        found.append(_broker_time(view.target.topic))
    if view.unkeyed:
        found.append(f"left out because they have no key: {counted(view.unkeyed, 'record')}")
    return [*found, *unstable_notes(view.unstable)]


def settings_notes(target: FrozenChangelog, layout: Layout) -> list[str]:
    """Return what a topic's settings mean for what is shown of it."""
    policy, topic = target.setting("cleanup.policy"), target.topic
    found = []
    if "compact" not in policy and layout.name != types.JOIN:
        found.append(f"{topic} is not compacted (cleanup.policy={policy}): it lacks keys that retention deleted, so it is not a changelog")
    elif "delete" in policy and "compact" in policy and not layout.has_time:
        found.append(f"{topic} is {policy}, as those of windowed and session stores are, and is read as {layout.name}")
    if "compact" in policy and int(target.setting("min.compaction.lag.ms") or 0) > 0 and layout.name != "versioned":
        found.append(f"{topic} has a compaction lag, as those of versioned stores have: of each key only what was written last is shown")
    if target.setting("message.timestamp.type") == "LogAppendTime":
        found.append(_broker_time(topic))
    return found


def misplaced(latest: Sequence[Record], layout: Layout, partitions: int) -> int:
    """Return how many live keys are in another partition than Kafka's default partitioner gives to the application's key."""
    return count_misplaced(
        (
            (inner, record.partition)
            for record in latest
            if record.value is not None and (inner := layout.inner(record.key or b"")) is not None
        ),
        partitions,
    )


def count_misplaced(placed: Iterable[tuple[bytes, int]], partitions: int) -> int:
    """Return how many keys are in another partition than murmur2 gives them.

    :param placed: keys and the partitions that they are in
    """
    found = list(placed)
    if len(found) < COLUMNS_FROM or not (installed("numpy") and installed("pyarrow")):
        return sum(partition_for(key, partitions) != partition for key, partition in found)
    import pyarrow

    from kops.formats.murmur2_columns import partitions_of

    given = partitions_of(pyarrow.array([key for key, _ in found], pyarrow.large_binary()), partitions).to_numpy()
    actual = pyarrow.array([partition for _, partition in found], pyarrow.int32()).to_numpy()
    return int((given != actual).sum())


def misplaced_note(count: int, keys: int) -> str:
    return (
        f"keys in another partition than murmur2 of the key gives: {count:,} of {keys:,}; "
        "normal where the input has its own partitioner or its key was changed without a repartition, wrong otherwise"
    )


def _broker_time(topic: str) -> str:
    return f"{topic} has timestamps of the broker (LogAppendTime): a store restored from it has the wrong timestamps"
