"""How a store is computed from its topics, as far as a topology description shows: from its processor back to the sources. Pure.

The DSL names processors by what they do (``KSTREAM-AGGREGATE-0000000003``); one that the application named does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kops.core.streams.topology import PROCESSOR, SINK, SOURCE, Node, Part, Topology

TABLE, STREAM, GROUPED, JOINED, DERIVED = "table", "stream", "grouped table", "join of tables", "table of a table"
COGROUPED = "cogrouped streams"
TO_TABLE, JOIN_BUFFER, SUPPRESSED, SUBSCRIPTION = "stream as a table", "join of streams", "suppressed", "foreign-key subscription"
OTHER = "processor"

_OPERATOR = re.compile(r"((?:COGROUP)?(?:KSTREAM|KTABLE)-[A-Z-]+?)-\d{10}")
_WRITERS = {
    "KTABLE-SOURCE": TABLE,
    "KSTREAM-AGGREGATE": STREAM,
    "KSTREAM-REDUCE": STREAM,
    "COGROUPKSTREAM-AGGREGATE": COGROUPED,
    "KTABLE-AGGREGATE": GROUPED,
    "KTABLE-REDUCE": GROUPED,
    "KTABLE-MERGE": JOINED,
    "KTABLE-FK-JOIN-OUTPUT": JOINED,
    "KSTREAM-TOTABLE": TO_TABLE,
    "KSTREAM-WINDOWED": JOIN_BUFFER,
    "KTABLE-SUPPRESS": SUPPRESSED,
    "KTABLE-FILTER": DERIVED,
    "KTABLE-MAPVALUES": DERIVED,
    "KTABLE-TRANSFORMVALUES": DERIVED,
}
"""The kind of trace for a processor that owns a store, by its operator."""
_READERS = ("KTABLE-JOINTHIS", "KTABLE-JOINOTHER", "KSTREAM-JOIN", "KSTREAM-LEFTJOIN", "KSTREAM-JOINTHIS", "KSTREAM-JOINOTHER")
_FK_STORE = re.compile(r"KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-\d{10}|.+-subscription-store")
_NAMED_COGROUP = re.compile(r".+-cogroup-agg-\d+")
_JOIN_STORE = re.compile(r".+-(?:this|other|shared)-join-store|KSTREAM-(?:JOIN|OUTER).+-store")
NEW_KEY = ("KSTREAM-KEY-SELECT", "KSTREAM-MAP", "KSTREAM-FLATMAP", "KTABLE-SELECT", "KSTREAM-KEY-VALUE-MAPPER")
FILTER, EXPLODE, CHANGE_VALUE = ("KSTREAM-FILTER",), ("KSTREAM-FLATMAPVALUES",), ("KSTREAM-MAPVALUES",)
JOIN = ("KSTREAM-JOIN", "KSTREAM-LEFTJOIN", "KSTREAM-OUTERJOIN")
_HARMLESS = (
    "KSTREAM-PEEK",
    "KSTREAM-SOURCE",
    "KSTREAM-MERGE",
    "KSTREAM-SINK",
    "KSTREAM-BRANCH",
    "KSTREAM-BRANCHCHILD",
    "COGROUPKSTREAM-MERGE",
)
_NO_TABLES = ("KTABLE-SELECT", "KTABLE-TOSTREAM", "KTABLE-JOINTHIS", "KTABLE-JOINOTHER", "KTABLE-FK-JOIN-SUBSCRIPTION")


@dataclass(frozen=True)
class Trace:
    """How a store is computed.

    :param kind: one of the constants above
    :param writer: the processor that writes it
    :param topics: external topics that it is computed from
    :param patterns: regular expressions of topics that it is computed from
    :param repartition: the repartition topic before it, without the application prefix; None if there is none
    :param operators: the operators that records pass on the way, last first, without those that Kafka Streams adds itself
    :param tables: the tables that it is made of, by the names of their processors: the left one first
    :param known: whether a description names it; False: only topics show it
    :param through: other stores that the records come from, or are joined with, on the way
    """

    store: str
    kind: str
    writer: Node
    topics: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    repartition: str | None = None
    operators: tuple[Node, ...] = ()
    tables: tuple[str, ...] = ()
    through: tuple[str, ...] = ()
    known: bool = True

    def has(self, operators: tuple[str, ...]) -> bool:
        return any(operator_of(node) in operators for node in self.operators)

    @property
    def by_foreign_key(self) -> bool:
        return self.kind == JOINED and any(_FK_STORE.fullmatch(store) for store in self.through)

    @property
    def joined_with(self) -> tuple[str, ...]:
        """The processors on the way that join the stream with a table, whose store they read, or with a global one."""
        return tuple(node.name for node in self.operators if operator_of(node) in JOIN)

    @property
    def unclear(self) -> tuple[str, ...]:
        """The processors on the way that the application named or implements."""
        known = (*NEW_KEY, *FILTER, *EXPLODE, *CHANGE_VALUE, *JOIN)
        return tuple(node.name for node in self.operators if operator_of(node) not in known)


def operator_of(node: Node) -> str | None:
    """Return the operator in a processor's generated name; None if the application named it."""
    found = _OPERATOR.fullmatch(node.name)
    return found[1] if found else None


