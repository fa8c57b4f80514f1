"""What should be known of a computed store and puts no key in doubt: dropped and waiting records, settings, keys that do not count."""

from __future__ import annotations

from collections.abc import Iterator

from kops.core.findings import Finding
from kops.core.statefile import Store
from kops.core.streams.verdict import PROVEN, Verdict, notice
from kops.operations.state.compute import ComputedStore, unrestorable_text
from kops.operations.state.rules.windows import expires, expiry_text, window_notices
from kops.operations.state.rules.witnesses import partitions_text

DROPPED = {
    "undecodable": "could not be decoded",
    "negative_timestamp": "have a negative timestamp",
    "filtered": "do not pass `where`",
    "null_key": "have a null key",
    "null_value": "have a null value",
}


def notices(found: ComputedStore, verdict: Verdict) -> Iterator[Finding]:
    """Return what the operator should know, whatever is known of the keys."""
    facts, counts, store = found.facts, found.counts, found.facts.store
    yield from _witnesses(found, verdict)
    yield from _dropped(found)
    if waiting := sum(map(len, facts.waiting.values())):
        topic = store.repartition_topic or ""
        yield notice("waiting_records", f"{waiting:,} records wait in {topic} and do not count yet", topic, records=waiting)
    if facts.spare:
        yield notice("spare_partitions", spare_text(store, facts.tasks, facts.partitions), store.changelog)
    if counts.unrestorable:
        yield notice("short_keys", unrestorable_text(found), store.changelog, records=counts.unrestorable)
    if expires(store, facts.settings):
        yield notice("expiring_changelog", expiry_text(store, facts.settings), store.changelog)
    yield from window_notices(store, counts.noted)
    if found.on_disk:
        where = f"in {found.on_disk} of its {facts.tasks} tasks it outgrew the memory and went to RocksDB"
        yield notice("outgrown_memory", where, store.changelog)


def _witnesses(found: ComputedStore, verdict: Verdict) -> Iterator[Finding]:
    """Name the keys of the changelog that do not count, and the last comparison that proved the store."""
    witnesses, changelog = found.witnesses, found.facts.store.changelog
    if witnesses is not None:
        if witnesses.written:
            yield notice("own_keys", f"{witnesses.written:,} keys that kops wrote do not count", changelog, keys=witnesses.written)
        if witnesses.unclear:
            yield notice("own_keys", f"{witnesses.unclear:,} keys differ, which kops may have written", changelog, keys=witnesses.unclear)
        if witnesses.damaged:
            which = partitions_text(witnesses.damaged)
            yield notice("damaged", f"damaged {which} left out", changelog, partitions=list(witnesses.damaged))
    if found.proven is not None and verdict.word != PROVEN:
        yield notice("last_proven", found.proven.text, changelog)


def _dropped(found: ComputedStore) -> Iterator[Finding]:
    store, counts = found.facts.store, found.counts.dropped
    dropped = [f"{count:,} {DROPPED[name]}" for name, count in counts.items() if count]
    if dropped:
        how = "they do not count, as in Kafka Streams"
        if store.reuses_source and counts.get("undecodable"):
            how = "the application skips what cannot be decoded as it reads it, and restores it as it is"
        topics = " and ".join(source.topic for source in store.inputs)
        yield notice("dropped_records", f"of the records, {', '.join(dropped)}; {how}", topics, **counts)


def spare_text(store: Store, tasks: int, partitions: int) -> str:
    """Say why a changelog has more partitions than its store's own topics."""
    feeding = store.repartition_topic or " and ".join(source.topic for source in store.inputs)
    return (
        f"{store.changelog} has {partitions} partitions and {feeding} has {tasks}: as where the sub-topology reads a topic with more; the"
        " others stay empty"
    )
