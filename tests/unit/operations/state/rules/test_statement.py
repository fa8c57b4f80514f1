"""Exactness, positions, and the metadata of committed offsets: pure rules."""

from datetime import datetime, timezone

import pytest

from kops.core.errors import UsageProblem
from kops.core.models import Bounds
from kops.core.statefile import parse_state_file
from kops.operations.engine.state_files import read_state_file
from kops.operations.state.exactness import of_input, of_order, worst
from kops.operations.state.input_offsets import COMMITTED, parse_cut

NOW = datetime(2026, 11, 21, tzinfo=timezone.utc)
WHOLE, TRIMMED = {0: Bounds(0, 9), 1: Bounds(0, 9)}, {0: Bounds(0, 9), 1: Bounds(2, 9)}


def store(aggregate, value="long"):
    body = {"from": {"topic": "t", "key": "string", "value": value}}
    if aggregate:
        body["aggregate"] = aggregate
    return parse_state_file("f", {"application": "a", "stores": {"s": body}}).stores[0]


@pytest.mark.parametrize(
    ("aggregate", "bounds", "policy", "grade"),
    [
        ({"count": True}, WHOLE, "delete", "A"),
        ({"count": True}, TRIMMED, "delete", "D"),
        ({"count": True}, WHOLE, "compact", "D"),
        ({"sum": "value"}, WHOLE, "compact,delete", "D"),
        ({"last": "value"}, WHOLE, "compact", "C"),
        ({"last": "value"}, TRIMMED, "compact", "D"),
        (None, WHOLE, "compact", "A"),
        (None, TRIMMED, "delete", "D"),
    ],
)
def test_the_class_that_an_input_allows(aggregate, bounds, policy, grade):
    found = of_input(store(aggregate), bounds, policy, "t")
    assert found.grade == grade
    assert bool(found.reasons) == (grade != "A")
    if bounds is TRIMMED:
        assert "t:1 begins at offset 2" in found.text


def test_json_that_is_kept_says_what_that_rests_on():
    found = of_input(store({"last": "value"}, "json"), WHOLE, "delete", "t")
    assert found.grade == "B"
    assert "serde" in found.text


def test_the_worst_class_counts_with_all_reasons():
    found = worst([of_input(store({"last": "value"}), WHOLE, "compact", "t"), of_order(store({"last": "value"}), 10, 3)])
    assert found.grade == "C"
    assert len(found.reasons) == 2
    assert of_order(store({"last": "value"}), 10, 0).grade == "A"


def test_where_a_state_can_be_cut():
    assert parse_cut("committed", NOW) == COMMITTED
    assert parse_cut("end", NOW).kind == "end"
    assert parse_cut("@1700000000000", NOW).value == 1_700_000_000_000
    for wrong in ("start", "12", "yesterday"):
        with pytest.raises(UsageProblem):
            parse_cut(wrong, NOW)


def test_a_store_that_is_not_there_is_named_with_the_nearest(tmp_path):
    file = tmp_path / "state.yaml"
    file.write_text("{application: a, stores: {totals: {from: {topic: t, key: string, value: long}}}}", encoding="utf-8")
    assert [found.name for found in read_state_file(str(file), ["totals"]).stores] == ["totals"]
    with pytest.raises(UsageProblem) as error:
        read_state_file(str(file), ["total"])
    assert "did you mean totals" in (error.value.hint or "")
