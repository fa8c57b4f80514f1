import os
import signal
import subprocess
import sys
import time

import pytest

from kops.gateways.machine.processes import ProcessIdentity, kill, send, start_detached, start_time, stop, wait_until_gone
from support.patience import HANG_SECONDS


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


def test_process_is_identified_by_pid_and_start_time(process):
    running = process()
    assert running.running
    assert ProcessIdentity(running.pid, start_time(running.pid)) == running


def test_process_is_detached_from_terminal(process):
    running = process()
    assert os.getsid(running.pid) == running.pid != os.getsid(0)


def test_reused_pid_is_never_signalled(process):
    bystander = process()
    stale = ProcessIdentity(bystander.pid, "another start")
    assert not stale.running
    assert not send(stale, signal.SIGKILL)
    assert stop(stale)
    kill(stale)
    assert bystander.running


def test_unused_pid_is_not_running():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert start_time(ended.pid) is None


def test_zombie_child_is_not_running(process):
    assert wait_until_gone(process("pass"), 20)


def test_stop_is_graceful_on_sigterm(process):
    assert stop(process(), grace=20) is True


def test_stop_kills_after_grace_period(process, tmp_path):
    ready = tmp_path / "ready"
    stubborn = process(
        f"import pathlib, signal, time; signal.signal(15, signal.SIG_IGN); pathlib.Path({str(ready)!r}).touch(); time.sleep(600)"
    )
    deadline = time.monotonic() + HANG_SECONDS
    while not ready.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert stop(stubborn, grace=0.2) is False
    assert not stubborn.running


def test_output_goes_to_log(process, tmp_path):
    assert wait_until_gone(process("print('hello')"), 20)
    assert (tmp_path / "log").read_text() == "hello\n"


@pytest.mark.parametrize(("code", "ended_with"), [("raise SystemExit(3)", 3), ("import os; os.kill(os.getpid(), 9)", -9)])
def test_exit_code_of_child_is_remembered(process, code, ended_with):
    running = process()
    assert running.ended_with is None
    ended = process(code)
    assert wait_until_gone(ended, 20)
    assert ended.ended_with == ended_with
    kill(running)
    assert running.ended_with == -signal.SIGKILL


def test_dying_process_with_many_threads_does_not_reappear(process, tmp_path):
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
