"""From the way stores are computed and what their topics look like to a draft of a state file. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kops.core.durations import duration_text
from kops.core.records.format_guess import FormatGuess
from kops.core.statefile.draft import Draft, Entry, Facts, StoreFacts, TopicFacts, open_entry
from kops.core.statefile.models import SESSION, VERSIONED, WINDOW
from kops.core.streams.topics import ADDED_MS, CHANGELOG
from kops.core.streams.topology_trace import (
    CHANGE_VALUE,
    COGROUPED,
    DERIVED,
    EXPLODE,
    FILTER,
    GROUPED,
    JOINED,
    OTHER,
    STREAM,
    SUPPRESSED,
    TABLE,
    TO_TABLE,
    Trace,
)

_NOT_REBUILT = {
    "join of streams": "it buffers a stream-stream join, whose records expire with the window",
    COGROUPED: "cogroup() fills it from several streams, each with an aggregator of its own, and a state file says one",
    SUPPRESSED: "it holds back updates of another store until they are final",
    "foreign-key subscription": "Kafka Streams keeps it for a foreign-key join, for itself",
}

_VERSION = open_entry("version", "the version of the application's kafka-streams jar, such as 3.9: it decides rules")

_TIMES = "times are taken to be the records' own: where the application has a TimestampExtractor, say in `from` what `timestamp` it gives"


class DraftBuilder:
    """Builds a draft from the traces of an application's stores.

    :param hidden: traces of tables that have no store, by the name of their processor
    """

    def __init__(self, application: str, traces: Mapping[str, Trace], hidden: Mapping[str, Trace], facts: Facts) -> None:
        self._application, self._traces, self._hidden, self._facts = application, traces, hidden, facts
        buffers = [trace for trace in traces.values() if trace.kind == SUPPRESSED or facts.store(trace.store).suppresses]
        self._buffers = {trace.through[0]: trace.store for trace in buffers if trace.through}
        self._tables: dict[str, Entry] = {}
        self._skipped: dict[str, str] = {}
        sources = [trace for trace in traces.values() if trace.kind == TABLE]
        reused = bool(sources) and any(not facts.store(trace.store).changelog for trace in sources)
        self._optimized = reused if facts.optimized is None else facts.optimized

    def draft(self) -> Draft:
        stores = [entry for name in sorted(self._traces) if (entry := self._store(self._traces[name]))]
        streams = [*(self._facts.streams or (_VERSION, _guarantee(self._facts)))]
        if self._optimized:
            streams.append(Entry("topology_optimization", "all", "a table's store has no changelog of its own, so its topic is it"))
        top = [Entry("application", self._application), Entry("streams", tuple(streams))]
        if self._tables:
            top.append(Entry("tables", tuple(self._tables.values())))
        if stores:
            top.append(Entry("stores", tuple(stores)))
        else:
            top.append(open_entry("stores", "no store is known that a state file can say"))
        return Draft(self._application, tuple(top), self._skipped, (_TIMES,) if self._facts.streams is None else ())

    def _store(self, trace: Trace) -> Entry | None:
        facts = self._facts.store(trace.store)
        why = _NOT_REBUILT.get(SUPPRESSED if facts.suppresses else trace.kind) or facts.beyond or self._beyond(trace)
        if not why and facts.type in (WINDOW, SESSION) and self._partitioner(trace):
            why = f"{self._partitioner(trace)} places its keys, so that kops cannot know what was late in a partition"
        if why:
            self._skipped[trace.store] = why
            return None
        comments, entries = self._entries(trace, facts)
        answered = [facts.answers.get(entry.name, entry) for entry in entries]
        return Entry(trace.store, (*(entry for entry in answered if entry), *facts.extra), "; ".join(comments))

    def _beyond(self, trace: Trace) -> str | None:
        """Return why a state file cannot describe a store; None if it can."""
        facts = self._facts.store(trace.store)
        if not facts.changelog and trace.kind != TABLE:
            return f"it has no changelog {self._application}-{trace.store}{CHANGELOG}, so there is nothing to rebuild (logging disabled?)"
        if trace.kind in (STREAM, TO_TABLE, OTHER) and trace.through:
            return f"it is made of the updates of {', '.join(trace.through)} on the way, which depend on when they came"
        if trace.kind in (STREAM, TO_TABLE, OTHER) and trace.joined_with:
            joins = ", ".join(trace.joined_with)
            return f"its records are joined with a global table on the way ({joins}), which kops does not follow"
        if trace.kind == DERIVED and not trace.writer.name.startswith("KTABLE-FILTER"):
            return f"{trace.writer.name} computes its values from another table in Java"
        return None

    def _entries(self, trace: Trace, facts: StoreFacts) -> tuple[list[str], list[Entry]]:
        is_table = trace.kind == TABLE or (trace.kind == TO_TABLE and not trace.repartition and not trace.operators)
        if is_table or (facts.type == VERSIONED and not trace.known and not trace.repartition):
            return self._table(trace, facts)
        if trace.kind in (GROUPED, JOINED, DERIVED):
            return self._of_tables(trace, facts)
        return self._stream(trace, facts)

    def _table(self, trace: Trace, facts: StoreFacts) -> tuple[list[str], list[Entry]]:
        entries = [self._from(trace, timed=facts.type == VERSIONED)]
        if facts.type == VERSIONED:
            entries.insert(0, Entry("type", VERSIONED))
            entries.append(history_entry(facts))
        elif self._optimized and facts.changelog and trace.kind == TABLE:
            entries.append(Entry("changelog", f"{self._application}-{trace.store}{CHANGELOG}", "this table has one of its own"))
        return [f"a table of its topic ({trace.writer.name})"], entries

    def _stream(self, trace: Trace, facts: StoreFacts) -> tuple[list[str], list[Entry]]:
        to_table = trace.kind == TO_TABLE
        windowed = facts.type in (WINDOW, SESSION) and not to_table
        entries = [Entry("type", facts.type, "; ".join(facts.reasons))] if windowed else []
        if trace.kind == OTHER and trace.known and not windowed:
            entries.append(open_entry("type", processor_says(trace)))
        entries.append(self._from(trace, timed=windowed))
        if trace.has(FILTER):
            entries.append(open_entry("where", "Spark SQL of what the filters before it keep, such as value.price is not null"))
        if trace.has(EXPLODE):
            entries.append(open_entry("explode", "Spark SQL of the array that flatMapValues makes, such as java_split(value, ' ')"))
        entries += self._repartition(trace, facts, new_key=_new_key(trace))
        if windowed:
            entries.append(windows_entry(facts))
            if self._facts.store(self._buffers.get(trace.store, "")).changelog:
                entries.append(Entry("suppress", self._buffers[trace.store], "the buffer of suppress() behind it"))
        entries += to_table_entries(trace, facts) if to_table else [aggregate_entry(trace, facts)]
        comments = [f"written by {trace.writer.name}"]
        if trace.has(CHANGE_VALUE):
            comments.append("a mapValues stands before it: the expressions below take the value of the topic")
        if trace.unclear:
            comments.append(f"what {', '.join(trace.unclear)} does before it, a description does not tell")
        return comments, entries

    def _of_tables(self, trace: Trace, facts: StoreFacts) -> tuple[list[str], list[Entry]]:
        left, *others = [*(self._reference(name) for name in trace.tables), "", ""][:2]
        missing = "the table that it is made of, one of stores or tables"
        entries = [Entry("from", (Entry("table", left) if left else open_entry("table", missing),))]
        if trace.kind == JOINED:
            entries.append(join_entry(trace, facts, others[0]))
        elif trace.kind == DERIVED:
            entries.append(open_entry("where", "Spark SQL of what filter() keeps"))
        else:
            entries += self._repartition(trace, facts, new_key=True)
            entries.append(aggregate_entry(trace, facts))
        return [f"a {trace.kind} ({trace.writer.name})"], entries

    def _from(self, trace: Trace, *, timed: bool = False) -> Entry:
        """Return the field ``from`` of a store.

        :param timed: whether its contents depend on the times of the records
        """
        topics = (*trace.topics, *(f"/{pattern}/" for pattern in trace.patterns))
        if len(trace.topics) != 1 or trace.patterns:
            comment = (
                f"one of {', '.join(topics)}; topics: [...] where they are one stream; table: NAME where it is made of a table"
                if topics
                else "which topic it comes of is not known"
            )
            topic = open_entry("topic", comment)
        else:
            topic = Entry("topic", trace.topics[0])
        facts = self._facts.topic(trace.topics[0]) if trace.topics else TopicFacts()
        more = facts.answers if facts.answers is not None else (timestamp_entry(),) if timed else ()
        return Entry("from", (topic, form_entry("key", facts.key), form_entry("value", facts.value), *more))

    def _repartition(self, trace: Trace, facts: StoreFacts, *, new_key: bool) -> list[Entry]:
        if trace.repartition is None:
            return []
        entries = [
            open_entry("key_by", "Spark SQL of the new key that selectKey, map or groupBy gives, such as value.item")
            if new_key
            else Entry("key_by", "key", "a repartition topic, and no processor before it that changes the key")
        ]
        entries.append(form_entry("key_as", facts.key))
        short = trace.repartition.removeprefix(f"{self._application}-")
        if short != f"{trace.store}-repartition":
            entries.append(Entry("repartition", f"{self._application}-{short}"))
        if self._partitioner(trace):
            entries.append(Entry("partitioner", "custom", f"{self._partitioner(trace)} places the records"))
        return entries

    def _partitioner(self, trace: Trace) -> str | None:
        """Return the program's own partitioner of the repartition topic before a store."""
        short = (trace.repartition or "").removeprefix(f"{self._application}-")
        return self._facts.partitioners.get(f"{self._application}-{short}")

    def _reference(self, processor: str) -> str:
        """Return the name by which another store or table refers to a table; a table without a store is added to ``tables``."""
        for trace in self._traces.values():
            if trace.writer.name == processor and trace.kind in (TABLE, JOINED, DERIVED, TO_TABLE):
                return trace.store
        hidden = self._hidden.get(processor)
        if hidden is None or hidden.kind not in (TABLE, JOINED):
            return ""
        if processor not in self._tables:
            self._tables[processor] = Entry(processor, ())  # added first, so that it is added only once
            _comments, entries = self._entries(hidden, StoreFacts(changelog=False))
            self._tables[processor] = Entry(processor, tuple(entries), "a table without a store")
        return processor


