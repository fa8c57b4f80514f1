"""Foreign-key joins that follow one another: what waits for which answers, and in which steps they are asked."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kops.core.streams.capture import InternalTopic, Processor, Sink, Source, Store, Subtopology
from kops.core.streams.capture_file import read_capture
from kops.core.streams.foreign_keys import answer_topics, is_of_tables, mixes_up_foreign_keys, ranks_of
from kops.core.streams.program import Step, answers_of, reason_against, steps_for, topics_of
from kops.core.streams.program_doubts import doubts_about
from support.verdicts import doubts, remarks

CAPTURED = json.loads((Path(__file__).parent / "capture.json").read_text(encoding="utf-8"))
LIBRARY = "org.apache.kafka.streams.kstream.internals."
JOIN = f"{LIBRARY}foreignkeyjoin."


def source(name, *topics):
    return Source(name, topics, None, {}, None, None, None)


def sink(name, topic, *before):
    return Sink(name, before, topic, True, None, None, None)


def processor(name, supplier, *before, stores=()):
    return Processor(name, before, supplier, None, False, (), stores, (), False, False, {})


def store(name, *processors):
    return Store(name, "key-value", None, (), True, False, f"app-{name}", False, None, None, processors=processors)


def part(number, nodes, topics, repartition, stores, sinks):
    internal = tuple(InternalTopic(name, {}) for name in repartition)
    logs = tuple(InternalTopic(f"app-{name}", {}) for name in stores)
    return Subtopology(number, False, nodes, topics, sinks, internal, logs)


NODES = (
    # 0: the left table asks 1, what it finds asks 2; a stream is joined with what was found first, and grouped in 3
    source("left", "left"),
    processor("left-table", f"{LIBRARY}KTableSource", "left", stores=("left-store",)),
    processor("send-1", f"{JOIN}SubscriptionSendProcessorSupplier", "left-table"),
    sink("ask-1", "questions-1", "send-1"),
    source("take-1", "answers-1"),
    processor("resolve-1", f"{JOIN}ResponseJoinProcessorSupplier", "take-1", stores=("left-store",)),
    processor("found-1", f"{LIBRARY}KTableSource", "resolve-1", stores=("found-1-store",)),
    processor("send-2", f"{JOIN}SubscriptionSendProcessorSupplier", "found-1"),
    sink("ask-2", "questions-2", "send-2"),
    source("take-2", "answers-2"),
    processor("resolve-2", f"{JOIN}ResponseJoinProcessorSupplier", "take-2", stores=("found-1-store",)),
    processor("found-2", f"{LIBRARY}KTableSource", "resolve-2", stores=("found-2-store",)),
    source("stream", "stream"),
    processor("joined", f"{LIBRARY}KStreamKTableJoin", "stream", stores=("found-1-store",)),
    sink("group", "groups", "joined"),
    # 1 and 2: the right tables
    *(
        node
        for at in (1, 2)
        for node in (
            source(f"right-{at}", f"right-{at}"),
            processor(f"right-table-{at}", f"{LIBRARY}KTableSource", f"right-{at}", stores=(f"right-store-{at}",)),
            source(f"asked-{at}", f"questions-{at}"),
            processor(f"note-{at}", f"{JOIN}SubscriptionReceiveProcessorSupplier", f"asked-{at}", stores=(f"notes-{at}",)),
            processor(f"join-{at}", f"{JOIN}SubscriptionJoinProcessorSupplier", f"note-{at}", stores=(f"right-store-{at}",)),
            processor(f"tell-{at}", f"{JOIN}ForeignTableJoinProcessorSupplier", f"right-table-{at}", stores=(f"notes-{at}",)),
            sink(f"answer-{at}", f"answers-{at}", f"join-{at}", f"tell-{at}"),
        )
    ),
    source("grouped", "groups"),
    processor("count", f"{LIBRARY}KStreamAggregate", "grouped", stores=("counts",)),
)


@pytest.fixture
def capture():
    def names(*parts):
        return tuple(node.name for node in NODES if any(each in node.name for each in parts))

    first = tuple(node.name for node in NODES[:15])
    stores = {
        each: tuple(node.name for node in NODES if isinstance(node, Processor) and each in node.stores)
        for each in (
            "left-store",
            "found-1-store",
            "found-2-store",
            "right-store-1",
            "right-store-2",
            "notes-1",
            "notes-2",
            "counts",
        )
    }
    parts = (
        part(0, first, ("left", "stream"), ("answers-1", "answers-2"), ("left-store",), ("questions-1", "questions-2", "groups")),
        *(
            part(
                at,
                tuple(n.name for n in NODES[15:29] if n.name.endswith(f"-{at}")),
                (f"right-{at}",),
                (f"questions-{at}",),
                (),
                (f"answers-{at}",),
            )
            for at in (1, 2)
        ),
        part(3, ("grouped", "count"), (), ("groups",), ("counts",), ()),
    )
    return replace(
        read_capture(CAPTURED, "c.json"),
        nodes=NODES,
        stores=tuple(store(name, *users) for name, users in stores.items()),
        global_stores=(),
        subtopologies=parts,
    )


def test_what_waits_for_how_many_answers(capture):
    assert answer_topics(capture) == {"answers-1", "answers-2"}
    ranks = ranks_of(capture)
    assert ranks.topics == {"questions-1": 0, "answers-1": 1, "questions-2": 1, "answers-2": 2, "groups": 1}
    assert ranks.stores == {
        **dict.fromkeys(("left-store", "right-store-1", "right-store-2", "notes-1"), 0),
        "found-1-store": 1,
        "notes-2": 1,
        "counts": 1,
        "found-2-store": 2,
    }


def test_each_question_is_asked_when_what_it_is_made_of_is_there(capture):
    ask, again, last = Step(0, ()), Step(0, ("answers-1",)), Step(0, ("answers-1", "answers-2"))
    first, second, groups = Step(1, ("questions-1",)), Step(2, ("questions-2",)), Step(3, ("groups",))
    assert steps_for(capture, {0}) == [ask, first, again, second, last]
    assert steps_for(capture, {1}) == [ask, first]
    assert steps_for(capture, {2}) == [ask, first, again, second]
    assert steps_for(capture, {3}) == [ask, first, again, groups]
    assert answers_of(capture, 0) == {"answers-1": 1, "answers-2": 2}
    assert topics_of(capture, 1).external == ("left", "right-1", "stream")
    assert topics_of(capture, 2).upstream == (0, 1)
    assert not any(reason_against(capture, each) for each in capture.stores)


def test_only_tables_of_answers_have_values_that_are_certain(capture):
    ranks = ranks_of(capture)
    assert {each.name for each in capture.stores if not is_of_tables(capture, each.name, ranks)} == {"counts", "notes-1", "notes-2"}
    about = {each.name: doubts_about(capture, each, {}) for each in capture.stores}
    said = "foreign-key joins fill it, whose answers come after all other records here, and came between them"
    assert {name for name, found in about.items() if said in remarks(found.findings)} == {"found-1-store", "found-2-store"}
    assert {name for name, found in about.items() if said in doubts(found.findings)} == {"counts", "notes-2"}


def test_before_3_0_suppliers_are_wrapped(capture):
    def wrapped(node):
        if not isinstance(node, Processor):
            return node
        return replace(node, supplier=f"{LIBRARY}graph.ProcessorParameters$$Lambda", processor=f"{node.supplier}$1")

    older = replace(capture, nodes=tuple(map(wrapped, NODES)))
    assert ranks_of(older) == ranks_of(capture)
    assert steps_for(older, {0}) == steps_for(capture, {0})
    for each in capture.stores:
        assert is_of_tables(older, each.name, ranks_of(older)) == is_of_tables(capture, each.name, ranks_of(capture))


@pytest.mark.parametrize(("stores", "reads"), [((), True), (("counts",), False)])
def test_before_3_0_a_join_of_a_global_table_is_one_without_a_store(capture, stores, reads):
    supplier, join = f"{LIBRARY}graph.ProcessorParameters$$Lambda", f"{LIBRARY}KStreamKTableJoinProcessor"
    nodes = [node for node in NODES if not isinstance(node, Processor)]
    older = replace(
        capture,
        nodes=(
            *nodes,
            replace(processor("joins", supplier, "grouped", stores=stores), processor=join),
            processor("count", f"{LIBRARY}KStreamAggregate", "joins", stores=("counts",)),
        ),
        global_stores=capture.stores[:1],
    )
    counts = replace(capture.stores[-1], processors=("count",))
    assert any("the program has global stores" in said for said in doubts(doubts_about(older, counts, {}).findings)) == reads


def test_joins_that_wait_for_one_another_are_refused(capture):
    nodes = tuple(replace(node, predecessors=("found-2",)) if node.name == "ask-1" else node for node in NODES)
    changed = replace(capture, nodes=nodes)
    assert ranks_of(changed) is None
    assert {reason_against(changed, each) for each in changed.stores} == {"foreign-key joins wait for one another"}


@pytest.fixture
def of_itself():
    """A table that is joined with itself: one sub-topology asks, answers, and takes the answers."""
    nodes = (
        source("table", "table"),
        processor("left-table", f"{LIBRARY}KTableSource", "table", stores=("left-store",)),
        processor("send", f"{JOIN}SubscriptionSendProcessorSupplier", "left-table"),
        sink("ask", "questions", "send"),
        source("asked", "questions"),
        processor("note", f"{JOIN}SubscriptionReceiveProcessorSupplier", "asked", stores=("notes",)),
        processor("join", f"{JOIN}SubscriptionJoinProcessorSupplier", "note", stores=("left-store",)),
        processor("tell", f"{JOIN}ForeignTableJoinProcessorSupplier", "left-table", stores=("notes",)),
        sink("answer", "answers", "join", "tell"),
        source("take", "answers"),
        processor("resolve", f"{JOIN}ResponseJoinProcessorSupplier", "take", stores=("left-store",)),
        processor("found", f"{LIBRARY}KTableSource", "resolve", stores=("found-store",)),
    )
    stores = ("left-store", "notes", "found-store")
    users = {each: tuple(node.name for node in nodes if isinstance(node, Processor) and each in node.stores) for each in stores}
    return replace(
        read_capture(CAPTURED, "c.json"),
        nodes=nodes,
        stores=tuple(store(name, *each) for name, each in users.items()),
        global_stores=(),
        subtopologies=(
            part(0, tuple(node.name for node in nodes), ("table",), ("questions", "answers"), stores, ("questions", "answers")),
        ),
    )


def test_a_table_that_is_joined_with_itself_is_run_for_its_questions_and_for_their_answers(of_itself):
    assert steps_for(of_itself, {0}) == [Step(0, ()), Step(0, ("questions",)), Step(0, ("questions", "answers"))]
    assert answers_of(of_itself, 0) == {"questions": 1, "answers": 2}
    assert not any(reason_against(of_itself, each) for each in of_itself.stores)
    about = {each.name: doubts_about(of_itself, each, {"table": 1, "questions": 1, "answers": 1}) for each in of_itself.stores}
    said = "foreign-key joins fill it, whose answers come after all other records here, and came between them"
    assert [name for name, found in about.items() if said in remarks(found.findings)] == ["found-store"]
    assert [name for name, found in about.items() if said in doubts(found.findings)] == []


def test_a_sub_topology_that_sends_to_itself_otherwise_is_refused(of_itself):
    """A loop that is not a foreign-key join has no end that could be determined."""
    nodes = tuple(replace(node, supplier="com.acme.Loop") if node.name == "note" else node for node in of_itself.nodes)
    changed = replace(of_itself, nodes=nodes)
    assert {reason_against(changed, each) for each in changed.stores} == {"sub-topologies that fill it write into each other"}


@pytest.mark.parametrize(
    ("version", "mixes_up"),
    [
        *(
            ("2.8.2", False),
            ("3.6.2", False),
            ("3.7", True),
            ("3.7.2", True),
            ("3.8.1", True),
            ("3.9", True),
            ("3.9.0", True),
            ("3.9.1", False),
        ),
        *(("4.0", True), ("4.0.0", True), ("4.0.1", False), ("4.1", False), ("4.3.1", False)),
    ],
)
def test_releases_that_mix_up_foreign_keys(version, mixes_up):
    """As the instructions in the class files of ``SubscriptionSendProcessorSupplier`` have it: KAFKA-18713 and KAFKA-16407."""
    assert mixes_up_foreign_keys(tuple(map(int, version.split(".")))) is mixes_up


@pytest.mark.parametrize(
    ("version", "left", "doubted"),
    [
        ("4.0.0", {"resolve-1": False, "resolve-2": True}, {"found-2-store"}),
        ("4.0.0", {"resolve-1": True, "resolve-2": False}, {"found-1-store", "found-2-store", "notes-2", "counts"}),
        ("4.0.0", {"resolve-1": False, "resolve-2": None}, {"found-2-store"}),
        ("4.0.0", {"resolve-1": False, "resolve-2": False}, set()),
        ("4.0.1", {"resolve-1": True, "resolve-2": True}, set()),
        (None, {"resolve-1": True, "resolve-2": True}, set()),
    ],
)
def test_left_joins_that_answer_for_an_earlier_foreign_key_too(capture, version, left, doubted):
    """What they fill, and what is computed from it: not what shares a table with them."""
    nodes = tuple(replace(node, left_join=left[node.name]) if node.name in left else node for node in capture.nodes)
    found = replace(capture, nodes=nodes, streams_version=version)
    lasting = {each.name: " ".join(doubts(doubts_about(found, each, {}).findings)) for each in found.stores}
    assert {name for name, said in lasting.items() if "KAFKA-18713" in said} == doubted
