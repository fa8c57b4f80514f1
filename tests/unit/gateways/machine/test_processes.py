import os
import signal
import subprocess
import sys
import time

import pytest

from kops.gateways.machine.processes import ProcessIdentity, kill, send, start_detached, start_time, stop, wait_until_gone


@pytest.fixture
def process(tmp_path):
    """Start a Python one-liner as its own session."""
    started = []

    def start(code="import time; time.sleep(600)"):
        identity = start_detached([sys.executable, "-c", code], log=tmp_path / "log", directory=tmp_path, environment=os.environ)
        started.append(identity)
        return identity

    yield start
    for identity in started:
        kill(identity)


def test_a_started_process_is_known_by_its_pid_and_start(process):
    running = process()
    assert running.running
    assert ProcessIdentity(running.pid, start_time(running.pid)) == running


def test_a_process_is_detached_from_the_terminal_of_its_starter(process):
    running = process()
    assert os.getsid(running.pid) == running.pid != os.getsid(0)


def test_a_pid_that_is_now_another_process_is_never_signalled(process):
    bystander = process()
    stale = ProcessIdentity(bystander.pid, "another start")
    assert not stale.running
    assert not send(stale, signal.SIGKILL)
    assert stop(stale)
    kill(stale)
    assert bystander.running


def test_a_pid_without_a_process_is_gone():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert start_time(ended.pid) is None


def test_a_child_that_ended_and_was_not_waited_for_is_gone(process):
    assert wait_until_gone(process("pass"), 20)


def test_a_process_that_listens_to_sigterm_ends_by_itself(process):
    assert stop(process(), grace=20) is True


def test_a_process_that_ignores_sigterm_is_killed_after_the_grace(process, tmp_path):
    ready = tmp_path / "ready"
    stubborn = process(
        f"import pathlib, signal, time; signal.signal(15, signal.SIG_IGN); pathlib.Path({str(ready)!r}).touch(); time.sleep(600)"
    )
    deadline = time.monotonic() + 300
    while not ready.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert stop(stubborn, grace=0.2) is False
    assert not stubborn.running


def test_what_it_prints_goes_to_the_log(process, tmp_path):
    assert wait_until_gone(process("print('hello')"), 20)
    assert (tmp_path / "log").read_text() == "hello\n"


@pytest.mark.parametrize(("code", "ended_with"), [("raise SystemExit(3)", 3), ("import os; os.kill(os.getpid(), 9)", -9)])
def test_what_a_child_ended_with_is_remembered(process, code, ended_with):
    running = process()
    assert running.ended_with is None
    ended = process(code)
    assert wait_until_gone(ended, 20)
    assert ended.ended_with == ended_with
    kill(running)
    assert running.ended_with == -signal.SIGKILL


def test_a_process_that_dies_with_many_threads_is_not_gone_and_there_again(process, tmp_path):
    ready = tmp_path / "ready"
    sleeping = "[threading.Thread(target=time.sleep, args=(600,)).start() for _ in range(200)]"
    for _ in range(10):
        running = process(f"import threading, time; {sleeping}; open({str(ready)!r}, 'w')")
        while not ready.exists():
            time.sleep(0.01)
        ready.unlink()
        send(running, signal.SIGKILL)
        while running.running:
            pass
        assert not any(running.running for _ in range(100))
