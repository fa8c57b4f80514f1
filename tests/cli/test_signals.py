"""Ctrl-C, SIGTERM, SIGKILL and a closed stderr in the middle of a mutation, in real processes."""

import csv
import io
import json
import os
import signal
import socket

import pytest

from support.patience import HANG_SECONDS

pytestmark = pytest.mark.broker


def journal(run_kops):
    return run_kops("journal", "list", "-o", "json").ok().json


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)])
def test_interrupted_says_what_was_done_and_can_be_undone(slow, run_kops, number, code):
    process = slow.start("apply", slow.plan, "--yes", "-o", "json")
    slow.wait_for("waiting")
    process.send_signal(number)
    out, err = process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == code
    assert out == ""
    body = json.loads(err.splitlines()[-1])
    error = body["errors"][0]
    assert (error["code"], error["exit_code"]) == ("interrupted", code)
    assert error["details"]["done"] == ["a", "b"]
    assert error["details"]["not_done"] == ["c", "d"]
    (entry,) = journal(run_kops)
    assert (entry["id"], entry["status"]) == (error["details"]["journal_id"], "interrupted")
    assert [row["id"] for row in run_kops("journal", "list", "--unfinished", "-o", "json").ok().json] == [entry["id"]]
    slow.go()
    assert slow.run("undo", entry["id"], "--yes")[0] == 0
    assert slow.items == []
    assert [row["status"] for row in journal(run_kops)] == ["done", "undone"]
    code, _, err = slow.run("undo", entry["id"], "--yes")
    assert code == 5
    assert "already undone" in err


def test_interrupted_and_finished(slow, run_kops):
    process = slow.start("apply", slow.plan, "--yes")
    slow.wait_for("waiting")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=HANG_SECONDS)
    assert "kops: error: interrupted: 2 of 4 done (a, b); not known to be done: c, d" in err
    slow.go()
    code, _, err = slow.run("journal", "finish", "last", "--yes")
    assert code == 0, err
    assert slow.items == ["a", "b", "c", "d"]
    assert [row["status"] for row in journal(run_kops)] == ["done", "finished"]
    assert run_kops("journal", "list", "--unfinished", "-o", "json").ok().json == []
    (first,) = [row["id"] for row in journal(run_kops) if row["finished_by"]]
    assert slow.run("journal", "finish", first, "--yes")[0] == 5


def test_killed_leaves_an_open_entry_that_is_told_from_a_running_one(slow, run_kops):
    process = slow.start("apply", slow.plan, "--yes")
    slow.wait_for("waiting")
    (running,) = journal(run_kops)
    assert running["status"] == "open"
    code, _, err = slow.run("undo", running["id"], "--yes")
    assert code == 5
    assert "still running" in err
    process.kill()
    process.communicate(timeout=HANG_SECONDS)
    (crashed,) = journal(run_kops)
    assert (crashed["id"], crashed["status"]) == (running["id"], "crashed")
    rows = csv.DictReader(io.StringIO(run_kops("journal", "show", "last", "-o", "csv").ok().out))
    assert {row["target"]: row["status"] for row in rows} == dict.fromkeys("abcd", "not known")
    slow.go()
    assert slow.run("undo", "last", "--yes")[0] == 0
    assert slow.items == []


def test_nobody_reads_stderr_any_more(slow, run_kops):
    reading, writing = os.pipe()
    process = slow.start("apply", slow.plan, "--yes", "-o", "json", stderr=writing)
    os.close(writing)
    slow.wait_for("waiting")
    os.close(reading)
    slow.go()
    out, _ = process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == 0
    assert json.loads(out)["status"] == "done"
    assert slow.items == ["a", "b", "c", "d"]


@pytest.mark.parametrize(("number", "code", "word"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")])
def test_interrupted_while_it_waits_for_a_broker_that_never_answers(kops_process, number, code, word):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60)
        process = kops_process("topics", "list", "-B", f"127.0.0.1:{silent.getsockname()[1]}")
        connection, _ = silent.accept()
        process.send_signal(number)
        out, err = process.communicate(timeout=HANG_SECONDS)
        connection.close()
    assert (process.returncode, out) == (code, "")
    assert err.lstrip("\n") == f"kops: error: {word}; no plan was being carried out\n"
