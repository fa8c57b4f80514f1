"""What a captured program says of itself, as facts for the draft of its state file. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kops.core.durations import duration_text
from kops.core.models import READ_COMMITTED
from kops.core.records.format_guess import FormatGuess
from kops.core.statefile.draft import Entry, Facts, StoreFacts, TopicFacts, open_entry
from kops.core.statefile.models import KEY_VALUE, SESSION, VERSIONED, WINDOW
from kops.core.streams import capture as captured
from kops.core.streams.capture import Capture, Coder, Processor, Source, Store, Windows
from kops.core.streams.topics import ADDED_MS

_OF_KAFKA = "org.apache.kafka.common.serialization."
_OF_STREAMS = "org.apache.kafka.streams."
_OF_CONFLUENT = "io.confluent.kafka."
_FORMATS = {
    "String": "string",
    "Long": "long",
    "Integer": "int",
    "Short": "short",
    "Double": "double",
    "Float": "float",
    "Bytes": "bytes",
    "ByteArray": "bytes",
    "ByteBuffer": "bytes",
    "UUID": "uuid",
}
"""Formats of a state file, by the names of Kafka's own serdes."""
_REGISTERED = {"JsonSchema": "json-schema", "Protobuf": "protobuf", "Avro": "avro"}
"""The same, by a part of the names of the registry's serdes."""
_KINDS = {
    captured.KEY_VALUE: (KEY_VALUE, "plain"),
    captured.TIMESTAMPED_KEY_VALUE: (KEY_VALUE, None),
    captured.TIMESTAMPED_WINDOW: (WINDOW, WINDOW),
    captured.SESSION: (SESSION, SESSION),
    captured.VERSIONED: (VERSIONED, VERSIONED),
}
"""What the kind of a store is called in a draft, and what its type is in a state file; None: it needs none."""
OWN_TIMES = ("FailOnInvalidTimestamp", "LogAndSkipOnInvalidTimestamp", "UsePartitionTimeOnInvalidTimestamp")
_CACHES = ("statestore.cache.max.bytes", "cache.max.bytes.buffering")
_COUNTS = ("GroupedStreamAggregateBuilder$$Lambda", "KGroupedTableImpl$$Lambda")
"""The library's classes with the functions of ``count()``."""
_JOINS = {"KTableKTableOuterJoin": "outer", "KTableKTableLeftJoin": "left", "KTableKTableInnerJoin": "inner"}


def with_program(facts: Facts, capture: Capture) -> Facts:
    """Return facts in which what a program says of itself replaces what was guessed."""
    reused = {topic.name for each in capture.subtopologies for topic in each.changelogs if topic.is_source_topic}
    sources = {topic: node for node in capture.nodes if isinstance(node, Source) for topic in node.topics}
    topics = {topic: _topic(capture, node, topic, facts.topic(topic), starts=topic not in reused) for topic, node in sources.items()}
    return replace(
        facts,
        stores={store.name: _store(capture, store, facts.store(store.name), reused) for store in capture.stores},
        topics={**facts.topics, **topics},
        streams=tuple(_streams(capture)),
        optimized=bool(reused),
        partitioners={sink.topic: sink.partitioner or "" for sink in capture.custom_partitioners if sink.topic},
    )


def _streams(capture: Capture) -> Iterator[Entry]:
    settings, consumer = capture.settings, capture.settings.main_consumer
    if capture.streams_version:
        yield Entry("version", capture.streams_version)
    else:
        yield open_entry("version", "the version of the application's kafka-streams jar, which does not say it itself")
    guarantee = settings.effective.get("processing.guarantee")
    if guarantee is None:
        yield open_entry("guarantee", "processing.guarantee: at_least_once or exactly_once_v2")
    else:
        yield Entry("guarantee", "at_least_once" if guarantee == "at_least_once" else "exactly_once_v2")
    if guarantee == "at_least_once" and (consumer or {}).get("isolation.level") == READ_COMMITTED:
        yield Entry("isolation", READ_COMMITTED)
    if without_cache(capture):
        yield Entry("cache", False)


def without_cache(capture: Capture) -> bool:
    """Whether the program sets the size of its caches to nothing."""
    sizes = [capture.settings.given[name] for name in _CACHES if name in capture.settings.given]
    return bool(sizes) and str(sizes[0]) == "0"


