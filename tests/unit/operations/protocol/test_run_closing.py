"""What is reported, and written, when the work is done: with a full disk, a folder that cannot be written, and Ctrl-C at the end."""

import os
import signal
import socket
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from kops.core.errors import ConfigError, ExitCode, OperationFailed, Refused, Unreachable, VerificationFailed
from kops.core.plan import ItemResult, Plan, Severity, Status
from kops.operations.protocol.journal import EntryStatus, Journal
from kops.operations.protocol.journal_actions import is_unfinished, plan_finish, plan_undo
from kops.operations.protocol.registry import MUTATIONS
from kops.operations.protocol.run import carry_out


@pytest.fixture
def known(monkeypatch, mutation):
    monkeypatch.setitem(MUTATIONS, "test.recorded", "this_test:MUTATION")
    monkeypatch.setitem(sys.modules, "this_test", SimpleNamespace(MUTATION=mutation))


@pytest.fixture
def run(services, mutation, plan):
    return lambda journal: carry_out(services(), plan, mutation, approve=lambda shown: None, journal=journal)


class Full(Journal):
    """A journal on a disk that is full once an entry is open."""

    def close(self, *_at, **_options):
        raise OSError(28, "No space left on device")


def test_a_journal_that_cannot_be_written_refuses_before_anything_is_changed(run, mutation, tmp_path):
    (tmp_path / "journal").write_text("a file in place of the folder")
    with pytest.raises(ConfigError, match="cannot write the journal") as refused:
        run(Journal(tmp_path / "journal"))
    assert refused.value.exit_code is ExitCode.USAGE
    assert mutation.log == ["check"]


def test_a_lock_that_cannot_be_made_too(run, mutation, journal, monkeypatch, services):
    monkeypatch.setattr(mutation, "locks", lambda plan: ["billing"], raising=False)
    services.directories.state.parent.mkdir(parents=True, exist_ok=True)
    services.directories.state.write_text("a file in place of the folder")
    with pytest.raises(ConfigError, match="cannot make a lock"):
        run(journal)
    assert mutation.log == []


def test_a_full_disk_at_the_end_hides_no_result(run, tmp_path):
    result, entry = run(Full(tmp_path / "journal"))
    assert result.status is Status.DONE
    (said,) = result.messages
    assert f"{entry.id}.json: No space left on device" in said
    assert result.exit_code is ExitCode.PARTIAL, "the journal will say that it crashed"


def test_a_full_disk_at_the_end_hides_no_error(run, mutation, tmp_path):
    mutation.raises["apply c"] = OperationFailed("the broker said no")
    with pytest.raises(OperationFailed, match="the broker said no") as failed:
        run(Full(tmp_path / "journal"))
    assert "No space left on device" in failed.value.hint


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_the_entry_is_closed_is_too_late(run, tmp_path, number):
    class Disturbed(Journal):
        def close(self, *at, **options):
            os.kill(os.getpid(), number)
            return super().close(*at, **options)

    before = signal.getsignal(number)
    journal = Disturbed(tmp_path / "journal")
    result, entry = run(journal)
    assert (result.status, journal.read(entry.id).status) == (Status.DONE, EntryStatus.DONE)
    assert signal.getsignal(number) is before


def test_a_connection_lost_in_the_middle_leaves_the_outcome_unknown(run, mutation, journal):
    mutation.raises["apply c"] = Unreachable("no broker answers")
    with pytest.raises(Unreachable) as lost:
        run(journal)
    assert lost.value.message == "no broker answers; whether the last request was carried out is not known"
    assert lost.value.as_json()["exit_code"] == ExitCode.TIMED_OUT
    assert journal.read("last").status is EntryStatus.UNKNOWN


@pytest.mark.usefixtures("known")
def test_what_can_be_half_done_is_unfinished_when_it_fails(run, mutation, journal, monkeypatch):
    monkeypatch.setattr(type(mutation), "resume", lambda self, services, plan: plan)
    mutation.raises["apply a"] = OperationFailed("the writer gave up")
    for can_leave_partial in (False, True):
        monkeypatch.setattr(type(mutation), "can_leave_partial", can_leave_partial)
        with pytest.raises(OperationFailed):
            run(journal)
        assert is_unfinished(journal.read("last")) is can_leave_partial
    mutation.raises.clear()
    wrong = VerificationFailed("read back different").as_json()
    monkeypatch.setattr(type(mutation), "verify", lambda *_: tuple(ItemResult(name, Status.FAILED, error=wrong) for name in "ac"))
    run(journal)
    assert is_unfinished(journal.read("last"))


@pytest.mark.usefixtures("known")
def test_a_later_plan_that_covers_it_finishes_an_earlier_one(run, mutation, journal, monkeypatch, plan):
    first = journal.close(journal.open(plan), EntryStatus.INTERRUPTED, [])
    running = journal.open(plan)
    run(journal)
    assert is_unfinished(journal.read(first.id)), "this kind cannot tell"
    monkeypatch.setattr(type(mutation), "covers", lambda self, services, plan, earlier: True)
    _, entry = run(journal)
    assert journal.read(first.id).finished_by == entry.id
    assert journal.read(running.id).finished_by == "", "it may still be at work"


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("severity", Severity)
def test_an_entry_of_another_machine_is_taken_over_by_its_name(journal, plan, services, mutation, monkeypatch, severity):
    monkeypatch.setattr(mutation, "resume", lambda services, plan: plan, raising=False)
    elsewhere = replace(journal.open(replace(plan, severity=severity, confirm="orders")), host="pod-x", pid=14845)
    for make in (
        lambda **options: plan_undo(services(), journal, elsewhere, **options),
        lambda **o: plan_finish(services(), elsewhere, **o),
    ):
        with pytest.raises(Refused, match=f"process 14845 on pod-x: this machine is {socket.gethostname()}") as refused:
            make()
        assert "--take-over" in refused.value.hint
        found: Plan = make(take_over=True)
        wanted = "pod-x:14845" if severity is Severity.MODERATE else "orders@pod-x:14845"
        assert (found.severity, found.confirm) == (Severity.SEVERE, wanted)
        assert "both change the same things" in found.warnings[0]
    here = journal.open(plan)
    with pytest.raises(Refused, match="still running"):
        plan_finish(services(), here, take_over=True)
