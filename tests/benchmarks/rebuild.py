"""`kops state rebuild` beside the application itself reprocessing: same broker, same records, same machine, one run.

    python tests/benchmarks/rebuild.py [--records 10000000] [--keys 1000000] [--runs 3]

The application sums longs by key (Kafka Streams, two threads, RocksDB, default caches). kops is timed as a whole process, Python's and
Spark's start included, and its result is proven equal: before the changelog is emptied, kops verifies what the application wrote, and after
the rebuild it verifies its own.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy
import pyarrow
from measure import Measured, Peak, kafka

from kops.formats.murmur2_columns import partitions_of
from kops.spark.batch_producer import BatchProducer
from support.programs import Program
from support.streams import java_command
from support.streams_apps import Cluster

PARTITIONS = 6
FIRST_TIMESTAMP = 1_760_000_000_000
FILL_RECORDS = 500_000


def main() -> int:
    """Run the comparison and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3, help="of kops; the application runs once")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kops-benchmark-") as name, kafka(Path(name)) as servers:
        small = Rebuild(servers, Path(name), "small", options.records // 10, options.keys)
        large = Rebuild(servers, Path(name), "large", options.records, options.keys)
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


class Rebuild:
    """One application with its input."""

    def __init__(self, servers: str, folder: Path, name: str, records: int, keys: int) -> None:
        self.servers = servers
        self.folder = folder / name
        self.folder.mkdir()
        self.records = records
        self.keys = keys
        self.program = Program("sum", "long", value="long").named(name)
        self.state_file = self.folder / "state.yaml"
        self.state_file.write_text(
            f"application: {self.program.application}\n"
            "stores:\n"
            f"  {self.program.store}:\n"
            f"    from: {{topic: {self.program.topic}, key: string, value: long}}\n"
            "    aggregate: {sum: value, as: long}\n",
            encoding="utf-8",
        )

    def fill(self) -> None:
        """Write the input: keys and values by chance, always the same."""
        Cluster(self.servers).create_all({self.program.topic: PARTITIONS}, {"retention.ms": "-1"})
        producer = BatchProducer(self.program.topic, {"bootstrap.servers": self.servers})
        random = numpy.random.default_rng(7)
        keys = numpy.array([b"key-%07d" % number for number in range(self.keys)], dtype=object)
        for first in range(0, self.records, FILL_RECORDS):
            count = min(FILL_RECORDS, self.records - first)
            column = pyarrow.array(keys[random.integers(0, self.keys, count)], pyarrow.binary())
            amounts = random.integers(-1000, 1000, count).astype(">i8").tobytes()
            values = pyarrow.array([amounts[at : at + 8] for at in range(0, len(amounts), 8)], pyarrow.binary())
            times = pyarrow.array(numpy.arange(FIRST_TIMESTAMP + first, FIRST_TIMESTAMP + first + count))
            columns = [partitions_of(column, PARTITIONS), column, values, times]
            producer.write(pyarrow.table(columns, names=["partition", "key", "value", "timestamp"]))
        producer.close()

    def application(self) -> Measured:
        """Let the application process everything: until its committed offsets reach the end."""
        specification = self.folder / "program.json"
        specification.write_text(json.dumps({**self.program.as_json(), "output": None}), encoding="utf-8")
        plain = [part for part in java_command("StreamsRunner") if not part.startswith("-XX:Tiered") and part != "-XX:+UseSerialGC"]
        state = self.folder / "application"
        command = [*plain, self.servers, str(specification), str(state), "--threads", "2", "--stop-when-idle"]
        log = self.folder / "application.log"
        with log.open("w") as output:
            started = time.monotonic()
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
            peak = Peak(process.pid)
            while "CAUGHT_UP" not in log.read_text() and process.poll() is None:
                time.sleep(0.05)
            seconds = time.monotonic() - started
            process.wait(120)
        if "CAUGHT_UP" not in log.read_text():
            raise RuntimeError(log.read_text()[-2000:])
        self.kops("state", "verify", str(self.state_file))
        return Measured(seconds, peak.end())

    def rebuild(self, *, show: bool) -> Measured:
        """Empty the changelog, and time the rebuild of the state."""
        broker = Cluster(self.servers)
        broker.delete(self.program.changelog)
        broker.create(self.program.changelog, PARTITIONS, {"cleanup.policy": "compact"})
        measured = self.kops("state", "rebuild", str(self.state_file), "--yes", show=show)
        self.kops("state", "verify", str(self.state_file))
        return measured

    def kops(self, *arguments: str, show: bool = False) -> Measured:
        """Run kops as a process; with ``show`` tell when it says what."""
        started = time.monotonic()
        command = [sys.executable, "-m", "kops", "-B", self.servers, *arguments]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        peak = Peak(process.pid)
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if show:
                print(f"  {time.monotonic() - started:5.1f} s  {line.rstrip()}", flush=True)
        code = process.wait()
        seconds = time.monotonic() - started
        megabytes = peak.end()
        if code:
            raise RuntimeError(f"kops ended with {code}:\n{''.join(said)}")
        return Measured(seconds, megabytes)


if __name__ == "__main__":
    raise SystemExit(main())
