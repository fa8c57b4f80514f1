"""What a program says of its own Kafka Streams topology: the file that ``kops streams capture`` writes. Pure.

Every fact was read from the program's own objects by ``java/agent``, which documents where. What could not be read is None here, and
``unknown`` has the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from kops.core.errors import ConfigError
from kops.core.secret_shapes import without_secret_words, without_secrets

FORMAT = "kops-capture"
VERSION = 1

KEY_VALUE, TIMESTAMPED_KEY_VALUE, VERSIONED = "key-value", "timestamped-key-value", "versioned"
WINDOW, TIMESTAMPED_WINDOW, SESSION = "window", "timestamped-window", "session"
LIST, BUFFER = "list", "buffer"
"""Kinds of stores; a list is the store that an outer stream-stream join shares, a buffer that of a suppression or of a join with grace."""

_AGAIN = "capture the program again: kops streams capture --out FILE -- COMMAND"
_T = TypeVar("_T")


@dataclass(frozen=True)
class Coder:
    """A serializer or deserializer.

    :param inner: what one of the library's own wraps, by field; None is one that the program leaves to its defaults
    """

    name: str
    inner: Mapping[str, Coder | None]


@dataclass(frozen=True)
class Serde:
    name: str
    serializer: Coder | None
    deserializer: Coder | None


@dataclass(frozen=True)
class InternalTopic:
    """A changelog or repartition topic, as the program's library makes it.

    :param settings: None where they could not be read
    :param partitions: of a repartition topic; None: as many as what is written into it has
    :param is_source_topic: of a changelog: whether it is a topic that the program reads anyway (``topology.optimization``)
    """

    name: str
    settings: Mapping[str, str] | None
    partitions: int | None = None
    is_source_topic: bool = False


@dataclass(frozen=True)
class Subtopology:
    """A sub-topology: its tasks are ``<number>_<partition>``.

    :param is_global: whether it is that of a global store, which has no tasks and no changelog
    :param source_topics: external ones; None where only a cluster has them, since its sources are patterns
    :param sink_topics: external and internal ones; None in the same case
    """

    number: int
    is_global: bool
    nodes: tuple[str, ...]
    source_topics: tuple[str, ...] | None
    sink_topics: tuple[str, ...] | None
    repartition_topics: tuple[InternalTopic, ...]
    changelogs: tuple[InternalTopic, ...]


@dataclass(frozen=True)
class Windows:
    """Windows of an aggregation or a join, in milliseconds; which of them there are says their class."""

    name: str
    size_ms: int | None = None
    advance_ms: int | None = None
    before_ms: int | None = None
    after_ms: int | None = None
    gap_ms: int | None = None
    difference_ms: int | None = None
    grace_ms: int | None = None


@dataclass(frozen=True)
class Suppression:
    """A suppression of results.

    :param until_window_closes: whether it gives one result a window, when it closes
    :param when_full: EMIT or SHUT_DOWN
    """

    name: str | None
    until_window_closes: bool
    wait_ms: int
    max_records: int
    max_bytes: int
    when_full: str


@dataclass(frozen=True)
class Source:
    """A source node.

    :param reset: by topic or pattern, what the program says for it alone: earliest, latest, none, by_duration:PT1H; None: its settings
    :param timestamp_extractor: its class; None: that of the settings
    """

    name: str
    topics: tuple[str, ...]
    pattern: str | None
    reset: Mapping[str, str | None]
    timestamp_extractor: str | None
    key: Coder | None
    value: Coder | None


@dataclass(frozen=True)
class Sink:
    """A sink node.

    :param topic: None: ``topic_extractor`` chooses one for each record
    :param internal: whether it is a repartition topic
    :param partitioner: its class; None: the default one
    """

    name: str
    predecessors: tuple[str, ...]
    topic: str | None
    internal: bool
    topic_extractor: str | None
    partitioner: str | None
    key: Coder | None
    value: Coder | None


@dataclass(frozen=True)
class Processor:
    """A processor node.

    :param processor: class of the processor itself
    :param program_class: whether that class is not the library's
    :param mentions: telling names that its class file holds, such as WALL_CLOCK_TIME; they may be unused
    :param functions: classes of the functions that the library's processor was given, by its field; of a lambda the class that holds it
    """

    name: str
    predecessors: tuple[str, ...]
    supplier: str | None
    processor: str | None
    program_class: bool
    mentions: tuple[str, ...]
    stores: tuple[str, ...]
    windows: tuple[Windows, ...]
    suppress: Suppression | None
    emit: str | None
    functions: Mapping[str, str]


Node = Source | Sink | Processor


@dataclass(frozen=True)
class Store:
    """A state store.

    :param kind: one of the kinds above; None: another one
    :param builder: class; None in versions such as 3.9, where only the DSL has it
    :param layers: classes of the store, from the outermost
    :param caching: whether it caches, the program's cache size considered
    :param changelog: None: it has none
    :param headers: whether it keeps the headers of records
    :param key_serde: None: the program leaves it to its defaults
    :param capacity: of a store that keeps only the newest keys
    :param processors: that use it; None of a global store
    """

    name: str
    kind: str | None
    builder: str | None
    supplier: str | None
    layers: tuple[str, ...]
    persistent: bool | None
    caching: bool | None
    logging: bool
    log_config: Mapping[str, str]
    changelog: str | None
    headers: bool
    key_serde: Serde | None
    value_serde: Serde | None
    retention_ms: int | None = None
    window_size_ms: int | None = None
    segment_interval_ms: int | None = None
    retain_duplicates: bool | None = None
    history_retention_ms: int | None = None
    grace_ms: int | None = None
    capacity: int | None = None
    processors: tuple[str, ...] | None = None


@dataclass(frozen=True)
class ClassPathEntry:
    """A jar or folder of the class path.

    :param sha256: of the file, or of a folder's names and contents; None: it does not exist
    """

    path: str
    kind: str
    sha256: str | None


@dataclass(frozen=True)
class Settings:
    """A program's settings, without secrets.

    :param given: what it sets
    :param effective: every setting of StreamsConfig
    :param main_consumer: settings of the consumers that read its input; None where they could not be read
    """

    given: Mapping[str, Any]
    effective: Mapping[str, Any]
    main_consumer: Mapping[str, Any] | None
    producer: Mapping[str, Any] | None


@dataclass(frozen=True)
class Capture:
    """A captured program.

    :param streams_version: of kafka-streams; None where the jar does not say
    :param command: with which the JVM was started
    :param description: what ``Topology.describe()`` prints
    :param class_path_sha256: over all entries; it does not depend on where they are
    :param unknown: what could not be read, and why
    """

    application: str
    streams_version: str | None
    clients_version: str | None
    java_version: str
    captured_at: str
    command: tuple[str, ...]
    description: str
    subtopologies: tuple[Subtopology, ...]
    nodes: tuple[Node, ...]
    stores: tuple[Store, ...]
    global_stores: tuple[Store, ...]
    settings: Settings
    class_path: tuple[ClassPathEntry, ...]
    class_path_sha256: str
    unknown: tuple[tuple[str, str], ...]

    def subtopology_of(self, store: str) -> Subtopology | None:
        """Return the sub-topology whose tasks hold a store; None of a global store."""
        users = {name for one in self.stores if one.name == store for name in one.processors or ()}
        return next((each for each in self.subtopologies if users & set(each.nodes)), None)

    def node(self, name: str) -> Node | None:
        return next((node for node in self.nodes if node.name == name), None)

    @property
    def program_processors(self) -> tuple[Processor, ...]:
        """The processors that are not the library's: what they do besides their stores is unknown."""
        return tuple(node for node in self.nodes if isinstance(node, Processor) and node.program_class)

    @property
    def custom_partitioners(self) -> tuple[Sink, ...]:
        """The sinks into internal topics whose partitioner is the program's own."""
        return tuple(
            node
            for node in self.nodes
            if isinstance(node, Sink) and node.internal and node.partitioner and not node.partitioner.startswith("org.apache.kafka.")
        )