def _guarantee(facts: Facts) -> Entry:
    if facts.transactions is None:
        return Entry("guarantee", "at_least_once", "TODO: check; exactly_once_v2 if processing.guarantee says so")
    if facts.transactions:
        return Entry("guarantee", "exactly_once_v2", "guessed: its changelogs end in the marks of transactions")
    return Entry("guarantee", "at_least_once", "guessed: its changelogs do not end in the marks of transactions")


def _new_key(trace: Trace) -> bool:
    return trace.has(("KSTREAM-KEY-SELECT", "KSTREAM-MAP", "KSTREAM-FLATMAP")) or bool(trace.unclear) or not trace.known


def drafted(application: str, traces: Mapping[str, Trace], hidden: Sequence[Trace], facts: Facts) -> Draft:
    """Draft a state file.

    :param traces: how each store is computed
    :param hidden: traces of tables without a store
    """
    return DraftBuilder(application, traces, {trace.writer.name: trace for trace in hidden}, facts).draft()


def form_entry(name: str, guess: FormatGuess) -> Entry:
    if guess.name is None:
        return open_entry(name, f"its format: {guess.reason}")
    return Entry(name, guess.value, guess.reason if guess.sure else f"guessed: {guess.reason}")


def history_entry(facts: StoreFacts) -> Entry:
    """Return the field for how long a versioned store keeps overwritten values."""
    if facts.history_ms is None:
        return open_entry("history_retention", "historyRetention of the versioned store")
    comment = "min.compaction.lag.ms of the changelog without the day that Kafka Streams adds"
    return Entry("history_retention", duration_text(max(0, facts.history_ms - ADDED_MS)), comment)


