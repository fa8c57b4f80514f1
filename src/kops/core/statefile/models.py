"""The contents of a state file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kops.core.models import READ_COMMITTED, READ_UNCOMMITTED
from kops.core.statefile.sources import Form, Source
from kops.core.statefile.versions import EXPIRES_EXACTLY
from kops.core.streams.rules import TIMES_OF_SESSIONS

INNER, LEFT, OUTER = "inner", "left", "outer"
JOINS = (INNER, LEFT, OUTER)


@dataclass(frozen=True)
class Join:
    """A join with another table.

    :param kind: ``inner``, ``left`` or ``outer``
    :param right: the other table
    :param value: Spark SQL of the joined value, from ``key``, ``left`` and ``right``
    :param form: format of the joined value
    :param on: Spark SQL of the other table's key, from ``key`` and ``left``, for a foreign-key join; None: both have the same key
    """

    kind: str
    right: Table
    value: str
    form: Form
    on: str | None = None


@dataclass(frozen=True)
class Table:
    """A ``KTable``: of a topic or of another table, optionally joined with a further one, then filtered.

    :param place: where the state file declares it, such as ``stores.people``, for messages
    :param parent: the table that it is made of; None: it is made of ``source``
    :param history_ms: ``historyRetention`` of a versioned store of the source; None: not versioned
    :param where: Spark SQL of ``key`` and ``value``
    :param timestamped: whether its store keeps the timestamps of its rows
    """

    name: str
    place: str
    key: Form
    form: Form
    source: Source | None = None
    parent: Table | None = None
    join: Join | None = None
    where: str | None = None
    history_ms: int | None = None
    timestamped: bool = True

    @property
    def sources(self) -> tuple[Source, ...]:
        """The topics that it is computed from, each once, the left one first."""
        found: dict[str, Source] = {}
        for source in self.every_source:
            found.setdefault(source.topic, source)
        return tuple(found.values())

    @property
    def every_source(self) -> tuple[Source, ...]:
        """The topics as they are named, repeated if named more than once."""
        return (*((self.source,) if self.source else ()), *(source for table in self.below for source in table.every_source))

    @property
    def below(self) -> tuple[Table, ...]:
        return tuple(table for table in (self.parent, self.join.right if self.join else None) if table)

    @property
    def joins(self) -> bool:
        """Whether it is made of several tables."""
        return self.join is not None or (self.parent is not None and self.parent.joins)

    @property
    def needs_order(self) -> bool:
        """Whether a timestamp depends on which of two topics was read first, as in joins other than inner joins by the same key."""
        own = self.join is not None and (self.join.kind != INNER or self.join.on is not None)
        return own or any(table.needs_order for table in self.below)

    @property
    def forgets_times(self) -> bool:
        """Whether it is joined from a table whose store keeps no timestamps: the join then knows only that of the side that changed."""
        return any(table.forgets_times or (self.join is not None and not table.timestamped) for table in self.below)

    @property
    def foreign(self) -> bool:
        """Whether it contains a foreign-key join."""
        return bool(self.join and self.join.on) or any(table.foreign for table in self.below)


GUARANTEES = ("at_least_once", "exactly_once_v2")
PARTITIONERS = DEFAULT, CUSTOM = ("default", "custom")
KAFKA_STREAMS, FAUST = "kafka-streams", "faust"
JSON_MODULES = ("json", "orjson")
KEY_VALUE, WINDOW, SLIDING, SESSION = "key-value", "window", "sliding-window", "session"
VERSIONED, PLAIN, TABLES = "versioned", "plain", "table"
FLOATING = ("double", "float")
INTEGRAL = ("long", "int", "short")

KINDS = ("count", "sum", "min", "max", "last", "first", "reducer")
PROGRAM = "program"
"""The kind of what the application's own program computes, which no state file says."""
TABLE = "table"
"""The kind of a store without an aggregate: a KTable of the topic itself."""


@dataclass(frozen=True)
class Aggregation:
    """How the records of a key become one value.

    :param kind: one of ``KINDS``, or ``table``
    :param expression: Spark SQL of the value that is aggregated, or kept in a table; the reducer's name for ``reducer``; empty for
        ``count`` and for a table of whole values
    :param form: format of the aggregate's bytes
    """

    kind: str
    form: Form
    expression: str = ""

    @property
    def label(self) -> str:
        return f"{self.kind} {self.expression}".strip()

    @property
    def is_whole_value(self) -> bool:
        """Whether the records' values are kept as they are, byte for byte."""
        return (self.kind == TABLE and not self.expression) or (self.kind in (TABLE, "last", "first") and self.expression == "value")


