"""Why what a program writes, when it is run again, may not be what it wrote: what its capture shows of that. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kops.core.findings import Finding
from kops.core.streams.capture import (
    BUFFER,
    KEY_VALUE,
    LIBRARY,
    LIST,
    SESSION,
    TIMESTAMPED_KEY_VALUE,
    TIMESTAMPED_WINDOW,
    WINDOW,
    Capture,
    Processor,
    Sink,
    Source,
    Store,
)
from kops.core.streams.foreign_keys import (
    is_of_tables,
    left_joins,
    question_topics,
    ranks_of,
    store_writers,
    supplier_of,
)
from kops.core.streams.program import count_of, nodes_of, tasks_of, topics_of, writers
from kops.core.streams.rules import TIMES_OF_SESSIONS, flushed_sessions, forgotten_times, mixed_up_foreign_keys
from kops.core.streams.verdict import doubt, remark

OLDEST, NEWEST = (2, 8), (4, 4)
"""The lines of Kafka Streams that programs have been run with."""
BY_TIME, FORWARD, BACKWARD = "time", "forward", "backward"
ORDERS = (BY_TIME, FORWARD, BACKWARD)
"""The orders in which a task is run: by time, as the library chooses; topic after topic, or task after task that wrote; and the reverse.

All keep the order of each partition of each topic, which is what Kafka guarantees: each may have been the one that there was.
"""
_STREAM_TIME, _ESTIMATE = "STREAM_TIME", "approximateNumEntries"
_DEFAULT_PARTITIONER = "org.apache.kafka.clients.producer.internals.DefaultPartitioner"
_IGNORES_KEYS = "partitioner.ignore.keys"
_INTERCEPTORS, _WRAPPER = "interceptor.classes", "processor.wrapper.class"
_ONLY_WATCH = ("io.confluent.monitoring.clients.interceptor.", "io.opentelemetry.instrumentation.kafkaclients.", "brave.kafka.")
"""With what the names of interceptors begin that measure and trace, and change no record but for its headers."""
_NUMBERED = "its keys hold a number that counts from 0 again each time an instance of the application starts"
_OF_GLOBAL_TABLE, _OF_ANY_TABLE = "KStreamGlobalKTableJoin", ".KStreamKTableJoinProcessor"


@dataclass(frozen=True)
class Doubts:
    """Why what the program writes for a store may not be what it wrote; none: it is the same.

    :param of_order: the order of records, and when results were passed on, one sentence each: runs in other orders show which keys depend
        on it
    :param own_processors: of the program, by name and class: what they read besides their records is not known
    :param findings: what no run settles
    :param shows_stream_time: the capture shows who acts on stream time, so ``of_order`` names them
    """

    of_order: tuple[str, ...] = ()
    own_processors: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    shows_stream_time: bool = False


def doubts_about(capture: Capture, store: Store, partitions: Mapping[str, int]) -> Doubts:
    """Return the doubts about a store.

    :param partitions: of topics that are read
    """
    found = capture.subtopology_of(store.name)
    if found is None:
        return Doubts()
    concerned = (found.number, *topics_of(capture, found.number).upstream)
    deciding, sending = _nodes_before(capture, store)
    own = _own_processors(capture, concerned)
    caches, timed = _caches(capture, sending), [node.name for node in own if _STREAM_TIME in node.mentions]
    answered = _answered(capture, store)
    flushed = "pass on what their caches hold whenever these are flushed, and when that was is not known"
    between = "these may act on stream time, and between which records they did is not known"
    return Doubts(
        of_order=(
            *_order(capture, found.number, partitions),
            *([f"the stores {', '.join(each.name for each in caches)} {flushed}"] if caches else []),
            *([f"{between}: {', '.join(timed)}"] if timed else []),
        ),
        own_processors=tuple(f"{node.name} ({node.processor})" for node in own),
        findings=(
            *answered,
            *_flushed_sessions(capture, store),
            *_stores_without_times(capture, store, deciding, own),
            *_time_of_day(capture, sending),
            *_answers_before(capture, store),
            *_partitioners(capture, concerned),
            *_stores(capture, store, deciding),
            *_rocksdb(capture, store, deciding),
            *_global_stores(capture, deciding),
            *_patterns(capture, concerned),
            *_numbered_records(store),
            *_buffered_records(capture, store),
            *_clients(capture),
            *_hidden(capture, own),
            *_version(capture),
        ),
        shows_stream_time=bool(timed),
    )


def open_to_order(capture: Capture, stores: Iterable[Store], numbers: Collection[int], partitions: Mapping[str, int]) -> frozenset[int]:
    """Return the sub-topologies of which a run in another order may write something else: those that leave a doubt, and all behind them.

    :param stores: that are wanted
    :param numbers: of the sub-topologies that are run, none before one that writes into it
    """
    tasks, found = tasks_of(capture), set[int]()
    for store in stores:
        deciding, sending = _nodes_before(capture, store)
        timed = {node.name for node in _own_processors(capture, numbers) if _STREAM_TIME in node.mentions and node.name in deciding}
        held = {name for each in _caches(capture, sending) for name in each.processors or ()}
        found |= {number for number in numbers if (timed | held) & set(tasks[number].nodes)}
    for number in numbers:
        before = [writer for topic in tasks[number].repartition_topics for writer in writers(capture, topic.name)]
        if found & set(before) or _meeting(capture, number, partitions):
            found.add(number)
    return frozenset(found & set(numbers))


def topics_in_any_partition(capture: Capture) -> set[str]:
    """Return the topics of whose records those without a key may be in any partition: questions of foreign-key joins.

    Such a question is that of a left join for a row without a foreign key, or a deleted one, from 3.7 on: the right side notes it nowhere,
    and answers into the partition of the row. Processors of the program behind it may yet look at the stream time that it brings.
    """
    asked = question_topics(capture)
    read = {number: asked & {topic.name for topic in here.repartition_topics} for number, here in tasks_of(capture).items()}
    return asked - {topic for number, topics in read.items() for topic in topics if _own_processors(capture, [number])}


def _nodes_before(capture: Capture, store: Store) -> tuple[set[str], set[str]]:
    """Return the nodes that may decide what a store holds, and those of them that send records to others of them.

    A node decides it if it may write into the store, or into one that another deciding node uses, or sends records to a deciding node.
    """
    nodes = {node.name: node for node in capture.nodes}
    found, sending, left = set[str](), set[str](), store_writers(capture, store)
    while left:
        name = left.pop()
        node = nodes.get(name)
        if node is None or name in found:
            continue
        found.add(name)
        before = set(_sinks_into(capture, node.topics) if isinstance(node, Source) else node.predecessors)
        sending |= before
        left |= before
        left |= {writer for each in capture.stores if name in (each.processors or ()) for writer in store_writers(capture, each)}
    return found, sending


def _answered(capture: Capture, store: Store) -> list[Finding]:
    """Say when a store holds what foreign-key joins answered: of tables, only timestamps depend on when they did.

    No order in which a task is run has the answers between other records, as the program got them.
    """
    ranks = ranks_of(capture)
    if ranks is None or not ranks.stores.get(store.name):
        return []
    why = "foreign-key joins fill it, whose answers come after all other records here, and came between them"
    return [(remark if is_of_tables(capture, store.name, ranks) else doubt)("join_answers", why)]


def _answers_before(capture: Capture, store: Store) -> list[Finding]:
    """Name the left joins that take answers for the foreign key that a row had before, in releases that ask for them."""
    release = _release(capture)
    joins = left_joins(capture, store.name) if release else []
    return mixed_up_foreign_keys(release, capture.streams_version or "", joins) if joins else []


def _sinks_into(capture: Capture, topics: Sequence[str]) -> list[str]:
    return [node.name for node in capture.nodes if isinstance(node, Sink) and node.internal and node.topic in topics]


def _order(capture: Capture, number: int, partitions: Mapping[str, int], seen: frozenset[int] = frozenset()) -> list[str]:
    """Name what feeds a task in an order that no log has, here or in a sub-topology before it."""
    before = [writer for topic in tasks_of(capture)[number].repartition_topics for writer in writers(capture, topic.name)]
    reasons = _meeting(capture, number, partitions)
    for each in before if number not in seen else ():  # the sides of a foreign-key join write into each other
        reasons += _order(capture, each, partitions, seen | {number})
    return list(dict.fromkeys(reasons))


def _meeting(capture: Capture, number: int, partitions: Mapping[str, int]) -> list[str]:
    """Name what meets in the tasks of a sub-topology."""
    here = tasks_of(capture)[number]
    several = here.read_topics
    reasons = []
    if len(several) > 1:
        reasons.append(f"each task of sub-topology {number} reads {' and '.join(several)}, and in which order they met is not known")
    for topic in here.repartition_topics:
        tasks = sum(count_of(capture, writer, partitions) for writer in writers(capture, topic.name))
        if tasks > 1:
            reasons.append(f"{tasks} tasks write into {topic.name}, and in which order its records were is not known")
    return reasons


def _caches(capture: Capture, sending: set[str]) -> list[Store]:
    return [store for store in capture.stores if store.caching is not False and sending & set(store.processors or ())]


def _time_of_day(capture: Capture, sending: set[str]) -> list[Finding]:
    """Name what holds results back until the time of day says so."""
    lists = {user for store in capture.stores if store.kind == LIST for user in store.processors or ()}
    closing = {node.name for node in capture.nodes if isinstance(node, Processor) and node.emits_on_close}
    timed = sorted((lists | closing) & sending)
    said = "results are sent when the time of day says so, not by each record, which nothing has"
    return [doubt("time_of_day", f"{said}: {', '.join(timed)}")] if timed else []


def _own_processors(capture: Capture, concerned: Collection[int]) -> list[Processor]:
    return [node for node in _processors(capture, concerned) if node.program_class]


def _partitioners(capture: Capture, concerned: Sequence[int]) -> Iterator[Finding]:
    """Name what chooses partitions of repartition topics, where it may go by more than the record."""
    tasks = tasks_of(capture)
    read = {topic.name for number in concerned for topic in tasks[number].repartition_topics}
    sinks = [node for node in capture.nodes if isinstance(node, Sink) and node.topic in read]
    chosen = {f"{node.topic} by {node.partitioner}" for node in sinks if node.partitioner and not node.partitioner.startswith(LIBRARY)}
    by_default = sorted(node.topic for node in sinks if node.topic and not node.partitioner)
    settings = capture.settings.producer or {}
    producer = settings.get("partitioner.class")
    if by_default and producer and producer != _DEFAULT_PARTITIONER:
        chosen |= {f"{topic} by {producer}" for topic in by_default}
    if str(settings.get(_IGNORES_KEYS)).lower() == "true":
        chosen |= {f"{topic} by {_IGNORES_KEYS}" for topic in by_default}
    if chosen:
        said = "partitions are chosen by the program's settings, which may go by more than the record"
        yield doubt("partitioner", f"{said}: {', '.join(sorted(chosen))}")
    if by_default and capture.settings.producer is None:
        yield doubt("partitioner", "the settings of the program's producer could not be read, nor whether they name a partitioner")


def _deciding_stores(capture: Capture, store: Store, deciding: set[str]) -> list[Store]:
    """Return a store, and those that nodes use which decide what it holds."""
    return [each for each in capture.stores if each == store or deciding & set(each.processors or ())]


def _stores(capture: Capture, store: Store, deciding: set[str]) -> Iterator[Finding]:
    """Name stores that do not hold what was put into them, or may not."""
    here = _deciding_stores(capture, store, deciding)
    lost = [each.name for each in here if each.changelog is None]
    limited = [f"{each.name} ({each.capacity:,})" for each in here if each.capacity is not None]
    own = [each.name for each in here if each.kind is None or each.has_own_class]
    if lost:
        yield doubt("no_changelog", f"these stores have no changelog, and an instance that lost them started empty: {', '.join(lost)}")
    if limited:
        yield doubt("limited_stores", f"LRU stores evict other keys after a restart: {', '.join(limited)}")
    if own:
        yield doubt("own_stores", f"these stores are of the program's own classes: {', '.join(own)}")


def _global_stores(capture: Capture, deciding: Collection[str]) -> Iterator[Finding]:
    """Name the global stores where a processor that decides may read them: one that joins a global table, or one of the program's own."""
    names = ", ".join(store.name for store in capture.global_stores)
    if names and any(_may_read_global(node) for node in capture.nodes if isinstance(node, Processor) and node.name in deciding):
        yield doubt("global_stores", f"the program has global stores ({names}), and how far they were when a record was read is not known")


