"""`kops groups lag` and `kops offsets reset` of all groups beside Apache's tool, and kcl where it is on the PATH: same broker, one run.

    python tests/benchmarks/groups.py [--shapes 300x1000,3000x20] [--runs 3]

A shape is groups x partitions: every group has a commit in every partition. Each shape has a broker of its own. Whole processes are
timed, their start included, with their output in a file; medians of the runs are printed, Apache's tool runs once.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from measure import Measured, apache_command, kafka, kops_command, measured

PARTITIONS_A_TOPIC = 100
RECORDS_A_PARTITION = 4
APACHE = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
FILLED_AT_ONCE = 10
MOST_MEGABYTES = 300


@dataclass(frozen=True)
class Shape:
    """How many groups there are, and in how many partitions each has commits."""

    groups: int
    partitions: int

    @property
    def topics(self) -> dict[str, int]:
        """Return the topics with their number of partitions."""
        whole, rest = divmod(self.partitions, PARTITIONS_A_TOPIC)
        sizes = [PARTITIONS_A_TOPIC] * whole + ([rest] if rest else [])
        return {f"benchmark-topic-{number:03d}": size for number, size in enumerate(sizes)}

    @property
    def lag(self) -> int:
        """Return the lag of all groups together."""
        return sum(
            RECORDS_A_PARTITION - committed(group, partition) for group in range(self.groups) for partition in range(self.partitions)
        )

    def __str__(self) -> str:
        return f"{self.groups:,} groups x {self.partitions:,} partitions"


def main() -> int:
    """Run the comparison and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", default="300x1000,3000x20")
    parser.add_argument("--runs", type=int, default=3, help="of kops and kcl")
    parser.add_argument("--no-apache", action="store_true")
    options = parser.parse_args()
    for text in options.shapes.split(","):
        shape = Shape(*map(int, text.split("x")))
        with tempfile.TemporaryDirectory(prefix="kops-benchmark-") as name, kafka(Path(name)) as servers:
            fill(servers, shape)
            print(f"\n{shape}", flush=True)
            compare(servers, shape, Path(name), options.runs, apache=not options.no_apache)
    return 0


def compare(servers: str, shape: Shape, folder: Path, runs: int, *, apache: bool) -> None:
    """Print what each tool takes for the lag of all groups, and for a reset of all of them."""
    kops = ["-B", servers, "-q"]
    lag = [*kops, "groups", "lag", "*"]
    as_json = median(kops_command(*lag, "-o", "json"), folder / "kops.json", runs)
    rows = checked(folder / "kops.json", shape)
    show("kops groups lag '*' -o json", as_json)
    print(f"    {as_json.seconds / rows * 1e6:.1f} us a row of {rows:,}", flush=True)
    as_table = median(kops_command(*lag), folder / "kops.txt", runs)
    show("kops groups lag '*'", as_table)
    show("kops groups lag '*' --by group", median(kops_command(*lag, "--by", "group"), folder / "by.txt", runs))
    reset = ["offsets", "reset", "*", "--all-topics", "--to-earliest"]
    planned = median(kops_command(*kops, *reset, "--dry-run", "-o", "json"), folder / "plan.json", runs)
    show("kops offsets reset '*' --dry-run", planned)
    if apache:
        tool = [*apache_command(APACHE), "--bootstrap-server", servers]
        described = measured([*tool, "--describe", "--all-groups"], folder / "apache.txt")
        show("Apache --describe --all-groups", described, to=as_table)
        all_of_it = ["--reset-offsets", "--all-groups", "--all-topics", "--to-earliest"]
        dry = measured([*tool, *all_of_it, "--dry-run"], folder / "apache-plan.txt")
        show("Apache --reset-offsets --dry-run", dry, to=planned)
    if kcl := shutil.which("kcl"):
        asked = [kcl, "--no-config-file", "-B", servers, "group", "describe"]
        show("kcl group describe --format json", median([*asked, "--format", "json"], folder / "kcl.json", runs), to=as_json)
        show("kcl group describe", median(asked, folder / "kcl.txt", runs), to=as_table)
    applied = measured(kops_command(*kops, *reset, "--yes", "-o", "json"), folder / "applied.json")
    show("kops offsets reset '*' --yes (planned, applied, read back)", applied)
    if apache:
        print(f"    {applied.seconds / dry.seconds:.2f} of Apache's planning alone", flush=True)


def checked(output: Path, shape: Shape) -> int:
    """Return the number of rows of a JSON output, after seeing that it is right."""
    found = json.loads(output.read_text())
    assert len(found) == shape.groups * shape.partitions, len(found)
    assert sum(row["lag"] for row in found) == shape.lag
    return len(found)


def median(command: Sequence[str], output: Path, runs: int) -> Measured:
    """Run a command some times, and return the run in the middle with the most memory of all."""
    done = [measured(command, output) for _ in range(runs)]
    middle = statistics.median_low(run.seconds for run in done)
    run = next(run for run in done if run.seconds == middle)
    return Measured(run.seconds, max(run.megabytes for run in done), run.cpu_seconds)


def show(what: str, run: Measured, *, to: Measured | None = None) -> None:
    """Print a measurement, and how many times as long it took as another."""
    ratio = f"  {run.seconds / to.seconds:5.1f} times kops" if to else ""
    too_much = f" (more than {MOST_MEGABYTES})" if to is None and run.megabytes > MOST_MEGABYTES else ""
    print(f"  {what:60} {run.seconds:6.2f} s  CPU {run.cpu_seconds:6.2f} s  {run.megabytes:4} MB{too_much}{ratio}", flush=True)


def committed(group: int, partition: int) -> int:
    """Return the offset that a group has committed in a partition: not everywhere the same."""
    return (group + partition) % (RECORDS_A_PARTITION + 1)


def fill(servers: str, shape: Shape) -> None:
    """Make topics with records, and groups with commits but without members."""
    admin = AdminClient({"bootstrap.servers": servers})
    new = [NewTopic(name, size, 1) for name, size in shape.topics.items()]
    for created in admin.create_topics(new, operation_timeout=120, request_timeout=120).values():
        created.result(120)
    places = [(name, number) for name, size in shape.topics.items() for number in range(size)]
    producer = Producer({"bootstrap.servers": servers, "queue.buffering.max.messages": 1_000_000})
    for name, number in places:
        for _ in range(RECORDS_A_PARTITION):
            producer.produce(name, b"x", partition=number)
    assert producer.flush(300) == 0
    left = list(range(shape.groups))
    while left:  # the coordinator may be loading, or not have heard of the topics yet
        some, left = left[:FILLED_AT_ONCE], left[FILLED_AT_ONCE:]
        left += commit(admin, places, some)


def commit(admin: AdminClient, places: Sequence[tuple[str, int]], groups: Sequence[int]) -> list[int]:
    """Commit offsets of some groups, and return those that have to be done again."""
    futures = {}
    for group in groups:
        group_id = f"benchmark-group-{group:05d}"
        offsets = [TopicPartition(*place, committed(group, index)) for index, place in enumerate(places)]
        futures[group] = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group_id, offsets)], request_timeout=60)[group_id]
    return [group for group, future in futures.items() if not done(future)]


def done(future: Future[ConsumerGroupTopicPartitions]) -> bool:
    """Return whether all offsets of a group are committed."""
    try:
        return not any(at.error for at in future.result(60).topic_partitions)
    except (KafkaException, FutureTimeout):
        return False


if __name__ == "__main__":
    raise SystemExit(main())
