"""What should be known about windows and sessions before they are written: how exact they are, what was late or has expired. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from kops.core.durations import duration_text
from kops.core.statefile import Store
from kops.core.statefile.models import SESSION
from kops.operations.state.exactness import Exactness

COUNTED = {"late_records": "late", "boundary_records": "boundary", "expired_windows": "expired"}
"""Counts that are reported of a store, with their names in ``kops.spark.job.NOTED``."""


def of_windows(store: Store, keys: int, noted: Mapping[str, int], *, cache: bool) -> Exactness:
    """Judge windows by what was seen while computing.

    :param noted: ``kops.spark.job.NOTED``
    :param cache: stores have one (``statestore.cache.max.bytes``)
    """
    if store.window is None:
        return Exactness("A")
    found = []
    if count := noted.get("boundary", 0):
        which = f"{count:,} records may or may not have come after their window had closed"
        found.append(Exactness("C", (f"{which}: the order in which partitions met is only known to the purged {store.repartition_topic}",)))
    if count := noted.get("null_values", 0):
        which = f"{count:,} records have a null value, which windows give to a {store.aggregate.kind} too"
        found.append(Exactness("C", (f"{which}: they are passed over here, and what the application makes of them is not known",)))
    if cache and (count := noted.get("cached", 0)):
        which = f"{count:,} late records are next to a session that has expired by retention"
        found.append(
            Exactness(
                "C", (f"{which}: whether the application still found it, in a cache or in an older store, is not known (streams.cache)",)
            )
        )
    if count := noted.get("unaligned", 0):
        which = f"{count:,} windows of {store.changelog} do not start at multiples of {duration_text(store.window.advance_ms)}"
        from_there = f" from {duration_text(store.window.alignment_ms)} on" if store.window.alignment_ms else ""
        found.append(Exactness("C", (f"{which}{from_there}: they are not windows of the file (window.size, advance, alignment)",)))
    topic = store.source.topic
    if count := noted.get("uncovered", 0):
        found.append(Exactness("D", (f"{count:,} windows may have had records of {topic} that are gone: it begins above offset 0",)))
    elif noted.get("trimmed", 0):
        which = f"{topic} begins above offset 0: the records that are gone are of windows that have expired"
        found.append(Exactness("B", (f"{which}, unless their timestamps lie after those of the records that follow",)))
    if count := noted.get("timed", 0):
        which = f"the timestamps of {count:,} of {keys:,} sessions are those of the record that came last"
        found.append(Exactness("B", (f"{which}, which is not known where several partitions feed a key",)))
    if not found:
        return Exactness("A")
    return Exactness(max(one.grade for one in found), tuple(reason for one in found for reason in one.reasons))


def window_warnings(store: Store, noted: Mapping[str, int]) -> list[str]:
    if store.window is None:
        return []
    retention, buffer = duration_text(store.window.retention_ms), store.window.buffer
    behind = [f"{store.name}: {buffer}, the buffer of suppress(), is left unchanged; kops can neither compute nor compare it"]
    one, several = ("session", "sessions") if store.window.kind == SESSION else ("window", "windows")
    said = {
        "late": f"records came after their {one} had closed, and do not count in it; an application that was restarted just before "
        "one of them, and so had forgotten its stream time, has counted it",
        "expired": f"{several} have ended longer ago than the retention ({retention}): they are neither expected nor written",
        "hidden": f"{several} will expire when the application restores its store, since the changelog has later ones; where they are "
        "still needed, --write replace recreates it",
    }
    return [*(f"{store.name}: {noted[name]:,} {what}" for name, what in said.items() if noted.get(name)), *(behind if buffer else [])]


def emitted_again(store: Store) -> list[str]:
    """Return what should be known when the application is moved: it forgets which windows it has sent."""
    if store.window is None or not store.window.emits_on_close:
        return []
    return [f"{store.name}: where the application is moved, it sends the results of all closed windows that it still holds once more"]


def fading(store: Store, settings: Mapping[str, str], earliest: int, now_ms: int) -> list[str]:
    """Return what should be known about records so old that the changelog's own retention deletes them.

    :param earliest: the earliest timestamp to append, milliseconds since the epoch
    """
    retention = int(settings.get("retention.ms") or -1)
    deletes = "delete" in settings.get("cleanup.policy", "").split(",")
    if store.window is None or not deletes or retention < 0 or now_ms - earliest <= retention:
        return []
    topic = store.changelog
    return [f"{topic} has retention.ms={retention}, and older records are to be appended, which the broker will delete"]


def counted(noted: Mapping[str, int]) -> dict[str, int]:
    """Return the counts that are reported of a store; zeros for one without windows."""
    return {name: noted.get(inner, 0) for name, inner in COUNTED.items()}
