"""What the benchmarks share: a Kafka of their own, and a process's time, CPU and memory."""

from __future__ import annotations

import compileall
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import kops
from kops.config.paths import directories
from kops.gateways.machine.jars import KAFKA_VERSION, class_path, jars_of, kafka_set
from kops.gateways.machine.jdk import require_jdk
from kops.sandbox import cluster as sandboxes
from kops.sandbox.model import PLAINTEXT, Sandbox


@dataclass(frozen=True)
class Measured:
    """A process that ended well.

    :param seconds: from its start to its end, or to what it was waited for
    :param megabytes: the most that it and its children held at once; of what several of them share, each counts its part
    :param cpu_seconds: that it and its children computed, where that was measured
    """

    seconds: float
    megabytes: int
    cpu_seconds: float = 0.0


@contextmanager
def kafka(folder: Path, *, brokers: int = 1) -> Iterator[str]:
    """Run a Kafka; three brokers are in racks of their own. It ends with the benchmark, also where that is stopped by SIGTERM."""
    with sandboxed(folder, brokers=brokers) as sandbox:
        yield sandbox.bootstrap_servers


@contextmanager
def sandboxed(folder: Path, *, brokers: int = 1, security: str = PLAINTEXT) -> Iterator[Sandbox]:
    """Run a sandbox.

    As in an installation, the bytecode of kops is there: compiling it again would count in every start, its Python workers' too.
    """
    compileall.compile_dir(Path(kops.__file__).parent, quiet=1)
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    jars, jdk = jars_of(kafka_set(), directories(os.environ).cache), require_jdk()
    os.environ["KOPS_CACHE_DIR"] = str(directories(os.environ).cache)
    shape = {"kafka_version": KAFKA_VERSION, "brokers": brokers, "racks": brokers > 1, "security": security}
    sandbox = sandboxes.make(folder / "kafka", name="benchmark", **shape)
    try:
        sandboxes.up(sandbox, sandboxes.Programs(jdk, jars))
        yield sandbox
    finally:
        sandboxes.down(sandbox, delete=True)


def apache_command(main_class: str) -> list[str]:
    """Return the command that runs one of Apache's tools as its own scripts do: with 256 MB of heap, and without a log."""
    jars = jars_of(kafka_set(), directories(os.environ).cache)
    return [str(require_jdk().java), "-Xmx256M", "-cp", class_path(jars), main_class]


def kops_command(*arguments: str) -> list[str]:
    """Return the command that runs kops in this interpreter's environment."""
    return [sys.executable, "-m", "kops", *arguments]


def measured(command: Sequence[str], output: Path, *, codes: Sequence[int] = (0,)) -> Measured:
    """Run a command to its end, its output to a file.

    :param codes: how it may end
    :raises RuntimeError: when it ends otherwise, with the end of what it said
    """
    errors = output.with_suffix(".err")
    with output.open("wb") as out, errors.open("wb") as err:
        started = time.monotonic()
        process = subprocess.Popen(list(command), stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        peak = Peak(process.pid, every=0.02)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - started
        process.returncode = os.waitstatus_to_exitcode(status)
    megabytes = peak.end()  # not ru_maxrss: that begins with what this process held when it forked
    if process.returncode not in codes:
        raise RuntimeError(f"{' '.join(command)[:200]} ended with {process.returncode}:\n{errors.read_text()[-2000:]}")
    return Measured(seconds, megabytes, usage.ru_utime + usage.ru_stime)


class Peak:
    """Watches what a process and its children hold in memory, while it lives, and what they compute."""

    def __init__(self, pid: int, *, every: float = 0.2) -> None:
        self._pid = pid
        self._every = every
        self._most = self._resident = 0
        self._cpu_seconds: dict[int, float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def end(self) -> int:
        """Return the most that it held, in MB."""
        self._over.set()
        self._thread.join()
        return self._most >> 20

    @property
    def cpu_seconds(self) -> float:
        """Return what they have computed, but for what each did after the last look at it."""
        return sum(self._cpu_seconds.values())

    def _watch(self) -> None:
        while not self._over.wait(self._every):
            pids = list(family(self._pid))
            self._cpu_seconds.update({pid: found for pid in pids if (found := cpu_seconds(pid))})
            now = sum(map(resident, pids))
            if now > self._resident:  # only then, as the look takes some milliseconds
                self._resident = now
                self._most = max(self._most, sum(map(proportional, pids)))


def family(pid: int) -> Iterator[int]:
    """Yield a process and all its descendants."""
    yield pid
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())  # a JVM starts processes from any of its threads
    except OSError:
        return
    for thread in threads:
        try:
            children = (thread / "children").read_text().split()
        except OSError:
            continue
        for child in children:
            yield from family(int(child))


def cpu_seconds(pid: int) -> float:
    """Return the seconds of processor time of a process, 0 when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def proportional(pid: int) -> int:
    """Return the bytes that are a process's own, and its part of what it shares; 0 when it is gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))


def resident(pid: int) -> int:
    """Return the resident bytes that are a process's own or shared, 0 when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0
