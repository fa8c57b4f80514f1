"""What a program says of its own Kafka Streams topology, as ``kops streams capture`` finds it. Pure.

Every fact was read from the program's own objects by ``java/agent``, which documents where. What could not be read is None here, and
``unknown`` has the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kops.core.streams.surroundings import Surroundings

KEY_VALUE, TIMESTAMPED_KEY_VALUE, VERSIONED = "key-value", "timestamped-key-value", "versioned"
WINDOW, TIMESTAMPED_WINDOW, SESSION = "window", "timestamped-window", "session"
BY_KEY = (KEY_VALUE, TIMESTAMPED_KEY_VALUE, WINDOW, TIMESTAMPED_WINDOW, SESSION)
"""Those that the library restores from the last row of each key."""
LIST, BUFFER = "list", "buffer"
"""Kinds of stores; a list is the store that an outer stream-stream join shares, a buffer that of a suppression or of a join with grace."""
LIBRARY = "org.apache.kafka."
"""With what the names of the library's classes begin."""
_WITHOUT_TIMES = {
    f"{LIBRARY}streams.state.internals.{name}"
    for name in (
        "KeyValueToTimestampedKeyValueByteStoreAdapter",
        "WindowToTimestampedWindowByteStoreAdapter",
        "PlainToHeadersStoreAdapter",
        "PlainToHeadersWindowStoreAdapter",
    )
}
"""What the library puts before a store that keeps values without their timestamps, such as that of ``Stores.persistentKeyValueStore``."""


@dataclass(frozen=True)
class Coder:
    """A serializer or deserializer.

    :param inner: what one of the library's own wraps, by field; None is one that the program leaves to its defaults
    """

    name: str
    inner: Mapping[str, Coder | None]


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

    @property
    def read_topics(self) -> tuple[str, ...]:
        """The topics that it reads, as far as they are known."""
        return (*(self.source_topics or ()), *(topic.name for topic in self.repartition_topics))


@dataclass(frozen=True)
class Windows:
    """Windows of an aggregation or a join, in milliseconds."""

    name: str
    size_ms: int | None = None
    advance_ms: int | None = None
    grace_ms: int | None = None


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

    :param topic: None: the program chooses one for each record
    :param internal: whether it is a repartition topic
    :param partitioner: its class; None: the default one
    """

    name: str
    predecessors: tuple[str, ...]
    topic: str | None
    internal: bool
    partitioner: str | None
    key: Coder | None
    value: Coder | None


@dataclass(frozen=True)
class Processor:
    """A processor node.

    :param processor: class of the processor itself
    :param program_class: whether that class is not the library's
    :param emits_on_close: whether it gives one result a window, when that closes
    :param mentions: telling names that its class file holds, such as WALL_CLOCK_TIME; they may be unused
    :param suppresses: whether it suppresses results
    :param functions: classes of the functions that the library's processor was given, by its field; of a lambda the class that holds it
    :param left_join: of a join whose processors are the same for inner and left joins, as by a foreign key: whether it is a left one
    """

    name: str
    predecessors: tuple[str, ...]
    supplier: str | None
    processor: str | None
    program_class: bool
    mentions: tuple[str, ...]
    stores: tuple[str, ...]
    windows: tuple[Windows, ...]
    suppresses: bool
    emits_on_close: bool
    functions: Mapping[str, str]
    left_join: bool | None = None

    @property
    def may_act_on_wall_clock(self) -> bool:
        """Whether its class names the punctuation by wall-clock time."""
        return "WALL_CLOCK_TIME" in self.mentions


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
    :param key: what reads its keys; None: the program leaves it to its defaults
    :param capacity: of a store that keeps only the newest keys
    :param processors: that use it; None of a global store
    """

    name: str
    kind: str | None
    builder: str | None
    layers: tuple[str, ...]
    persistent: bool | None
    caching: bool | None
    changelog: str | None
    headers: bool
    key: Coder | None
    value: Coder | None
    retention_ms: int | None = None
    window_size_ms: int | None = None
    retain_duplicates: bool | None = None
    history_retention_ms: int | None = None
    grace_ms: int | None = None
    capacity: int | None = None
    processors: tuple[str, ...] | None = None

    @property
    def is_timestamped(self) -> bool:
        """Whether it keeps the timestamps of its values, and not only its cache does, as with ``Stores.persistentKeyValueStore``."""
        return _WITHOUT_TIMES.isdisjoint(self.layers)

    @property
    def has_own_class(self) -> bool:
        """Whether a layer of it is of the program, and not of the library."""
        return not all(layer.startswith(LIBRARY) for layer in self.layers)


@dataclass(frozen=True)
class ClassPathEntry:
    """A jar or folder of the class path.

    :param sha256: of the file, or of a folder's names and contents; None: it does not exist
    """

    path: str
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
class RocksDBSetter:
    """A program's ``RocksDBConfigSetter``.

    :param mentions: options by which RocksDB drops or changes entries of stores, of those that its class names; None: not known
    """

    name: str
    mentions: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Capture:
    """A captured program.

    :param streams_version: of kafka-streams; None where the jar does not say
    :param command: with which the JVM was started
    :param description: what ``Topology.describe()`` prints
    :param class_path_sha256: over all entries; it does not depend on where they are
    :param unknown: what could not be read, and why
    :param folder: where it was started
    :param java_version: of the JVM, such as 17.0.15
    :param client_supplier: class of what makes its clients; None where that is not known
    :param rocksdb_setter: None where it has none
    """

    application: str
    streams_version: str | None
    command: tuple[str, ...]
    description: str
    subtopologies: tuple[Subtopology, ...]
    nodes: tuple[Node, ...]
    stores: tuple[Store, ...]
    global_stores: tuple[Store, ...]
    settings: Settings
    class_path: tuple[ClassPathEntry, ...]
    class_path_sha256: str
    surroundings: Surroundings
    unknown: tuple[tuple[str, str], ...]
    folder: str | None = None
    java_version: str | None = None
    client_supplier: str | None = None
    rocksdb_setter: RocksDBSetter | None = None

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
            if isinstance(node, Sink) and node.internal and node.partitioner and not node.partitioner.startswith(LIBRARY)
        )
