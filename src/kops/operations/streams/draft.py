"""``kops state init``: a state file drafted from a description of the topology, and from what is on the cluster."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kops.core.errors import NotFound, UndecodableRecord, UsageProblem
from kops.core.models import TopicPartition
from kops.core.records.format_guess import Registered, guess_format
from kops.core.records.models import Record
from kops.core.statefile.draft import NOTHING, Draft, Facts, StoreFacts, TopicFacts
from kops.core.statefile.draft_program import with_program
from kops.core.statefile.draft_stores import drafted
from kops.core.statefile.models import KEY_VALUE, SESSION, VERSIONED, WINDOW
from kops.core.streams.capture import Capture
from kops.core.streams.models import Part
from kops.core.streams.topics import CHANGELOG, REPARTITION
from kops.core.streams.topology import PROCESSOR, Node, Topology
from kops.core.streams.topology_trace import GROUPED, JOINED, OTHER, Trace, table_trace, traces
from kops.formats.streams import session_keys, window_keys
from kops.operations.changelog.detect import Detection, detect_by, samples
from kops.operations.changelog.target import Target, frozen
from kops.operations.records.formats import registered_format
from kops.operations.services import Services
from kops.operations.streams.inspection import Inspection, inspect_application

DRAFTED_TYPES = (WINDOW, SESSION, VERSIONED)


def draft_state_file(services: Services, name: str, topology: Topology | None, program: Capture | None = None) -> Draft:
    """Return a draft of an application's state file. Nothing is changed, and nothing joins its group.

    :param topology: as printed by ``Topology.describe()``; without it the group and the topics show less
    :param program: what the program says of itself, whose topology it is then
    :raises NotFound: when there is no such application, or nothing is known about its stores
    """
    look = inspect_application(services, name, topology)
    found = traces(topology) if topology is not None else _by_topics(look)
    if not found:
        hint = "a stateless application needs none; --topology FILE, with what Topology.describe() prints, names all"
        raise NotFound(f"no store of {name} is known", hint=hint)
    hidden = [trace for processor in _tables_of(found.values()) if topology and (trace := table_trace(topology, processor))]
    facts = _facts(services, look, found.values(), hidden)
    draft = drafted(name, found, hidden, facts if program is None else with_program(facts, program))
    return replace(draft, notes=(*draft.notes, *look.notes))


def _tables_of(found: Iterable[Trace]) -> list[str]:
    own = {trace.writer.name for trace in found}
    return sorted({name for trace in found if trace.kind in (GROUPED, JOINED) for name in trace.tables} - own)


def _by_topics(look: Inspection) -> dict[str, Trace]:
    """Return what the group's own topology, or its topics alone, show about the stores: their input, but not their computation."""
    found: dict[str, Trace] = {}
    parts = {part.subtopology: part for part in look.application.parts}
    for store in look.stores:
        if store.changelog is None:
            continue
        part = parts.get(store.subtopology or "")
        topics = _upstream(look, part) if part else look.input_topics
        named = f"{look.application.application}-{store.store}{REPARTITION}"  # as for a new key before an unnamed groupBy
        repartition = part.repartition_topics[0] if part and part.repartition_topics else named if named in look.partitions else None
        writer = Node(PROCESSOR, "a processor that is not known", stores=(store.store,))
        found[store.store] = Trace(store.store, OTHER, writer, tuple(topics), repartition=repartition, known=False)
    return found


def _upstream(look: Inspection, part: Part) -> Sequence[str]:
    """Return the external topics that a sub-topology reads, directly or through those that write its repartition topics."""
    topics = list(part.source_topics)
    for other in look.application.parts:
        if other is not part and set(other.repartition_sinks) & set(part.repartition_topics):
            topics += other.source_topics
    return tuple(dict.fromkeys(topics))


