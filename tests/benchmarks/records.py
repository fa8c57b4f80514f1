"""`kops records consume` beside kcat, where it is on the PATH, and Apache's ConsumerPerformance: same broker, same records, one run.

    python tests/benchmarks/records.py [--records 3000000] [--bytes 100] [--partitions 4] [--runs 3] [--bootstrap-servers HOST:PORT]

Whole processes are timed, their start included, with their output to /dev/null; medians of the runs are printed. What is to be reached:
`records consume --raw` at or above half of kcat's records a second.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import statistics
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from measure import Measured, apache_command, kafka, kops_command, measured

GROUP = "benchmark-records"


def main() -> int:
    """Run the comparison and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=3_000_000)
    parser.add_argument("--bytes", type=int, default=100, help="of a value")
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--bootstrap-servers", help="in place of a broker of its own")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kops-benchmark-")))
        os.environ["KOPS_CONFIG_DIR"] = str(folder / "config")
        servers = options.bootstrap_servers or stack.enter_context(kafka(folder))
        nowhere = folder / "nowhere"
        nowhere.symlink_to(os.devnull)
        topic = stack.enter_context(filled(servers, options.records, options.bytes, options.partitions))
        tenth = stack.enter_context(filled(servers, options.records // 10, options.bytes, options.partitions))
        print(f"{options.records:,} records of {options.bytes} bytes in {options.partitions} partitions", flush=True)
        peer = peers(servers, topic, options.records, options.runs, nowhere)
        base = ("records", "consume", "-B", servers, "-q")
        shown = {
            "--raw": ("--raw",),
            "--format '%k %s\\n'": ("--format", "%k %s\\n"),
            "-o json": ("-o", "json"),
            "--filter key=none": ("--filter", "key=none", "--raw"),
        }
        for name, arguments in shown.items():
            runs = [measured(kops_command(*base, topic, "start..", *arguments), nowhere) for _ in range(options.runs)]
            ratio = report(f"kops records consume {name}", options.records, runs, peer)
            small = measured(kops_command(*base, tenth, "start..", *arguments), nowhere)
            print(f"    {ratio}memory {small.megabytes} MB at a tenth of the records, {max(run.megabytes for run in runs)} MB at all")
    return 0


def peers(servers: str, topic: str, records: int, runs: int, nowhere: Path) -> float:
    """Time the peers; return kcat's seconds, where it is there, else those of Apache's tool."""
    tool = [*apache_command("org.apache.kafka.tools.ConsumerPerformance"), "--bootstrap-server", servers, "--topic", topic]
    times = [measured([*tool, "--num-records", str(records)], nowhere) for _ in range(runs)]
    report("Apache ConsumerPerformance (reads, writes nothing)", records, times, None)
    found = shutil.which("kcat") or shutil.which("kafkacat")
    if found is None:
        print("kcat is not on the PATH: ratios are to Apache's tool")
        return statistics.median(run.seconds for run in times)
    command = [found, "-C", "-e", "-q", "-b", servers, "-t", topic, "-o", "beginning"]
    plain = [measured(command, nowhere) for _ in range(runs)]
    report("kcat -C", records, plain, None)
    return statistics.median(run.seconds for run in plain)


def report(name: str, records: int, runs: Sequence[Measured], peer: float | None) -> str:
    """Print records a second, and return the ratio to a peer's as text."""
    middle = statistics.median(run.seconds for run in runs)
    cpu = statistics.median(run.cpu_seconds for run in runs)
    each = ", ".join(f"{run.seconds:.1f}" for run in runs)
    print(f"{name}: {each} s, median {records / middle:,.0f} records/s; {cpu:.1f} s of CPU", flush=True)
    return f"{peer / middle:.2f} of the peer's speed; " if peer else ""


@contextlib.contextmanager
def filled(servers: str, records: int, size: int, partitions: int) -> Iterator[str]:
    """Make a topic with records for as long as it is needed."""
    admin, topic = AdminClient({"bootstrap.servers": servers}), f"{GROUP}-{uuid.uuid4().hex[:8]}"
    admin.create_topics([NewTopic(topic, num_partitions=partitions, replication_factor=1)], operation_timeout=30)[topic].result(30)
    try:
        producer = Producer(
            {"bootstrap.servers": servers, "linger.ms": 50, "partitioner": "murmur2_random", "queue.buffering.max.messages": 500_000}
        )
        for number in range(records):
            while len(producer) > 400_000:
                producer.poll(0.1)
            producer.produce(
                topic, b'{"id":%d,"text":"' % number + b"x" * (size - 19 - len(str(number))) + b'"}', b"key-%d" % (number % 100_000)
            )
        producer.flush()
        yield topic
    finally:
        admin.delete_topics([topic], operation_timeout=30)[topic].result(30)


if __name__ == "__main__":
    raise SystemExit(main())
