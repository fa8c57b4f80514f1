"""What a state file, and the settings and logs of its topics, show before anything is computed. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kops.core.durations import duration_text
from kops.core.findings import Finding
from kops.core.models import Bounds
from kops.core.statefile import StateFile, Store
from kops.core.statefile.models import FAUST, PROGRAM, SESSION, SLIDING, TABLE
from kops.core.statefile.sources import WALL_CLOCK
from kops.core.statefile.versions import (
    GROUPED_UPDATES,
    NEWEST,
    NULL_FOREIGN_KEYS,
    OLDEST,
    SLIDING_WINDOWS,
    line_of,
    repeats_values,
)
from kops.core.streams.rules import flushed_sessions, forgotten_times, lost_records, mixed_up_foreign_keys, record_order
from kops.core.streams.topics import ADDED_MS
from kops.core.streams.verdict import doubt, obstacle, remark

REDUCER = "reducer"
_UNSAID = "the file does not say streams.version"
_IN_TWO_STEPS = "updates a group in two steps: one that is empty between them is created again with other timestamps (KIP-904)"
_KEEPS_EARLIER = "may keep the timestamp of an earlier update with the same value (KIP-557)"
_LAST_LOST = "the last value of a key that was deleted since, and timestamps, are not seen"


def deletes_old(settings: Mapping[str, str]) -> bool:
    """Whether the broker deletes old records of a topic."""
    return "delete" in settings.get("cleanup.policy", "").split(",")


def kept_ms(settings: Mapping[str, str]) -> int:
    """Return for how long a topic keeps records where it deletes old ones, in milliseconds; -1: for ever."""
    return int(settings.get("retention.ms") or -1)


def input_log(
    store: Store, bounds: Mapping[int, Bounds], cleanup_policy: str, topic: str, starts: Mapping[int, int] | None = None
) -> Iterator[Finding]:
    """Judge by what an input topic still holds, before it is read.

    :param starts: where the application began to read it, for partitions where that was not at offset 0
    """
    if store.reuses_source:
        return
    kind = _kind_of(store)
    gone = [
        f"{topic}:{number} at offset {bound.log_start_offset}"
        for number, bound in sorted(bounds.items())
        if bound.log_start_offset > (starts or {}).get(number, 0)
    ]
    compacted = "compact" in cleanup_policy.split(",") and kind != TABLE
    if compacted and _is_last_of_key(store):
        yield doubt("compacted_input", f"{topic} is compacted: {_LAST_LOST}", topic=topic)
    elif compacted:
        what = f"{topic} is compacted (cleanup.policy={cleanup_policy}): records that a {kind} needs may be gone"
        yield obstacle("compacted_input", what, topic=topic)
    # What windows of a state file have lost with the oldest records is only known once they are computed (`windows.counted_windows`).
    if gone and (store.window is None or compacted or kind == PROGRAM):
        yield lost_records(gone)
    elif not compacted:
        yield from _serializer(store)


def input_gaps(store: Store, places: str) -> Iterator[Finding]:
    """Judge by offsets of the input that have no record: it was compacted, whatever its settings are now."""
    reason = f"records are gone from the middle of the input ({places}), as where it was compacted once"
    kind = _kind_of(store)
    if store.reuses_source or (kind == TABLE and not (store.table and store.key_by)):
        return
    if kind == TABLE:
        summary = f"{reason}: timestamps, and groups that are empty, may differ"
        yield doubt("input_gaps", summary) if store.aggregate.kind == REDUCER else remark("input_gaps", summary)
    elif _is_last_of_key(store):
        yield doubt("input_gaps", f"{reason}: {_LAST_LOST}")
    else:
        yield obstacle("input_gaps", f"{reason}: what they added is not known")


def _is_last_of_key(store: Store) -> bool:
    """Whether a store keeps the last record of each key of its topic; compaction keeps one per key too."""
    changes = store.where or store.key_by or store.explode
    return store.aggregate.kind == "last" and store.window is None and not changes


def _kind_of(store: Store) -> str:
    """Return what a store makes of its records: a table, which needs only the last record of each key, or an aggregate."""
    return TABLE if store.table else "table of a filtered stream" if store.drops_before else store.aggregate.kind


def _serializer(store: Store) -> Iterator[Finding]:
    """Judge by whether the application's serializer writes the bytes that kops keeps or produces."""
    joined = store.table is not None and store.table.joins
    value, is_whole = store.source.value, store.aggregate.is_whole_value
    reason = ""
    if store.aggregate.kind == TABLE and joined and store.aggregate.form.name == "json":
        reason = "JSON is written with its fields in the order of the expression, and the application's serde may write it in another way"
    elif store.aggregate.form.name == "json" and not is_whole:
        reason = "its values are JSON, which the application's serde may write in another way (numbers, order of fields, letters)"
    elif is_whole and not joined and value.is_only_read:
        other = "it in other bytes" if value.plugin else "the id of another schema"
        reason = f"{value} is kept as it was read, and the application's serializer may write {other}"
    elif is_whole and not joined and value.name == "json":
        reason = "JSON is kept as it was read, and the application's serde may write it in another way"
    if reason:
        yield remark("other_bytes", reason)


