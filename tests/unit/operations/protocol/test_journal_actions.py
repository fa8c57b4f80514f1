"""Entries that were stopped in the middle: which later entry did what is left of them, and what an undo of them restores."""

import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timezone
from types import SimpleNamespace

import pytest

from kops.core.errors import NothingToUndo, Refused, StateMoved
from kops.core.plan import Item, ItemResult, Plan, Status
from kops.core.times import time_text, to_milliseconds
from kops.operations.protocol import journal_actions
from kops.operations.protocol.journal import EntryStatus
from kops.operations.protocol.journal_actions import half_undone, is_stopped, is_unfinished, plan_undo
from kops.operations.protocol.registry import MUTATIONS
from kops.operations.protocol.run import carry_out, mark_earlier
from support.protocol import World


@pytest.fixture
def world(monkeypatch):
    """A mutation that sets numbers by name, in a dict instead of a cluster."""
    made = World()
    monkeypatch.setitem(MUTATIONS, "test.numbers", "this_test:MUTATION")
    monkeypatch.setitem(sys.modules, "this_test", type(sys)("this_test"))
    sys.modules["this_test"].MUTATION = made
    return made


@pytest.fixture
def killed(journal):
    """Return what a killed kops leaves in the journal."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()

    def killed(plan, **links):
        entry = replace(journal.open(plan, **links), pid=ended.pid)
        journal._write(entry)
        return entry

    return killed


@pytest.fixture
def run(services, world, journal):
    def run(plan, **links):
        return carry_out(services(), plan, world, approve=lambda _plan: None, journal=journal, **links)[1]

    return run


def test_the_same_command_closes_an_entry_that_was_stopped(world, killed, run, journal):
    first = killed(world.plan(a=1, b=2))
    world.now["a"] = 1
    second = run(world.plan(a=1, b=2))
    assert journal.read(first.id).finished_by == second.id
    assert not is_unfinished(journal.read(first.id))


def test_where_nothing_was_left_it_is_closed_by_itself(world, killed, journal, services):
    first = killed(world.plan(a=1))
    world.now["a"] = 1
    mark_earlier(services(), journal, world.plan(a=1), world, undoes="", finishes="")
    assert journal.read(first.id).finished_by == first.id


@pytest.mark.parametrize(
    "later",
    [{"a": 1}, {"a": 1, "b": 3}, {"a": 5, "b": 5}],
    ids=["of which one is left", "one got another value", "another change of the same things"],
)
def test_what_does_not_finish_it_does_not_close_it(world, killed, run, journal, later):
    first = killed(world.plan(a=1, b=2))
    run(world.plan(**later))
    assert is_stopped(journal.read(first.id))


def test_an_undo_leaves_what_the_same_command_did_later(world, killed, run, journal, services):
    first = killed(world.plan(a=1, b=1, c=1, d=1))
    world.now |= {"a": 1, "b": 1}
    second = run(world.plan(a=1, b=1, c=1, d=1))
    undo = plan_undo(services(), journal, journal.read(first.id))
    assert {item.target: item.after for item in undo.changes} == {"a": 0, "b": 0}
    back = run(undo, undoes=first.id)
    assert world.now == {"a": 0, "b": 0, "c": 1, "d": 1}
    assert (journal.read(first.id).undone_by, journal.read(second.id).undone_by) == (back.id, "")


def test_what_finished_an_entry_is_undone_with_it(world, killed, run, journal, services):
    first = killed(world.plan(a=1, b=1))
    world.now["a"] = 1
    second = run(world.plan(b=1), finishes=first.id)
    undo = plan_undo(services(), journal, journal.read(first.id))
    back = run(undo, undoes=first.id)
    assert world.now == {"a": 0, "b": 0}
    assert [journal.read(entry.id).undone_by for entry in (first, second)] == [back.id, back.id]


def test_an_undo_of_what_did_nothing_is_nothing_to_do(world, killed, run, journal, services):
    first = killed(world.plan(a=1))
    undo = plan_undo(services(), journal, journal.read(first.id))
    assert (undo.has_changes, undo.losses) == (False, ())
    mark_earlier(services(), journal, undo, world, undoes=first.id, finishes="")
    assert journal.read(first.id).undone_by == first.id
    with pytest.raises(Refused, match="there was nothing of"):
        plan_undo(services(), journal, journal.read(first.id))


def test_all_of_it_done_by_a_later_entry_there_is_nothing_to_undo(world, killed, run, journal, services):
    first = killed(world.plan(a=1))
    run(world.plan(a=1))
    with pytest.raises(Refused, match="changed nothing"):
        plan_undo(services(), journal, journal.read(first.id))


def test_somebody_elses_change_is_a_loss(world, killed, journal, services):
    first = killed(world.plan(a=1, b=1))
    world.now |= {"a": 7, "b": 1}
    with pytest.raises(StateMoved, match="a is 7"):
        plan_undo(services(), journal, journal.read(first.id))


def test_to_undo_again_is_to_finish_the_undo(world, killed, run, journal, services):
    first = run(world.plan(a=1, b=1))
    half = killed(plan_undo(services(), journal, journal.read(first.id)), undoes=first.id)
    world.now["a"] = 0
    assert half_undone(journal, journal.read(first.id)).id == half.id
    rest = run(world.plan(b=0), finishes=half.id)
    assert journal.read(half.id).finished_by == rest.id
    assert journal.read(first.id).undone_by == rest.id
    assert half_undone(journal, journal.read(first.id)) is None


def test_another_undo_closes_one_that_was_stopped(world, killed, run, journal, services, monkeypatch):
    monkeypatch.setattr(World, "can_be_finished", lambda *_: False)
    first = run(world.plan(a=1, b=1))
    half = killed(plan_undo(services(), journal, journal.read(first.id)), undoes=first.id)
    assert half_undone(journal, journal.read(first.id)) is None, "its rest cannot be planned"
    second = run(plan_undo(services(), journal, journal.read(first.id)), undoes=first.id)
    assert [journal.read(half.id).finished_by, journal.read(first.id).undone_by] == [second.id, second.id]


def test_an_undo_that_still_runs_is_not_begun_again(world, run, journal):
    first = run(world.plan(a=1))
    journal.open(world.plan(a=0), undoes=first.id)
    with pytest.raises(Refused, match="still running"):
        half_undone(journal, journal.read(first.id))


def test_a_later_entry_of_another_cluster_says_nothing(world, killed, journal, services):
    first = killed(world.plan(a=1))
    journal.close(journal.open(replace(world.plan(a=1), cluster_id="elsewhere")), EntryStatus.DONE, [ItemResult("a", Status.DONE)])
    world.now["a"] = 1
    undo = plan_undo(services(), journal, journal.read(first.id))
    assert [item.target for item in undo.changes] == ["a"]


def test_what_was_killed_is_undone_from_what_all_brokers_show(world, killed, run, journal, services):
    """It did not wait until they did; one that was carried out to its end has."""
    first, second = killed(world.plan(a=1)), run(world.plan(b=1))
    here, heard = services(), []
    here.kafka.heard_by_all = lambda: heard.append(dict(world.now)) or world.now.update(a=1)
    undo = plan_undo(here, journal, journal.read(first.id))
    assert [item.target for item in undo.changes] == ["a"]
    plan_undo(here, journal, journal.read(second.id))
    assert len(heard) == 1


def test_plans_are_of_one_kind():
    assert isinstance(World().plan(a=1), Plan)
    assert World().plan(a=0).items == (Item("a", "none", 0, 0),)


def test_a_broker_that_has_not_heard_of_a_change_is_asked_again(monkeypatch):
    """It shows what was there before, so that there seems to be nothing to undo; long after the change there is nothing."""
    monkeypatch.setattr(journal_actions, "POLL_SECONDS", 0)
    now = time_text(to_milliseconds(datetime.now(timezone.utc)))
    answers = iter([NothingToUndo("as before"), SimpleNamespace(has_changes=False), SimpleNamespace(has_changes=True)])

    def invert():
        if isinstance(answer := next(answers), NothingToUndo):
            raise answer
        return answer

    assert journal_actions._once_heard_of(SimpleNamespace(ended=now), invert).has_changes
    answers = iter([NothingToUndo("as before")])
    with pytest.raises(NothingToUndo):
        journal_actions._once_heard_of(SimpleNamespace(ended="2026-11-20T00:00:00Z"), invert)
