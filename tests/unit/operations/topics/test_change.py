"""Plans of topics that kops 0.1 wrote: read, and understood by the one mutation that carries them out now."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kops.core.models import NewTopic, TopicPartition
from kops.core.plan import plan_of_document
from kops.core.topics.changes import Changes
from kops.operations.protocol.registry import mutation_named, typed
from kops.operations.topics.change import CHANGE_TOPICS, planned_of
from kops.operations.topics.truncate import Truncation

OLDER = Path(__file__).parents[3] / "broker" / "older" / "topics"
COMPACTED = {"segment.ms": "70000", "cleanup.policy": "compact"}


def plan(kind):
    return typed(plan_of_document(json.loads((OLDER / f"{kind}.plan.json").read_text())))


@pytest.mark.parametrize(
    ("kind", "changes", "absent", "guarded"),
    [
        ("create", Changes(create=(NewTopic("kept-a", 2, 1, COMPACTED), NewTopic("kept-b", 2, 1, COMPACTED))), ("kept-a", "kept-b"), []),
        ("delete", Changes(delete=("kept-a", "kept-b")), (), ["kept-a", "kept-b"]),
        (
            "change",
            Changes(
                create=(NewTopic("kept-new", 2, 1, {"cleanup.policy": "compact"}),),
                alter={"kept-alter": {"segment.ms": "70000", "retention.ms": None}},
                grow={"kept-alter": 3},
                delete=("kept-old",),
            ),
            ("kept-new",),
            ["kept-alter", "kept-old"],
        ),
    ],
)
def test_plans_of_0_1_are_understood(kind, changes, absent, guarded):
    older = plan(kind)
    assert mutation_named(older.operation) is CHANGE_TOPICS
    planned = planned_of(older)
    assert (planned.changes, planned.absent, list(planned.states)) == (changes, absent, guarded)
    assert all(state["topic_id"] for state in planned.states.values())
    assert list(CHANGE_TOPICS.locks(older)) == [f"topic {name}" for name in changes.names]
    assert CHANGE_TOPICS.can_be_undone(older)


def test_a_plan_of_truncate_of_0_1_is_understood():
    older = plan("truncate")
    assert older.arguments == Truncation({TopicPartition("kept-there", 0): 3})
    assert older.arguments.as_json() == {"below": {"kept-there:0": 3}}


def test_a_topic_named_like_a_key_of_the_guard_is_deleted():
    """Of a deletion, 0.1 kept ids by name: ``absent`` may be one."""
    older = replace(plan("delete"), guard={"absent": "an-id"})
    assert planned_of(older).changes == Changes(delete=("absent",))
