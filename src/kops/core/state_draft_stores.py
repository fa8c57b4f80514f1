"""From how stores come about, and what their topics look like, to a draft of a state file. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kops.core.durations import duration_text
from kops.core.format_guess import FormatGuess
from kops.core.state_draft import Draft, Entry, open_entry
from kops.core.streams_topics import CHANGELOG
from kops.core.topology_trace import DERIVED, GROUPED, JOINED, OTHER, STREAM, TABLE, TO_TABLE, Trace

WINDOW, SESSION, VERSIONED, KEY_VALUE = "window", "session", "versioned", "key-value"
DAY_MS = 86_400_000
"""What Kafka Streams adds to the retention of windows and versions in their changelogs, unless it was set otherwise."""

NOTHING = FormatGuess(None, "no record to look at")

_NOT_REBUILT = {
    "join of streams": "it buffers a stream-stream join, whose records expire with the window",
    "suppressed": "it holds back updates of another store until they are final",
    "foreign-key subscription": "Kafka Streams keeps it beside a foreign-key join, for itself",
}


@dataclass(frozen=True)
class StoreFacts:
    """What the changelog of a store looks like.

    :param changelog: whether it has a changelog topic of its own
    :param type: as guessed from settings and records: ``key-value``, ``window``, ``session``, ``versioned``
    :param reasons: why
    :param retention_ms: ``retention.ms`` of the changelog, of windows and sessions
    :param history_ms: ``min.compaction.lag.ms``, of a versioned store
    :param step_ms: of which all windows' starts are multiples; None when no two are there
    """

    changelog: bool
    type: str = KEY_VALUE
    reasons: tuple[str, ...] = ()
    retention_ms: int | None = None
    history_ms: int | None = None
    step_ms: int | None = None
    key: FormatGuess = NOTHING
    value: FormatGuess = NOTHING


@dataclass(frozen=True)
class TopicFacts:
    """What the records of an input topic look like."""

    key: FormatGuess = NOTHING
    value: FormatGuess = NOTHING


@dataclass(frozen=True)
class Facts:
    """What the cluster tells."""

    stores: Mapping[str, StoreFacts]
    topics: Mapping[str, TopicFacts]

    def store(self, name: str) -> StoreFacts:
        """Return what is known of a store."""
        return self.stores.get(name, StoreFacts(changelog=False))

    def topic(self, name: str) -> TopicFacts:
        """Return what is known of a topic."""
        return self.topics.get(name, TopicFacts())


class Drafting:
    """Makes a draft of the traces of an application's stores.

    :param hidden: traces of tables that have no store, by the name of their processor
    """

    def __init__(self, application: str, traces: Mapping[str, Trace], hidden: Mapping[str, Trace], facts: Facts) -> None:
        self._application, self._traces, self._hidden, self._facts = application, traces, hidden, facts
        self._tables: dict[str, Entry] = {}
        self._skipped: dict[str, str] = {}
        sources = [trace for trace in traces.values() if trace.kind == TABLE]
        self._optimized = bool(sources) and any(not facts.store(trace.store).changelog for trace in sources)

    def draft(self) -> Draft:
        """Return the draft."""
        stores = [entry for name in sorted(self._traces) if (entry := self._store(self._traces[name]))]
        guarantee = "or exactly_once_v2, as processing.guarantee says, which nothing in the cluster tells for certain"
        streams = [Entry("guarantee", "at_least_once", f"TODO: check; {guarantee}")]
        if self._optimized:
            streams.append(Entry("topology_optimization", "all", "a table's store has no changelog of its own, so its topic is it"))
        top = [Entry("application", self._application), Entry("streams", tuple(streams))]
        if self._tables:
            top.append(Entry("tables", tuple(self._tables.values())))
        if stores:
            top.append(Entry("stores", tuple(stores)))
        else:
            top.append(open_entry("stores", "no store is known that a state file can say"))
        return Draft(self._application, tuple(top), self._skipped)

    def _store(self, trace: Trace) -> Entry | None:
        why = _NOT_REBUILT.get(trace.kind) or self._beyond(trace)
        if why:
            self._skipped[trace.store] = why
            return None
        comments, entries = self._entries(trace, self._facts.store(trace.store))
        return Entry(trace.store, tuple(entries), "; ".join(comments))

    def _beyond(self, trace: Trace) -> str | None:
        """Return why a store cannot be said in a state file."""
        facts = self._facts.store(trace.store)
        if not facts.changelog and trace.kind != TABLE:
            return f"it has no changelog {self._application}-{trace.store}{CHANGELOG}, so there is nothing to rebuild (logging disabled?)"
        if trace.kind in (STREAM, TO_TABLE, OTHER) and trace.through:
            return f"it is made of the updates of {', '.join(trace.through)} on the way, which depend on when they came"
        if trace.kind == DERIVED and not trace.writer.name.startswith("KTABLE-FILTER"):
            return f"{trace.writer.name} computes its values from another table in Java"
        return None

    def _entries(self, trace: Trace, facts: StoreFacts) -> tuple[list[str], list[Entry]]:
        if trace.kind == TABLE or (trace.kind == TO_TABLE and not trace.repartition and not trace.operators):
            return self._table(trace, facts)
        if trace.kind in (GROUPED, JOINED, DERIVED):
            return self._of_tables(trace, facts)
        return self._stream(trace, facts)

    def _table(self, trace: Trace, facts: StoreFacts) -> tuple[list[str], list[Entry]]:
        entries = [self._from(trace)]
        if facts.type == VERSIONED:
            entries.insert(0, Entry("type", VERSIONED))
            entries.append(_history(facts))
        elif self._optimized and facts.changelog and trace.kind == TABLE:
            entries.append(Entry("changelog", f"{self._application}-{trace.store}{CHANGELOG}", "this table has one of its own"))
        return [f"a table of its topic ({trace.writer.name})"], entries

    def _stream(self, trace: Trace, facts: StoreFacts) -> tuple[list[str], list[Entry]]:
        entries = [Entry("type", facts.type, "; ".join(facts.reasons))] if facts.type in (WINDOW, SESSION) else []
        entries.append(self._from(trace))
        if "KSTREAM-FILTER" in _operators(trace):
            entries.append(open_entry("where", "Spark SQL of what the filters before it keep, such as value.price is not null"))
        if "KSTREAM-FLATMAPVALUES" in _operators(trace):
            entries.append(open_entry("explode", "Spark SQL of the array that flatMapValues makes, such as split(value, ' ')"))
        entries += self._repartition(trace, facts, new_key=_new_key(trace))
        if facts.type in (WINDOW, SESSION):
            entries.append(_windows(facts))
        entries.append(_aggregate(trace, facts))
        comments = [f"written by {trace.writer.name}"]
        if "KSTREAM-MAPVALUES" in _operators(trace):
            comments.append("a mapValues stands before it: the expressions below take the value of the topic")
        if trace.unclear:
            comments.append(f"what {', '.join(trace.unclear)} does before it, a description does not tell")
        return comments, entries

    def _of_tables(self, trace: Trace, facts: StoreFacts) -> tuple[list[str], list[Entry]]:
        left, *others = [*(self._reference(name) for name in trace.tables), "", ""][:2]
        missing = "the table that it is made of, one of stores or tables"
        entries = [Entry("from", (Entry("table", left) if left else open_entry("table", missing),))]
        if trace.kind == JOINED:
            entries.append(_join(trace, facts, others[0]))
        elif trace.kind == DERIVED:
            entries.append(open_entry("where", "Spark SQL of what filter() keeps"))
        else:
            entries += self._repartition(trace, facts, new_key=True)
            entries.append(_aggregate(trace, facts))
        return [f"a {trace.kind} ({trace.writer.name})"], entries

    def _from(self, trace: Trace) -> Entry:
        topics = (*trace.topics, *(f"/{pattern}/" for pattern in trace.patterns))
        if len(trace.topics) != 1 or trace.patterns:
            told = (
                f"it comes of {', '.join(topics)}, and a state file takes one topic" if topics else "which topic it comes of is not known"
            )
            topic, facts = open_entry("topic", told), TopicFacts()
        else:
            topic, facts = Entry("topic", trace.topics[0]), self._facts.topic(trace.topics[0])
        return Entry("from", (topic, _form("key", facts.key), _form("value", facts.value)))

    def _repartition(self, trace: Trace, facts: StoreFacts, *, new_key: bool) -> list[Entry]:
        if trace.repartition is None:
            return []
        entries = [
            open_entry("key_by", "Spark SQL of the new key that selectKey, map or groupBy gives, such as value.item")
            if new_key
            else Entry("key_by", "key", "a repartition topic, and no processor before it that changes the key")
        ]
        entries.append(_form("key_as", facts.key))
        short = trace.repartition.removeprefix(f"{self._application}-")
        if short != f"{trace.store}-repartition":
            entries.append(Entry("repartition", f"{self._application}-{short}"))
        return entries

    def _reference(self, processor: str) -> str:
        """Return the name by which another store or table refers to a table; one without a store becomes one of ``tables``."""
        for trace in self._traces.values():
            if trace.writer.name == processor and trace.kind in (TABLE, JOINED, DERIVED, TO_TABLE):
                return trace.store
        hidden = self._hidden.get(processor)
        if hidden is None or hidden.kind not in (TABLE, JOINED):
            return ""
        if processor not in self._tables:
            self._tables[processor] = Entry(processor, ())  # first, so that what it is made of stands before it only once
            _comments, entries = self._entries(hidden, StoreFacts(changelog=False))
            self._tables[processor] = Entry(processor, tuple(entries), "a table without a store")
        return processor


def _operators(trace: Trace) -> set[str]:
    return {node.name.rpartition("-")[0] for node in trace.operators}


def _new_key(trace: Trace) -> bool:
    changing = {"KSTREAM-KEY-SELECT", "KSTREAM-MAP", "KSTREAM-FLATMAP"}
    return bool(changing & _operators(trace)) or bool(trace.unclear) or not trace.known


def _form(name: str, guess: FormatGuess) -> Entry:
    if guess.name is None:
        return open_entry(name, f"its format: {guess.reason}")
    return Entry(name, guess.value, f"guessed: {guess.reason}")


def _history(facts: StoreFacts) -> Entry:
    if facts.history_ms is None:
        return open_entry("history_retention", "historyRetention of the versioned store")
    history = max(0, facts.history_ms - DAY_MS)
    return Entry(
        "history_retention", duration_text(history), "min.compaction.lag.ms of the changelog, less the day that Kafka Streams adds"
    )


def _windows(facts: StoreFacts) -> Entry:
    kept = facts.retention_ms - DAY_MS if facts.retention_ms and facts.retention_ms > DAY_MS else None
    said = (
        f"the changelog keeps {duration_text(kept)}, less the day that Kafka Streams adds"
        if kept
        else "retention.ms of the changelog does not tell"
    )
    if facts.type == SESSION:
        return Entry("window", (open_entry("gap", f"the inactivity gap; {said}, which is gap and grace unless withRetention was given"),))
    step = duration_text(facts.step_ms) if facts.step_ms else None
    if kept and facts.step_ms == kept:
        tumbling = f"guessed: every window in the changelog starts at a multiple of it, and {said}: so size, without grace"
        return Entry("window", (Entry("size", duration_text(kept), tumbling),))
    starts = f"; windows start at multiples of {step}, which is `advance`, or the size of tumbling ones" if step else ""
    size = open_entry("size", f"the size; {said}, which is size and grace unless withRetention was given{starts}")
    sliding = "of SlidingWindows write `type: sliding-window` and `difference` in place of `size`"
    return Entry("window", (size, Entry("grace", "0ms", f"TODO: check; {sliding}")))


def _aggregate(trace: Trace, facts: StoreFacts) -> Entry:
    form = facts.value.name or "FORMAT"
    looks = f"its values look like {facts.value.name} ({facts.value.reason})" if facts.value.name else f"its values: {facts.value.reason}"
    reduced = f"{{last: EXPR, as: {form}}}, or with sum, min, max, first or reducer"
    if trace.kind == TO_TABLE:
        choice = "{last: value} where no value is null: toTable() deletes a key then"
    elif "REDUCE" in trace.writer.name:
        choice = reduced
    elif form == "long" and "AGGREGATE" in trace.writer.name:
        choice = f"{{count: true}} of count(), {{sum: EXPR, as: long}} of such an aggregate, or {{reducer: MODULE:NAME, as: {form}}}"
    elif trace.kind == OTHER:
        choice = f"{reduced}; take this line away for a table of the topic"
    else:
        choice = f"{{sum: EXPR, as: {form}}}, or with min, max, last, first; {{reducer: MODULE:NAME, as: {form}}} for anything else"
    return open_entry("aggregate", f"{choice}; {looks}")


def _join(trace: Trace, facts: StoreFacts, right: str) -> Entry:
    entries = [Entry("table", right) if right else open_entry("table", "the other table, one of stores or tables")]
    if trace.by_foreign_key:
        entries.append(open_entry("on", "Spark SQL of the other table's key, of key and left: what the foreign-key extractor gives"))
    entries.append(open_entry("type", "inner or left" if trace.by_foreign_key else "inner, left or outer"))
    entries.append(open_entry("value", "Spark SQL of the joined value, of key, left and right, such as concat(left, right)"))
    entries.append(_form("as", facts.value))
    return Entry("join", tuple(entries))


def drafted(application: str, traces: Mapping[str, Trace], hidden: Sequence[Trace], facts: Facts) -> Draft:
    """Return the draft of a state file.

    :param traces: how each store comes about
    :param hidden: of tables without a store
    """
    return Drafting(application, traces, {trace.writer.name: trace for trace in hidden}, facts).draft()
