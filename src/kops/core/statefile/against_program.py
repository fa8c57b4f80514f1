"""Where a state file is not as a captured program says. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kops.core.durations import duration_text
from kops.core.models import READ_COMMITTED
from kops.core.statefile.draft_program import OWN_TIMES, known_formats, without_cache
from kops.core.statefile.models import KEY_VALUE, PLAIN, SESSION, SLIDING, TABLES, VERSIONED, WINDOW, StateFile, Store
from kops.core.statefile.sources import LATEST, WALL_CLOCK, Source
from kops.core.streams import capture as captured
from kops.core.streams.capture import Capture, Processor
from kops.core.streams.program import topics_of

_KINDS = {
    captured.KEY_VALUE: (PLAIN,),
    captured.TIMESTAMPED_KEY_VALUE: (KEY_VALUE, TABLES),
    captured.VERSIONED: (VERSIONED,),
    captured.TIMESTAMPED_WINDOW: (WINDOW, SLIDING),
    captured.SESSION: (SESSION,),
}
"""Types of a state file's stores that are of a program's kind; a state file has none of the others."""
_WINDOWS = {"TimeWindows": WINDOW, "SlidingWindows": SLIDING, "SessionWindows": SESSION}
_BINARY = ("long", "int", "short", "double", "float", "uuid")
"""Formats of a fixed length; any other may be the text that the program's serde of strings reads."""


@dataclass(frozen=True)
class FileDifference:
    """One thing that a state file says otherwise than the program.

    :param store: None: of the application
    :param what: a field of the state file
    :param file: what it says; None: nothing
    """

    store: str | None
    what: str
    file: str | None
    program: str | None


def file_differences(state_file: StateFile, capture: Capture) -> list[FileDifference]:
    """Return what differs of the application, and of each store of the file; stores are the same if their changelogs are.

    What could not be read of the program is compared with nothing.
    """
    known = {store.changelog: store for store in capture.stores if store.changelog}
    found = list(_of_application(state_file, capture))
    for store in state_file.stores:
        theirs = known.get(store.changelog)
        if theirs is None:
            found.append(FileDifference(store.name, "changelog", store.changelog, None))
            continue
        found += [FileDifference(store.name, *each) for each in _of_store(capture, store, theirs)]
    return found


def uncovered_stores(state_file: StateFile, capture: Capture) -> list[captured.Store]:
    """Return the stores of a program with a changelog that no store of a state file has."""
    covered = {store.changelog for store in state_file.stores}
    covered |= {store.window.buffer for store in state_file.stores if store.window is not None and store.window.buffer}
    return [store for store in capture.stores if store.changelog is not None and store.changelog not in covered]


def _of_application(state_file: StateFile, capture: Capture) -> Iterator[FileDifference]:
    effective, consumer = capture.settings.effective, capture.settings.main_consumer
    guarantee = effective.get("processing.guarantee")
    if guarantee is not None and state_file.exactly_once != str(guarantee).startswith("exactly_once"):
        yield FileDifference(None, "guarantee", state_file.guarantee, str(guarantee))
    if consumer is not None and state_file.reads_committed != (consumer.get("isolation.level") == READ_COMMITTED):
        yield FileDifference(None, "isolation", state_file.isolation, str(consumer.get("isolation.level")))
    stated, version = state_file.version, capture.streams_version
    if stated and version and tuple(version.split(".")[: len(stated)]) != tuple(map(str, stated)):
        yield FileDifference(None, "version", state_file.streams_version, version)
    if state_file.cache == without_cache(capture):
        yield FileDifference(None, "cache", _yes(state_file.cache), _yes(not state_file.cache))


FieldValues = tuple[str, "str | None", "str | None"]
"""What differs, its value in the file, and in the program."""


def _of_store(capture: Capture, store: Store, theirs: captured.Store) -> Iterator[FieldValues]:
    users = [node for node in capture.nodes if isinstance(node, Processor) and theirs.name in node.stores]
    if theirs.kind is not None and store.type not in _KINDS.get(theirs.kind, ()):
        yield "type", store.type, theirs.kind
    else:
        yield from _of_windows(capture, store, theirs, users)
    if store.timestamped != theirs.is_timestamped and store.type not in (PLAIN, SESSION):
        yield "timestamped", _yes(store.timestamped), _yes(theirs.is_timestamped)
    if store.history_ms != theirs.history_retention_ms and theirs.kind == captured.VERSIONED:
        yield "history_retention", _time(store.history_ms), _time(theirs.history_retention_ms)
    forms = (("key", store.key_form.name), ("aggregate.as", store.aggregate.form.name))
    for (what, ours), program in zip(forms, known_formats(capture, theirs), strict=True):
        if program != ours and "bytes" not in (program, ours) and (program in _BINARY or ours in _BINARY):
            yield what, ours, program
    yield from _of_topics(capture, store, theirs)


