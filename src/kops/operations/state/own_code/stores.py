"""A captured program's stores, as a state file has them: what the program says of their input, times and transactions."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from kops.core.errors import Refused, UsageProblem
from kops.core.models import READ_COMMITTED, isolation_of
from kops.core.secret_shapes import HIDDEN
from kops.core.statefile import Form, StateFile
from kops.core.statefile import Store as StateStore
from kops.core.statefile.fields import nearest
from kops.core.statefile.models import GUARANTEES, KEY_VALUE, PLAIN, PROGRAM, TABLE, VERSIONED, Aggregation, Windows
from kops.core.statefile.models import SESSION as SESSIONS
from kops.core.statefile.models import WINDOW as WINDOWS
from kops.core.statefile.sources import LATEST, WALL_CLOCK, Source, Start
from kops.core.streams import capture as captured
from kops.core.streams.capture import Capture
from kops.core.streams.program import reason_against, reuses_source, topics_of, with_pattern_topics
from kops.core.streams.program_doubts import OLDEST, line_of_library
from kops.gateways.machine.agent import LAUNCH, require_agent, require_runner
from kops.operations.services import Services

_BYTES = Form("bytes")
_OF_CONNECTION = ("sasl.", "ssl.")
_AT_ONCE = "exactly_once"
_EXTRACTORS = "org.apache.kafka.streams.processor."
_WALL_CLOCK_EXTRACTOR = f"{_EXTRACTORS}WallclockTimestampExtractor"
_OWN_TIMES = [
    f"{_EXTRACTORS}{name}" for name in ("FailOnInvalidTimestamp", "LogAndSkipOnInvalidTimestamp", "UsePartitionTimeOnInvalidTimestamp")
]
_SERDES = "org.apache.kafka.common.serialization."
_FORMATS = {
    "String": "string",
    "Long": "long",
    "Integer": "int",
    "Short": "short",
    "Double": "double",
    "Float": "float",
    "UUID": "uuid",
}
"""Formats of a state file, by the names of Kafka's own serdes."""
_TYPES = {
    captured.TIMESTAMPED_KEY_VALUE: KEY_VALUE,
    captured.WINDOW: WINDOWS,
    captured.TIMESTAMPED_WINDOW: WINDOWS,
    captured.SESSION: SESSIONS,
    captured.VERSIONED: VERSIONED,
}


def program_state_file(capture: Capture, path: str, names: Sequence[str], *, reused: bool = False) -> tuple[StateFile, list[str]]:
    """Return a program's stores as a state file has them, and why others of its stores are left out, one sentence each.

    :param path: of the capture
    :param names: of the stores; all that can be rebuilt when empty
    :param reused: those whose changelog is a topic that the program reads are among them: there is nothing to rebuild, but to look at
    :raises UsageProblem: when it has no such store
    :raises Refused: when one of them, or all, cannot be rebuilt, or the captured command cannot be started again
    :raises MissingRequirement: when kops was installed without its Java parts
    """
    require_agent()
    require_runner()
    _refuse_command(capture, path)
    known = {store.name: store for store in capture.stores}
    for name in names:
        if name not in known:
            raise UsageProblem(f"{path} has no store {name}", hint=f"{nearest(name, known)}stores: {', '.join(known)}")
    reasons = {name: "" if reused and reuses_source(capture, store) else reason_against(capture, store) for name, store in known.items()}
    unfit = [f"store {name} is left as it is: {reason}" for name, reason in reasons.items() if reason and name not in names]
    for name in names:
        if reasons[name]:
            raise Refused(f"store {name} cannot be rebuilt by its program: {reasons[name]}", hint="name others with --store")
    chosen = [store for name, store in known.items() if not reasons[name] and (not names or name in names)]
    if not chosen:
        raise Refused(f"no store of {path} can be rebuilt by its program: {'; '.join(unfit) or 'it has none'}")
    effective, consumer = capture.settings.effective, capture.settings.main_consumer or {}
    committed = str(consumer.get("isolation.level")) == READ_COMMITTED
    return (
        StateFile(
            path=path,
            application=capture.application,
            stores=tuple(_store(capture, store) for store in chosen),
            guarantee=GUARANTEES[str(effective.get("processing.guarantee")).startswith(_AT_ONCE)],
            isolation=isolation_of(committed=committed),
            says_isolation=True,
            digest=hashlib.sha256(repr(capture).encode()).hexdigest(),
        ),
        unfit,
    )


def with_topics(services: Services, capture: Capture) -> Capture:
    """Return a capture with the topics that its patterns match, if it has any.

    :raises Refused: where a pattern matches a topic that the program itself makes
    """
    has_patterns = any(isinstance(node, captured.Source) and node.pattern for node in capture.nodes)
    return with_pattern_topics(capture, services.kafka.topics.names()) if has_patterns else capture


def refuse_older_library(capture: Capture, path: str) -> None:
    """Refuse to run a program of a library that is older than those whose tasks the runner knows.

    :param path: of the capture
    :raises Refused: with its version
    """
    line, oldest = line_of_library(capture), ".".join(map(str, OLDEST))
    if line and line < OLDEST:
        raise Refused(
            f"{path} is of a program of Kafka Streams {capture.streams_version}: kops runs those of {oldest} and newer",
            hint="describe its stores in a state file: kops state init",
        )


