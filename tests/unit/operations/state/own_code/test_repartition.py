"""Which programs can move to another number of partitions, which input decides where state is, and what their runs say."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kops.core.errors import Refused
from kops.core.streams.capture import LIST, WINDOW
from kops.core.streams.capture_file import read_capture
from kops.operations.state.input_offsets import InputOffsets
from kops.operations.state.own_code.repartition import judged, keyed_inputs, refuse_followers, refuse_unmovable, why_misplaced
from kops.operations.state.own_code.stores import program_state_file
from kops.operations.state.own_code.tasks import Layout
from kops.spark.programs.relaid import RelaidCheck

CAPTURED = json.loads((Path(__file__).parents[3] / "core" / "streams" / "capture.json").read_text(encoding="utf-8"))
KEPT = ("counts", "lengths", "seen")


@pytest.fixture
def whole():
    return read_capture(CAPTURED, "c.json")


@pytest.fixture
def capture(whole):
    """A program of which some stores, without their joins, remain: all of these can move to 7 partitions."""
    parts = tuple(replace(each, repartition_topics=()) if each.number in (3, 4) else each for each in whole.subtopologies)
    nodes = tuple(node for node in whole.nodes if node not in whole.custom_partitioners and "FK-JOIN" not in node.name)
    stores = tuple(store for store in whole.stores if store.name in KEPT)
    return replace(whole, subtopologies=parts, nodes=nodes, stores=stores)


def test_key_value_stores_can_move(capture):
    refuse_unmovable(capture, (), 7)


def test_what_cannot_move_is_named(whole, capture):
    counts = capture.stores[0]
    for program, unfit, partitions, said in (
        (capture, ["store recent is left as it is: it has no changelog"], 7, "store recent is left as it is: it has no changelog"),
        (replace(whole, stores=capture.stores), (), 7, "has foreign-key joins"),
        (
            replace(capture, stores=(replace(counts, kind=LIST),)),
            (),
            7,
            "store counts is of the kind list, and only key-value stores, windows",
        ),
        (replace(capture, stores=(replace(counts, kind=WINDOW),)), (), 7, "store counts is a side of a stream-stream join"),
        (replace(capture, stores=(replace(counts, layers=("com.acme.Mine",)),)), (), 7, "store counts is of a class of the program itself"),
        (replace(capture, stores=(replace(counts, kind=None),)), (), 7, "store counts is of a class of the program itself"),
        (
            replace(capture, nodes=(*capture.nodes, *whole.custom_partitioners)),
            (),
            7,
            "many-apart-repartition has a partitioner of the program's own, ManyStores[$]First",
        ),
        (capture, (), 12, "the program gives many-apart-repartition 7 partitions, not 12"),
    ):
        with pytest.raises(Refused, match=said):
            refuse_unmovable(program, unfit, partitions)


def test_an_input_that_stays_has_repartition_topics_with_a_number_of_their_own(capture):
    with pytest.raises(Refused, match="many-by-value-repartition gets as many partitions as clicks, which is left as it is"):
        refuse_followers(capture, {"clicks"}, 7)
    fixed = tuple(
        replace(each, repartition_topics=tuple(replace(topic, partitions=7) for topic in each.repartition_topics))
        for each in capture.subtopologies
    )
    refuse_followers(replace(capture, subtopologies=fixed), {"clicks"}, 7)
    refuse_followers(capture, {"orders"}, 7)


def test_keys_count_where_a_task_with_a_store_reads_them(capture, monkeypatch):
    for name in ("require_agent", "require_runner"):
        monkeypatch.setattr(f"kops.operations.state.own_code.stores.{name}", lambda: None)
    found, _ = program_state_file(capture, "c.json", ())
    assert keyed_inputs(capture, found) == {"clicks": True, "views": True, "orders": True}
    behind = replace(capture, stores=tuple(store for store in capture.stores if store.name == "lengths"))
    assert keyed_inputs(behind, program_state_file(behind, "c.json", ())[0]) == {"clicks": False, "views": False}


def test_what_can_have_put_keys_elsewhere_is_named(capture):
    for store, why in (
        ("counts", "producers of clicks and views chose partitions otherwise or knew of fewer, or the state is wrong: "),
        ("lengths", "the state is wrong: "),
        ("seen", "producers of orders chose partitions otherwise or knew of fewer, or dedup (ManyStores$Dedup) keeps other keys than its"),
    ):
        assert why_misplaced(capture, store).startswith(f"the program has no partitioner of its own, so {why}")


def said(capture, **counts):
    check = RelaidCheck(**{"keys": 10, "wrong": 0, "open": 0, "by_order": 0, "examples": (), "orders": 1} | counts)
    return judged(capture, {"counts": check}, Layout({"clicks": 12}, {"clicks": 4}), InputOffsets({}, {}), 12)


def test_what_the_runs_say(capture):
    warnings, notes = said(capture)
    assert warnings == []
    assert notes[0] == "counts: of 10 of 10 keys the program computes the same over its input of 12 partitions"
    assert said(capture, by_order=2, orders=3)[1][0].endswith(", 2 of them in another legal order of records than by time")
    (warning,), (note, *_) = said(capture, open=3, examples=(b"a", b"b"), orders=3)
    assert warning.startswith("store counts is doubtful: 3 of 10 keys depend on the order of records, such as a, b;")
    assert note.startswith("counts: of 7 of 10 keys")
    with pytest.raises(Refused, match="store counts: of 1 keys, such as a, the program computes something else"):
        said(capture, wrong=1, open=1, examples=(b"a",), orders=3)


@pytest.mark.parametrize(("old", "new", "mixes"), [(4, 12, False), (4, 6, True), (12, 4, True), (1, 5, False)])
def test_partitions_mix_unless_each_is_fed_by_one(old, new, mixes):
    assert Layout({"in": new}, {"in": old}).mixes is mixes