def unknown_changes(state_file: StateFile, store: Store, cleanup_policies: Sequence[str]) -> Iterator[Finding]:
    """Judge a store that is grouped from a table by whether every change of the table can be known."""
    if store.table is None or not store.key_by:
        return
    may = "timestamps, and groups that are empty by now, may differ"
    reasons = [
        f"{source.topic} is compacted, so changes are gone: {may}"
        for source, policy in zip(store.inputs, cleanup_policies, strict=True)
        if "compact" in policy.split(",")
    ]
    if store.others:
        reasons.append(f"in which order {' and '.join(source.topic for source in store.inputs)} were read is not known: {may}")
    if state_file.cache:
        reasons.append(f"the application's cache skips changes (streams.cache): {may}")
    yield from (remark("unknown_changes", reason) for reason in reasons)
    if reasons and store.others and state_file.cache:
        why = (
            "where both sides of a join change between two flushes of its cache, Kafka Streams takes from a group what it never added to it"
        )
        yield doubt("unknown_changes", f"{why} (streams.cache)")
    elif reasons and store.aggregate.kind == REDUCER:
        yield doubt("unknown_changes", "which values a group has passed through is not known, and a reducer may depend on it")


def cached_join(state_file: StateFile, store: Store) -> Iterator[Finding]:
    """Judge a join that is stored: with a cache it keeps a row if both its sides were deleted between two flushes."""
    table = store.table
    if table is not None and not store.key_by and store.others and state_file.cache:
        why = "where both sides of a key are deleted between two flushes of the application's cache, Kafka Streams keeps its row"
        yield remark("cached_join", f"{why} (streams.cache); here it is unexpected")


def cached_sessions(state_file: StateFile, store: Store) -> Iterator[Finding]:
    if store.window is not None and store.window.kind == SESSION and state_file.flushes_sessions_late:
        yield flushed_sessions()


def _untimed_stores(store: Store) -> Iterator[Finding]:
    """Judge by whether stores keep the times of earlier records: an aggregate's own, and those of tables that are joined.

    The rows of a table of a topic have the times of their own records.
    """
    own = not store.timestamped and store.aggregate.kind != TABLE
    joined = store.table is not None and store.table.forgets_times
    if own or joined:
        yield forgotten_times([*([f"{store.name} (timestamped: false)"] if own else []), *(["a table that is joined"] if joined else [])])


def times_by_order(store: Store, keys: int, timed: int) -> Iterator[Finding]:
    """Judge by the rows whose timestamp depends on the order in which topics were read; groups are left to ``unknown_changes``."""
    if timed and not store.key_by:
        yield remark("times_by_order", f"the timestamps of {timed:,} of {keys:,} keys depend on the order in which topics were read")


def library(state_file: StateFile) -> Iterator[Finding]:
    """Judge by the library: a table of Faust has no timestamps."""
    if state_file.library == FAUST:
        yield remark("no_timestamps", "a table of Faust has no timestamps: those of its input are written, and none is compared")


def mixed_order(store: Store, keys: int, mixed: int) -> Iterator[Finding]:
    """Judge by what was seen while computing.

    :param mixed: keys fed by several source partitions, where the order matters
    """
    if not mixed:
        return
    if store.table and store.aggregate.kind != REDUCER:
        why = "sums round differently in another order of additions and subtractions"
    elif store.others and not store.key_by:
        why = "several topics feed them, in an order that no log has"
    else:
        why = "several partitions feed them, in an order that only the purged repartition topic had"
    yield record_order(mixed, keys, [why])


def statement(state_file: StateFile, store: Store, settings: Mapping[str, str]) -> Iterator[Finding]:
    """Judge a store by what its state file says, before anything is read.

    :param settings: of its changelog
    """
    yield from library(state_file)
    yield from cached_join(state_file, store)
    yield from cached_sessions(state_file, store)
    yield from _untimed_stores(store)
    yield from _version(state_file, store)
    yield from _retention(store, settings)
    yield from _kept(store, settings)
    yield from _clock(store)


