"""Processes of this machine: start one that outlives the shell, know it again, stop it.

A pid alone is not an identity: the number is used again after the process ends, and after a restart of the machine.
A process is therefore remembered by its pid and the time it started, and nothing is ever signalled when they differ.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_POLL_SECONDS = 0.05
_STATE_FIELD = 0
_THREADS_FIELD = 17
_START_TIME_FIELD = 19
"""In ``/proc/PID/stat`` after the name in parentheses (proc(5): fields 3, 20 and 22)."""


_ended: dict[int, int] = {}
"""What children of this process ended with, by pid, as :func:`os.waitstatus_to_exitcode` says it."""


@dataclass(frozen=True)
class ProcessIdentity:
    """One process, never another one that got the same pid later.

    :param started: when it started, as :func:`start_time` tells it; opaque, compared for equality
    """

    pid: int
    started: str

    @property
    def running(self) -> bool:
        """Whether this very process is alive (a zombie is not)."""
        return start_time(self.pid) == self.started

    @property
    def ended_with(self) -> int | None:
        """The exit code, or a negative signal number; None if it is running or was not started by this process."""
        return None if self.running else _ended.get(self.pid)


def start_time(pid: int) -> str | None:
    """Return when the process with this pid started; None if there is none.

    On Linux the boot id and the clock ticks since the boot; elsewhere what ``ps -o lstart`` says.
    """
    _reap(pid)
    proc = Path("/proc")
    if not (proc / "self" / "stat").exists():
        return _start_time_by_ps(pid)
    try:
        stat = (proc / str(pid) / "stat").read_text(errors="replace")
        boot = (proc / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    # A process whose first thread is a zombie lives, and keeps its ports, until its other threads have ended too. They are counted here
    # and not in PID/task: a listing of that breaks off at a thread that ends meanwhile, so that the process is gone, and there again.
    ended = fields[_STATE_FIELD] in {"Z", "X"} and int(fields[_THREADS_FIELD]) <= 1
    return None if ended else f"{boot}:{fields[_START_TIME_FIELD]}"


def _start_time_by_ps(pid: int) -> str | None:
    found = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False, env={"LC_ALL": "C", **os.environ}
    )
    state, _, started = found.stdout.strip().partition(" ")
    return None if found.returncode or state.startswith("Z") or not started else started.strip()


def _reap(pid: int) -> None:
    """Reap our own child if it has ended, so that it is not mistaken for a live process."""
    with contextlib.suppress(OSError):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            _ended[pid] = os.waitstatus_to_exitcode(status)


def start_detached(command: Sequence[str], *, log: Path, directory: Path, environment: Mapping[str, str]) -> ProcessIdentity:
    """Start a process in its own session, so that it survives the shell and its Ctrl-C.

    :param log: takes what the process prints, appended
    """
    with log.open("ab") as output:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=directory,
            env=dict(environment),
            start_new_session=True,
        )
    _ended.pop(process.pid, None)
    process.returncode = 0  # it is not ours to wait for: no ResourceWarning, no reaping behind start_time's back
    return ProcessIdentity(process.pid, start_time(process.pid) or "ended")


def send(process: ProcessIdentity, number: signal.Signals) -> bool:
    """Signal this very process; return False if it has ended or its pid was reused."""
    if not process.running:
        return False
    try:
        os.kill(process.pid, number)
    except ProcessLookupError:
        return False
    return True


def stop(process: ProcessIdentity, *, grace: float = 30.0) -> bool:
    """End a process: SIGTERM, then SIGKILL after the grace period in seconds; return when it has ended.

    :returns: True when it ended by itself within the grace period, False when it had to be killed
    """
    if not send(process, signal.SIGTERM) or wait_until_gone(process, grace):
        return True
    kill(process)
    return False


def kill(process: ProcessIdentity) -> None:
    """Kill a process (SIGKILL) and wait until it has ended."""
    send(process, signal.SIGKILL)
    wait_until_gone(process, 30.0)


def wait_until_gone(process: ProcessIdentity, seconds: float) -> bool:
    """Return False if the process is still running after this many seconds."""
    deadline = time.monotonic() + seconds
    while process.running:
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True