def windows_entry(facts: StoreFacts) -> Entry:
    """Return the fields for the windows of a store; what its changelog does not show is open."""
    kept = facts.retention_ms - ADDED_MS if facts.retention_ms and facts.retention_ms > ADDED_MS else None
    aligned: tuple[Entry, ...] = ()
    if facts.type != SESSION and facts.alignment_ms and facts.step_ms:
        start, step = duration_text(facts.alignment_ms), duration_text(facts.step_ms)
        why = f"the windows in the changelog start {start} after multiples of {step}: not TimeWindows, which start at multiples of their"
        aligned = (Entry("alignment", start, f"{why} advance. custom windows only; remove this line for SlidingWindows"),)
    return Entry("window", (*_length_and_grace(facts, kept), *aligned, _retention_entry(kept)))


def _length_and_grace(facts: StoreFacts, kept: int | None) -> tuple[Entry, Entry]:
    """Return the fields for the length of the windows and their grace.

    :param kept: how long the store keeps them, in milliseconds
    """
    most = f"no more than {duration_text(kept)} with the grace" if kept else "retention.ms of the changelog does not tell"
    grace = open_entry(
        "grace",
        "how long a window takes records after its end: of ofSizeAndGrace, ofInactivityGapAndGrace or grace(..) in the program, 0ms where"
        " it says NoGrace; before 4.0, windows without any of these take records for 24h less their size",
    )
    if facts.type == SESSION:
        return open_entry("gap", f"the inactivity gap, {most}"), grace
    if kept and facts.step_ms == kept:
        tumbling = "guessed: every window in the changelog starts at a multiple of it, and it keeps no more than that"
        return Entry("size", duration_text(kept), tumbling), Entry("grace", "0ms", "with that size, the retention leaves no room for more")
    step = duration_text(facts.step_ms) if facts.step_ms else None
    starts = f"; windows start at multiples of {step}, which is `advance`, or the size of tumbling ones" if step else ""
    sliding = "; of SlidingWindows write `type: sliding-window`, and `difference` in place of `size`"
    return open_entry("size", f"the size, {most}{starts}{sliding}"), grace


