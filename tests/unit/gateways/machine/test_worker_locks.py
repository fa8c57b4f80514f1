"""Locks that tell whether workers of a kops that has ended are left; real processes hold them."""

import os
import subprocess
import sys

import pytest

from kops.core.errors import Refused
from kops.gateways.machine import worker_locks
from kops.gateways.machine.worker_locks import VARIABLE, make_lock, wait_for_workers
from kops.operations.protocol.locks import wait_for_others

MAKES = """
import sys
from pathlib import Path
from kops.gateways.machine.worker_locks import make_lock
print(make_lock(Path(sys.argv[1])))
"""
HOLDS = """
import os, sys
from kops.gateways.machine.worker_locks import hold_lock
hold_lock()
if os.fork() == 0:
    print("held", flush=True)
    sys.stdin.read()
"""
"""A daemon that ends at once and leaves a worker behind, which ends with its standard input."""


class Steps:
    def __init__(self) -> None:
        self.steps: list[str] = []

    def step(self, text):
        self.steps.append(text)

    def advance(self, done, total, unit): ...


@pytest.fixture
def ended(tmp_path, monkeypatch):
    """The lock of a kops that has ended, and its id."""
    made = subprocess.run([sys.executable, "-c", MAKES, tmp_path], capture_output=True, text=True, check=True).stdout.strip()
    monkeypatch.setattr(worker_locks, "WAIT_SECONDS", 0.2)
    return made, int(made.rpartition("-")[2])


@pytest.fixture
def worker(ended):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, VARIABLE: ended[0]}
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.communicate()


def test_a_worker_that_was_left_behind_refuses_a_change_until_it_ends(tmp_path, ended, worker):
    progress = Steps()
    with pytest.raises(Refused, match=f"Spark workers of process {ended[1]}, a kops that has ended") as refused:
        wait_for_others(tmp_path, progress)
    assert "pgrep" in refused.value.hint
    assert set(progress.steps) == {f"waiting for the Spark workers of process {ended[1]}, which has ended"}
    worker.communicate()
    wait_for_others(tmp_path, Steps())
    assert not list(tmp_path.iterdir())


def test_workers_that_end_meanwhile_are_waited_for(tmp_path, ended, worker, monkeypatch):
    monkeypatch.setattr(worker_locks, "WAIT_SECONDS", 300)
    waited: list[int] = []

    def waiting(pid):
        if not waited:
            worker.stdin.close()
        waited.append(pid)

    assert wait_for_workers(tmp_path, waiting=waiting) == []
    assert set(waited) == {ended[1]}
    worker.stdin = None


def test_workers_of_a_kops_that_runs_are_left_alone(tmp_path):
    mine = make_lock(tmp_path)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, VARIABLE: str(mine)}
    )
    assert holder.stdout.readline() == "held\n"
    assert wait_for_workers(tmp_path, waiting=lambda _pid: pytest.fail("waited")) == []
    assert mine.exists()
    holder.communicate()


def test_without_workers_or_folder_nothing_is_waited_for(tmp_path, ended):
    assert wait_for_workers(tmp_path, waiting=lambda _pid: pytest.fail("waited")) == []
    assert wait_for_workers(tmp_path / "none", waiting=lambda _pid: pytest.fail("waited")) == []
