"""The journal on disk: whole entries, crashes distinguished from running processes, and what can be undone or finished."""

import json
import os
import re
import socket
import stat
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timezone
from types import SimpleNamespace

import pytest

from kops.core.errors import ConfigError, NotFound, Refused
from kops.core.plan import ItemResult, Status
from kops.operations.protocol.journal import EntryStatus, Journal, crashed, order_of
from kops.operations.protocol.journal_actions import entry_row, is_unfinished, item_rows, plan_finish, plan_undo, status_of
from kops.operations.protocol.registry import MUTATIONS, mutation_named

KEYS = {
    "id",
    "status",
    "user",
    "host",
    "pid",
    "process_started",
    "started",
    "plan",
    "ended",
    "results",
    "rest",
    "error",
    "left",
    "undoes",
    "undone_by",
    "finishes",
    "finished_by",
    "version",
}


@pytest.fixture
def known(monkeypatch, mutation):
    """Register the mutation of nothing."""
    monkeypatch.setitem(MUTATIONS, "test.recorded", "this_test:MUTATION")
    monkeypatch.setitem(sys.modules, "this_test", type(sys)("this_test"))
    sys.modules["this_test"].MUTATION = mutation


def test_an_entry_is_closed_as_it_was_opened(journal, plan):
    entry = journal.open(plan)
    body = json.loads((journal.folder / f"{entry.id}.json").read_text())
    assert set(body) == KEYS
    assert (body["status"], body["pid"], body["host"], body["ended"]) == ("open", os.getpid(), socket.gethostname(), "")
    journal.close(entry, EntryStatus.DONE, [ItemResult("a", Status.DONE, value={"x": 1})])
    read = journal.read(entry.id)
    assert read.plan == plan
    assert read.item_results == (ItemResult("a", Status.DONE, value={"x": 1}),)
    assert read.ended.endswith("Z")
    assert sorted(path.name for path in journal.folder.iterdir()) == [".lock", f"{entry.id}.json"]


def test_only_its_owner_reads_it(journal, plan):
    entry = journal.open(plan)
    assert stat.S_IMODE(journal.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((journal.folder / f"{entry.id}.json").stat().st_mode) == 0o600


def test_newest_first_and_last(journal, plan):
    made = [journal.open(plan).id for _ in range(3)]
    assert sorted(made)[-1] == journal.read("last").id
    assert [entry.id for entry in journal.entries()] == sorted(made, reverse=True)


def at(monkeypatch, text):
    """Let the journal's clock show a time."""
    clock = SimpleNamespace(now=lambda _zone: datetime.fromisoformat(text).replace(tzinfo=timezone.utc))
    monkeypatch.setattr("kops.operations.protocol.journal.datetime", clock)


def test_a_clock_that_was_put_back_does_not_change_the_order(journal, plan, monkeypatch):
    at(monkeypatch, "2026-11-27T12:00:00")
    first = journal.open(plan)
    at(monkeypatch, "2026-11-27T09:30:00")
    second = journal.open(plan)
    assert [entry.id for entry in journal.entries()] == [second.id, first.id]
    assert journal.read("last").id == second.id
    assert journal.read("last", cluster_id="cluster-1").id == second.id


def test_entries_without_a_number_come_before_those_with_one(journal, plan, monkeypatch):
    at(monkeypatch, "2026-11-27T12:00:00")
    new = journal.open(plan)
    for old in ("20261128T100000000-0123", "20261127T100000000-9999", "20261127T230000000-123abc"):
        body = json.loads((journal.folder / f"{new.id}.json").read_text())
        (journal.folder / f"{old}.json").write_text(json.dumps(body | {"id": old}))
    newest = journal.open(plan)
    found = [entry.id for entry in journal.entries()]
    assert found == [newest.id, new.id, "20261128T100000000-0123", "20261127T230000000-123abc", "20261127T100000000-9999"]
    assert newest.id.endswith("-000002")


def test_after_999_999_entries_a_number_has_more_digits(journal, plan, monkeypatch):
    at(monkeypatch, "2026-11-27T12:00:00")
    old = journal.open(plan)
    (journal.folder / f"{old.id}.json").rename(journal.folder / f"{old.id[:-6]}999999.json")
    assert journal.open(plan).id.endswith("-1000000")
    assert journal.read("last").id.endswith("-1000000")


def test_processes_that_open_entries_at_once_get_numbers_of_their_own(journal, plan):
    code = (
        "import sys; from pathlib import Path; from kops.core.plan import Plan; from kops.operations.protocol.journal import Journal;"
        "journal = Journal(Path(sys.argv[1]));"
        "[journal.open(Plan('test.recorded', '', 'c', 'x', ())) for _ in range(20)]"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, journal.folder]) for _ in range(4)]
    assert [process.wait() for process in running] == [0] * 4
    assert sorted(order_of(entry.id)[0] for entry in journal.entries()) == list(range(1, 81))


def test_those_that_mention_a_text(journal, plan):
    one, other = (journal.open(replace(plan, arguments={"replay": name})) for name in ("kops-replay-1", "kops-replay-2"))
    (journal.folder / "20260101T000000000-dead.json").write_text("{half of kops-replay-1")
    damaged = []
    assert [entry.id for entry in journal.entries(damaged.append, mentioning="kops-replay-2")] == [other.id]
    assert damaged == []
    assert [entry.id for entry in journal.entries(damaged.append, mentioning="kops-replay-1")] == [one.id]
    assert len(damaged) == 1