def traces(topology: Topology) -> dict[str, Trace]:
    """Return how each store is computed, except global stores, which have no changelog."""
    parts = {store: part for store, part in topology.stores.items() if not part.is_global}
    return {store: _trace(topology, part, store) for store, part in parts.items()}


def table_trace(topology: Topology, name: str) -> Trace | None:
    """Return how a table without a store is computed, by the name of its processor; None if there is none."""
    for part in topology.parts:
        node = part.node(name)
        if node is not None:
            return _of_kind(topology, part, "", [node], _kind(node, ""))
    return None


def _trace(topology: Topology, part: Part, store: str) -> Trace:
    using = [node for node in part.nodes if store in node.stores]
    kinds = {node.name: _kind(node, store) for node in using}
    owners = [node for node in using if kinds[node.name] is not OTHER and operator_of(node) not in _READERS]
    writers = owners or [node for node in using if operator_of(node) not in _READERS] or using
    return _of_kind(topology, part, store, writers, kinds[writers[0].name])


def _kind(node: Node, store: str) -> str:
    if _FK_STORE.fullmatch(store):
        return SUBSCRIPTION
    if _JOIN_STORE.fullmatch(store):
        return JOIN_BUFFER
    operator = operator_of(node)
    if operator is None and _NAMED_COGROUP.fullmatch(node.name):
        return COGROUPED
    if operator is None and node.name.endswith(("-result", "-merge")):
        return JOINED
    return _WRITERS.get(operator or "", OTHER)


def _of_kind(topology: Topology, part: Part, store: str, writers: Sequence[Node], kind: str) -> Trace:
    walk, writer = _Walk(topology), writers[0]
    for each in writers if kind in (STREAM, COGROUPED, OTHER) else writers[:1]:
        walk.back(part, each, first=True)
    tables: tuple[str, ...] = ()
    if kind == JOINED:
        tables = _joined_tables(part, writer) or tuple(dict.fromkeys(walk.tables))
    elif kind in (GROUPED, DERIVED):
        tables = tuple(walk.tables[:1])
    return Trace(
        store,
        kind,
        writer,
        tuple(dict.fromkeys(walk.topics)),
        tuple(dict.fromkeys(walk.patterns)),
        walk.repartition,
        tuple(walk.operators),
        tables,
        tuple(dict.fromkeys(one for one in walk.through if one != store)),
    )


def _joined_tables(part: Part, merge: Node) -> tuple[str, ...]:
    """Return the tables on both sides of a join: what precedes ``JOINTHIS`` and ``JOINOTHER``."""
    sides: dict[str, str] = {}
    for name in merge.predecessors:
        node = part.node(name)
        operator = (operator_of(node) or "") if node else ""
        if node and node.predecessors and operator in ("KTABLE-JOINTHIS", "KTABLE-JOINOTHER"):
            sides[operator] = node.predecessors[0]
    return tuple(sides[one] for one in ("KTABLE-JOINTHIS", "KTABLE-JOINOTHER") if one in sides)


class _Walk:
    """Walks back from a processor, through internal topics into the sub-topologies that write them."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._internal = topology.internal_topics
        self._seen: set[tuple[int, str]] = set()
        self.topics: list[str] = []
        self.patterns: list[str] = []
        self.operators: list[Node] = []
        self.through: list[str] = []
        self.tables: list[str] = []
        self.repartition: str | None = None

    def back(self, part: Part, node: Node, *, first: bool = False, automatic: bool = False) -> None:
        """Visit a node and everything before it.

        :param first: whether it is where the walk begins
        :param automatic: whether Kafka Streams added it itself
        """
        if (part.number, node.name) in self._seen:
            return
        self._seen.add((part.number, node.name))
        if node.kind == SOURCE:
            self._source(node)
            return
        if not first:
            self._note(node, automatic=automatic)
        for before in node.predecessors:
            found = part.node(before)
            if found is not None:
                self.back(part, found)

    def _source(self, node: Node) -> None:
        if node.pattern is not None:
            self.patterns.append(node.pattern)
        for topic in node.topics:
            if topic not in self._internal:
                self.topics.append(topic)
                continue
            self.repartition = self.repartition or topic
            for part, sink in self._sinks(topic):
                self._behind_sink(part, sink)

    def _sinks(self, topic: str) -> Iterator[tuple[Part, Node]]:
        for part in self._topology.parts:
            yield from ((part, node) for node in part.nodes if node.kind == SINK and topic in node.topics)

    def _behind_sink(self, part: Part, sink: Node) -> None:
        """Continue before a repartition topic; a filter of null keys directly before it is added by Kafka Streams itself."""
        for name in sink.predecessors:
            node = part.node(name)
            if node is not None:
                own = name.endswith("-repartition-filter") or operator_of(node) in FILTER
                self.back(part, node, automatic=own)

    def _note(self, node: Node, *, automatic: bool) -> None:
        operator = operator_of(node) or ""
        if node.kind == PROCESSOR and operator.startswith("KTABLE-") and not operator.startswith(_NO_TABLES):
            self.tables.append(node.name)
        self.through += node.stores
        if (not automatic and operator not in _HARMLESS and not operator.startswith("KTABLE-")) or operator == "KTABLE-SELECT":
            self.operators.append(node)
