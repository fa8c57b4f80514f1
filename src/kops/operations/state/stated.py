"""How exact a store can be by what its state file says of the application: its library's version, its clock. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kops.core.durations import duration_text
from kops.core.statefile import StateFile, Store
from kops.core.statefile.draft_facts import DAY_MS
from kops.core.statefile.models import SLIDING, TABLE
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
from kops.operations.state.exactness import Exactness, worst


def of_statement(state_file: StateFile, store: Store, settings: Mapping[str, str]) -> Exactness:
    """Judge a store by what its state file says, before anything is read.

    :param settings: of the changelog
    """
    of_changelog = (*_of_retention(store, settings), *_of_kept(store, settings))
    return worst([Exactness("A"), *_of_version(state_file, store), *of_changelog, *_of_clock(store)])


def _of_version(state_file: StateFile, store: Store) -> Iterator[Exactness]:
    """Judge by the rules that kops has for a version, and by those of old ones that it does not follow."""
    version = state_file.version
    if version is None:
        return
    line, of = line_of(version), f"kafka-streams {state_file.streams_version}"
    if not OLDEST <= line <= NEWEST:
        known = " to ".join(".".join(map(str, each)) for each in (OLDEST, NEWEST))
        yield Exactness("C", (f"kops knows the rules of {known}, and not those of {of}",))
        return
    table = store.table
    if store.type == SLIDING and line < SLIDING_WINDOWS:
        yield Exactness("C", (f"kops knows the rules of sliding windows from 2.8 on, and not those of {of}",))
    if table is not None and table.foreign and line < NULL_FOREIGN_KEYS:
        yield Exactness("C", (f"{of} passes over a row whose foreign key is null, and so keeps what it was joined with before (KIP-962)",))
    if table is not None and store.key_by and store.aggregate.kind == "reducer" and line < GROUPED_UPDATES:
        yield Exactness(
            "B", (f"{of} updates a group in two steps, and a group that is empty between them begins anew with other timestamps",)
        )
    if store.aggregate.kind == TABLE and repeats_values(version):
        yield Exactness("B", (f"{of} may keep the timestamp of an earlier update with the same value (KIP-557)",))


def _of_retention(store: Store, settings: Mapping[str, str]) -> Iterator[Exactness]:
    """Judge by whether the changelog keeps more than the library would by itself, as where the application says withRetention."""
    window = store.window
    if window is None or window.says_retention or "delete" not in settings.get("cleanup.policy", "").split(","):
        return
    kept = int(settings.get("retention.ms") or -1)
    if kept < 0 or kept > window.retention_ms + DAY_MS:
        told = "for ever" if kept < 0 else duration_text(kept)
        without = f"{duration_text(window.retention_ms)} and the day that Kafka Streams adds"
        yield Exactness("C", (f"{store.changelog} keeps records {told} (retention.ms), and not {without}: say window.retention",))


def _of_kept(store: Store, settings: Mapping[str, str]) -> Iterator[Exactness]:
    """Judge by whether the changelog keeps less than the store: Kafka Streams gives it what the store has, and a day more."""
    deletes = "delete" in settings.get("cleanup.policy", "").split(",")
    kept, lag = int(settings.get("retention.ms") or -1), int(settings.get("min.compaction.lag.ms") or 0)
    if store.window is not None and deletes and 0 <= kept < store.window.retention_ms:
        told = f"keeps records for {duration_text(kept)} (retention.ms), and the store for {duration_text(store.window.retention_ms)}"
        why = "the file's retention is too long, or the setting was altered, and windows that the application holds are deleted there"
        yield Exactness("C", (f"{store.changelog} {told}: {why}",))
    if store.history_ms is not None and settings.get("cleanup.policy") == "compact" and lag < store.history_ms:
        told = f"compacts records after {duration_text(lag)} (min.compaction.lag.ms), and the store keeps {duration_text(store.history_ms)}"
        why = "the file's history is too long, or the setting was altered, and versions that the application holds are deleted there"
        yield Exactness("C", (f"{store.changelog} {told}: {why}",))


def _of_clock(store: Store) -> Iterator[Exactness]:
    """Judge by whether anything holds the times that the application gave its records."""
    for topic in (source.topic for source in store.inputs if source.timestamp == WALL_CLOCK):
        if store.window is not None or store.history_ms is not None:
            yield Exactness("D", (f"records of {topic} count by the time at which they were processed, which nothing holds",))
        else:
            yield Exactness("C", (f"timestamps are those at which records of {topic} were processed, which nothing holds",))