@pytest.mark.parametrize("entry_id", ["nothing", "../secret", ""])
def test_no_such_entry(journal, plan, entry_id):
    with pytest.raises(NotFound):
        journal.read(entry_id)
    with pytest.raises(NotFound, match="the journal is empty"):
        journal.read("last")


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"version": 1}', '{"plan": {}}'])
def test_a_damaged_entry_is_named_and_does_not_hide_the_others(journal, plan, content):
    good = journal.open(plan)
    bad = journal.folder / "20261127T120000000-999999.json"
    bad.write_text(content)
    with pytest.raises(ConfigError, match=bad.name):
        journal.read("last")
    problems = []
    assert [entry.id for entry in journal.entries(problems.append)] == [good.id]
    assert len(problems) == 1


def test_an_entry_of_a_later_version_is_not_misread(journal, plan):
    entry = journal.open(plan)
    path = journal.folder / f"{entry.id}.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "colour": "red"}))
    with pytest.raises(ConfigError):
        journal.read(entry.id)


def test_crashed_is_open_and_its_process_gone(journal, plan):
    entry = journal.open(plan)
    assert not crashed(entry)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert crashed(replace(entry, pid=ended.pid))
    assert crashed(replace(entry, process_started="before the machine was started"))  # the pid is another's now
    assert not crashed(replace(entry, pid=ended.pid, host="elsewhere"))
    assert not crashed(replace(entry, pid=ended.pid, status=EntryStatus.DONE))
    assert status_of(replace(entry, pid=ended.pid)) == "crashed"


@pytest.mark.parametrize(
    ("change", "unfinished"),
    [
        ({}, True),
        ({"status": EntryStatus.INTERRUPTED}, True),
        ({"status": EntryStatus.UNKNOWN}, True),
        ({"status": EntryStatus.DONE}, False),
        ({"status": EntryStatus.FAILED}, False),
        ({"status": EntryStatus.INTERRUPTED, "undone_by": "x"}, False),
        ({"status": EntryStatus.INTERRUPTED, "finished_by": "x"}, False),
    ],
)
def test_what_is_unfinished(journal, plan, change, unfinished):
    assert is_unfinished(replace(journal.open(plan), **change)) is unfinished


def test_rows_for_people(journal, plan):
    entry = journal.close(journal.open(plan), EntryStatus.INTERRUPTED, [ItemResult("a", Status.DONE)])
    row = entry_row(entry)
    assert (row["id"], row["status"], row["operation"], row["context"]) == (entry.id, "interrupted", "test.recorded", "test")
    assert [(row["target"], row["status"]) for row in item_rows(entry)] == [("a", "done"), ("b", "unchanged"), ("c", "not known")]


DONE = (ItemResult("a", Status.DONE), ItemResult("c", Status.DONE))
FAILED = (ItemResult("a", Status.FAILED), ItemResult("c", Status.SKIPPED))


@pytest.mark.usefixtures("known")
def test_what_can_be_undone(journal, plan, services):
    done = journal.close(journal.open(plan), EntryStatus.DONE, DONE)
    assert plan_undo(services(), journal, done) == plan
    crashed_entry = replace(journal.open(plan), pid=2**22 + 1)
    assert plan_undo(services(), journal, crashed_entry) == plan
    for refused, why in (
        (journal.open(plan), "still running"),
        (replace(done, undone_by="later"), "already undone by later"),
        (journal.close(journal.open(plan), EntryStatus.FAILED, FAILED), "changed nothing"),
        (journal.close(journal.open(plan), EntryStatus.REFUSED, ()), "changed nothing"),
    ):
        with pytest.raises(Refused, match=why):
            plan_undo(services(), journal, refused)


@pytest.mark.usefixtures("known")
def test_what_can_be_finished(journal, plan, services):
    for entry, why in (
        (journal.close(journal.open(plan), EntryStatus.DONE, DONE), "done already"),
        (replace(journal.open(plan), finished_by="later"), "done already"),
        (replace(journal.open(plan), undone_by="later"), "undone by later"),
        (journal.open(plan), "still running"),
        (replace(journal.open(plan), pid=2**22 + 1), "running its command again"),
    ):
        with pytest.raises(Refused, match=why):
            plan_finish(services(), entry)


@pytest.mark.parametrize("name", MUTATIONS)
def test_every_kind_of_mutation_is_found_again(name):
    mutation = mutation_named(name)
    assert mutation.name == name or MUTATIONS[mutation.name] == MUTATIONS[name]  # topics.create is one of topics.change


@pytest.mark.parametrize(
    "damage", [b"[" * 100_000, b'{"a":' * 500 + b"1" + b"}" * 500, b"\xff", b"[]", b"null", b'{"plan": {"items": 7}}', b""]
)
def test_an_entry_that_cannot_be_read_hides_no_other(damage, home, run_kops, plan):
    journal = Journal(home / "state" / "kops" / "journal")
    good = journal.open(plan)
    (journal.folder / "20200101T000000000-aaaa.json").write_bytes(damage)
    shown = run_kops("journal", "list", "-o", "json")
    assert [row["id"] for row in shown.json] == [good.id]
    assert (shown.code, "20200101T000000000-aaaa.json cannot be read" in shown.err, "bug:" in shown.err) == (6, True, False), shown.err
    named = run_kops("journal", "show", "20200101T000000000-aaaa")
    assert (named.code, "cannot be read" in named.err) == (2, True), named.err


@pytest.mark.parametrize("damage", [b"[" * 100_000, b'{"a":' * 500 + b"1" + b"}" * 500, b"\xff\xfe"])
def test_a_plan_that_is_nested_without_end_is_not_one(damage, tmp_path, run_kops):
    (tmp_path / "plan.json").write_bytes(damage)
    refused = run_kops("apply", tmp_path / "plan.json", "-B", "127.0.0.1:1")
    assert (refused.code, "bug:" in refused.err) == (2, False)
    assert re.search("plan.json is (not JSON|not UTF-8|nested)", refused.err), refused.err
