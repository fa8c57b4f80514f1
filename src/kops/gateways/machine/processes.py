"""Local processes: start one that outlives the shell, recognize it later, stop it.

A pid alone is not an identity: it is reused after the process ends, and after a reboot.
A process is therefore identified by its pid and start time, and never signalled if they differ.
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
"""Positions in ``/proc/PID/stat`` after the name in parentheses (proc(5): fields 3, 20 and 22)."""


_ended: dict[int, int] = {}
"""Exit codes of children by pid, as :func:`os.waitstatus_to_exitcode` returns them."""


@dataclass(frozen=True)
class ProcessIdentity:
    """One process, never another one that got the same pid later.

    :param started: start time as returned by :func:`start_time`; opaque, compared for equality
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

    On Linux the boot id and the clock ticks since boot; elsewhere the output of ``ps -o lstart``.
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
    # A process whose first thread is a zombie is alive, and keeps its ports, until its other threads have ended. They are counted here
    # and not in PID/task, whose listing stops at a thread that ends meanwhile, so that the process would seem to vanish and return.
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

    :param log: the process's output is appended to it
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
    process.returncode = 0  # never waited for: no ResourceWarning, and only start_time reaps it
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

    :returns: True if it ended within the grace period, False if it had to be killed
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
