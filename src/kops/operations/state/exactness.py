"""How exact a rebuilt store is, stated before anything is written, also from what its state file says about the application. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kops.core.durations import duration_text
from kops.core.models import Bounds
from kops.core.statefile import StateFile, Store
from kops.core.statefile.models import FAUST, SESSION, SLIDING, TABLE
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
from kops.core.streams.foreign_keys import mixes_up_foreign_keys
from kops.core.streams.topics import ADDED_MS

REDUCER = "reducer"
_NAMED = 3
MEANINGS = {
    "A": "the same bytes, timestamps and partitions",
    "B": "the same values; other bytes or timestamps are possible",
    "C": "equivalent, but values may differ",
    "D": "cannot be rebuilt from what the topic still holds",
}
_UNSAID = "the file does not say streams.version"
_IN_TWO_STEPS = "updates a group in two steps: one that is empty between them is created again with other timestamps (KIP-904)"
_KEEPS_EARLIER = "may keep the timestamp of an earlier update with the same value (KIP-557)"
_LAST_LOST = "the last value of a key that was deleted since, and timestamps, are not seen"


@dataclass(frozen=True)
class Exactness:
    """A class from A to D, and why.

    :param grade: the class; ``kops.operations.state.evidence.class_of`` adds ``if the file is right`` to those without evidence
    :param hides: something may be wrong that a comparison does not show
    :param reasons: one sentence each: why it is not A, or why it is A against expectation
    """

    grade: str
    reasons: tuple[str, ...] = ()
    hides: bool = False

    @property
    def text(self) -> str:
        why = f": {'; '.join(self.reasons)}" if self.reasons else ""
        return f"exactness {self.grade}, {MEANINGS[self.grade[0]]}{why}"


def contradicted(reasons: Sequence[str]) -> Exactness:
    """Return C for what contradicts a computation, with the first reasons."""
    more = [f"and {len(reasons) - _NAMED} more"] if len(reasons) > _NAMED else []
    return Exactness("C", (*reasons[:_NAMED], *more))


SURE = Exactness("A")


def deletes_old(settings: Mapping[str, str]) -> bool:
    """Whether the broker deletes old records of a topic."""
    return "delete" in settings.get("cleanup.policy", "").split(",")


def kept_ms(settings: Mapping[str, str]) -> int:
    """Return for how long a topic keeps records where it deletes old ones, in milliseconds; -1: for ever."""
    return int(settings.get("retention.ms") or -1)


def of_input(
    store: Store, bounds: Mapping[int, Bounds], cleanup_policy: str, topic: str, starts: Mapping[int, int] | None = None
) -> Exactness:
    """Judge by what an input topic still holds, before it is read.

    :param starts: where the application began to read it, for partitions where that was not at offset 0
    """
    if store.reuses_source:
        return SURE
    kind = _kind_of(store)
    reasons = [
        f"{topic}:{number} begins at offset {bound.log_start_offset}: older records are gone"
        for number, bound in sorted(bounds.items())
        if bound.log_start_offset > (starts or {}).get(number, 0)
    ]
    compacted = "compact" in cleanup_policy.split(",")
    if compacted and kind != TABLE:
        if _is_last_of_key(store):
            return Exactness("C" if not reasons else "D", (*reasons, f"{topic} is compacted: {_LAST_LOST}"))
        reasons.append(f"{topic} is compacted (cleanup.policy={cleanup_policy}): records that a {kind} needs may be gone")
    # What windows have lost with the oldest records is only known once they are computed (`of_windows`).
    if reasons and (store.window is None or compacted):
        return Exactness("D", tuple(reasons))
    return _of_serializer(store)


def of_gaps(store: Store, places: str) -> Exactness:
    """Judge by offsets of the input that have no record: it was compacted, whatever its settings are now."""
    reason = f"records are gone from the middle of the input ({places}), as where it was compacted once"
    kind = _kind_of(store)
    if store.reuses_source or (kind == TABLE and not (store.table and store.key_by)):
        return SURE
    if kind == TABLE:
        return Exactness("C" if store.aggregate.kind == REDUCER else "B", (f"{reason}: timestamps, and groups that are empty, may differ",))
    if _is_last_of_key(store):
        return Exactness("C", (f"{reason}: {_LAST_LOST}",))
    return Exactness("D", (f"{reason}: what they added is not known",))


def _is_last_of_key(store: Store) -> bool:
    """Whether a store keeps the last record of each key of its topic; compaction keeps one per key too."""
    changes = store.where or store.key_by or store.explode
    return store.aggregate.kind == "last" and store.window is None and not changes


def _kind_of(store: Store) -> str:
    """Return what a store makes of its records: a table, which needs only the last record of each key, or an aggregate."""
    return TABLE if store.table else "table of a filtered stream" if store.drops_before else store.aggregate.kind


def _of_serializer(store: Store) -> Exactness:
    """Judge by whether the application's serializer writes the bytes that kops keeps or produces."""
    joined = store.table is not None and store.table.joins
    value = store.source.value
    if store.aggregate.kind == TABLE and joined and store.aggregate.form.name == "json":
        reason = "JSON is written with its fields in the order of the expression, and the application's serde may write it in another way"
        return Exactness("B", (reason,))
    if store.aggregate.form.name == "json" and not store.aggregate.is_whole_value:
        reason = "its values are JSON, which the application's serde may write in another way (numbers, order of fields, letters)"
        return Exactness("B", (reason,))
    if store.aggregate.is_whole_value and not joined and value.is_only_read:
        other = "it in other bytes" if value.plugin else "the id of another schema"
        return Exactness("B", (f"{value} is kept as it was read, and the application's serializer may write {other}",))
    if store.aggregate.is_whole_value and not joined and value.name == "json":
        return Exactness("B", ("JSON is kept as it was read, and the application's serde may write it in another way",))
    return SURE