def _version(state_file: StateFile, store: Store) -> Iterator[Finding]:
    """Judge by whether kops knows the rules of a version, and by rules of old versions that it does not follow."""
    version, table = state_file.version, store.table
    if table is not None and table.foreign:
        yield from _foreign_keys(state_file)
    reduces_groups = table is not None and bool(store.key_by) and store.aggregate.kind == REDUCER
    if version is None:
        yield from _unknown_version(state_file, store, reduces_groups=reduces_groups)
        return
    line, of = line_of(version), f"kafka-streams {state_file.streams_version}"
    oldest, newest = (".".join(map(str, each)) for each in (OLDEST, NEWEST))
    if line < OLDEST:
        yield doubt("unknown_version", f"kops knows the rules of {oldest} to {newest}, and not those of {of}")
        return
    if line > NEWEST:
        yield remark("untested_version", f"kops is tested with kafka-streams up to {newest}, whose rules it follows: {of} is untested")
    if store.type == SLIDING and line < SLIDING_WINDOWS:
        yield doubt("unknown_version", f"kops knows the rules of sliding windows from 2.8 on, and not those of {of}")
    if reduces_groups and line < GROUPED_UPDATES:
        yield remark("grouped_updates", f"{of} {_IN_TWO_STEPS}")
    if store.aggregate.kind == TABLE and repeats_values(version):
        yield remark("repeated_values", f"{of} {_KEEPS_EARLIER}")


def _unknown_version(state_file: StateFile, store: Store, *, reduces_groups: bool) -> Iterator[Finding]:
    """Judge a store that some versions compute in another way, where the file does not say which one the application has."""
    if state_file.library == FAUST:
        return
    if reduces_groups:
        yield remark("grouped_updates", f"kafka-streams before 3.5 {_IN_TWO_STEPS}; {_UNSAID}")
    if store.aggregate.kind == TABLE:
        yield remark("repeated_values", f"kafka-streams 2.6.0, 2.6.1 and 2.7.0 {_KEEPS_EARLIER}; {_UNSAID}")


def _foreign_keys(state_file: StateFile) -> Iterator[Finding]:
    """Judge a foreign-key join by the versions that join some rows in another way than kops."""
    version, text = state_file.version, state_file.streams_version or ""
    if version is None:
        why = "before 3.9.1 and in 4.0.0, kafka-streams joins some rows by foreign keys in another way"
        yield doubt("foreign_keys", f"{why}; {_UNSAID}")
    elif line_of(version) < NULL_FOREIGN_KEYS:
        why = "skips a row whose foreign key is null, and so keeps what it was joined with before (KIP-962)"
        yield doubt("foreign_keys", f"kafka-streams {text} {why}")
    else:
        yield from mixed_up_foreign_keys(version, text)


def _retention(store: Store, settings: Mapping[str, str]) -> Iterator[Finding]:
    """Judge by whether the changelog keeps more than the library would by itself, as where the application calls withRetention."""
    window = store.window
    if window is None or window.says_retention or not deletes_old(settings):
        return
    kept = kept_ms(settings)
    if kept < 0 or kept > window.retention_ms + ADDED_MS:
        what = "for ever" if kept < 0 else duration_text(kept)
        without = f"{duration_text(window.retention_ms)} and the day that Kafka Streams adds"
        yield doubt("retention", f"{store.changelog} keeps records {what} (retention.ms), and not {without}: say window.retention")


def _kept(store: Store, settings: Mapping[str, str]) -> Iterator[Finding]:
    """Judge by whether the changelog keeps less than the store: Kafka Streams keeps it for as long as the store, and a day more."""
    kept, lag = kept_ms(settings), int(settings.get("min.compaction.lag.ms") or 0)
    if store.window is not None and deletes_old(settings) and 0 <= kept < store.window.retention_ms:
        what = f"keeps records for {duration_text(kept)} (retention.ms), and the store for {duration_text(store.window.retention_ms)}"
        why = "the file's retention is too long, or the setting was altered, and windows that the application holds are deleted there"
        yield doubt("altered_changelog", f"{store.changelog} {what}: {why}")
    if store.history_ms is not None and settings.get("cleanup.policy") == "compact" and lag < store.history_ms:
        what = f"compacts records after {duration_text(lag)} (min.compaction.lag.ms), and the store keeps {duration_text(store.history_ms)}"
        why = "the file's history is too long, or the setting was altered, and versions that the application holds are deleted there"
        yield doubt("altered_changelog", f"{store.changelog} {what}: {why}")


def _clock(store: Store) -> Iterator[Finding]:
    """Judge by whether the times that the application gave its records are recorded anywhere."""
    for topic in (source.topic for source in store.inputs if source.timestamp == WALL_CLOCK):
        if store.window is not None or store.history_ms is not None:
            yield obstacle("processing_time", f"records of {topic} count by the time at which they were processed, which nothing holds")
        else:
            yield doubt("processing_time", f"timestamps are those at which records of {topic} were processed, which nothing holds")