@dataclass(frozen=True)
class Windows:
    """The windows of a store; all times in milliseconds.

    :param kind: ``window`` (tumbling and hopping windows), ``sliding-window`` or ``session``
    :param size_ms: size of a window; for a sliding window the difference between its bounds, both inclusive; for a session the gap
    :param advance_ms: from the start of a window to that of the next; the size for tumbling windows
    :param grace_ms: how long after its end a window still accepts records
    :param retention_ms: how far behind stream time the store keeps entries
    :param emits_on_close: a result is emitted once, when its window has closed (``EmitStrategy.onWindowClose``)
    :param buffer: changelog of the buffer of the ``suppress()`` after it
    :param closes_after_gap: a session accepts records for gap and grace after its end; False: for its grace only, as before 3.0
    :param alignment_ms: for windows of a fixed size, how far after the epoch, or a multiple of the advance, they start
    :param says_retention: the file states the retention; otherwise it is the library's default
    """

    kind: str
    size_ms: int
    advance_ms: int
    grace_ms: int
    retention_ms: int
    emits_on_close: bool = False
    buffer: str | None = None
    closes_after_gap: bool = True
    says_retention: bool = True
    alignment_ms: int = 0

    @property
    def close_ms(self) -> int:
        """How long after its end a session accepts records."""
        return self.grace_ms + (self.size_ms if self.closes_after_gap else 0)


@dataclass(frozen=True)
class Store:
    """A store that one stream fills.

    :param where: Spark SQL; the records for which it is true are kept
    :param key_by: Spark SQL of a new key: the records go through a repartition topic
    :param key_form: format of the store's keys
    :param repartition_topic: None if there is no new key
    :param explode: Spark SQL of an array: each element becomes a record, and is the ``value`` of the other expressions
    :param type: ``key-value``, ``plain`` (without timestamps), ``versioned``, ``table`` (made of tables), or a kind of windows
    :param window: None for a key-value store
    :param others: further topics of the same stream
    :param table: the table that it holds or is grouped from; None for a stream
    :param history_ms: how long a versioned store keeps overwritten values
    :param reuses_source: its source topic is its changelog (``topology.optimization``)
    :param custom_partitioner: a partitioner of the application's own sends new keys to the partitions of the repartition topic
    :param to_table: ``KStream.toTable()``
    :param in_place: a processor changes the key itself, so the new key stays in the partition of its record
    :param output: topic to which the application writes every change of the store, in the same formats (``toStream().to()``)
    :param changelog_settings: with which the application makes its changelog; None: those of the library
    :param timestamped: whether it keeps the timestamps of its values, and not only its cache does (``Stores.persistentKeyValueStore``)
    """

    name: str
    source: Source
    aggregate: Aggregation
    key_form: Form
    changelog: str
    where: str | None = None
    key_by: str | None = None
    repartition_topic: str | None = None
    explode: str | None = None
    type: str = KEY_VALUE
    window: Windows | None = None
    others: tuple[Source, ...] = ()
    table: Table | None = None
    history_ms: int | None = None
    reuses_source: bool = False
    custom_partitioner: bool = False
    to_table: bool = False
    in_place: bool = False
    output: str | None = None
    changelog_settings: Mapping[str, str] | None = None
    timestamped: bool = True

    @property
    def moves(self) -> bool:
        """Whether records go to the partition of their new key."""
        return self.key_by is not None and not self.in_place

    @property
    def drops_before(self) -> bool:
        """Whether it is a table made from a transformed stream, so that a dropped record may leave an older one of its key in place."""
        return self.aggregate.kind == TABLE and self.table is None and bool(self.where or self.key_by or self.explode)

    @property
    def inputs(self) -> tuple[Source, ...]:
        return (self.source, *self.others)


@dataclass(frozen=True)
class StateFile:
    """A state file that was read and is valid.

    :param path: as given, for messages
    :param application: ``application.id``, which is the consumer group and the prefix of internal topics
    :param guarantee: ``processing.guarantee``
    :param version: ``streams_version`` as numbers, which select rules (``kops.core.statefile.versions``)
    :param library: ``kafka-streams``, or ``faust``, whose tables have keys in JSON and no timestamps
    :param json_module: the module that Faust writes JSON with: ``json`` escapes non-ASCII characters, ``orjson`` does not
    :param isolation: ``isolation.level`` of the consumer that reads the input
    :param says_isolation: the file states it, or the guarantee decides it
    :param cache: False: ``statestore.cache.max.bytes`` is 0, so that every update of a table reaches the tables made from it
    :param digest: SHA-256 of what it, or the program, says: what was found by it is remembered under this
    """

    path: str
    application: str
    stores: tuple[Store, ...]
    guarantee: str = GUARANTEES[0]
    streams_version: str | None = None
    version: tuple[int, ...] | None = None
    cache: bool = True
    library: str = KAFKA_STREAMS
    json_module: str = JSON_MODULES[0]
    isolation: str = READ_UNCOMMITTED
    says_isolation: bool = False
    digest: str = ""

    @property
    def exactly_once(self) -> bool:
        """Whether the application writes in transactions, so that its changelogs are restored without aborted records."""
        return self.guarantee != GUARANTEES[0]

    @property
    def may_find_expired(self) -> bool:
        """Whether a session that has expired by retention may still be found: in a cache, or in a segmented store of an older version."""
        return self.cache or (self.version is not None and self.version < EXPIRES_EXACTLY)

    @property
    def flushes_sessions_late(self) -> bool:
        """Whether sessions have the time of the record at which a cache was flushed, and not their own."""
        return self.cache and self.version is not None and self.version < TIMES_OF_SESSIONS

    @property
    def reads_committed(self) -> bool:
        """Whether its consumer skips aborted records (``isolation.level``), as it always does with exactly-once."""
        return self.isolation == READ_COMMITTED