def _topic(capture: Capture, node: Source, topic: str, sampled: TopicFacts, *, starts: bool) -> TopicFacts:
    """Return what the program says of a topic that it reads.

    :param starts: whether it begins where its start policy says: a topic that is restored as a changelog is read whole
    """
    answers = [*_time(capture, node), *(_start(capture, node, topic) if starts else ())]
    return TopicFacts(_format(capture, node.key, "key", sampled.key), _format(capture, node.value, "value", sampled.value), tuple(answers))


def _time(capture: Capture, node: Source) -> Iterator[Entry]:
    extractor = str(node.timestamp_extractor or capture.settings.effective.get("default.timestamp.extractor"))
    own = extractor.removeprefix(f"{_OF_STREAMS}processor.")
    if own == "WallclockTimestampExtractor":
        yield Entry("timestamp", "wall-clock")
    elif own not in OWN_TIMES:
        yield open_entry("timestamp", f"Spark SQL of what {_named(extractor)} gives, from key, value and headers, such as value.created_ms")


def _start(capture: Capture, node: Source, topic: str) -> Iterator[Entry]:
    policy = node.reset.get(topic) or (capture.settings.main_consumer or {}).get("auto.offset.reset")
    if policy == "latest":
        yield Entry("start", "latest", "its start policy is latest; an offset or a time if it is known where the application began")
    elif policy != "earliest":
        yield open_entry(
            "start", f"where the application began: its start policy is {policy or 'unknown'}; an offset, or a time such as @2026-11-20"
        )


def _store(capture: Capture, store: Store, sampled: StoreFacts, reused: Iterable[str]) -> StoreFacts:
    kind, written = _KINDS.get(store.kind or "", (KEY_VALUE, None))
    users = [node for node in capture.nodes if isinstance(node, Processor) and store.name in node.stores]
    windowed = next((node for node in users if node.windows), None) if kind in (WINDOW, SESSION) else None
    answers = {"type": Entry("type", written) if written else None}
    if windowed:
        answers |= _windows(windowed.windows[0], store.retention_ms)
    if store.history_retention_ms is not None:
        answers["history_retention"] = Entry("history_retention", duration_text(store.history_retention_ms))
    if any(_counts(node) for node in users):
        answers["aggregate"] = Entry("aggregate", {"count": True})
    retention = store.retention_ms
    return StoreFacts(
        changelog=store.changelog is not None and store.changelog not in reused,
        type=kind,
        retention_ms=None if retention is None else retention + ADDED_MS,
        step_ms=sampled.step_ms,
        alignment_ms=sampled.alignment_ms,
        key=_format(capture, store.key, "key", sampled.key),
        value=_format(capture, _value(store), "value", sampled.value),
        answers=answers,
        extra=(
            *([Entry("emit", "on-close")] if any(node.emits_on_close for node in users) else []),
            *([] if store.is_timestamped else [Entry("timestamped", False, "its supplier is of stores without timestamps")]),
        ),
        beyond=_beyond(store),
        suppresses=any(node.suppresses for node in users),
        code=tuple(dict.fromkeys(_named(name) for node in users for name in _own_code(node))),
        join=_join(capture, users),
    )


def _beyond(store: Store) -> str | None:
    """Return why a state file cannot describe a store, as far as its kind says; None if it can."""
    reasons = {
        "it has no changelog, so there is nothing to rebuild: its logging is disabled": store.changelog is None,
        f"it keeps only the newest {store.capacity} keys (Stores.lruMap), and no state file says what it forgets": store.capacity
        is not None,
        "it is a store of windows without timestamps, which no state file describes": store.kind == captured.WINDOW,
        "it is a buffer that Kafka Streams keeps for itself": store.kind in (captured.LIST, captured.BUFFER),
        f"it is a store of another kind, made by {_named(store.builder or 'a builder that is not known')}": store.kind not in _KINDS,
        "it keeps the headers of records, which no state file describes": store.headers,
    }
    return next((reason for reason, applies in reasons.items() if applies), None)


