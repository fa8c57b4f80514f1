import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kops.core.errors import NotFound, UsageProblem
from kops.core.models import TopicPartition
from kops.core.selection import Selection, names_matching, names_owned, parse_selection, partitions_selected


def partitions(topic, count):
    return tuple(TopicPartition(topic, number) for number in range(count))


@pytest.mark.parametrize(
    ("text", "selection"),
    [
        ("orders", Selection("orders")),
        ("orders:0", Selection("orders", (0,))),
        ("a.b-c_D:0,3-5", Selection("a.b-c_D", (0, 3, 4, 5))),
        ("orders:5,1,1-2", Selection("orders", (1, 2, 5))),
    ],
)
def test_selections(text, selection):
    assert parse_selection(text) == selection


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        "orders:",
        "orders:a",
        "orders:-1",
        "orders:3-1",
        "orders:0,",
        "orders:0:1",
        "or ders",
        "orders-*",
        ".",
        "..",
        "o" * 250,
        "orders:0-99999999",
        "orders:0-9999999",
        "orders:٣",
        "orders: 0",
        "orders:1-",
    ],
)
def test_invalid_selections_are_rejected(text):
    with pytest.raises(UsageProblem):
        parse_selection(text)


@given(st.from_regex(r"[a-z.]{3,9}", fullmatch=True), st.sets(st.integers(0, 1000), min_size=1, max_size=20))
def test_selections_round_trip(topic, numbers):
    selection = Selection(topic, tuple(sorted(numbers)))
    if topic.strip("."):
        assert parse_selection(str(selection)) == selection


@given(st.text(max_size=20))
def test_any_text_is_a_selection_or_a_usage_problem(text):
    with contextlib.suppress(UsageProblem):
        parse_selection(text)


def test_selecting_missing_partition_fails():
    existing = {"a": partitions("a", 3), "b": partitions("b", 1)}
    chosen = partitions_selected([parse_selection("a:1-2"), parse_selection("b"), parse_selection("a:2")], existing)
    assert chosen == (TopicPartition("a", 1), TopicPartition("a", 2), TopicPartition("b", 0))
    with pytest.raises(NotFound, match="no partition a:3"):
        partitions_selected([parse_selection("a:0-5")], existing)
    with pytest.raises(NotFound, match="no topic c"):
        partitions_selected([parse_selection("c")], existing)


def test_names():
    names = ["billing-1", "billing-2", "audit", "odd*name"]
    assert names_matching([], names) == sorted(names)
    assert names_matching(["billing-*"], names) == ["billing-1", "billing-2"]
    assert names_matching(["audit", "*-2"], names) == ["audit", "billing-2"]
    assert names_matching(["odd*name"], [*names, "oddXname"]) == ["odd*name", "oddXname"]
    assert names_matching(["odd[1]"], ["odd[1]", "odd1", "odd2"]) == ["odd1", "odd[1]"]
    assert names_matching([r"billing-\d"], names, regex=True) == ["billing-1", "billing-2"]
    assert names_matching(["bill"], names, regex=True) == []
    assert names_matching(["none-*"], names) == []
    with pytest.raises(NotFound, match="no group bill"):
        names_matching(["bill"], names, what="group")
    with pytest.raises(UsageProblem, match="not a valid regular expression"):
        names_matching(["("], names, regex=True)


def test_a_name_that_is_owned_need_not_exist():
    assert names_owned(["orders", "shop-*", "odd*name"], ["shop-1", "billing", "odd*name", "oddXname"]) == {"shop-1", "odd*name"}
    assert names_owned(["orders"], []) == set()