def _may_read_global(node: Processor) -> bool:
    supplier = supplier_of(node)
    wrapped = supplier.endswith(_OF_ANY_TABLE) and not node.stores  # before 3.0, where both joins have the same processor
    return node.program_class or wrapped or not supplier or _OF_GLOBAL_TABLE in supplier


def _processors(capture: Capture, concerned: Collection[int]) -> list[Processor]:
    return [node for node in nodes_of(capture, concerned) if isinstance(node, Processor)]


def _patterns(capture: Capture, concerned: Sequence[int]) -> Iterator[Finding]:
    found = [node.pattern for node in nodes_of(capture, concerned) if isinstance(node, Source) and node.pattern]
    if found:
        yield doubt("topic_pattern", f"the program reads what {' and '.join(found)} matches, and topics that did may have been deleted")


def _numbered_records(store: Store) -> Iterator[Finding]:
    if store.kind in (WINDOW, TIMESTAMPED_WINDOW) and store.retain_duplicates is not False:
        yield doubt("numbered_keys", _NUMBERED)


def _buffered_records(capture: Capture, store: Store) -> Iterator[Finding]:
    """Say what of the records that an outer join, a suppression or a join with grace holds back depends on more than its input."""
    if store.kind == LIST:
        yield doubt("time_of_day", "what found no partner is sent, and leaves the store, when the time of day says so: once a second")
    elif store.kind == BUFFER:
        found = capture.subtopology_of(store.name)
        names = ", ".join(topic.name for topic in found.repartition_topics) if found else ""
        if not any(isinstance(node, Processor) and store.name in node.stores and node.suppresses for node in capture.nodes):
            yield doubt("numbered_keys", _NUMBERED)
        elif names:
            yield doubt("buffered_offsets", f"its records hold their offsets in {names}, and those are not known")