def _refuse_command(capture: Capture, path: str) -> None:
    if any(HIDDEN in word for word in capture.command):
        raise Refused(
            f"the command of {path} had secrets, which are not in it, so it cannot be started again",
            hint="give the program its secrets by variables or files, and capture it again",
        )
    lost = [name for name, value in (launch_settings(capture) or {}).items() if HIDDEN in value]
    if lost:
        raise Refused(
            f"{path} was captured with --topology-class, and its settings {', '.join(lost)} had secrets, which are not in it",
            hint="capture the program by its start command, which reads them itself",
        )
    if capture.settings.main_consumer is None:
        raise Refused(
            f"{path} does not say where the program begins to read, nor whether it reads aborted records: the settings of its consumers"
            " could not be read",
            hint="`unknown` in it says why; capture the program again",
        )


def launch_settings(capture: Capture) -> dict[str, str] | None:
    """Return the settings that a method gets which is called in place of a main; None where there is a start command.

    Secrets of the connection to brokers are left out: nothing connects.
    """
    if LAUNCH not in capture.command:
        return None
    given = {name: str(value) for name, value in capture.settings.given.items() if value is not None}
    return {name: value for name, value in given.items() if HIDDEN not in value or not any(part in name for part in _OF_CONNECTION)}


def _store(capture: Capture, store: captured.Store) -> StateStore:
    found = capture.subtopology_of(store.name)
    if found is None or store.changelog is None:
        raise ValueError(store.name)
    sources = [_source(capture, topic) for topic in topics_of(capture, found.number).external]
    if not sources:
        raise Refused(f"store {store.name} is filled from no topic", hint="name others with --store")
    kind = _TYPES.get(store.kind or "", PLAIN)
    key_form, value_form = Form(_format(capture, store.key, "key")), Form(_format(capture, _value(store), "value"))
    history_ms = store.history_retention_ms if kind == VERSIONED else None
    if reuses_source(capture, store):
        topic = Source(store.changelog, key_form, value_form)
        table = Aggregation(TABLE, value_form)
        return StateStore(store.name, topic, table, key_form, store.changelog, type=kind, history_ms=history_ms, reuses_source=True)
    window = None
    if kind in (WINDOWS, SESSIONS):
        size = store.window_size_ms or 0
        window = Windows(kind, size, max(1, size), store.grace_ms or 0, store.retention_ms or 0)
    return StateStore(
        name=store.name,
        source=sources[0],
        others=tuple(sources[1:]),
        aggregate=Aggregation(PROGRAM, value_form),
        key_form=key_form,
        changelog=store.changelog,
        repartition_topic=next((topic.name for topic in found.repartition_topics), None),
        custom_partitioner=True,
        type=kind,
        window=window,
        history_ms=history_ms,
        changelog_settings=next((topic.settings for topic in found.changelogs if topic.name == store.changelog), None),
    )


def _value(store: captured.Store) -> captured.Coder | None:
    """Return what reads the values of a store, without their timestamps; None: the program's default."""
    coder = store.value
    return coder.inner["valueDeserializer"] if coder and "valueDeserializer" in coder.inner else coder


def _format(capture: Capture, coder: captured.Coder | None, part: str) -> str:
    """Return the format of a store's keys or values; bytes where only the program, or a registry, can read them."""
    name = coder.name if coder else capture.settings.effective.get(f"default.{part}.serde")
    if not isinstance(name, str) or not name.startswith(_SERDES):
        return "bytes"
    return _FORMATS.get(name.removeprefix(_SERDES).removeprefix("Serdes$").removesuffix("Serde").removesuffix("Deserializer"), "bytes")


def refuse_moving(state_file: StateFile, unfit: Sequence[str], what: str) -> None:
    """Refuse to move an application, or to make another one, of which some stores would be as they were.

    :param unfit: why stores of the program are left out, one sentence each
    :param what: the option
    :raises Refused: when a store is left out, or when only the program's own timestamp extractor knows the partition time to commit
    """
    if unfit:
        raise Refused(f"{what} needs all stores of the program, and {unfit[0]}", hint="name those that are enough with --store")
    for source in {source.topic: source for store in state_file.stores for source in store.inputs}.values():
        if source.timestamp not in (None, WALL_CLOCK) and what != "--into":
            raise Refused(
                f"{what} commits the time of the last record with each offset, which for {source.topic} only {source.timestamp} knows",
                hint="`kops offsets reset` moves the application, and `rebuild` then computes up to there",
            )


def _source(capture: Capture, topic: str) -> Source:
    """Return a topic with what the program says of its times, and of where it began to read."""
    nodes = [node for node in capture.nodes if isinstance(node, captured.Source) and topic in node.topics]
    default = str(capture.settings.effective.get("default.timestamp.extractor") or _OWN_TIMES[0])
    extractor = next((node.timestamp_extractor for node in nodes if node.timestamp_extractor), default)
    resets = [node.reset.get(topic) for node in nodes]
    reset = next((each for each in resets if each), None) or (capture.settings.main_consumer or {}).get("auto.offset.reset") or "earliest"
    return Source(
        topic,
        _BYTES,
        _BYTES,
        start=None if str(reset).lower() == "earliest" else Start(LATEST),
        timestamp=WALL_CLOCK if extractor == _WALL_CLOCK_EXTRACTOR else None if extractor in _OWN_TIMES else extractor,
    )