def _facts(services: Services, look: Inspection, found: Iterable[Trace], hidden: Iterable[Trace]) -> Facts:
    """Sample the newest records of the changelogs and of the input topics, all read at once."""
    name = look.application.application
    changelogs = {f"{name}-{trace.store}{CHANGELOG}": trace.store for trace in found}
    topics = {topic for trace in (*found, *hidden) for topic in trace.topics}
    targets = frozen(services, [topic for topic in (*changelogs, *sorted(topics)) if topic in look.partitions])
    services.progress.step("looking at the newest records")
    records = samples(services, targets)
    stores = {store: _store_facts(targets[topic], records.get(topic, [])) for topic, store in changelogs.items() if topic in targets}
    registered = registered_format(services)
    inputs = {topic: _topic_facts(records.get(topic, []), registered) for topic in topics}
    return Facts(stores, inputs, _transactions([targets[topic] for topic in changelogs if topic in targets], records))


def _transactions(changelogs: Iterable[Target], records: Mapping[str, Sequence[Record]]) -> bool | None:
    """Whether changelogs end in transaction markers: then the last offset of a log, which compaction leaves, has no record.

    None where no record was found.
    """
    found = None
    for target in changelogs:
        last: dict[int, int] = {}
        for record in records.get(target.topic, ()):
            last[record.partition] = max(record.offset, last.get(record.partition, 0))
        for partition, offset in last.items():
            if offset + 1 < target.ranges[TopicPartition(target.topic, partition)].end:
                return True
            found = False
    return found


def _topic_facts(records: Sequence[Record], registered: Registered | None) -> TopicFacts:
    key, value = (guess_format((getattr(record, part) for record in records), registered) for part in ("key", "value"))
    return TopicFacts(key, value)


def _store_facts(target: Target, records: Sequence[Record]) -> StoreFacts:
    detected = detect_by(target, records, None)
    kind = detected.guess.type if detected.guess.type in DRAFTED_TYPES else KEY_VALUE
    keys, starts = _keys(kind, records)
    step = math.gcd(*(start - starts[0] for start in starts)) if len(set(starts)) > 1 else None
    return StoreFacts(
        changelog=True,
        type=kind,
        reasons=_reasons(detected, kind),
        retention_ms=_number(target, "retention.ms"),
        history_ms=_number(target, "min.compaction.lag.ms"),
        step_ms=step,
        alignment_ms=starts[0] % step if step else 0,
        key=guess_format(keys) if keys else NOTHING,
        value=guess_format(record.value for record in records),
    )


def _reasons(detected: Detection, kind: str) -> tuple[str, ...]:
    return (f"guessed with {detected.guess.confidence} confidence: {'; '.join(detected.guess.reasons)}",) if kind != KEY_VALUE else ()


def _keys(kind: str, records: Sequence[Record]) -> tuple[list[bytes], list[int]]:
    """Return the application's own keys, without their window parts, and the starts of the windows."""
    keys, starts = [], []
    for record in records:
        if record.key is None:
            continue
        try:
            if kind == WINDOW:
                window = window_keys.decode(record.key)
                keys.append(window.key)
                starts.append(window.start_ms)
            elif kind == SESSION:
                keys.append(session_keys.decode(record.key).key)
            else:
                keys.append(record.key)
        except UndecodableRecord:
            continue
    return keys, starts


def _number(target: Target, name: str) -> int | None:
    value = target.setting(name)
    return int(value) if value.isdecimal() else None


def only_stores(draft: Draft, stores: Sequence[str]) -> Draft:
    """Return the draft of some stores only; all when none is named."""
    if not stores:
        return draft
    top = {entry.name: entry for entry in draft.entries}
    inside = top["stores"].value
    known = {entry.name: entry for entry in inside} if isinstance(inside, tuple) else {}
    for store in stores:
        if store not in known:
            why = f": {draft.skipped[store]}" if store in draft.skipped else ""
            raise UsageProblem(f"no store {store} can be drafted{why}", hint=f"stores: {', '.join(known) or 'none'}")
    kept = replace(top["stores"], value=tuple(known[store] for store in stores))
    return replace(draft, entries=tuple(kept if entry.name == "stores" else entry for entry in draft.entries), skipped={})