def _flushed_sessions(capture: Capture, store: Store) -> Iterator[Finding]:
    line = line_of_library(capture)
    if store.kind == SESSION and store.caching is not False and not (line and line >= TIMES_OF_SESSIONS):
        yield flushed_sessions()


def _stores_without_times(capture: Capture, store: Store, deciding: set[str], own: Sequence[Processor]) -> Iterator[Finding]:
    """Name cached stores without timestamps; values depend on these where others look at them, to put records into windows for example."""
    here = _deciding_stores(capture, store, deciding)
    untimed = [each for each in here if each.caching is not False and not each.is_timestamped]
    if untimed:
        before = any(each != store for each in untimed)
        timed = before and any(each.kind not in (KEY_VALUE, TIMESTAMPED_KEY_VALUE) for each in here)
        only_times = not (timed or any(node.name in deciding for node in own))
        yield forgotten_times([each.name for each in untimed], only_times=only_times)


def _clients(capture: Capture) -> Iterator[Finding]:
    """Name what stands between the program and its topics, which is left out when its tasks are run: it may change records."""
    settings = (capture.settings.main_consumer or {}, capture.settings.producer or {})
    found = {name for each in settings for name in _names(each.get(_INTERCEPTORS)) if not name.startswith(_ONLY_WATCH)}
    supplier = capture.client_supplier
    if found:
        yield doubt("interceptors", f"interceptors of its clients are not called here, and may change records: {', '.join(sorted(found))}")
    if supplier and not supplier.startswith(LIBRARY):
        yield doubt("own_clients", f"its clients are made by {supplier}, which is not asked here, and may change what they read and write")


