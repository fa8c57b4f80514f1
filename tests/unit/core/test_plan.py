"""Plans and results as data: the JSON contract, round trips, and plans that are damaged."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as some

from kops.core.errors import UsageProblem
from kops.core.plan import Item, ItemResult, Plan, Result, Severity, Status, plan_from_json

PLAN = Plan(
    operation="topics.create",
    summary="create the topic orders",
    cluster_id="abc",
    context="prod",
    items=(Item("orders", "create", after={"partitions": 6}), Item("old", "none", reason="exists already")),
    severity=Severity.SEVERE,
    confirm="orders",
    guard={"absent": ["orders"]},
    arguments={"topics": []},
    warnings=("it is unsafe",),
)

json_values = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text(), lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner)
)


def test_plan_json_keys():
    body = PLAN.as_json()
    assert set(body) == {
        "operation",
        "summary",
        "cluster_id",
        "context",
        "items",
        "severity",
        "confirm",
        "guard",
        "arguments",
        "warnings",
        "notes",
        "losses",
        "version",
    }
    assert set(body["items"][0]) == {"target", "action", "before", "after", "reason"}
    assert body["severity"] == "severe"


def test_plan_round_trips_through_file():
    assert plan_from_json(json.loads(json.dumps(PLAN.as_json()))) == PLAN


@given(guard=json_values, before=json_values, text=some.text())
def test_any_plan_round_trips_through_file(guard, before, text):
    plan = Plan(text, text, text, text, (Item(text, "move", before=before, after=guard, reason=text),), guard=guard, arguments=before)
    assert plan_from_json(json.loads(json.dumps(plan.as_json()))) == plan


@pytest.mark.parametrize(
    "damage",
    [
        lambda body: [],
        lambda body: "plan",
        lambda body: None,
        lambda body: {**body, "version": 2},
        lambda body: {key: value for key, value in body.items() if key != "version"},
        *(
            lambda body, key=key: {k: v for k, v in body.items() if k != key}
            for key in ("operation", "items", "severity", "warnings", "cluster_id")
        ),
        lambda body: {**body, "severity": "gentle"},
        lambda body: {**body, "items": 5},
        lambda body: {**body, "items": [5]},
        lambda body: {**body, "items": [{"target": "orders"}]},
        lambda body: {**body, "items": [{"target": "orders", "action": "create", "colour": "red"}]},
        lambda body: {**body, "surprise": 1},
        lambda body: {**body, "warnings": None},
        lambda body: {**body, "items": [{"target": 5, "action": "create"}]},
        lambda body: {**body, "operation": 5},
        lambda body: {**body, "cluster_id": None},
    ],
)
def test_damaged_plan_is_usage_problem(damage):
    with pytest.raises(UsageProblem):
        plan_from_json(damage(PLAN.as_json()))


D, U, F, S, N = Status.DONE, Status.UNCHANGED, Status.FAILED, Status.SKIPPED, Status.UNKNOWN


@pytest.mark.parametrize(
    ("statuses", "status", "code"),
    [
        ([], "unchanged", 0),
        ([U], "unchanged", 0),
        ([S, U], "unchanged", 0),
        ([D, U, S], "done", 0),
        ([D, F], "partial", 6),
        ([D, N], "partial", 6),
        ([F], "failed", 1),
        ([F, N], "failed", 1),
        ([N], "unknown", 4),
        ([U, F], "failed", 1),
    ],
)
def test_result_status_summarizes_items(statuses, status, code):
    result = Result(tuple(ItemResult(f"t{number}", each) for number, each in enumerate(statuses)))
    assert (result.status.value, int(result.exit_code)) == (status, code)


def test_mutation_envelope():
    error = {"code": "failed", "message": "no", "exit_code": 1}
    result = Result((ItemResult("a", D, value={"x": 1}), ItemResult("b", F, error=error)), messages=("restart it",), facts={"records": 3})
    assert result.as_json() == {
        "version": 1,
        "status": "partial",
        "items": [{"target": "a", "status": "done", "value": {"x": 1}}, {"target": "b", "status": "failed", "error": error}],
        "errors": [{"target": "b", **error}],
        "messages": ["restart it"],
        "facts": {"records": 3},
    }
    assert set(Result(()).as_json()) == {"version", "status", "items", "errors"}
