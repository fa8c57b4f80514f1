"""Runs the tests on real parts in two halves at once: each waits for brokers and JVMs half of its time, and there are two cores.

    python tests/run_on_real_parts.py

Each half has a Kafka of its own. Ends with the tests that failed and why, with what either half left out, and with 1 when a test failed.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
WITH_STREAMS = ("streams", "sandbox", "replay")
ELSEWHERE = ("unit", "benchmarks", "support")
LEFT_OUT = " left out "
FAILED = ("FAILED ", "ERROR ")
NOTHING = "nothing: every part ran"


@dataclass
class Half:
    """A pytest of its own, whose lines are passed on as they come."""

    name: str
    folders: list[str]
    lines: list[str] = field(default_factory=list)
    code: int = 1

    def run(self) -> None:
        """Run it to its end."""
        command = [sys.executable, "-m", "pytest", *self.folders]
        with subprocess.Popen(command, cwd=HERE.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                self.lines.append(line.rstrip("\n"))
                print(f"{self.name:<8}| {self.lines[-1]}", flush=True)
        self.code = process.returncode

    @property
    def failed(self) -> list[str]:
        """Return the tests that failed, with the first words of why, as the summary has them."""
        starts = [at for at, line in enumerate(self.lines) if "short test summary info" in line]
        found = [line for line in self.lines[starts[-1] :] if line.startswith(FAILED)] if starts else []
        return found or ([f"{self.name}: ended with {self.code} and no summary"] if self.code else [])

    @property
    def left_out(self) -> list[str]:
        """Return what its last section says."""
        starts = [at for at, line in enumerate(self.lines) if LEFT_OUT in line and line.startswith("==")]
        if not starts:
            return [f"{self.name}: ended before it could say what it left out"]
        said = self.lines[starts[-1] + 1 : -1]
        return [line for line in said if line and not line.startswith("=") and line != NOTHING]


def main() -> int:
    """Run both halves and say what was left out."""
    folders = sorted(path.name for path in HERE.iterdir() if path.is_dir() and any(path.glob("**/test_*.py")))
    cluster = [f"tests/{name}" for name in folders if name not in (*WITH_STREAMS, *ELSEWHERE)]
    halves = [Half("cluster", [*cluster, "plugins"]), Half("state", [f"tests/{name}" for name in WITH_STREAMS])]
    threads = [threading.Thread(target=half.run) for half in halves]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for half in halves:
        print(f"{half.name}: {half.lines[-1].strip('= ') if half.lines else 'did not start'}")
    left_out = [line for half in halves for line in half.left_out]
    print("\n".join(["left out:", *(left_out or [NOTHING])]))
    failed = [line for half in halves for line in half.failed]
    print("\n".join(["failed:", *failed] if failed else ["all passed"]))
    return int(any(half.code for half in halves))


if __name__ == "__main__":
    raise SystemExit(main())
