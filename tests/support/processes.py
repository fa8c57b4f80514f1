"""Processes that tests end, with all that they have started."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator

from support.patience import HANG_SECONDS
from support.streams_apps import wait_for


def descendants(pids: set[int]) -> set[int]:
    """Return the processes that these have started, and what those have, as long as they run."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines()]
    parents = {int(pid): int(parent) for pid, parent, state in rows if not state.startswith("Z")}
    found: set[int] = set()
    while more := {pid for pid, parent in parents.items() if parent in pids | found} - found:
        found |= more
    return found


def named(pids: set[int], name: str) -> set[int]:
    """Return those of these processes whose command line has a name; there is one at least."""
    listed = subprocess.run(["ps", "-A", "-ww", "-o", "pid=,args="], capture_output=True, text=True, check=True).stdout
    found = {int(line.split()[0]) for line in listed.splitlines() if name in line} & pids
    assert found, listed
    return found


def freeze(pid: int) -> None:
    """Stop a process, and wait until all of its threads stand still: on a busy machine they run on for a moment after the signal."""
    os.kill(pid, signal.SIGSTOP)

    def stands_still() -> bool:
        threads = subprocess.run(["ps", "-L", "-p", str(pid), "-o", "stat="], capture_output=True, text=True, check=True).stdout.split()
        return all(state.startswith(("T", "Z")) for state in threads)

    wait_for(f"process {pid} to stand still", stands_still)


@contextlib.contextmanager
def stopped(pids: set[int], name: str) -> Iterator[None]:
    """Stop those of these processes whose command line has a name, so that they cannot end, until the block ends."""
    chosen = named(pids, name)
    for pid in chosen:
        freeze(pid)
    try:
        yield
    finally:
        for pid in chosen:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def end(process: subprocess.Popen, number: signal.Signals = signal.SIGKILL) -> str:
    """End a process by a signal, wait until nothing that it had started still runs, and return its output.

    Workers of Spark outlive a killed kops for a moment, and write: what tests look at then would be decided by the machine's speed.
    """
    started = descendants({process.pid})
    process.send_signal(number)
    _, said = process.communicate(timeout=HANG_SECONDS)
    wait_until_gone(started)
    return str(said)


def wait_until_gone(started: set[int]) -> None:
    """Wait until none of these processes runs, nor anything that they have started."""

    def left() -> set[int]:
        running = subprocess.run(["ps", "-A", "-o", "pid=,stat="], capture_output=True, text=True, check=True).stdout
        alive = {int(pid) for pid, state in map(str.split, running.splitlines()) if not state.startswith("Z")}
        started.update(descendants(started))
        return started & alive

    wait_for("what it started to end", lambda: not left())
