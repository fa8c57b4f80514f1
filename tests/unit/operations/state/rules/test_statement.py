"""What a state file and the logs of its topics show, and where a state can be cut: pure rules."""

from datetime import datetime, timezone

import pytest

from kops.core.errors import UsageProblem
from kops.core.models import Bounds
from kops.core.statefile import parse_state_file
from kops.operations.engine.state_files import read_state_file
from kops.operations.state.input_offsets import COMMITTED, parse_cut
from kops.operations.state.rules.statement import input_log, mixed_order
from support.verdicts import DOUBT, NOTHING, OBSTACLE, REMARK, kinds, said, worst

NOW = datetime(2026, 11, 21, tzinfo=timezone.utc)
WHOLE, TRIMMED = {0: Bounds(0, 9), 1: Bounds(0, 9)}, {0: Bounds(0, 9), 1: Bounds(2, 9)}


def store(aggregate, value="long"):
    body = {"from": {"topic": "t", "key": "string", "value": value}}
    if aggregate:
        body["aggregate"] = aggregate
    return parse_state_file("f", {"application": "a", "stores": {"s": body}}).stores[0]


@pytest.mark.parametrize(
    ("aggregate", "bounds", "policy", "kind"),
    [
        ({"count": True}, WHOLE, "delete", NOTHING),
        ({"count": True}, TRIMMED, "delete", OBSTACLE),
        ({"count": True}, WHOLE, "compact", OBSTACLE),
        ({"sum": "value"}, WHOLE, "compact,delete", OBSTACLE),
        ({"last": "value"}, WHOLE, "compact", DOUBT),
        ({"last": "value"}, TRIMMED, "compact", OBSTACLE),
        (None, WHOLE, "compact", NOTHING),
        (None, TRIMMED, "delete", OBSTACLE),
    ],
)
def test_what_an_input_allows(aggregate, bounds, policy, kind):
    found = list(input_log(store(aggregate), bounds, policy, "t"))
    assert worst(found) == kind
    if bounds is TRIMMED:
        assert "older records of the input are gone: t:1 at offset 2 begins above offset 0" in said(found)


def test_json_that_is_kept_says_what_that_rests_on():
    found = list(input_log(store({"last": "value"}, "json"), WHOLE, "delete", "t"))
    assert kinds(found) == [REMARK]
    assert "serde" in said(found)


def test_keys_that_several_partitions_feed_are_counted():
    (found,) = mixed_order(store({"last": "value"}), 10, 3)
    assert kinds([found]) == [DOUBT]
    assert found.summary.startswith("3 of 10 keys depend on the order of records: several partitions feed them")
    assert not list(mixed_order(store({"last": "value"}), 10, 0))


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
