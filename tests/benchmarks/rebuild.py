"""`kops state rebuild` beside the application itself reprocessing: same broker, same records, same machine, one run.

    python tests/benchmarks/rebuild.py [--records 10000000] [--keys 1000000] [--runs 3]

The application sums longs by key (Kafka Streams, two threads, RocksDB, default caches). kops is timed as a whole process, Python's and
Spark's start included, and its result is proven equal: before the changelog is emptied, kops verifies what the application wrote, and after
the rebuild it verifies its own.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

from applications import Input, Rebuild
from measure import kafka

from support.programs import Program

FIRST_TIMESTAMP = 1_760_000_000_000


def main() -> int:
    """Run the comparison and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3, help="of kops; the application runs once")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kops-benchmark-") as name, kafka(Path(name)) as servers:
        small = sums(servers, Path(name), "small", options.records // 10, options.keys)
        large = sums(servers, Path(name), "large", options.records, options.keys)
        for each in (small, large):
            each.fill()
        application = large.application()
        small.application()
        print(f"Kafka Streams, 2 threads, {large.records:,} records: {application.seconds:.1f} s", flush=True)
        small.rebuild(show=False)  # leaves the archive of Spark's classes behind, as every first run does
        tenth = small.rebuild(show=False)
        runs = [large.rebuild(show=number == 0) for number in range(options.runs)]
        middle = statistics.median(run.seconds for run in runs)
        print(f"kops state rebuild, {large.records:,} records: {', '.join(f'{run.seconds:.1f}' for run in runs)} s, median {middle:.1f} s")
        print(f"ratio: {application.seconds / middle:.2f} times faster than reprocessing")
        print(
            f"memory of kops with its JVM: {tenth.megabytes} MB at {small.records:,} records, {runs[-1].megabytes} MB at {large.records:,}"
        )
    return 0


def sums(servers: str, folder: Path, name: str, records: int, keys: int) -> Rebuild:
    """Return the application that sums longs by key."""
    program = Program("sum", "long", value="long").named(name)
    return Rebuild(servers, folder, program, {program.topic: Input(records, keys, FIRST_TIMESTAMP)}, {program.changelog: "compact"})


if __name__ == "__main__":
    raise SystemExit(main())