def _rocksdb(capture: Capture, store: Store, deciding: set[str]) -> Iterator[Finding]:
    """Name options of RocksDB by which it drops entries when it compacts its files, of which no changelog knows."""
    setter, here = capture.rocksdb_setter, _deciding_stores(capture, store, deciding)
    if setter is None or setter.mentions == () or all(each.persistent is False for each in here):
        return
    options = "with options that could not be read" if setter.mentions is None else f"by {', '.join(setter.mentions)}"
    yield doubt("rocksdb", f"{setter.name} may let RocksDB drop or change entries of its stores when it compacts them, {options}")


def _names(value: Any) -> list[str]:
    """Return the classes of a setting that is a list: of names, or of classes or objects, as the program gave it."""
    each = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    return [str(one.get("instance_of")) if isinstance(one, dict) else str(one).strip() for one in each]


def _hidden(capture: Capture, own: Sequence[Processor]) -> Iterator[Finding]:
    """Name what hides processors, and processors that ask stores for what is another number here."""
    wrapper = capture.settings.effective.get(_WRAPPER)
    guessing = [node.name for node in own if _ESTIMATE in node.mentions]
    if isinstance(wrapper, str) and not wrapper.startswith(LIBRARY):
        yield doubt("wrapped_processors", f"{wrapper} wraps the program's processors ({_WRAPPER}), and what is inside cannot be seen")
    if guessing:
        yield doubt("estimates", f"these ask stores for {_ESTIMATE}, which is another estimate here: {', '.join(guessing)}")


def line_of_library(capture: Capture) -> tuple[int, ...]:
    """Return the line of the library's release, such as (3, 9); empty where its jar does not say."""
    return _release(capture)[:2]


def _release(capture: Capture) -> tuple[int, ...]:
    """Return the release of the library; empty where its jar does not say."""
    found = re.match(r"\d+(\.\d+)+", capture.streams_version or "")
    return tuple(map(int, found[0].split("."))) if found else ()


def _version(capture: Capture) -> Iterator[Finding]:
    text, line = capture.streams_version or "", line_of_library(capture)
    oldest, newest = (".".join(map(str, each)) for each in (OLDEST, NEWEST))
    if line < OLDEST:
        of = text or "a version that its jar does not say"
        yield doubt("unknown_version", f"programs of Kafka Streams {oldest} to {newest} have been run so, and this one is of {of}")
    elif line > NEWEST:
        said = f"programs of Kafka Streams up to {newest} have been run so: this one is of {text}, which is untested"
        yield remark("untested_version", said)
