"""Plans of topics that kops 0.1 wrote: read, and understood by the one mutation that carries them out now."""

import json
from pathlib import Path

import pytest

from kops.core.models import NewTopic
from kops.core.plan import plan_of_document
from kops.core.topics.changes import Changes
from kops.operations.protocol.registry import mutation_named
from kops.operations.topics.change import CHANGE_TOPICS, planned_of

OLDER = Path(__file__).parents[3] / "broker" / "older" / "topics"
COMPACTED = {"segment.ms": "70000", "cleanup.policy": "compact"}


def plan(kind):
    return plan_of_document(json.loads((OLDER / f"{kind}.plan.json").read_text()))


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