def _retention_entry(kept: int | None) -> Entry:
    if kept is None:
        comment = "how long the store keeps windows: withRetention, or what the library takes by itself (size and grace; before 3.0 a day)"
        return open_entry("retention", comment)
    return Entry("retention", duration_text(kept), "retention.ms of the changelog without the day that Kafka Streams adds")


def aggregate_entry(trace: Trace, facts: StoreFacts) -> Entry:
    """Return an open field for the aggregate, which is unknown, with the choices that fit."""
    form = facts.value.name or "FORMAT"
    looks = f"its values look like {facts.value.name} ({facts.value.reason})" if facts.value.name else f"its values: {facts.value.reason}"
    reduced = f"{{last: EXPR, as: {form}}}, or with sum, min, max, first or reducer"
    if "REDUCE" in trace.writer.name:
        choice = reduced
    elif form == "long" and "AGGREGATE" in trace.writer.name:
        choice = f"{{count: true}} of count(), {{sum: EXPR, as: long}} of such an aggregate, or {{reducer: MODULE:NAME, as: {form}}}"
    elif trace.kind == OTHER and trace.known:
        choice = f"{{reducer: MODULE:NAME, as: {form}}}; take this line away where the processor keeps the last value of the topic"
    elif trace.kind == OTHER:
        choice = f"{reduced}; take this line away for a table of the topic, and write `to_table: true` for one of a filtered stream"
    else:
        choice = f"{{sum: EXPR, as: {form}}}, or with min, max, last, first; {{reducer: MODULE:NAME, as: {form}}} for anything else"
    if facts.value.sure:
        looks = f"its values are {form}"
    code = f"what {' and '.join(facts.code)} computes, which only the code says: " if facts.code else ""
    return open_entry("aggregate", f"{code}{choice}; {looks}")


def timestamp_entry() -> Entry:
    """Return an open field for the source of the records' times, which is unknown."""
    comment = "remove this line if the application has no TimestampExtractor of its own; else Spark SQL of its result, from key, value and"
    return open_entry("timestamp", f"{comment} headers, such as value.created_ms, or wall-clock")


def to_table_entries(trace: Trace, facts: StoreFacts) -> list[Entry]:
    entries = [Entry("to_table", True)]
    if trace.has(CHANGE_VALUE) or trace.unclear:
        entries.append(open_entry("value", "Spark SQL of what mapValues() makes of the value, or value where nothing changes it"))
    if trace.has((*CHANGE_VALUE, *EXPLODE)) or trace.unclear:
        entries.append(form_entry("as", facts.value))
    return entries


def processor_says(trace: Trace) -> str:
    return (
        f"plain where {trace.writer.name} is a processor of the program's own: its code decides keys, values and what is forgotten, and"
        " Stores.keyValueStoreBuilder makes a store without timestamps; what Stores.lruMap forgets, and what punctuators do, no state file"
        " says. key-value for Stores.timestampedKeyValueStoreBuilder, and for an aggregation that the program only gave a name"
    )


def join_entry(trace: Trace, facts: StoreFacts, right: str) -> Entry:
    """Return the fields for the other table of a join.

    :param right: its name; empty if unknown
    """
    entries = [Entry("table", right) if right else open_entry("table", "the other table, one of stores or tables")]
    if trace.by_foreign_key:
        entries.append(open_entry("on", "Spark SQL of the other table's key, of key and left: what the foreign-key extractor gives"))
    if facts.join:
        entries.append(Entry("type", facts.join))
    else:
        entries.append(open_entry("type", "inner or left" if trace.by_foreign_key else "inner, left or outer"))
    entries.append(open_entry("value", "Spark SQL of the joined value, of key, left and right, such as concat(left, right)"))
    entries.append(form_entry("as", facts.value))
    return Entry("join", tuple(entries))
