"""What a start of kops costs: CPU and wall time of small commands, and what each import takes of it.

    python tests/benchmarks/start.py [--runs 30]

`kops --help` is to stay within 60 ms of CPU, `kops topics list` within 200 ms. The times of imports come from Python itself
(``-X importtime``), which slows them down: their shares count, not their sums.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from measure import Measured, kafka, measured

IMPORT = re.compile(r"import time:\s+(\d+) \|\s+(\d+) \|( *)(\S+)")
SHOWN = 12
LIMITS = {"--help": 60, "topics list": 200}
"""CPU milliseconds."""


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=30)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kops-benchmark-") as name, kafka(Path(name)) as servers:
        output = Path(name) / "out.txt"
        bare = [measured([sys.executable, "-c", ""], output) for _ in range(options.runs)]
        show("python -c ''", bare)
        for arguments in (["--help"], ["groups", "--help"], ["groups", "lag", "--help"], ["topics", "list"], ["groups", "list"]):
            command = [installed(), *arguments, *([] if "--help" in arguments else ["-B", servers])]
            runs = [measured(command, output) for _ in range(options.runs)]
            show(f"kops {' '.join(arguments)}", runs, LIMITS.get(" ".join(arguments)))
            for package, milliseconds in imports(command[1:]):
                print(f"    {milliseconds:6.1f} ms  {package}")
    return 0


def installed() -> str:
    """Return the console script beside this interpreter: what a user starts."""
    return str(Path(sys.executable).parent / "kops")


def show(what: str, runs: Sequence[Measured], limit: int | None = None) -> None:
    """Print medians in milliseconds, and whether they are within a limit."""
    cpu, wall = (1000 * statistics.median(values) for values in ([run.cpu_seconds for run in runs], [run.seconds for run in runs]))
    verdict = "" if limit is None else f"  ({'within' if cpu <= limit else 'OVER'} {limit} ms of CPU)"
    print(f"{what:24} CPU {cpu:6.0f} ms  wall {wall:6.0f} ms{verdict}", flush=True)


def imports(arguments: Sequence[str]) -> Iterator[tuple[str, float]]:
    """Yield the packages whose modules take longest to import, all of a package together, in milliseconds."""
    command = [sys.executable, "-X", "importtime", "-m", "kops", *arguments]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    totals: Counter[str] = Counter()
    for line in text.splitlines():
        if match := IMPORT.match(line):
            totals[match[4].split(".")[0]] += int(match[1])
    return ((package, microseconds / 1000) for package, microseconds in totals.most_common(SHOWN))


if __name__ == "__main__":
    raise SystemExit(main())
