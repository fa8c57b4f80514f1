"""What a report says first: what was written, what was wrong, and what to do next."""

from types import SimpleNamespace

import pytest

from kops.core.plan import Item, ItemResult, Plan, Status
from kops.operations.protocol import journal_actions, registry
from kops.operations.state.arguments import StateArguments, StoreWrite
from kops.operations.state.report import _next_command, _verdict
from kops.output.report import BAD, GOOD, NEUTRAL

CONTENTS = {0: {"records": 1_440}, 1: {"records": 9}}
ACTIONS = {"0": {"added": 716, "changed": 724, "erased": 3}, "1": {"changed": 2, "removed": 7}}


def plan(**facts):
    items = (Item("t:0", "append", 1, 2), Item("t:1", "append", 1, 2))
    write = StoreWrite("t", "stage", CONTENTS, facts=facts)
    return Plan("state.rebuild", "rebuild", "id", "local", items, arguments=StateArguments("app", False, "local", {"totals": write}))


def results(*statuses):
    return {f"t:{number}": ItemResult(f"t:{number}", status) for number, status in enumerate(statuses)}


@pytest.mark.parametrize(
    ("facts", "wrong"), [({"actions": ACTIONS}, " Keys that were wrong: 716 missing, 726 different, 7 unexpected."), ({}, "")]
)
def test_the_verdict_counts_what_was_written_and_what_was_wrong(facts, wrong):
    verdict = _verdict(plan(**facts), results(Status.DONE, Status.DONE))
    assert verdict == (f"1,449 records written, and verified by reading them back.{wrong}", GOOD)


def test_the_verdict_names_what_failed():
    assert _verdict(plan(), results(Status.DONE, Status.FAILED)) == ("Not everything was written, or read back as written: t:1", BAD)
    assert _verdict(plan(), {}) == ("Nothing was written: this is the plan.", NEUTRAL)


@pytest.mark.parametrize(
    ("unfinished", "undone", "expected"),
    [
        (True, True, ("to finish", "kops journal finish last-1")),
        (False, True, ("to undo", "kops undo last-1")),
        (False, False, ("to undo", "this cannot be undone")),
    ],
)
def test_the_next_command(monkeypatch, unfinished, undone, expected):
    monkeypatch.setattr(journal_actions, "is_unfinished", lambda _: unfinished)
    monkeypatch.setattr(registry, "mutation_named", lambda _: SimpleNamespace(typed=lambda it: it, can_be_undone=lambda _: undone))
    assert _next_command(SimpleNamespace(id="last-1", plan=plan())) == [expected]