def _of_windows(capture: Capture, store: Store, theirs: captured.Store, users: list[Processor]) -> Iterator[FieldValues]:
    if store.window is None:
        return
    ours = store.window
    windows = next((node.windows[0] for node in users if node.windows), None)
    if windows is not None:
        name = windows.name.rpartition(".")[2]
        kind = _WINDOWS.get(name)
        if kind is not None and kind != ours.kind:
            yield "type", ours.kind, kind
            return
        if kind is None:
            yield "window", ours.kind, windows.name
        else:
            length = {WINDOW: windows.size_ms, SLIDING: windows.difference_ms, SESSION: windows.gap_ms}[kind]
            called = {WINDOW: "window.size", SLIDING: "window.difference", SESSION: "window.gap"}[kind]
            advance = windows.advance_ms if kind == WINDOW else None
            pairs = (
                (called, ours.size_ms, length),
                ("window.advance", ours.advance_ms, advance),
                ("window.grace", ours.grace_ms, windows.grace_ms),
            )
            yield from ((what, _time(mine), _time(other)) for what, mine, other in pairs if other is not None and mine != other)
    if theirs.retention_ms is not None and theirs.retention_ms != ours.retention_ms:
        yield "window.retention", _time(ours.retention_ms), _time(theirs.retention_ms)
    on_close = any(node.emits_on_close for node in users)
    if on_close != ours.emits_on_close:
        yield "window.emit", "on-close" if ours.emits_on_close else None, "on-close" if on_close else None
    buffers = [each.changelog for each in capture.stores if each.kind == captured.BUFFER]
    if ours.buffer is not None and ours.buffer not in buffers:
        yield "window.suppress", ours.buffer, None


def _of_topics(capture: Capture, store: Store, theirs: captured.Store) -> Iterator[FieldValues]:
    found = capture.subtopology_of(theirs.name)
    if found is None or found.source_topics is None:
        return
    read = topics_of(capture, found.number).external
    others = [source.topic for source in store.inputs if source.topic not in read]
    if others:
        yield "from", ", ".join(others), ", ".join(read)
    repartitions = [topic.name for topic in found.repartition_topics]
    if store.repartition_topic is not None and store.repartition_topic not in repartitions:
        yield "key_by", store.repartition_topic, ", ".join(repartitions) or None
    own = [f"{sink.topic} by {sink.partitioner}" for sink in capture.custom_partitioners if sink.topic in repartitions]
    if own and not store.custom_partitioner:
        yield "partitioner", "default", ", ".join(own)
    for source in store.inputs:
        if source.topic in read:
            yield from _of_source(capture, store, source)


def _of_source(capture: Capture, store: Store, source: Source) -> Iterator[FieldValues]:
    nodes = [node for node in capture.nodes if isinstance(node, captured.Source) and source.topic in node.topics]
    default, consumer = capture.settings.effective.get("default.timestamp.extractor"), capture.settings.main_consumer or {}
    for node in nodes[:1]:
        extractor = node.timestamp_extractor or default
        own = str(extractor).rpartition(".")[2]
        ours = "own" if source.timestamp is None else "wall-clock" if source.timestamp == WALL_CLOCK else "extracted"
        program = "own" if own in OWN_TIMES else "wall-clock" if own == "WallclockTimestampExtractor" else "extracted"
        if extractor is not None and ours != program:
            yield f"timestamp of {source.topic}", source.timestamp and str(source.timestamp), str(extractor)
        policy = node.reset.get(source.topic) or consumer.get("auto.offset.reset")
        if policy == LATEST and source.start is None and not store.reuses_source:
            yield f"start of {source.topic}", None, str(policy)


def _time(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else duration_text(milliseconds)


def _yes(value: bool) -> str:
    return "true" if value else "false"
