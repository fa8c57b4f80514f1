"""Foreign-key joins of a captured program: which topics bring answers back, and what waits for how many of them in a row. Pure.

The left side of such a join asks by a topic, and the right side answers by another one. What it has found may be the question of a further
join, whose answers are there only after those.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from kops.core.streams.capture import BUFFER, Capture, Processor, Sink, Source, Store

_RESOLVERS = ("ResponseJoinProcessorSupplier", "SubscriptionResolverJoinProcessorSupplier")
"""The suppliers of the processors that take the answers of a foreign-key join: from 3.5 on, and before."""
_LAMBDA = "$$Lambda"
_READS_ONLY = re.compile(
    r"\.foreignkeyjoin\.(?!Subscription(Store)?Receive)|\.KStreamKTableJoin(Processor)?\b|\.KTableKTable(Inner|Left|Outer|Right)Join\b"
)
"""The library's suppliers whose processors look into stores of others and write into none of them."""
_NOTES = re.compile(r"\.foreignkeyjoin\.Subscription(Store)?Receive")
_OF_TABLES = re.compile(r"\.foreignkeyjoin\.|\.KTable(Source|Filter|MapValues|KTable(Inner|Left|Outer|Right)Join|KTableJoinMerger)\b")
"""The library's suppliers whose processors make a table of others, and keep nothing of what a key was before."""

_MIXED_UP = ((3, 7), (3, 8), (3, 9, 0), (4, 0, 0))
"""Release lines, and releases, whose foreign-key joins go wrong where a foreign key changes; fixed in 3.9.1, 4.0.1 and 4.1.0."""


def mixes_up_foreign_keys(version: tuple[int, ...]) -> bool:
    """Return whether a row's join may be wrong after its foreign key changed.

    A left join also answers for the key before, and if that answer comes last, the row is joined with nothing (KAFKA-18713). An inner join
    skips a row whose foreign key is null, or was (KAFKA-16407).

    :param version: of kafka-streams; without a patch release, it may be any of its line
    """
    return any(all(one == other for one, other in zip(release, version, strict=False)) for release in _MIXED_UP)


def supplier_of(node: Processor) -> str:
    """Return the class of a processor's supplier; before 3.0 the library wraps its own, and their processors' classes are within theirs."""
    wrapped = _LAMBDA in (node.supplier or "")
    return ((node.processor if wrapped else node.supplier) or "").partition("$")[0]


def answer_topics(capture: Capture) -> set[str]:
    """Return the topics by which foreign-key joins send what they found back to the sub-topology that asked."""
    return _read_by(capture, lambda supplier: supplier.endswith(_RESOLVERS))


def left_joins(capture: Capture, store: str) -> list[str]:
    """Return the nodes before a store that take answers for a left join, or for what may be one."""
    left, seen = {name for name, written in _writes(capture) if written == store}, set[str]()
    while left:
        name = left.pop()
        seen.add(name)
        left |= _directly_before(capture, name) - seen
    takers = [node for node in capture.nodes if isinstance(node, Processor) and supplier_of(node).endswith(_RESOLVERS)]
    return [node.name for node in takers if node.name in seen and node.left_join is not False]


def question_topics(capture: Capture) -> set[str]:
    """Return the topics by which the left sides of foreign-key joins ask."""
    return _read_by(capture, lambda supplier: _NOTES.search(supplier) is not None)


def _read_by(capture: Capture, is_one: Callable[[str], bool]) -> set[str]:
    """Return the topics that processors of some suppliers read."""
    readers = [node for node in capture.nodes if isinstance(node, Processor) and is_one(supplier_of(node))]
    sources = {name for node in readers for name in node.predecessors}
    return {topic for node in capture.nodes if isinstance(node, Source) and node.name in sources for topic in node.topics}


def own_questions(capture: Capture) -> set[str]:
    """Return the topics by which a sub-topology asks itself: the right side of a foreign-key join is in it too, such as its left table."""
    asked, found = question_topics(capture), set[str]()
    for each in capture.subtopologies:
        here = [node for node in capture.nodes if node.name in each.nodes]
        sent = {node.topic for node in here if isinstance(node, Sink)}
        found |= {topic for node in here if isinstance(node, Source) for topic in node.topics if topic in asked & sent}
    return found


def late_topics(capture: Capture) -> set[str]:
    """Return the topics that are read in a further run of the sub-topology that they come from, or go back to."""
    return answer_topics(capture) | own_questions(capture)


