"""Rules about a store's windows, late records, changelog settings and rewritten code. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from kops.core.durations import duration_text
from kops.core.findings import Finding
from kops.core.statefile import Store
from kops.core.statefile.models import SESSION, Windows
from kops.core.streams.rules import late_records, lost_records
from kops.core.streams.topics import ADDED_MS
from kops.core.streams.verdict import KEYS_ANYWHERE, doubt, notice, remark
from kops.operations.state.rules.statement import REDUCER, deletes_old, kept_ms
from kops.operations.state.rules.witnesses import partitions_text


def other_keys(store: Store) -> Iterator[Finding]:
    """Judge keys that a serde may write in other bytes than it read: the application would not find them."""
    form = store.key_form
    if form.is_only_read or form.name == "json":
        why = "where the application's serde writes them in other bytes, they are other keys"
        yield doubt("other_keys", f"its keys are {form}: {why}", settled_by=KEYS_ANYWHERE)


def rewritten_code(store: Store) -> Iterator[Finding]:
    """Name reducers and plugins' formats: only equal keys show whether they do the same as the application's own code."""
    if store.aggregate.kind == REDUCER:
        yield remark("rewritten_code", f"{store.aggregate.expression} is the application's code written again in Python")
    for name in sorted({form.name for source in store.inputs for form in (source.key, source.value) if form.plugin}):
        yield remark("rewritten_code", f"{name} is a plugin's format, the application's serde written again in Python")


def lateness(store: Store, noted: Mapping[str, int]) -> Iterator[Finding]:
    """Judge late records for windows that the store still holds.

    :param noted: what was counted of windows (``kops.spark.job.NOTED``)
    """
    if store.window is None and (count := noted.get("late", 0)):
        yield late_records(f"{count:,} records came later than the history of a versioned table lasts")
    if is_late(store, noted):
        yield late_records(f"{noted['late']:,} records came late for windows that the store may still hold")


def is_late(store: Store, noted: Mapping[str, int]) -> bool:
    """Whether records were late for windows that the store may still hold."""
    window = store.window
    return window is not None and noted.get("late", 0) > 0 and window.retention_ms > _closes_ms(window)


def _closes_ms(window: Windows) -> int:
    """Return how far stream time is past a window's start, or a session's end, when that closes; retention counts from there too."""
    return window.close_ms if window.kind == SESSION else window.size_ms + window.grace_ms


def emptied(store: Store, partitions: Collection[int]) -> Iterator[Finding]:
    """Judge partitions of a changelog that have lost every record, and for which nothing was computed: neither a key nor a deletion."""
    if partitions:
        which = partitions_text(partitions)
        reason = f"{which} of {store.changelog} lost every record, and nothing was computed for {'it' if len(partitions) == 1 else 'them'}"
        yield doubt("emptied_partitions", f"{reason}: nothing shows what was there", subject=f"{store.changelog}")


def expires(store: Store, settings: Mapping[str, str]) -> bool:
    """Whether the broker deletes keys of a changelog although the store needs all of them (Kafka Streams creates it compacted only)."""
    limits = (settings.get("retention.ms"), settings.get("retention.bytes"))
    return store.window is None and not store.reuses_source and deletes_old(settings) and limits != ("-1", "-1")


def expiry_text(store: Store, settings: Mapping[str, str]) -> str:
    kept = kept_ms(settings)
    after = f"after {duration_text(kept)} (retention.ms)" if kept >= 0 else "beyond retention.bytes"
    policy = f"{store.changelog} has cleanup.policy={settings.get('cleanup.policy')}"
    return (
        f"{policy}: the broker deletes keys that were not written again {after}, and an application that restores its state loses them;"
        f" a key-value store needs compact alone: kops topics alter {store.changelog} --config cleanup.policy=compact"
    )


def expiry(store: Store, settings: Mapping[str, str], begins: Mapping[int, int], missing: Mapping[int, int]) -> Iterator[Finding]:
    """Judge keys that are missing where the broker deletes old ones: an application that has restored since does not hold them.

    :param begins: first offset of each partition of the changelog
    :param missing: keys that were computed and that it does not hold, by partition
    """
    places = {number: count for number, count in missing.items() if count and begins.get(number, 0) > 0}
    if not places or not expires(store, settings):
        return
    which = f"{sum(places.values()):,} keys are missing from {partitions_text(places)} of {store.changelog}, where old keys expire"
    reason = f"{which} (cleanup.policy={settings.get('cleanup.policy')}): whether the application still holds them is not known"
    yield doubt("expired_keys", f"{reason}, and what is appended expires too: set cleanup.policy=compact first")


def added_retention(stores: Iterable[tuple[Store, Mapping[str, str]]]) -> int:
    """Return for how long the application's changelogs are kept beyond the retention of their stores, in milliseconds.

    If stores of different retentions all have the same addition, it is a setting of the application; otherwise Kafka Streams' default.

    :param stores: each with the settings of its changelog
    """
    windowed = [(store.window.retention_ms, kept_ms(settings)) for store, settings in stores if store.window is not None]
    added = {kept - retention for retention, kept in windowed}
    if len({retention for retention, _ in windowed}) > 1 and len(added) == 1:
        return max(ADDED_MS, *added)
    return ADDED_MS


def short_retention(store: Store, noted: Mapping[str, int], settings: Mapping[str, str], added_ms: int = ADDED_MS) -> Iterator[Finding]:
    """Judge windows that expire by the state file although the changelog is kept for longer: retention or grace in the file is too short.

    :param added_ms: for how long changelogs are kept beyond the retention of their stores
    """
    kept, window = kept_ms(settings), store.window
    if window is None or not noted.get("expired", 0) or kept - added_ms <= window.retention_ms:
        return
    why = f"retention.ms is {duration_text(kept)}, of which Kafka Streams adds {duration_text(added_ms)}"
    which = f"{noted['expired']:,} windows have expired by the file's retention ({duration_text(window.retention_ms)})"
    reason = f"{which}, and {store.changelog} is kept for longer ({why}): they are neither computed nor compared"
    yield doubt("short_retention", f"{reason}; see window.retention and window.grace", subject=f"expired windows of {store.name}")


def counted_windows(store: Store, keys: int, noted: Mapping[str, int], *, cache: bool) -> Iterator[Finding]:
    """Judge windows by what the computation met.

    :param noted: ``kops.spark.job.NOTED``
    :param cache: stores have one (``statestore.cache.max.bytes``)
    """
    if store.window is None:
        return
    if count := noted.get("boundary", 0):
        which = f"{count:,} records may or may not have come after their window had closed"
        yield doubt("record_order", f"{which}: the order in which partitions met is only known to the purged {store.repartition_topic}")
    if count := noted.get("null_values", 0):
        which = f"{count:,} records have a null value, which windows give to a {store.aggregate.kind} too"
        yield doubt("null_values", f"{which}: they are passed over here, and what the application makes of them is not known")
    if cache and (count := noted.get("cached", 0)):
        which = f"{count:,} late records are next to a session that has expired by retention"
        why = "whether the application still found it, in a cache or in an older store, is not known (streams.cache)"
        yield doubt("expired_session", f"{which}: {why}")
    if count := noted.get("unaligned", 0):
        which = f"{count:,} windows of {store.changelog} do not start at multiples of {duration_text(store.window.advance_ms)}"
        from_there = f" from {duration_text(store.window.alignment_ms)} on" if store.window.alignment_ms else ""
        yield doubt("other_windows", f"{which}{from_there}: they are not windows of the file (window.size, advance, alignment)")
    topic = store.source.topic
    if count := noted.get("uncovered", 0):
        yield lost_records([topic], windows=count)
    elif noted.get("trimmed", 0):
        which = f"{topic} begins above offset 0: the records that are gone are of windows that have expired"
        yield remark("lost_records", f"{which}, unless their timestamps lie after those of the records that follow")
    if count := noted.get("timed", 0):
        which = f"the timestamps of {count:,} of {keys:,} sessions are those of the record that came last"
        yield remark("times_by_order", f"{which}, which is not known where several partitions feed a key")


def window_notices(store: Store, noted: Mapping[str, int]) -> Iterator[Finding]:
    """Name late, expired and hidden windows, and the buffer of ``suppress()`` that is left unchanged."""
    if store.window is None:
        return
    retention, buffer = duration_text(store.window.retention_ms), store.window.buffer
    one, several = ("session", "sessions") if store.window.kind == SESSION else ("window", "windows")
    texts = {
        "late": f"records came after their {one} had closed, and do not count in it; an application that was restarted just before "
        "one of them, and so had forgotten its stream time, has counted it",
        "expired": f"{several} are past their retention ({retention}): they are neither expected nor written",
        "hidden": f"{several} will expire when the application restores its store, since the changelog has later ones; where they are "
        "still needed, --write replace recreates it",
    }
    for name, what in texts.items():
        if count := noted.get(name):
            yield notice(f"{name}_windows", f"{count:,} {what}", store.changelog, count=count)
    if buffer:
        yield notice("buffer", f"{buffer}, the buffer of suppress(), is left unchanged; kops cannot compute it", buffer)


def emitted_again(store: Store) -> list[str]:
    """Return what should be known when the application is moved: it forgets which windows it has sent."""
    if store.window is None or not store.window.emits_on_close:
        return []
    return [f"{store.name}: where the application is moved, it sends the results of all closed windows that it still holds once more"]


def fading(store: Store, settings: Mapping[str, str], earliest: int, now_ms: int) -> list[str]:
    """Return what should be known about records so old that the changelog's own retention deletes them.

    :param earliest: the earliest timestamp to append, milliseconds since the epoch
    """
    retention = kept_ms(settings)
    if store.window is None or not deletes_old(settings) or retention < 0 or now_ms - earliest <= retention:
        return []
    topic = store.changelog
    return [f"{topic} has retention.ms={retention}, and older records are to be appended, which the broker will delete"]


def counted(noted: Mapping[str, int]) -> dict[str, int]:
    """Return the counts that are reported of a store; zeros for one without windows.

    :param noted: ``kops.spark.job.NOTED``
    """
    names = {"late_records": "late", "boundary_records": "boundary", "expired_windows": "expired"}
    return {name: noted.get(inner, 0) for name, inner in names.items()}