def _windows(windows: Windows, retention_ms: int | None) -> dict[str, Entry | None]:
    """Return the fields ``type`` and ``window``; nothing for windows of the program's own class, whose starts only the program knows."""
    name = windows.name.removeprefix(f"{_OF_STREAMS}kstream.")
    shapes = {
        "TimeWindows": ("size", windows.size_ms),
        "SlidingWindows": ("difference", windows.difference_ms),
        "SessionWindows": ("gap", windows.gap_ms),
    }
    length_name, length = shapes.get(name, ("", None))
    if length is None:
        return {}
    advance = windows.advance_ms if name == "TimeWindows" and windows.advance_ms != length else None
    times = {length_name: length, "advance": advance, "grace": windows.grace_ms, "retention": retention_ms}
    window = Entry("window", tuple(Entry(field, duration_text(value)) for field, value in times.items() if value is not None))
    sliding = {"type": Entry("type", "sliding-window")} if name == "SlidingWindows" else {}
    return {**sliding, "window": window}


def _counts(node: Processor) -> bool:
    """Whether a processor counts: all functions that it was given are the library's own."""
    functions = [name for field, name in node.functions.items() if field in ("initializer", "aggregator", "add", "remove")]
    return len(functions) > 1 and all(name.startswith(_OF_STREAMS) and name.endswith(_COUNTS) for name in functions)


def _own_code(node: Processor) -> Iterator[str]:
    """Yield the classes of the program that a processor is, or was given."""
    if node.program_class and node.processor:
        yield node.processor
    else:
        yield from (name for name in node.functions.values() if not name.startswith(captured.LIBRARY))


def _join(capture: Capture, users: Iterable[Processor]) -> str | None:
    """Return whether the table that these processors write is an inner, left or outer join; None for any other."""
    before = [found for user in users for name in user.predecessors if isinstance(found := capture.node(name), Processor)]
    for node in before:
        if node.left_join is not None:
            return "left" if node.left_join else "inner"
    return next((kind for name, kind in _JOINS.items() for node in before if f"{name}$" in (node.processor or "")), None)


def _value(store: Store) -> Coder | None:
    """Return what reads the values of a store, without their timestamps; None: the program's default."""
    coder = store.value
    return coder.inner["valueDeserializer"] if coder and "valueDeserializer" in coder.inner else coder


def known_formats(capture: Capture, store: Store) -> tuple[str, str]:
    """Return the formats of a store's keys and values; bytes where only the program, or a registry, can read them."""
    names = (_class_of(capture, store.key, "key"), _class_of(capture, _value(store), "value"))
    found = (_known_format(name) if name else None for name in names)
    key, value = (each if each and each in _FORMATS.values() else "bytes" for each in found)
    return key, value


def _class_of(capture: Capture, coder: Coder | None, part: str) -> str | None:
    """Return the class that reads keys or values, the program's default where there is no coder; None where that is not known."""
    name = coder.name if coder else capture.settings.effective.get(f"default.{part}.serde")
    return name if isinstance(name, str) else None


def _format(capture: Capture, coder: Coder | None, part: str, sampled: FormatGuess) -> FormatGuess:
    """Return the format of what a deserializer reads; of the program's own classes, what the records look like."""
    name = _class_of(capture, coder, part)
    if name is None:
        return sampled
    found = _known_format(name)
    if found is None:
        return replace(sampled, reason=f"{sampled.reason}; the program has {_named(name)}")
    json = found == "string" and sampled.name == "json" and sampled.schema
    return FormatGuess(
        found, f"its texts look like JSON: {{format: json, schema: {sampled.schema!r}}} names their fields" if json else "", sure=True
    )


def _known_format(name: str) -> str | None:
    if name.startswith(_OF_KAFKA):
        short = name.removeprefix(_OF_KAFKA).removeprefix("Serdes$").removesuffix("Serde").removesuffix("Deserializer")
        return _FORMATS.get(short)
    if name.startswith(_OF_CONFLUENT):
        return next((form for part, form in _REGISTERED.items() if part in name), None)
    return None


def _named(name: str) -> str:
    """Return the name of a class; of a lambda, in words."""
    return f"a lambda of {name.removesuffix('$$Lambda')}" if name.endswith("$$Lambda") else name
