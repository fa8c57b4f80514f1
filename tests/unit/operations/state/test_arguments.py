"""The arguments of state plans: those of kops 0.1 are read, and nothing of them is lost."""

import json

import pytest

from kops.core.errors import UsageProblem
from kops.core.plan import plan_from_json
from kops.operations.protocol.registry import typed
from kops.operations.state.arguments import StateArguments, log_starts
from support.older_moves import FOLDER, KINDS

READ_ELSEWHERE = {"watched", "backwards"}
"""The first is in the guard too; the second is now said of each store."""


def older(kind):
    return json.loads((FOLDER / kind / "plan.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", KINDS)
def test_older_arguments_are_kept_whole(kind):
    body = older(kind)["arguments"]
    kept = StateArguments.of_json(body).as_json()
    assert {name: kept[name] for name in body.keys() - READ_ELSEWHERE - {"stores"}} == {
        name: value for name, value in body.items() if name not in READ_ELSEWHERE | {"stores"}
    }
    for name, store in body["stores"].items():
        assert {field: kept["stores"][name][field] for field in store} == store
    assert StateArguments.of_json(json.loads(json.dumps(kept))) == StateArguments.of_json(body)


@pytest.mark.parametrize("kind", KINDS)
def test_older_plans_are_typed_by_their_operation(kind):
    plan = typed(plan_from_json({name: value for name, value in older(kind).items() if name != "digest"}))
    assert isinstance(plan.arguments, StateArguments)
    assert plan.operation == f"state.{kind}"


def test_damaged_arguments_are_refused():
    body = {name: value for name, value in older("rebuild").items() if name != "digest"}
    del body["arguments"]["stores"]["totals"]["contents"]
    with pytest.raises(UsageProblem, match="damaged"):
        typed(plan_from_json(body))


def test_rebuild_backwards_of_older_kops_is_said_of_each_store():
    body = {**older("rebuild")["arguments"], "backwards": True}
    arguments = StateArguments.of_json(body)
    assert arguments.is_undo
    assert all(store.backwards for store in arguments.stores.values())


def test_changelogs_that_are_recreated_begin_at_0():
    plan = older("replace")
    starts = log_starts(StateArguments.of_json(plan["arguments"]), plan["guard"]["changelog_ends"])
    assert set(starts.values()) == {0}
    assert len(starts) == 2
