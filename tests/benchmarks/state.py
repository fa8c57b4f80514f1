"""State of windows, skewed keys and joined tables rebuilt, beside applications reprocessing; a long changelog verified, beside a bare one.

    python tests/benchmarks/state.py [windows] [join] [skewed-sum] [skewed-windows] [verify] [--records 10000000] [--runs 2]

Same broker, same machine, one run. kops is timed as a whole process with one core and with two, Python's and Spark's start included, and
kops verifies both what the application wrote and what it rebuilt. Where keys are skewed, 90 % of the records have the same. The bare read
is Apache's console consumer, its output thrown away.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import pyarrow
from applications import PARTITIONS, Input, Rebuild, write
from measure import apache_command, kafka

from support.programs import Program, Window
from support.streams_apps import Cluster
from support.tables import TableProgram

HOUR_MS = 3_600_000
HOT = 0.9
WHAT = {
    "windows": "windowed count",
    "join": "table join",
    "skewed-sum": "sum of skewed keys",
    "skewed-windows": "windowed count of skewed keys",
    "verify": "verify",
}
MASTERS = {1: "local[1]", 2: "local[2]"}


def main() -> int:
    """Run the comparisons and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", metavar="what", help=f"{', '.join(WHAT)}: all unless named")
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=2, help="of kops with each number of cores; the applications run once")
    options = parser.parse_args()
    if unknown := {*options.what} - {*WHAT}:
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    start = int(time.time() * 1000) - options.records - HOUR_MS  # windows that have not expired
    with tempfile.TemporaryDirectory(prefix="kops-benchmark-") as name, kafka(Path(name)) as servers:
        folder = Path(name)
        for what, made in MADE.items():
            if what in (options.what or WHAT):
                compare(WHAT[what], made(servers, folder, options.records, start), options.runs)
        if "verify" in (options.what or WHAT):
            verify(servers, folder, options.records, start, options.runs)
    return 0


def compare(what: str, rebuild: Rebuild, runs: int) -> None:
    """Let an application process its input, and kops rebuild what it holds."""
    rebuild.fill()
    application = rebuild.application()
    line = f"{what}: Kafka Streams, 2 threads, {rebuild.records:,} records: {application.seconds:.1f} s, {application.megabytes} MB"
    print(f"{line} (load {os.getloadavg()[0]:.1f})", flush=True)
    rebuild.rebuild(show=False)
    for cores, master in MASTERS.items():
        found = [rebuild.rebuild("--master", master, show=cores > 1 and not number) for number in range(runs)]
        middle = statistics.median(run.seconds for run in found)
        each = ", ".join(f"{run.seconds:.1f}" for run in found)
        ratio = application.seconds / middle
        load = os.getloadavg()[0]
        print(
            f"{what}: kops on {cores} core(s): {each} s, {ratio:.2f} times faster, {found[-1].megabytes} MB (load {load:.1f})", flush=True
        )


def windows(servers: str, folder: Path, records: int, start: int, *, hot: float = 0.0) -> Rebuild:
    """Return an application that counts in minutes."""
    window = Window("window", 60_000, grace=10_000, retention=24 * HOUR_MS)
    program = Program("count", "long", value="long", window=window).named("hot-windows" if hot else "windows")
    content = Input(records, records // (100 if hot else 1000), start, hot=hot)
    return Rebuild(servers, folder, program, {program.topic: content}, {program.changelog: "compact,delete"})


def skewed_sum(servers: str, folder: Path, records: int, start: int) -> Rebuild:
    """Return an application that adds up, for one key most of the time."""
    program = Program("sum", "long", value="long").named("hot-sum")
    content = Input(records, records // 100, start, hot=HOT)
    return Rebuild(servers, folder, program, {program.topic: content}, {program.changelog: "compact"})


def join(servers: str, folder: Path, records: int, start: int) -> Rebuild:
    """Return an application that joins two tables."""
    users, answers = "join-in-users", "join-in-answers"
    text = {"key": "string", "value": "string"}
    program = TableProgram(
        (
            {"name": "users", "topic": users, **text},
            {"name": "answers", "topic": answers, **text},
            {"name": "people", "join": {"left": "users", "right": "answers", "kind": "inner", "as": "string"}, "store": True},
        ),
        {
            "users": {"from": {"topic": users, **text}},
            "answers": {"from": {"topic": answers, **text}},
            "people": {
                "from": {"table": "users"},
                "join": {"table": "answers", "value": "concat(left, '|', right)", "as": "string"},
            },
        },
        application="join-app",
    )
    inputs = {topic: Input(records // 2, records // 20, start, text=True, seed=seed) for seed, topic in enumerate((users, answers))}
    return Rebuild(servers, folder, program, inputs, {program.changelog(store): "compact" for store in program.stores})


MADE = {"windows": windows, "join": join, "skewed-sum": skewed_sum, "skewed-windows": partial(windows, hot=HOT)}
"""What is rebuilt, by name."""


def verify(servers: str, folder: Path, records: int, start: int, runs: int) -> None:
    """Verify a changelog in which each key was written ten times, and read it with Apache's console consumer."""
    program = Program("table", "long", value="long").named("long")
    rebuild = Rebuild(servers, folder, program, {program.topic: Input(0, 1, start)}, {program.changelog: "compact"})
    rebuild.fill()
    tables = list(Input(records // 10, records // 10, start).tables())
    write(servers, program.topic, tables)
    Cluster(servers).create(program.changelog, PARTITIONS, {"cleanup.policy": "compact", "min.compaction.lag.ms": str(HOUR_MS)})
    write(servers, program.changelog, (table for time_ in range(10) for table in older(tables, 9 - time_)))
    rebuild.kops("offsets", "reset", program.application, "--topic", program.topic, "--to-latest", "--new-group", "--yes")
    seconds = [rebuild.kops("state", "verify", str(rebuild.state_file)).seconds for _ in range(runs)]
    command = [*apache_command("org.apache.kafka.tools.consumer.ConsoleConsumer"), "--bootstrap-server", servers, "--from-beginning"]
    options = ["--topic", program.changelog, "--max-messages", str(records), "--formatter-property", "print.key=true"]
    begun = time.monotonic()
    subprocess.run([*command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    bare = time.monotonic() - begun
    each = ", ".join(f"{run:.1f}" for run in seconds)
    ratio = statistics.median(seconds) / bare
    print(f"verify of {records:,} changelog records: kops {each} s, console consumer {bare:.1f} s: {ratio:.2f} times a bare read")


def older(tables: Iterable[pyarrow.Table], by: int) -> Iterable[pyarrow.Table]:
    """Yield records that were written some milliseconds before, with the values of other keys."""
    from pyarrow import compute

    for table in tables:
        times = compute.subtract(table["timestamp"], by)
        values = pyarrow.concat_tables([table.slice(by), table.slice(0, by)])["value"]
        yield table.set_column(3, "timestamp", times).set_column(2, "value", values)


if __name__ == "__main__":
    raise SystemExit(main())