@dataclass(frozen=True)
class Ranks:
    """How many foreign-key joins, one after the other, must have answered before something is whole; or how many late topics it is behind.

    :param nodes: what a node passes on
    :param topics: what is in a repartition topic; of answers, and of late topics, these count too
    :param stores: what is in a store
    """

    nodes: Mapping[str, int]
    topics: Mapping[str, int]
    stores: Mapping[str, int]

    def of_sink(self, capture: Capture, topic: str, nodes: tuple[str, ...]) -> int:
        """Return the rank of what some nodes write into a topic."""
        sinks = [node.name for node in capture.nodes if isinstance(node, Sink) and node.topic == topic and node.name in nodes]
        return max((self.nodes[name] for name in sinks), default=0)


def ranks_of(capture: Capture) -> Ranks | None:
    """Return the ranks of a program; None where joins wait for one another."""
    return _ranks(capture, answer_topics(capture))


def rounds_of(capture: Capture) -> Ranks | None:
    """Return the ranks by late topics: in which run of its sub-topology something is whole."""
    return _ranks(capture, late_topics(capture))


def _ranks(capture: Capture, late: set[str]) -> Ranks | None:
    own = {topic.name for each in capture.subtopologies for topic in each.repartition_topics}
    nodes, topics = dict.fromkeys((node.name for node in capture.nodes), 0), dict.fromkeys(own, 0)
    if not late:  # most programs have no such joins, and this is asked for each store
        return Ranks(nodes, topics, {store: 0 for _, store in _writes(capture)})
    while True:
        stores: dict[str, int] = {}
        for name, store in _writes(capture):
            stores[store] = max(stores.get(store, 0), nodes[name])
        found = {
            node.name: max(
                (
                    *(topics.get(topic, 0) for topic in (node.topics if isinstance(node, Source) else ())),
                    *(nodes.get(name, 0) for name in (() if isinstance(node, Source) else node.predecessors)),
                    *(stores.get(store, 0) for store in (node.stores if isinstance(node, Processor) else ())),
                ),
                default=0,
            )
            for node in capture.nodes
        }
        written = dict.fromkeys(own, 0)
        for node in capture.nodes:
            if isinstance(node, Sink) and node.topic in own:
                written[node.topic] = max(written[node.topic], found[node.name] + (node.topic in late))
        if (found, written) == (nodes, topics):
            return Ranks(nodes, topics, stores)
        if max(written.values(), default=0) > len(late):
            return None
        nodes, topics = found, written


def is_of_tables(capture: Capture, store: str, ranks: Ranks) -> bool:
    """Return whether all that puts answers into a store makes a table of others, whose last values do not depend on when they came.

    What a right side notes of the questions is not such a table: it says how the last one came about.
    """
    nodes = {node.name: node for node in capture.nodes}
    left = {name for name, written in _writes(capture) if written == store}
    if any(isinstance(node := nodes[name], Processor) and _NOTES.search(supplier_of(node)) for name in left):
        return False
    seen = set[str]()
    while left:
        name = left.pop()
        seen.add(name)
        node = nodes[name]
        if not ranks.nodes[name]:
            continue
        if isinstance(node, Processor) and not _OF_TABLES.search(supplier_of(node)):
            return False
        left |= _directly_before(capture, name) - seen
    return True


def _directly_before(capture: Capture, name: str) -> set[str]:
    """Return the nodes that send records to a node, or write into a store that it uses."""
    (node,) = (each for each in capture.nodes if each.name == name)
    if isinstance(node, Source):
        return {each.name for each in capture.nodes if isinstance(each, Sink) and each.topic in node.topics}
    before = {each.name for each in capture.nodes if each.name in node.predecessors}
    stores = node.stores if isinstance(node, Processor) else ()
    return before | {writer for writer, written in _writes(capture) if written in stores}


def _writes(capture: Capture) -> Iterator[tuple[str, str]]:
    """Yield nodes with the stores that they may write."""
    waiting = {store.name for store in capture.stores if store.kind == BUFFER}
    for node in capture.nodes:
        if isinstance(node, Processor):
            for store in node.stores:
                if store in waiting or not _reads_only(node):
                    yield node.name, store


def store_writers(capture: Capture, store: Store) -> set[str]:
    """Return the nodes that may write into a store: of those that use it, the ones that do more than look into it."""
    readers = {node.name for node in capture.nodes if isinstance(node, Processor) and _reads_only(node)}
    return set(store.processors or ()) - (set() if store.kind == BUFFER else readers)  # a join with grace buffers its own records


def _reads_only(node: Processor) -> bool:
    return not node.program_class and _READS_ONLY.search(supplier_of(node)) is not None