def read_capture(body: Any, path: str) -> Capture:
    """Read a capture from the JSON of its file.

    :param path: of the file, for errors
    :raises ConfigError: when it is not one, is of another version, or lacks something; it says what and where
    """
    top = _At(body, path)
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise ConfigError(f"{path} is not a capture of a program", hint=_AGAIN)
    version = top.get("version", int)
    if version != VERSION:
        age = "a newer" if version > VERSION else "an older"
        raise ConfigError(f"{path} was captured by {age} kops: it is of version {version}, not {VERSION}", hint=_AGAIN)
    library, config, class_path = top.at("library"), top.at("config"), top.at("class_path")
    return Capture(
        application=top.get("application_id", str),
        streams_version=_version(library),
        clients_version=library.maybe("clients", str),
        java_version=top.at("java").get("version", str),
        captured_at=top.get("captured_at", str),
        command=top.texts("command"),
        description=top.get("description", str),
        subtopologies=tuple(map(_subtopology, top.each("subtopologies"))),
        nodes=tuple(map(_node, top.each("nodes"))),
        stores=tuple(map(_store, top.each("stores"))),
        global_stores=tuple(map(_store, top.each("global_stores"))),
        settings=Settings(
            config.get("given", dict), config.get("effective", dict), config.maybe("main_consumer", dict), config.maybe("producer", dict)
        ),
        class_path=tuple(
            ClassPathEntry(entry.get("path", str), entry.get("kind", str), entry.maybe("sha256", str))
            for entry in class_path.each("entries")
        ),
        class_path_sha256=class_path.get("sha256", str),
        unknown=tuple((each.get("what", str), each.get("why", str)) for each in top.each("unknown")),
    )


