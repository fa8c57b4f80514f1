"""The arguments of state plans: nothing is lost on their way to a file and back."""

import json
from dataclasses import replace

import pytest

from kops.core.errors import UsageProblem
from kops.core.models import CommittedOffset, NewTopic, TopicPartition
from kops.core.plan import Plan, plan_from_json
from kops.operations.protocol.registry import typed
from kops.operations.state.arguments import StateArguments, StoreWrite, log_starts
from kops.operations.state.internal_topics import TopicChange

STORE = StoreWrite("a-s-changelog", "/stage", {0: {"records": 2}}, backwards=True, staged_headers=True, facts={"keys": 2})
ARGUMENTS = StateArguments(
    application="a",
    exactly_once=True,
    master="local[*]",
    stores={"s": STORE},
    grow={"in": 3},
    commit={TopicPartition("in", 0): CommittedOffset(7, "m"), TopicPartition("in", 1): None},
    prior={TopicPartition("in", 0): None, TopicPartition("in", 1): CommittedOffset(5, "")},
    repartitions=("a-r-repartition",),
    open=("delete local state",),
    is_undo=True,
    state_file="/s.yaml",
    offsets_of="b",
    facts={"archives": ["/x"]},
)
PLAN = Plan("state.rebuild", "", "cluster-1", "test", (), arguments=ARGUMENTS)


@pytest.mark.parametrize("arguments", [ARGUMENTS, StateArguments("a", exactly_once=False, master="", stores={})])
def test_nothing_is_lost(arguments):
    assert StateArguments.of_json(json.loads(json.dumps(arguments.as_json()))) == arguments


def test_plans_are_typed_by_their_operation():
    assert typed(plan_from_json(json.loads(json.dumps(PLAN.as_json())))) == PLAN


@pytest.mark.parametrize("field", ["topics", "commit", "takes_back"])
def test_damaged_arguments_are_refused(field):
    body = json.loads(json.dumps(PLAN.as_json()))
    del body["arguments"][field]
    with pytest.raises(UsageProblem, match="damaged"):
        typed(plan_from_json(body))


def test_changelogs_that_are_recreated_begin_at_0():
    changelog = NewTopic("a-s-changelog", 2, 1, {})
    ends = {"a-s-changelog:0": 40, "a-s-changelog:1": 41}
    starts = log_starts(replace(ARGUMENTS, topics=(TopicChange(None, changelog),)), ends)
    assert starts == {TopicPartition("a-s-changelog", 0): 0, TopicPartition("a-s-changelog", 1): 0}