def of_changes(state_file: StateFile, store: Store, cleanup_policies: Sequence[str]) -> Exactness:
    """Judge a store that is grouped from a table by whether every change of the table can be known."""
    if store.table is None or not store.key_by:
        return SURE
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
    if not reasons:
        return SURE
    if store.others and state_file.cache:
        why = (
            "where both sides of a join change between two flushes of its cache, Kafka Streams takes from a group what it never added to it"
        )
        return Exactness("C", (*reasons, f"{why} (streams.cache)"))
    if store.aggregate.kind == REDUCER:
        which = "which values a group has passed through is not known, and a reducer may depend on it"
        return Exactness("C", (*reasons, which))
    return Exactness("B", tuple(reasons))


def of_cached_join(state_file: StateFile, store: Store) -> Exactness:
    """Judge a join that is stored: with a cache it keeps a row if both its sides were deleted between two flushes."""
    table = store.table
    if table is None or store.key_by or not store.others or not state_file.cache:
        return SURE
    why = "where both sides of a key are deleted between two flushes of the application's cache, Kafka Streams keeps its row"
    return Exactness("B", (f"{why} (streams.cache); here it is unexpected",))


def of_cached_sessions(state_file: StateFile, store: Store) -> Exactness:
    """Judge sessions by their times, which older versions take from another record if they are cached."""
    if store.window is None or store.window.kind != SESSION or not state_file.flushes_sessions_late:
        return SURE
    return Exactness("B", ("a session has the time of the record at which the application's cache was flushed (streams.cache, version)",))


def of_untimed_stores(store: Store) -> Exactness:
    """Judge by whether stores keep the times of earlier records: an aggregate's own, and those of tables that are joined.

    The rows of a table of a topic have the times of their own records.
    """
    since, reasons = "since the application was last started or its cache was full", []
    if not store.timestamped and store.aggregate.kind != TABLE:
        reasons.append(f"the store keeps no timestamps (timestamped: false), so a key has the latest of its records {since}")
    if store.table is not None and store.table.forgets_times:
        reasons.append(f"a joined table keeps no timestamps (timestamped: false), so a row has the latest of its two sides {since}")
    return Exactness("B" if reasons else "A", tuple(reasons))


def of_time(store: Store, keys: int, timed: int) -> Exactness:
    """Judge by the rows whose timestamp depends on the order in which topics were read; groups are left to ``of_changes``."""
    if not timed or store.key_by:
        return SURE
    return Exactness("B", (f"the timestamps of {timed} of {keys} keys depend on the order in which topics were read",))


def of_library(state_file: StateFile) -> Exactness:
    """Judge by the library: a table of Faust has no timestamps."""
    if state_file.library == FAUST:
        return Exactness("B", ("a table of Faust has no timestamps: those of its input are written, and none is compared",))
    return SURE


def of_order(store: Store, keys: int, mixed: int) -> Exactness:
    """Judge by what was seen while computing.

    :param mixed: keys fed by several source partitions, where the order matters
    """
    if not mixed:
        return SURE
    if store.table and store.aggregate.kind != REDUCER:
        return Exactness("C", (f"{mixed} of {keys} sums round, differently in another order of additions and subtractions",))
    if store.others and not store.key_by:
        return Exactness("C", (f"{mixed} of {keys} keys are fed by several topics, in an order that nothing holds",))
    partitions = f"{mixed} of {keys} keys are fed by several partitions, in an order that only the purged repartition topic had"
    return Exactness("C", (partitions,))


def worst(judgements: Sequence[Exactness]) -> Exactness:
    """Return the worst class, with the reasons of all that are not A."""
    grade = max(judgement.grade for judgement in judgements)
    reasons = tuple(dict.fromkeys(reason for judgement in judgements for reason in judgement.reasons))
    return Exactness(grade, reasons, any(judgement.hides for judgement in judgements))


def of_statement(state_file: StateFile, store: Store, settings: Mapping[str, str]) -> Exactness:
    """Judge a store by what its state file says, before anything is read."""
    of_changelog = (*_of_retention(store, settings), *_of_kept(store, settings))
    return worst([of_untimed_stores(store), *_of_version(state_file, store), *of_changelog, *_of_clock(store)])