def public_capture(body: Any) -> Any:
    """Return what the agent wrote without texts that look like secrets; those with a secret's name it has taken out itself."""
    if isinstance(body, str):
        return without_secrets(body)
    if isinstance(body, dict) and isinstance(body.get("command"), list):
        body = {**body, "command": without_secret_words(body["command"])}
    if isinstance(body, list):
        return [public_capture(each) for each in body]
    return {key: public_capture(value) for key, value in body.items()} if isinstance(body, dict) else body


@dataclass(frozen=True)
class _At:
    """A place in a file."""

    body: Any
    place: str

    def at(self, key: str) -> _At:
        return _At(self.get(key, dict), f"{self.place}: {key}")

    def get(self, key: str, kind: type[_T]) -> _T:
        found = self.maybe(key, kind)
        if found is None:
            raise ConfigError(f"{self.place} has no {key}", hint=_AGAIN)
        return found

    def maybe(self, key: str, kind: type[_T]) -> _T | None:
        """Return a value; None where it is null or absent."""
        if not isinstance(self.body, dict):
            raise ConfigError(f"{self.place} is not an object", hint=_AGAIN)
        found = self.body.get(key)
        if found is None:
            return None
        if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
            raise ConfigError(f"{self.place}: {key} is {type(found).__name__}, not {kind.__name__}", hint=_AGAIN)
        return found

    def texts(self, key: str) -> tuple[str, ...]:
        return tuple(self._all(key, self.get(key, list)))

    def maybe_texts(self, key: str) -> tuple[str, ...] | None:
        return None if self.maybe(key, list) is None else self.texts(key)

    def _all(self, key: str, found: list[Any]) -> Iterator[str]:
        for each in found:
            if not isinstance(each, str):
                raise ConfigError(f"{self.place}: {key} holds {each!r}, which is not text", hint=_AGAIN)
            yield each

    def each(self, key: str) -> Iterator[_At]:
        for number, body in enumerate(self.maybe(key, list) or ()):
            name = (body.get("name") if isinstance(body, dict) else None) or number
            yield _At(body, f"{self.place}: {key}: {name}")

    def one(self, key: str, read: Callable[[_At], _T]) -> _T | None:
        return None if self.maybe(key, dict) is None else read(self.at(key))


def _version(library: _At) -> str | None:
    """Return the version of kafka-streams: as its jar says inside, or in its name (the jar of 3.3.2 has no file with its version)."""
    named = re.search(r"kafka-streams-(\d+\.\d+\.\d+[\w.-]*?)\.jar", library.maybe("loaded_from", str) or "")
    return library.maybe("streams", str) or (named[1] if named else None)


