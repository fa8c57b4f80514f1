"""The text that ``Topology.describe()`` prints (``TopologyDescription.toString``): parsed, and queried. Pure.

It names sub-topologies, nodes, topics and stores, but no serdes, aggregations, windows or changelogs; internal topics appear in it without
the ``application.id`` prefix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from kops.core.errors import ConfigError
from kops.core.streams.topics import is_internal_name

SOURCE, PROCESSOR, SINK = "source", "processor", "sink"

_PART = re.compile(r"\s*Sub-topology:\s*(\d+)(\s+for global store.*)?\s*")
_NODE = re.compile(r"\s*(Source|Processor|Sink):\s*(\S+)\s+\((topics?|stores|extractor class):\s*(.*)\)\s*")
_FROM = re.compile(r"\s*<--\s*(.*?)\s*")
_NOT_FOUND = "no line in it says `Sub-topology: 0`"


@dataclass(frozen=True)
class Node:
    """A source, a processor, or a sink.

    :param topics: topics that a source reads, or the one that a sink writes; empty for a pattern, and for a sink that chooses per record
    :param pattern: the regular expression that a source subscribes to, if any
    :param stores: that a processor uses
    """

    kind: str
    name: str
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    stores: tuple[str, ...] = ()
    predecessors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Part:
    """A sub-topology: its tasks are ``<number>_<partition>``.

    :param is_global: whether it is that of a global store, which has no tasks and no changelog
    """

    number: int
    is_global: bool
    nodes: tuple[Node, ...]

    @property
    def stores(self) -> tuple[str, ...]:
        """Its stores, in the order in which they are named."""
        return tuple(dict.fromkeys(store for node in self.nodes for store in node.stores))

    @property
    def source_topics(self) -> tuple[str, ...]:
        """The topics that it reads, including internal ones."""
        return tuple(dict.fromkeys(topic for node in self.nodes if node.kind == SOURCE for topic in node.topics))

    @property
    def sink_topics(self) -> tuple[str, ...]:
        """The topics that it writes, including internal ones."""
        return tuple(dict.fromkeys(topic for node in self.nodes if node.kind == SINK for topic in node.topics))

    @property
    def patterns(self) -> tuple[str, ...]:
        return tuple(node.pattern for node in self.nodes if node.pattern is not None)

    def node(self, name: str) -> Node | None:
        return next((node for node in self.nodes if node.name == name), None)


@dataclass(frozen=True)
class Topology:
    parts: tuple[Part, ...]

    @property
    def internal_topics(self) -> frozenset[str]:
        """The topics that it both writes and reads, and that have names like internal topics of Kafka Streams; without a prefix."""
        written = {topic for part in self.parts for topic in part.sink_topics}
        read = {topic for part in self.parts for topic in part.source_topics}
        return frozenset(topic for topic in written & read if is_internal_name(topic))

    @property
    def input_topics(self) -> tuple[str, ...]:
        """The external topics that it reads, including those of global stores."""
        return self._outer(topic for part in self.parts for topic in part.source_topics)

    @property
    def output_topics(self) -> tuple[str, ...]:
        return self._outer(topic for part in self.parts for topic in part.sink_topics)

    @property
    def stores(self) -> dict[str, Part]:
        return {store: part for part in self.parts for store in part.stores}

    @property
    def chooses_topics(self) -> tuple[str, ...]:
        """The sinks that choose a topic per record, so that only the application knows where they write."""
        return tuple(node.name for part in self.parts for node in part.nodes if node.kind == SINK and not node.topics)

    def sources_of(self, store: str) -> tuple[Node, ...]:
        """Return the sources from which a store is written, tracing back no further than its own sub-topology."""
        part = self.stores[store]
        seen: dict[str, Node] = {}
        left = [node for node in part.nodes if store in node.stores]
        while left:
            node = left.pop()
            if node.name not in seen:
                seen[node.name] = node
                left += [found for name in node.predecessors if (found := part.node(name))]
        return tuple(node for node in seen.values() if node.kind == SOURCE)

    def _outer(self, topics: Iterator[str]) -> tuple[str, ...]:
        internal = self.internal_topics
        return tuple(dict.fromkeys(topic for topic in topics if topic not in internal))


@dataclass
class _Draft:
    number: int
    is_global: bool
    nodes: list[Node] = field(default_factory=list)


def parse_topology(text: str, path: str = "the topology") -> Topology:
    """Parse the output of ``Topology.describe()``; lines around it, such as log lines, are skipped.

    :raises ConfigError: if there is no topology in it, or a line within it cannot be parsed
    """
    drafts: list[_Draft] = []
    for number, line in enumerate(text.replace("\r", "").split("\n"), 1):
        if part := _PART.fullmatch(line) or _PART.search(line):
            drafts.append(_Draft(int(part[1]), bool(part[2])))
        elif not drafts or not line.strip():
            continue
        elif node := _NODE.fullmatch(line):
            drafts[-1].nodes.append(_node(node[1].lower(), node[2], node[3], node[4].strip()))
        elif (arrow := _FROM.fullmatch(line)) and drafts[-1].nodes:
            drafts[-1].nodes[-1] = replace(drafts[-1].nodes[-1], predecessors=() if arrow[1] == "none" else _listed(arrow[1]))
        elif line.lstrip().startswith(("Source:", "Processor:", "Sink:")):
            raise ConfigError(f"{path}: line {number} is not as Topology.describe() prints it: {line.strip()[:60]}", hint="give all of it")
    if not any(draft.nodes for draft in drafts):
        raise ConfigError(f"{path} holds no description of a topology: {_NOT_FOUND}", hint="print topology.describe() into the file")
    return Topology(tuple(Part(draft.number, draft.is_global, tuple(draft.nodes)) for draft in drafts))


def _node(kind: str, name: str, what: str, content: str) -> Node:
    if what == "stores":
        return Node(kind, name, stores=_listed(content))
    if kind == SINK:
        return Node(kind, name, topics=(content,) if what == "topic" else ())
    if content.startswith("[") and content.endswith("]"):
        return Node(kind, name, topics=_listed(content))
    return Node(kind, name, pattern=content)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part for part in (one.strip() for one in text.strip("[]").split(",")) if part)
