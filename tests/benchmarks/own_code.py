"""`kops state rebuild --app` beside the application itself reprocessing: same program, broker, records and machine, one run.

    python tests/benchmarks/own_code.py [own-key] [repartition] [--records 10000000] [--keys 1000000] [--runs 3]

The application sums longs by key (Kafka Streams, two threads, RocksDB, default caches): by the records' own key, and by their value,
through a repartition topic. kops runs the same program under its agent, timed as a whole process, Python's, Spark's and the JVMs' start
included. A state file, of which nothing runs in it, proves the result: by it kops verifies what the application has written, and after each
rebuild what the program has.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from pathlib import Path

from applications import Input, Rebuild
from measure import Measured, kafka

from support.programs import KeyBy, Program

FIRST_TIMESTAMP = 1_760_000_000_000
PROGRAMS = {
    "own-key": Program("sum", "long", value="long").named("own-key"),
    "repartition": Program("sum", "long", value="long", key_by=KeyBy("long")).named("repartition"),
}


def main() -> int:
    """Run the comparisons and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", metavar="what", help=f"{', '.join(PROGRAMS)}: all unless named")
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3, help="of kops; the application runs once")
    options = parser.parse_args()
    if unknown := {*options.what} - {*PROGRAMS}:
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory(prefix="kops-benchmark-") as name, kafka(Path(name)) as servers:
        for what, program in PROGRAMS.items():
            if what in (options.what or PROGRAMS):
                compare(what, program, servers, Path(name), options)
    return 0


def compare(what: str, program: Program, servers: str, folder: Path, options: argparse.Namespace) -> None:
    """Let an application process its input, and kops rebuild by the same program what it holds."""
    records = Input(options.records, options.keys, FIRST_TIMESTAMP, largest=options.keys // 2)
    rebuild = Rebuild(servers, folder, program, {program.topic: records}, {program.changelog: "compact"})
    rebuild.fill()
    application = rebuild.application()
    print(
        f"{what}: Kafka Streams, 2 threads, {rebuild.records:,} records: {application.seconds:.1f} s, {application.megabytes} MB",
        flush=True,
    )
    capture = rebuild.capture()
    found = [rebuild.rebuild("--accept-doubtful", show=not number, capture=capture) for number in range(options.runs)]
    middle = statistics.median(run.seconds for run in found)
    for run in found:
        print(f"{what}: kops by the program: {as_text(run)}")
    cpu = application.cpu_seconds / statistics.median(run.cpu_seconds for run in found)
    print(f"{what}: kops {application.seconds / middle:.2f} times faster, with {cpu:.2f} times less processor time", flush=True)


def as_text(measured: Measured) -> str:
    load = os.getloadavg()[0]
    return f"{measured.seconds:.1f} s, {measured.cpu_seconds:.0f} s of processor, {measured.megabytes} MB (load {load:.1f})"


if __name__ == "__main__":
    raise SystemExit(main())