def _subtopology(found: _At) -> Subtopology:
    return Subtopology(
        number=found.get("id", int),
        is_global=found.get("global", bool),
        nodes=found.texts("nodes"),
        source_topics=found.maybe_texts("source_topics"),
        sink_topics=found.maybe_texts("sink_topics"),
        repartition_topics=tuple(map(_internal_topic, found.each("repartition_topics"))),
        changelogs=tuple(map(_internal_topic, found.each("changelogs"))),
    )


def _internal_topic(found: _At) -> InternalTopic:
    return InternalTopic(
        found.get("name", str), found.maybe("settings", dict), found.maybe("partitions", int), found.maybe("is_source_topic", bool) or False
    )


def _node(found: _At) -> Node:
    kind, name = found.get("type", str), found.get("name", str)
    if kind == "source":
        return Source(
            name=name,
            topics=found.texts("topics"),
            pattern=found.maybe("pattern", str),
            reset=found.get("reset", dict),
            timestamp_extractor=found.maybe("timestamp_extractor", str),
            key=found.one("key_deserializer", _coder),
            value=found.one("value_deserializer", _coder),
        )
    if kind == "sink":
        return Sink(
            name=name,
            predecessors=found.texts("predecessors"),
            topic=found.maybe("topic", str),
            internal=found.get("internal", bool),
            topic_extractor=found.maybe("topic_extractor", str),
            partitioner=found.maybe("partitioner", str),
            key=found.one("key_serializer", _coder),
            value=found.one("value_serializer", _coder),
        )
    if kind != "processor":
        raise ConfigError(f"{found.place}: type is {kind!r}, and not source, processor or sink", hint=_AGAIN)
    return Processor(
        name=name,
        predecessors=found.texts("predecessors"),
        supplier=found.maybe("supplier", str),
        processor=found.maybe("processor", str),
        program_class=found.get("program_class", bool),
        mentions=found.maybe_texts("mentions") or (),
        stores=found.texts("stores"),
        windows=tuple(_named(Windows, each) for each in found.each("windows")),
        suppress=found.one("suppress", _suppression),
        emit=found.maybe("emit", str),
        functions=found.maybe("functions", dict) or {},
    )


def _named(kind: type[Windows], found: _At) -> Windows:
    numbers = {field.name: found.maybe(field.name, int) for field in fields(kind) if field.name != "name"}
    return kind(found.get("class", str), **numbers)


def _suppression(found: _At) -> Suppression:
    return Suppression(
        found.maybe("name", str),
        found.get("until_window_closes", bool),
        found.get("wait_ms", int),
        found.get("max_records", int),
        found.get("max_bytes", int),
        found.get("when_full", str),
    )


def _store(found: _At) -> Store:
    return Store(
        name=found.get("name", str),
        kind=found.maybe("kind", str),
        builder=found.maybe("builder", str),
        supplier=found.maybe("supplier", str),
        layers=found.texts("layers"),
        persistent=found.maybe("persistent", bool),
        caching=found.maybe("caching", bool),
        logging=found.get("logging", bool),
        log_config=found.get("log_config", dict),
        changelog=found.maybe("changelog", str),
        headers=found.get("headers", bool),
        key_serde=found.one("key_serde", _serde),
        value_serde=found.one("value_serde", _serde),
        retention_ms=found.maybe("retention_ms", int),
        window_size_ms=found.maybe("window_size_ms", int),
        segment_interval_ms=found.maybe("segment_interval_ms", int),
        retain_duplicates=found.maybe("retain_duplicates", bool),
        history_retention_ms=found.maybe("history_retention_ms", int),
        grace_ms=found.maybe("grace_ms", int),
        capacity=found.maybe("capacity", int),
        processors=found.maybe_texts("processors"),
    )


def _serde(found: _At) -> Serde:
    return Serde(found.get("class", str), found.one("serializer", _coder), found.one("deserializer", _coder))


def _coder(found: _At) -> Coder:
    inner = found.maybe("inner", dict) or {}
    wrapped = _At(inner, f"{found.place}: inner")
    return Coder(found.get("class", str), {key: wrapped.one(key, _coder) for key in inner})
