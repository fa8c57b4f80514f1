"""The safety protocol, step by step, on a mutation of nothing and a real journal."""

import pytest

from kops.core.errors import (
    ApprovalRequired,
    ExitCode,
    OperationFailed,
    ReadOnlyContext,
    Refused,
    StateMoved,
    Terminated,
    TimedOut,
    Unreachable,
)
from kops.core.plan import Status
from kops.operations.protocol.journal import EntryStatus
from kops.operations.protocol.mutation import compare_guard
from kops.operations.protocol.run import InterruptedMutation, carry_out


@pytest.fixture
def run(services, mutation, journal, plan):
    def run(*, approve=None, undoes="", finishes="", cluster_id="cluster-1", **connection):
        def agree(shown):
            assert shown is plan
            mutation.log.append("approve")

        return carry_out(
            services(cluster_id, **connection),
            plan,
            mutation,
            approve=approve or agree,
            journal=journal,
            undoes=undoes,
            finishes=finishes,
        )

    return run


def only_entry(journal):
    (entry,) = journal.entries()
    return entry


def test_the_order_of_the_steps(run, mutation, journal):
    result, entry = run()
    assert mutation.log == ["approve", "check", "apply a", "apply c", "verify"]
    assert [item.target for item in result.items] == ["a", "c"]
    assert only_entry(journal).status is EntryStatus.DONE
    assert only_entry(journal).id == entry.id


def test_the_entry_is_on_disk_before_anything_is_applied(run, mutation, journal, plan):
    seen = []
    mutation.step = lambda text: seen.append((text, [entry.status.value for entry in journal.entries()]))
    run()
    assert seen == [("check", []), ("apply a", ["open"]), ("apply c", ["open"]), ("verify", ["open"])]
    assert only_entry(journal).plan == plan


@pytest.mark.parametrize(
    ("arguments", "kind"), [({"read_only": True}, ReadOnlyContext), ({"cluster_id": "another"}, StateMoved)], ids=["read-only", "cluster"]
)
def test_refused_before_anybody_is_asked(run, mutation, journal, arguments, kind):
    with pytest.raises(kind):
        run(**arguments)
    assert mutation.log == []
    assert list(journal.entries()) == []


def test_not_approved(run, mutation, journal):
    def no(_plan):
        raise ApprovalRequired("not approved")

    with pytest.raises(ApprovalRequired):
        run(approve=no)
    assert mutation.log == []
    assert list(journal.entries()) == []


def test_moved_since_the_plan_was_made(run, mutation, journal):
    mutation.raises["check"] = StateMoved("moved")
    with pytest.raises(StateMoved):
        run()
    assert mutation.log == ["approve", "check"]
    assert list(journal.entries()) == []


@pytest.mark.parametrize(
    "case",
    [
        ("apply a", OperationFailed("no"), EntryStatus.FAILED),
        ("apply a", Refused("no"), EntryStatus.REFUSED),
        ("apply a", TimedOut("late"), EntryStatus.UNKNOWN),
        ("apply c", OperationFailed("no"), EntryStatus.PARTIAL),
        ("apply c", Refused("no"), EntryStatus.PARTIAL),
        ("apply c", Unreachable("gone"), EntryStatus.UNKNOWN),
        ("verify", OperationFailed("no"), EntryStatus.PARTIAL),
    ],
)
def test_an_error_in_the_middle_closes_the_entry_and_names_it(run, mutation, journal, case):
    step, error, status = case
    mutation.raises[step] = error
    with pytest.raises(type(error)) as raised:
        run()
    entry = only_entry(journal)
    assert entry.status is status
    assert entry.error["message"] == error.message
    assert entry.id in raised.value.hint
    assert raised.value.details["journal_id"] == entry.id


def test_a_bug_in_the_middle_closes_the_entry(run, mutation, journal):
    mutation.raises["apply c"] = ZeroDivisionError("oh")
    with pytest.raises(ZeroDivisionError):
        run()
    entry = only_entry(journal)
    assert entry.status is EntryStatus.FAILED
    assert entry.error == {"code": "bug", "message": "ZeroDivisionError('oh')"}
    assert [result.target for result in entry.item_results] == ["a"]


@pytest.mark.parametrize(("signal", "code"), [(KeyboardInterrupt(), ExitCode.INTERRUPTED), (Terminated(), ExitCode.TERMINATED)])
def test_interrupted_says_what_was_done_and_what_is_not_known(run, mutation, journal, signal, code):
    mutation.raises["apply c"] = signal
    with pytest.raises(InterruptedMutation) as raised:
        run()
    assert raised.value.exit_code == code
    assert raised.value.details["done"] == ["a"]
    assert raised.value.details["not_done"] == ["c"]
    assert "1 of 2 done (a); not known to be done: c" in raised.value.message
    assert only_entry(journal).status is EntryStatus.INTERRUPTED


def test_some_items_fail(run, mutation, journal):
    mutation.statuses["a"] = Status.FAILED
    result, _ = run()
    assert result.status is Status.PARTIAL
    assert only_entry(journal).status is EntryStatus.PARTIAL


def test_an_undo_marks_what_it_took_back_only_when_all_of_it_is_done(run, mutation, journal):
    _, first = run()
    mutation.statuses["a"] = Status.FAILED
    run(undoes=first.id)
    assert journal.read(first.id).undone_by == ""
    mutation.statuses.clear()
    _, third = run(undoes=first.id)
    assert journal.read(first.id).undone_by == third.id
    assert journal.read(third.id).undoes == first.id


def test_finishing_marks_what_was_unfinished(run, mutation, journal):
    mutation.raises["apply c"] = KeyboardInterrupt()
    with pytest.raises(InterruptedMutation):
        run()
    first = only_entry(journal)
    mutation.raises.clear()
    _, second = run(finishes=first.id)
    assert journal.read(first.id).finished_by == second.id


@pytest.mark.parametrize("last", [0, 1, 2])
def test_finishing_marks_also_what_was_to_finish_it_and_was_stopped(run, mutation, journal, last):
    mutation.raises["apply c"] = KeyboardInterrupt()
    with pytest.raises(InterruptedMutation):
        run()
    stopped = [only_entry(journal).id]
    for _ in range(2):
        with pytest.raises(InterruptedMutation):
            run(finishes=stopped[-1])
        stopped.append(next(journal.entries()).id)
    with pytest.raises(InterruptedMutation):
        run()
    another = next(journal.entries()).id
    mutation.raises.clear()
    _, done = run(finishes=stopped[last])
    assert {entry.id: entry.finished_by for entry in journal.entries()} == dict.fromkeys(stopped, done.id) | {another: "", done.id: ""}


def test_the_guard_is_compared_as_it_is(plan):
    compare_guard(plan, {}, "nothing")
    with pytest.raises(StateMoved, match="group billing changed since the plan was made"):
        compare_guard(plan, {"x": 1}, "group billing")
