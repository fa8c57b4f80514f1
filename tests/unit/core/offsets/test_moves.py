"""Moves in columns: their items, what they write, and the way through JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kops.core.errors import UsageProblem
from kops.core.models import CommittedOffset, TopicPartition
from kops.core.offsets.moves import Column, GroupMoves, MoveItems, TopicMoves
from kops.core.plan import Item, Plan, plan_document, plan_from_json, plan_of_document
from kops.operations.offsets.arguments import Moves

MOVES = TopicMoves(
    "orders",
    (0, 1, 2, 3),
    Column((5, None, 7, 9), (1, None, None, 2), {0: "text", 3: None}),
    Column((8, 3, 7, None), (), {0: "kept"}),
    ("clamped", "", "", ""),
)
GROUPS = (GroupMoves("billing", "EMPTY", (MOVES,)), GroupMoves("audit", "STABLE", left="has members (STABLE)"))


def plan_of(groups):
    return Plan("offsets.move", "s", "c", "x", MoveItems(groups), arguments=Moves(groups))


def read(body):
    return plan_from_json(body).typed(Moves)


def test_items():
    items = MoveItems(GROUPS)
    assert list(items) == [
        Item("billing orders:0", "move", 5, 8, "clamped"),
        Item("billing orders:1", "commit", None, 3, ""),
        Item("billing orders:2", "none", 7, 7, "already there"),
        Item("billing orders:3", "delete", 9, None, ""),
        Item("audit", "refuse", reason="has members (STABLE)"),
    ]
    assert len(items) == 5
    assert items[1] == items[-4] == list(items)[1]
    assert items[1:3] == tuple(list(items)[1:3])
    assert items.changes
    assert not MoveItems([GroupMoves("g", "EMPTY", (TopicMoves("t", (0,), Column((1,)), Column((1,))),))]).changes
    assert list(items.overview()) == [
        {"group": "audit", "topic": None, "move": "none", "reason": "has members (STABLE)"},
        {"group": "billing", "topic": "orders", "move": "3 of 4", "reason": "clamped (1)"},
    ]


def test_what_is_written_and_what_was_there():
    assert MOVES.writes() == {
        TopicPartition("orders", 0): CommittedOffset(8, "kept"),
        TopicPartition("orders", 1): CommittedOffset(3),
        TopicPartition("orders", 3): None,
    }
    assert MOVES.writes(inverse=True) == {
        TopicPartition("orders", 0): CommittedOffset(5, "text", 1),
        TopicPartition("orders", 1): None,
        TopicPartition("orders", 3): CommittedOffset(9, None, 2),
    }


offsets = st.none() | st.integers(0, 2**62)


@st.composite
def topics(draw):
    partitions = tuple(draw(st.lists(st.integers(0, 999), unique=True, min_size=1, max_size=8)))
    count = len(partitions)
    columns = [
        Column(
            tuple(draw(st.lists(offsets, min_size=count, max_size=count))),
            draw(st.just(()) | st.lists(st.none() | st.integers(0, 9), min_size=count, max_size=count).map(tuple)),
            draw(st.dictionaries(st.sampled_from(partitions), st.text(max_size=5))),
        )
        for _ in range(2)
    ]
    reasons = draw(st.just(("",)) | st.lists(st.text(max_size=5), min_size=count, max_size=count).map(tuple))
    return TopicMoves(draw(st.text(min_size=1, max_size=9)), partitions, *columns, reasons)


groups = st.lists(st.builds(GroupMoves, st.text(max_size=9), st.just("EMPTY"), st.lists(topics(), max_size=3).map(tuple)), max_size=4)


@given(groups)
def test_moves_survive_a_file(several):
    body = json.loads(json.dumps(plan_of(several).as_json()))
    again = read(body)
    assert list(again.items) == list(plan_of(several).items)
    assert [group.writes(inverse=True) for group in again.items.groups] == [group.writes(inverse=True) for group in several]
    assert [item["target"] for item in body["items"]] == [item.target for item in again.items]
    assert list(read(json.loads(json.dumps(plan_of(several).as_json(whole=False)))).items) == list(again.items)
    assert list(plan_of_document(json.loads(json.dumps(plan_document(plan_of(several))))).typed(Moves).items) == list(again.items)
    assert again.has_changes == any(item.changes for item in again.items)
    assert len(again.items) == len(list(again.items))


def test_damaged_columns_are_told():
    body = json.loads(json.dumps(plan_of(GROUPS).as_json()))
    body["arguments"]["moves"][0]["topics"][0]["partitions"].pop()
    with pytest.raises(UsageProblem, match="damaged"):
        read(body)
