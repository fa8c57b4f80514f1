"""The fields of a draft: filled in if known, otherwise open with what to write there. Pure."""

from __future__ import annotations

from kops.core.durations import duration_text
from kops.core.records.format_guess import FormatGuess
from kops.core.statefile.draft import Entry, open_entry
from kops.core.statefile.draft_facts import DAY_MS, SESSION, StoreFacts
from kops.core.streams.topology_trace import CHANGE_VALUE, EXPLODE, OTHER, Trace


def form_entry(name: str, guess: FormatGuess) -> Entry:
    """Return the field for the format of keys or values."""
    if guess.name is None:
        return open_entry(name, f"its format: {guess.reason}")
    return Entry(name, guess.value, f"guessed: {guess.reason}")


def history_entry(facts: StoreFacts) -> Entry:
    """Return the field for how long a versioned store keeps overwritten values."""
    if facts.history_ms is None:
        return open_entry("history_retention", "historyRetention of the versioned store")
    comment = "min.compaction.lag.ms of the changelog without the day that Kafka Streams adds"
    return Entry("history_retention", duration_text(max(0, facts.history_ms - DAY_MS)), comment)


def windows_entry(facts: StoreFacts) -> Entry:
    """Return the fields for the windows of a store; what its changelog does not show is open."""
    kept = facts.retention_ms - DAY_MS if facts.retention_ms and facts.retention_ms > DAY_MS else None
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
    return open_entry("aggregate", f"{choice}; {looks}")


def timestamp_entry() -> Entry:
    """Return an open field for the source of the records' times, which is unknown."""
    comment = "remove this line if the application has no TimestampExtractor of its own; else Spark SQL of its result, from key, value and"
    return open_entry("timestamp", f"{comment} headers, such as value.created_ms, or wall-clock")


def to_table_entries(trace: Trace, facts: StoreFacts) -> list[Entry]:
    """Return the fields for ``KStream.toTable()``."""
    entries = [Entry("to_table", True)]
    if trace.has(CHANGE_VALUE) or trace.unclear:
        entries.append(open_entry("value", "Spark SQL of what mapValues() makes of the value, or value where nothing changes it"))
    if trace.has((*CHANGE_VALUE, *EXPLODE)) or trace.unclear:
        entries.append(form_entry("as", facts.value))
    return entries


def processor_says(trace: Trace) -> str:
    """Describe what to know about a store that a processor of the application's own fills."""
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
    entries.append(open_entry("type", "inner or left" if trace.by_foreign_key else "inner, left or outer"))
    entries.append(open_entry("value", "Spark SQL of the joined value, of key, left and right, such as concat(left, right)"))
    entries.append(form_entry("as", facts.value))
    return Entry("join", tuple(entries))
