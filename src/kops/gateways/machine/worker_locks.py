"""Tells whether Spark's Python workers of a kops that has ended still write.

The JVM of a killed kops ends when its standard input closes, and its workers after it: until then they keep writing. So the daemon that
forks them holds a lock, which they inherit, on a file that names the kops they work for (flock: held until the last of them has ended).
Whoever changes the cluster next waits for these locks.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

from kops.gateways.machine.private_files import lock_whole
from kops.gateways.machine.processes import ProcessIdentity, start_time

VARIABLE = "KOPS_WORKERS_LOCK"
"""The environment variable that names the file to the daemon."""
WAIT_SECONDS = 60.0
_POLL_SECONDS = 0.05
_PREFIX = "workers-"


def make_lock(folder: Path) -> Path:
    """Return the file of this process, created: its name has the process's id, its text when the process started."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / f"{_PREFIX}{os.getpid()}"
    path.write_text(start_time(os.getpid()) or "", encoding="utf-8")
    return path


def hold_lock() -> None:
    """Hold the lock that the environment names until this process and all that it forks have ended; without a name, do nothing."""
    if VARIABLE in os.environ:
        with contextlib.suppress(FileNotFoundError):
            fcntl.flock(os.open(os.environ[VARIABLE], os.O_RDWR), fcntl.LOCK_SH)


def wait_for_workers(folder: Path, *, waiting: Callable[[int], object]) -> list[int]:
    """Wait until no workers are left of processes that have ended, and delete their files.

    :param waiting: called with the id of a process whose workers have to be waited for
    :returns: ids of the processes whose workers are still there after ``WAIT_SECONDS``
    """
    files = {int(path.name[len(_PREFIX) :]): path for path in folder.glob(f"{_PREFIX}*")}
    return [pid for pid, path in files.items() if not _wait(path, pid, waiting)]


def _wait(path: Path, pid: int, waiting: Callable[[int], object]) -> bool:
    deadline = time.monotonic() + WAIT_SECONDS
    with contextlib.suppress(FileNotFoundError), path.open("r+", encoding="utf-8") as file:
        if ProcessIdentity(pid, file.read()).running:
            return True
        while not lock_whole(file.fileno()):
            waiting(pid)
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)
        path.unlink(missing_ok=True)
    return True
