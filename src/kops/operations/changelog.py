"""The compacted view of a changelog: what Kafka Streams would restore, and what is odd about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kops.core.errors import NotFound, UndecodableRecord, UsageProblem
from kops.core.models import Setting, TopicPartition
from kops.core.murmur2 import partition_for
from kops.core.records import OffsetRange, Record, latest_by_key
from kops.formats.base import Format, readable_text
from kops.formats.registry import FORMATS
from kops.operations.protocol import Services
from kops.operations.records_rows import record_row, unstable_notes

COLUMNS_FROM = 20_000
"""From this many keys on, hashing them as an Arrow column is worth importing Arrow."""
_WIDTHS = {8: "long, or double", 4: "int, or float", 2: "short"}


@dataclass(frozen=True)
class View:
    """The last record of every key, in log order, and what was read for it.

    :param unkeyed: records without a key, which belong to no store
    :param read: records read
    :param unstable: partitions whose end an open transaction hides, and the offset where it begins
    """

    topic: str
    partitions: int
    settings: dict[str, Setting]
    latest: tuple[Record, ...]
    unkeyed: int
    read: int
    unstable: dict[TopicPartition, int]

    @property
    def tombstones(self) -> int:
        """Return the number of deleted keys that the log still mentions."""
        return sum(record.value is None for record in self.latest)


def changelog_topic(services: Services, application: str, store: str) -> str:
    """Return the changelog topic of a store (``ProcessorStateManager.storeChangelogTopic``).

    :raises NotFound: naming the changelogs that the application has
    """
    topic = f"{application}-{store}-changelog"
    names = services.kafka.topics.names()
    if topic in names:
        return topic
    stores = [
        name[len(application) + 1 : -len("-changelog")]
        for name in names
        if name.startswith(f"{application}-") and name.endswith("-changelog")
    ]
    hint = f"stores of {application} with a changelog: {', '.join(stores)}" if stores else f"no changelog begins with {application}-"
    raise NotFound(f"store {store} of application {application} has no changelog topic {topic}", hint=hint, topics=[topic])


def read_view(
    services: Services, topic: str, chosen: Sequence[int] = (), *, isolation: str = "read_committed", key: bytes | None = None
) -> View:
    """Read a changelog up to its end as it is now.

    :param chosen: partitions; all when empty
    :param key: keep this key only
    :raises NotFound: when there is no such topic
    :raises UsageProblem: when it has no such partition
    """
    described = services.kafka.topics.describe([topic])[topic]
    count = len(described.partitions)
    for number in chosen:
        if number >= count:
            raise UsageProblem(f"{topic} has no partition {number}", hint=f"it has {count}: 0 to {count - 1}")
    partitions = [TopicPartition(topic, part.partition) for part in described.partitions if not chosen or part.partition in chosen]
    bounds = services.kafka.offsets.bounds(partitions)
    ranges = {partition: OffsetRange(found.log_start_offset, found.log_end_offset) for partition, found in bounds.items()}
    reader = services.kafka.records.read(ranges, isolation=isolation)
    services.progress.step(f"reading {topic}")
    unkeyed = 0

    def batches() -> Iterator[Iterable[Record]]:
        nonlocal unkeyed
        for batch in reader:
            unkeyed += sum(record.key is None for record in batch)
            services.progress.advance(reader.done, reader.total, "offsets")
            yield batch if key is None else [record for record in batch if record.key == key]

    latest = tuple(latest_by_key(batches()).values())
    settings = services.kafka.topics.settings([topic])[topic]
    return View(topic, count, settings, latest, unkeyed, reader.records, reader.stable_until)


def oddities(view: View) -> list[str]:
    """Return what the reader of a view should know about it, a sentence each."""
    policy = _setting(view, "cleanup.policy")
    found = []
    if "compact" not in policy:
        found.append(
            f"{view.topic} is not compacted (cleanup.policy={policy}): keys that retention deleted are missing, so it is no changelog"
        )
    elif "delete" in policy:
        found.append(
            f"{view.topic} is {policy}, as those of windowed and session stores are: "
            "their keys end in the window's bounds, which are not decoded here"
        )
    if "compact" in policy and int(_setting(view, "min.compaction.lag.ms") or 0) > 0:
        found.append(f"{view.topic} has a compaction lag, as those of versioned stores have: only the version written last is shown")
    if _setting(view, "message.timestamp.type") == "LogAppendTime" or any(record.log_append_time for record in view.latest):
        found.append(f"{view.topic} has timestamps of the broker (LogAppendTime): a store restored from it has the wrong timestamps")
    if view.unkeyed:
        found.append(f"left out, for they have no key: {_count(view.unkeyed, 'record')}")
    found.extend(unstable_notes(view.unstable))
    if policy == "compact" and (misplaced := _misplaced(view)):
        found.append(
            f"keys in another partition than murmur2 of the key gives: {misplaced:,} of {len(view.latest):,}; "
            "normal where the input has its own partitioner or its key was changed without a repartition, wrong otherwise"
        )
    return found


def summary(view: View, *, tombstones: bool, limit: int | None) -> str:
    """Return what was read and what of it is shown, in one sentence."""
    deleted = view.tombstones
    keys = len(view.latest) - deleted
    shown = keys + (deleted if tombstones else 0)
    text = f"{view.topic}: {_count(view.read, 'record')} read, {_count(keys, 'key')}, {_count(deleted, 'tombstone')}"
    if deleted and not tombstones:
        text += " (--tombstones shows them)"
    return f"{text}; the first {limit:,} shown" if limit and limit < shown else text


def choose_formats(view: View, key: Format | None, value: Format | None) -> tuple[Format, Format, str]:
    """Return the formats to show keys and values in, and a sentence about those that were not named.

    A format that was not named is string when all of them are readable UTF-8, else bytes.
    """
    key_format, about_keys = _choose("key", [record.key for record in view.latest], key)
    value_format, about_values = _choose("value", [record.value for record in view.latest], value)
    return key_format, value_format, "; ".join(filter(None, (about_keys, about_values)))


def _choose(part: str, samples: Iterable[bytes | None], named: Format | None) -> tuple[Format, str]:
    data = [sample for sample in samples if sample is not None]
    if named is not None or not data:
        return named or FORMATS["string"], ""
    if all(readable_text(sample) is not None for sample in data):
        return FORMATS["string"], f"{part}s shown as string (--{part} names another format)"
    widths = {len(sample) for sample in data}
    width = widths.pop() if len(widths) == 1 else 0
    guess = f"all have {width} bytes: --{part} {_WIDTHS[width]}?" if width in _WIDTHS else f"--{part} names another format"
    return FORMATS["bytes"], f"{part}s shown as bytes ({guess})"


def decode(
    records: Iterable[Record], key: Format, value: Format, *, skip_undecodable: bool = False
) -> tuple[list[dict[str, Any]], list[UndecodableRecord]]:
    """Return the rows of the JSON contract, and the errors of the records that were passed over.

    :raises UndecodableRecord: naming topic, partition and offset, unless such records are to be passed over
    """
    rows: list[dict[str, Any]] = []
    skipped: list[UndecodableRecord] = []
    for record in records:
        try:
            rows.append(record_row(record, key, value))
        except UndecodableRecord as wrong:
            if not skip_undecodable:
                raise
            skipped.append(wrong)
    return rows, skipped


def _setting(view: View, name: str) -> str:
    found = view.settings.get(name)
    return (found.value or "") if found else ""


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _misplaced(view: View) -> int:
    """Return how many keys lie in a partition that Kafka's default partitioner would not give."""
    keys = [record.key or b"" for record in view.latest]
    if len(keys) < COLUMNS_FROM:
        return sum(partition_for(key, view.partitions) != record.partition for key, record in zip(keys, view.latest, strict=True))
    import pyarrow

    from kops.formats.murmur2_columns import partitions_of

    given = partitions_of(pyarrow.array(keys, pyarrow.large_binary()), view.partitions).to_numpy()
    actual = pyarrow.array([record.partition for record in view.latest], pyarrow.int32()).to_numpy()
    return int((given != actual).sum())
