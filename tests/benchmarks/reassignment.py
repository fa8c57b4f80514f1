"""`kops topics reassign --balance` beside Apache's kafka-reassign-partitions: same brokers, same data, one run.

    python tests/benchmarks/reassignment.py [--partitions 300] [--kilobytes 500] [--paper 5000]

Two topics lie on two of three brokers, in racks of their own, and each tool evens one out. Whole processes are timed, their start included;
Apache's are --generate, --execute, and --verify until it says that all is complete.
On paper, both plan for partitions of 0 to 1 GiB at random, on three brokers of three racks, which are to be even on three and on five.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
import time
from collections import Counter
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from measure import apache_command, kafka, kops_command, measured

from kops.core.replicas.planner import Aim, plan_replicas
from support.placements import apaches, copied, counts, made, racks_of, width

APACHE = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"


def main() -> int:
    """Run the comparison and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=300)
    parser.add_argument("--kilobytes", type=int, default=500, help="of each partition")
    parser.add_argument("--paper", type=int, default=5000, help="partitions that are only planned for")
    options = parser.parse_args()
    for brokers, factor in ((3, 2), (5, 3)):
        on_paper(options.paper, brokers, factor)
    with tempfile.TemporaryDirectory(prefix="kops-benchmark-") as name:
        folder = Path(name)
        os.environ |= {"KOPS_CONFIG_DIR": str(folder / "config"), "XDG_STATE_HOME": str(folder / "state")}
        with kafka(folder, brokers=3) as servers:
            admin = AdminClient({"bootstrap.servers": servers})
            print(f"{options.partitions} partitions of {options.kilobytes} KB with two replicas, on two of three brokers", flush=True)
            for who, move in (("kops", by_kops), ("apache", by_apache)):
                fill(servers, admin, who, options.partitions, options.kilobytes)
                before = placed(admin, who)
                seconds = move(servers, who, folder)
                report(who, before, placed(admin, who), options.kilobytes, seconds)
    return 0


def on_paper(partitions: int, brokers: int, factor: int) -> None:
    """Print what each planner copies to make some partitions even, and how even it is then."""
    before, sizes = made(partitions, (1, 2, 3), factor, seed=brokers)
    racks = racks_of(brokers)
    started = time.process_time()
    aim = Aim(frozenset(racks), balance=True)
    mine = {**before, **plan_replicas(before, aim, racks, sizes=sizes)}
    seconds = time.process_time() - started
    print(f"{partitions:,} partitions with {factor} replicas, on paper, from three to {brokers} brokers", flush=True)
    for who, after in (("kops", mine), ("apache", apaches(before, racks))):
        gigabytes = copied(before, after, sizes) / 2**30
        uneven = [width(counts(after, leaders=leaders), racks) for leaders in (False, True)]
        print(f"{who:8} {gigabytes:8.1f} GiB copied, replicas uneven by {uneven[0]}, leaders by {uneven[1]}", flush=True)
    print(f"         kops' planner: {seconds:.2f} s of processor time", flush=True)


def fill(servers: str, admin: AdminClient, topic: str, partitions: int, kilobytes: int) -> None:
    """Make a topic on brokers 1 and 2."""
    replicas = [[1, 2] if number % 2 else [2, 1] for number in range(partitions)]
    admin.create_topics([NewTopic(topic, partitions, replica_assignment=replicas)])[topic].result(60)
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 50})
    for number in range(partitions):
        for _ in range(kilobytes // 10):
            producer.produce(topic, os.urandom(10_000), partition=number)
        producer.flush()


def placed(admin: AdminClient, topic: str) -> dict[int, list[int]]:
    """Return the replicas of each partition."""
    found = admin.list_topics(topic, timeout=60).topics[topic].partitions
    return {number: list(part.replicas) for number, part in found.items()}


def by_kops(servers: str, topic: str, folder: Path) -> float:
    """Return the seconds that it took."""
    return measured(kops_command("topics", "reassign", topic, "--balance", "--yes", "-B", servers), folder / "kops.out").seconds


def by_apache(servers: str, topic: str, folder: Path) -> float:
    """Return the seconds that the three commands took together."""
    topics, plan, out = folder / "topics.json", folder / "plan.json", folder / "apache.out"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    tool = [*apache_command(APACHE), "--bootstrap-server", servers]
    seconds = measured([*tool, "--generate", "--topics-to-move-json-file", str(topics), "--broker-list", "1,2,3"], out).seconds
    plan.write_text(re.findall(r"^\{.*\}$", out.read_text(), re.MULTILINE)[-1])
    seconds += measured([*tool, "--execute", "--reassignment-json-file", str(plan)], out).seconds
    while True:
        seconds += measured([*tool, "--verify", "--reassignment-json-file", str(plan)], out).seconds
        if "is still in progress" not in out.read_text():
            return seconds


def report(who: str, before: dict[int, list[int]], after: dict[int, list[int]], kilobytes: int, seconds: float) -> None:
    """Print what was copied, how even it is, and how long it took."""
    copies = sum(len(set(replicas) - set(before[number])) for number, replicas in after.items())
    held = Counter(broker for replicas in after.values() for broker in replicas)
    led = Counter(replicas[0] for replicas in after.values())
    uneven = [max(found[broker] for broker in (1, 2, 3)) - min(found[broker] for broker in (1, 2, 3)) for found in (held, led)]
    copied = copies * kilobytes / 1000
    print(f"{who:8} {copied:8.1f} MB copied, replicas uneven by {uneven[0]}, leaders by {uneven[1]}, {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