def _of_version(state_file: StateFile, store: Store) -> Iterator[Exactness]:
    """Judge by whether kops knows the rules of a version, and by rules of old versions that it does not follow."""
    version, table = state_file.version, store.table
    if table is not None and table.foreign:
        yield from _of_foreign_keys(state_file)
    reduces_groups = table is not None and bool(store.key_by) and store.aggregate.kind == REDUCER
    if version is None:
        yield from _of_unknown_version(state_file, store, reduces_groups=reduces_groups)
        return
    line, of = line_of(version), f"kafka-streams {state_file.streams_version}"
    oldest, newest = (".".join(map(str, each)) for each in (OLDEST, NEWEST))
    if line < OLDEST:
        yield Exactness("C", (f"kops knows the rules of {oldest} to {newest}, and not those of {of}",))
        return
    if line > NEWEST:
        yield Exactness("B", (f"kops is tested with kafka-streams up to {newest}, whose rules it follows: {of} is untested",))
    if store.type == SLIDING and line < SLIDING_WINDOWS:
        yield Exactness("C", (f"kops knows the rules of sliding windows from 2.8 on, and not those of {of}",))
    if reduces_groups and line < GROUPED_UPDATES:
        yield Exactness("B", (f"{of} {_IN_TWO_STEPS}",))
    if store.aggregate.kind == TABLE and repeats_values(version):
        yield Exactness("B", (f"{of} {_KEEPS_EARLIER}",))


def _of_unknown_version(state_file: StateFile, store: Store, *, reduces_groups: bool) -> Iterator[Exactness]:
    """Judge a store that some versions compute in another way, where the file does not say which one the application has."""
    if state_file.library == FAUST:
        return
    if reduces_groups:
        yield Exactness("B", (f"kafka-streams before 3.5 {_IN_TWO_STEPS}; {_UNSAID}",))
    if store.aggregate.kind == TABLE:
        yield Exactness("B", (f"kafka-streams 2.6.0, 2.6.1 and 2.7.0 {_KEEPS_EARLIER}; {_UNSAID}",))


def _of_foreign_keys(state_file: StateFile) -> Iterator[Exactness]:
    """Judge a foreign-key join by the versions that join some rows in another way than kops."""
    version, of = state_file.version, f"kafka-streams {state_file.streams_version}"
    if version is None:
        why = "before 3.9.1 and in 4.0.0, kafka-streams joins some rows by foreign keys in another way"
        yield Exactness("C", (f"{why}; {_UNSAID}",))
    elif line_of(version) < NULL_FOREIGN_KEYS:
        yield Exactness("C", (f"{of} skips a row whose foreign key is null, and so keeps what it was joined with before (KIP-962)",))
    elif mixes_up_foreign_keys(version):
        why = "has foreign-key joins that go wrong where a row's foreign key changes, or is null (KAFKA-18713, KAFKA-16407)"
        yield Exactness("C", (f"{of} {why}; fixed in 3.9.1, 4.0.1 and 4.1",))


def _of_retention(store: Store, settings: Mapping[str, str]) -> Iterator[Exactness]:
    """Judge by whether the changelog keeps more than the library would by itself, as where the application calls withRetention."""
    window = store.window
    if window is None or window.says_retention or not deletes_old(settings):
        return
    kept = kept_ms(settings)
    if kept < 0 or kept > window.retention_ms + ADDED_MS:
        what = "for ever" if kept < 0 else duration_text(kept)
        without = f"{duration_text(window.retention_ms)} and the day that Kafka Streams adds"
        yield Exactness("C", (f"{store.changelog} keeps records {what} (retention.ms), and not {without}: say window.retention",))


def _of_kept(store: Store, settings: Mapping[str, str]) -> Iterator[Exactness]:
    """Judge by whether the changelog keeps less than the store: Kafka Streams keeps it for as long as the store, and a day more."""
    kept, lag = kept_ms(settings), int(settings.get("min.compaction.lag.ms") or 0)
    if store.window is not None and deletes_old(settings) and 0 <= kept < store.window.retention_ms:
        what = f"keeps records for {duration_text(kept)} (retention.ms), and the store for {duration_text(store.window.retention_ms)}"
        why = "the file's retention is too long, or the setting was altered, and windows that the application holds are deleted there"
        yield Exactness("C", (f"{store.changelog} {what}: {why}",))
    if store.history_ms is not None and settings.get("cleanup.policy") == "compact" and lag < store.history_ms:
        what = f"compacts records after {duration_text(lag)} (min.compaction.lag.ms), and the store keeps {duration_text(store.history_ms)}"
        why = "the file's history is too long, or the setting was altered, and versions that the application holds are deleted there"
        yield Exactness("C", (f"{store.changelog} {what}: {why}",))


def _of_clock(store: Store) -> Iterator[Exactness]:
    """Judge by whether the times that the application gave its records are recorded anywhere."""
    for topic in (source.topic for source in store.inputs if source.timestamp == WALL_CLOCK):
        if store.window is not None or store.history_ms is not None:
            yield Exactness("D", (f"records of {topic} count by the time at which they were processed, which nothing holds",))
        else:
            yield Exactness("C", (f"timestamps are those at which records of {topic} were processed, which nothing holds",))
